"""The broker, and the process `beat` that empties its queue of periodic tasks. Needs Django's settings."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError

from service.config.celery import app
from service.doctor.findings import Deployment, Finding, ok, problem

# Expires the leases of silent agents, as it does every other second.
TASK = "service.fleet.tasks.sweep"
QUEUE = "sweep"


def answers(deployment: Deployment) -> Finding:
    """Check that the broker accepts a connection."""
    with app.connection() as connection:
        name = f"{deployment.data}/broker" if deployment.data else connection.as_uri()
        try:
            _open(connection)
        except OperationalError as error:
            return problem(f"{name} does not answer: {error}", "start the broker, or correct CELERY_BROKER_URL")
    return ok(f"{name} answers")


def beat(deployment: Deployment) -> Finding:
    """Check that a process takes tasks from the queue of `beat`, by one more task of the kind that it runs anyway."""
    app.send_task(TASK, queue=QUEUE, expires=deployment.seconds, ignore_result=True)
    end = time.monotonic() + 0.8 * deployment.seconds
    with app.connection() as connection:
        _open(connection)
        while _waiting(connection):
            if time.monotonic() > end:
                start = "start it: trimtab-service beat" if deployment.data is None else "see DATA_DIR/logs/beat.log"
                return problem("beat does not take its tasks, so silent agents keep their trials", start)
            time.sleep(0.1)
    return ok("beat runs its periodic tasks")


def _waiting(connection: Connection) -> int:
    """Return the number of messages in the queue. Redis has no queue without messages."""
    channel: Any = connection.default_channel  # its methods have no types
    try:
        return int(channel.queue_declare(queue=QUEUE, passive=True).message_count)
    except connection.channel_errors:
        return 0


def _open(connection: Connection) -> None:
    options = getattr(settings, "CELERY_BROKER_TRANSPORT_OPTIONS", {})
    connection.ensure_connection(max_retries=1, timeout=options.get("socket_connect_timeout", 2))
