"""Settings of Celery. A task carries only identifiers: PostgreSQL holds all state, and the broker only notifies."""

from datetime import timedelta
from typing import Any

SWEEP_SECONDS = 2.0

# A computation may take seconds and has a worker to itself. Short periodic tasks and deliveries of notifications
# must not wait for it, nor it for them, so they have their own queues, which the `beat` process empties.
CELERY_TASK_DEFAULT_QUEUE = "compute"
CELERY_TASK_ROUTES = {"service.*.tasks.sweep": {"queue": "sweep"}}
# A message in another form, such as a pickle, could run code of whoever wrote it. It is discarded.
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None

CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    f"{package}-sweep": {
        "task": f"service.{package}.tasks.sweep",
        "schedule": timedelta(seconds=SWEEP_SECONDS),
        # A late sweep is dropped, since the next one replaces it.
        "options": {"expires": SWEEP_SECONDS, "ignore_result": True},
    }
    for package in ("workers", "fleet")
}
