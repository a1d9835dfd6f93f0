"""Django application `live`."""

from django.apps import AppConfig


class LiveConfig(AppConfig):
    """Names the application and its label."""

    name = "service.live"
    label = "live"
