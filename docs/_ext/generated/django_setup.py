"""Django, for the parts of the reference that read the service's registries. No database is needed."""

import os


def set_up() -> None:
    """Set up Django once, with the settings of tests."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.test")
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()
