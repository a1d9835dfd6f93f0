"""Deliveries: each is tried a bounded number of times, and the row says how each attempt ended.

They have a queue of their own, which the process `beat` empties, so that a slow receiver delays no suggestion. Threads
of that process send them, and the tenants take turns.
"""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import BadHeaderError, EmailMessage
from django.db import connections
from django.db.models.functions import Now

from service.core.errors import shorten
from service.logger import Logger
from service.notices import messages, webhook
from service.notices.models import Delivery, DeliveryState, Kind, Medium, Notice
from service.notices.webhook import NotDelivered
from service.platform import valid_json
from service.platform.addresses import networks
from service.platform.fair_pool import FairPool
from service.studies.isolated import isolated
from service.tenancy import access
from service.tenancy.principal import Principal

# How long after each attempt the next one follows; the attempt after the last wait is the last.
WAITS = [timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6)]
MOST_ATTEMPTS = len(WAITS) + 1
# Deliveries that are sent at the same time: in one process, and of one tenant. A slow receiver takes ten seconds.
MOST_AT_ONCE, MOST_OF_TENANT = 16, 2
# Deliveries of a tenant that wait in memory. The sweep sends the messages of further ones again.
_MOST_WAITING = 200
_LONGEST_ERROR = 500
_LONGEST_QUOTATION = 2000
_TITLES = {
    Kind.STUDY_ENDED: "Study {study} has ended",
    Kind.STUDY_FAILED: "Study {study} has failed and is paused",
    Kind.GAIN_PROVEN: "Study {study} has proven a gain",
    Kind.RECORD_WITHDRAWN: "The record of study {study} was withdrawn",
    Kind.LIVE_APPROVAL: "A live trial of study {study} waits for an approval",
    Kind.LIVE_KEPT: "Live study {study} has kept settings",
    Kind.LIVE_GUARD: "A live trial of study {study} has broken a guard",
    Kind.LIVE_REVERTED: "Settings of live study {study} were taken back",
    Kind.LIVE_STUCK: "Settings of live study {study} cannot be taken back: a person must act",
    Kind.TEST: "Test of a channel",
}

logger = Logger(__name__)
_pool = FairPool("deliveries", most=MOST_AT_ONCE, share=MOST_OF_TENANT, waiting=_MOST_WAITING)


def deliver_soon(tenant_id: int, delivery_id: int) -> None:
    """Try a delivery in a thread when it is the tenant's turn."""

    def run() -> None:
        try:
            deliver(tenant_id, delivery_id)
        finally:
            # The thread may end, or wait for long.
            connections.close_all()

    _pool.submit(tenant_id, delivery_id, run)


def deliver(tenant_id: int, delivery_id: int) -> None:
    """Try a delivery once if it is due. Otherwise, or if another thread tries it, nothing happens."""
    principal = Principal.system(tenant_id)
    mine = access.rows(Delivery, principal).filter(pk=delivery_id)
    due = mine.filter(state=DeliveryState.PENDING, due_at__lte=Now())
    attempts = due.values_list("attempts", flat=True).first()
    if attempts is None:
        return
    # If this process dies, the delivery is due again after the wait.
    wait = WAITS[min(attempts, len(WAITS) - 1)]
    if not due.filter(attempts=attempts).update(attempts=attempts + 1, due_at=Now() + wait, enqueued_at=Now()):
        return
    delivery = mine.select_related("notice", "channel").first()
    if delivery is None:
        return
    try:
        status = _send(delivery)
    except NotDelivered as failure:
        over = failure.lasting or delivery.attempts >= MOST_ATTEMPTS
        changes = {"state": DeliveryState.FAILED, "finished_at": Now()} if over else {}
        mine.update(status=failure.status, error=shorten(failure.reason, _LONGEST_ERROR), **changes)
        logger.info("a delivery was not successful", delivery=delivery.pk, reason=failure.reason)
    else:
        mine.update(state=DeliveryState.DELIVERED, status=status, error="", finished_at=Now())


def send_due() -> None:
    """Send the messages of deliveries that are due: of retries, and of those whose message was lost."""
    for tenant_id, delivery_id in access.across("due_deliveries"):
        isolated(partial(_send_again, tenant_id, delivery_id), tenant_id)


def _send_again(tenant_id: int, delivery_id: int) -> None:
    row = access.rows(Delivery, Principal.system(tenant_id)).filter(pk=delivery_id)
    if row.update(enqueued_at=Now()):
        messages.send(tenant_id, delivery_id)


def title_of(notice: Notice) -> str:
    """Return the title of a notice in English, for mail and webhooks. The console has its own texts."""
    return _TITLES[Kind(notice.kind)].format(study=notice.study)


def _send(delivery: Delivery) -> int | None:
    if delivery.channel.medium == Medium.MAIL:
        _send_mail(delivery)
        return None
    return _send_webhook(delivery)


def _send_webhook(delivery: Delivery) -> int:
    body = valid_json.dumps({"type": delivery.notice.kind, **_content(delivery)}, ensure_ascii=False).encode()
    message_id, now = f"delivery_{delivery.pk}", int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "trimtab",
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
        "webhook-signature": webhook.signature(delivery.channel.secret, message_id, now, body),
    }
    return webhook.post(delivery.channel.target, headers, body, networks(settings.TRIMTAB_WEBHOOK_NETWORKS))


def _send_mail(delivery: Delivery) -> None:
    notice = delivery.notice
    # Text of users is quoted, so that no reader takes its links for the service's own.
    lines = [f"{title_of(notice)}.", _quoted(notice.reason), _link(notice)]
    mail = EmailMessage(
        f"Trimtab: {title_of(notice)}",
        "\n\n".join(line for line in lines if line),
        to=[delivery.channel.target],
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except BadHeaderError as error:
        raise NotDelivered(f"The message cannot be written: {error}.", lasting=True) from error
    except (OSError, SMTPException) as error:
        raise NotDelivered(f"The mail server did not accept the message: {error}.") from error


def _quoted(text: str) -> str:
    """Return a text as a quotation: each line after a ">", with visible control characters. It is cut if it is long."""
    lines = shorten(text, _LONGEST_QUOTATION).splitlines()
    return "\n".join("> " + "".join(one if one.isprintable() else repr(one)[1:-1] for one in line) for line in lines)


def _content(delivery: Delivery) -> dict[str, object]:
    notice = delivery.notice
    data = {"id": notice.pk, "title": title_of(notice), "study": notice.study, "record": notice.record}
    return {"timestamp": notice.created_at.isoformat(), "data": {**data, "reason": notice.reason, "url": _link(notice)}}


def _link(notice: Notice) -> str:
    """Return the address of the notice's subject in the console; empty if the operator has not stated the console's."""
    base = settings.TRIMTAB_CONSOLE_URL.rstrip("/")
    if not base:
        return ""
    if notice.record is not None:
        return f"{base}/matching/records/{notice.record}"
    return f"{base}/studies/{notice.study}" if notice.study else base
