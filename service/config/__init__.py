"""Wiring: settings, URLs, ASGI and Celery. Holds no logic of the product."""

# Loaded with Django's settings, so that every process sends its tasks with this project's configuration.
from service.config.celery import app as celery_app

__all__ = ["celery_app"]
