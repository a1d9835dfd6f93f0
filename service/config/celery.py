"""The Celery application; its settings are in settings/celery.py."""

from celery import Celery

app = Celery("trimtab")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
