"""Django application `identity`."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """Names the application and its label."""

    name = "service.identity"
    label = "identity"
