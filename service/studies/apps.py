"""Django application `studies`."""

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "service.studies"
    label = "studies"
