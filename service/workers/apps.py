"""Django application of the package `service.workers`."""

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """Owns no table; Celery finds its tasks by it."""

    name = "service.workers"
    label = "workers"
