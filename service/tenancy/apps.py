"""Django application `tenancy`."""

from django.apps import AppConfig


class TenancyConfig(AppConfig):
    """Names the application and its label."""

    name = "service.tenancy"
    label = "tenancy"
