"""Django application `matching`."""

from django.apps import AppConfig


class MatchingConfig(AppConfig):
    """Names the application and its label."""

    name = "service.matching"
    label = "matching"
