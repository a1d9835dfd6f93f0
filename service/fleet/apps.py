"""Django application `fleet`."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """Names the application and its label."""

    name = "service.fleet"
    label = "fleet"
