"""Django application `studies`."""

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    """Names the application and its label."""

    name = "service.studies"
    label = "studies"
