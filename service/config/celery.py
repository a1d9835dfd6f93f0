"""The Celery application; its settings are in settings/celery.py."""

from celery import Celery, signals

app = Celery("trimtab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _leave_logging(**_: object) -> None:
    """Keep Celery from changing the logging that Django has set up: it would raise the root's level to WARNING."""
