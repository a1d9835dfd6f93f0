"""Django application `identity`."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """Name and label of the application."""

    name = "service.identity"
    label = "identity"
