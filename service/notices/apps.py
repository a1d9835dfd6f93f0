"""Django application `notices`."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """Name and label of the application."""

    name = "service.notices"
    label = "notices"
