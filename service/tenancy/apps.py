"""Django application `tenancy`."""

from django.apps import AppConfig


class TenancyConfig(AppConfig):
    name = "service.tenancy"
    label = "tenancy"
