"""Django application `identity`."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    name = "service.identity"
    label = "identity"
