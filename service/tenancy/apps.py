"""Django application `tenancy`."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class TenancyConfig(AppConfig):
    """Names the application and its label, and sees to the tables' protection."""

    name = "service.tenancy"
    label = "tenancy"

    def ready(self) -> None:
        """Protect all tables after every migration, and let Django's checks look at them."""
        from service.tenancy import protection

        def protect(using: str, **about: Any) -> None:
            # Also sent after a flush, which migrates nothing.
            if "plan" in about:
                protection.protect(using)

        post_migrate.connect(protect, sender=self, weak=False)
        checks.register(protection.check, checks.Tags.database)
