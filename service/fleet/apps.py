"""Django application `fleet`."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    name = "service.fleet"
    label = "fleet"
