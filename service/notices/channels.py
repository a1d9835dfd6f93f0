"""Channels: webhooks and mail addresses that receive a tenant's notices."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError
from django.db.models import F
from django.db.models.functions import Now

from service.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound, ResourceExhausted
from service.core.reasons import Reason
from service.notices import notices
from service.notices.models import Channel, Delivery, Kind, Medium, Notice
from service.tenancy import access, audit, pages
from service.tenancy.conditions import Column, select
from service.tenancy.pages import Page
from service.tenancy.principal import Principal

# The kinds that a channel can subscribe to.
KINDS = tuple(kind for kind in Kind if kind is not Kind.TEST)
# Test notices that a tenant may send in a minute, through all its channels.
TESTS_PER_MINUTE = 10
_LONGEST_TARGET = 500
_URL = re.compile(r"[!-~]+")
# The columns of deliveries that conditions can name.
COLUMNS: Mapping[str, Column] = {
    "kind": Column(F("notice__kind"), "word"),
    "study": Column(F("notice__study")),
    "state": Column(F("state"), "word"),
    "attempts": Column(F("attempts"), "number"),
    "status": Column(F("status"), "number"),
    "error": Column(F("error")),
    "time": Column(F("created_at"), "time"),
}


def create(principal: Principal, medium: str, target: str, kinds: Sequence[str]) -> tuple[Channel, str]:
    """Create a channel and return it with the secret of its signatures, which is not shown again; empty for mail.

    Raises InvalidInput, Conflict (`mail_not_configured`), AlreadyExists (`channel_exists`) and ResourceExhausted
    (`quota_exceeded`).
    """
    if medium not in list(Medium):
        raise InvalidInput("medium", medium, ", ".join(Medium))
    if not kinds or not set(kinds) <= {*KINDS}:
        raise InvalidInput("kinds", list(kinds), f"at least one of {', '.join(KINDS)}")
    (_check_mail if medium == Medium.MAIL else _check_url)(target)
    secret = base64.b64encode(secrets.token_bytes(32)).decode() if medium == Medium.WEBHOOK else ""
    most = settings.TRIMTAB_CHANNELS_PER_TENANT
    try:
        with access.work(principal):
            if access.rows(Channel, principal).count() >= most:
                raise ResourceExhausted(
                    "quota_exceeded",
                    f"The tenant has {most} channels, which is the limit. Delete one.",
                    quota="channels",
                )
            channel = access.add(
                principal,
                Channel(
                    medium=medium, target=target, secret=secret, kinds=sorted(set(kinds)), created_by=principal.actor
                ),
            )
            audit.record(principal, "channel.create", _target(channel), after=_shown(channel))
    except IntegrityError:
        raise AlreadyExists("channel_exists", f"A channel to {target!r} exists already.") from None
    return get(principal, str(channel.pk)), f"whsec_{secret}" if secret else ""


def delete(principal: Principal, channel_id: str) -> None:
    """Delete a channel with the log of its deliveries. Raises NotFound."""
    with access.work(principal):
        channel = get(principal, channel_id)
        audit.record(principal, "channel.delete", _target(channel), before=_shown(channel))
        access.rows(Channel, principal).filter(pk=channel.pk).delete()


def test(principal: Principal, channel_id: str) -> Delivery:
    """Send a test notice through a channel, and return its delivery.

    Raises NotFound, and ResourceExhausted (`rate_limited`) if the tenant has sent too many in the last minute.
    """
    with access.work(principal):
        channel = get(principal, channel_id)
        _expect_rate(principal)
        audit.record(principal, "channel.test", _target(channel))
        text = f"{principal.actor} tests the channel to {channel.target}."
        reason = Reason(text, "channel_test", actor=principal.actor, target=channel.target)
        notice = notices.add(principal, Kind.TEST, reason=reason)
        return notices.send(principal, notice, channel)


def _expect_rate(principal: Principal) -> None:
    """Refuse a test notice of a tenant that has sent too many in the last minute. Raises ResourceExhausted."""
    # With the rows locked, two calls at the same time count one after the other.
    list(access.rows(Channel, principal).select_for_update().order_by("pk").values_list("pk"))
    lately = access.rows(Notice, principal).filter(kind=Kind.TEST, created_at__gt=Now() - timedelta(minutes=1))
    if lately.count() >= TESTS_PER_MINUTE:
        raise ResourceExhausted(
            "rate_limited",
            f"The tenant may send {TESTS_PER_MINUTE} test notifications a minute. Try again in a minute.",
            retryable=True,
            quota="channel_tests_per_minute",
            limit=TESTS_PER_MINUTE,
            retry_after_seconds=60,
        )


def get(principal: Principal, channel_id: str) -> Channel:
    """Return a channel by its id. Raises NotFound."""
    try:
        found = access.rows(Channel, principal).filter(pk=UUID(channel_id)).first()
    except ValueError:
        found = None
    if found is None:
        raise NotFound("channel_not_found", f"There is no channel {channel_id!r}.")
    return found


def every(principal: Principal) -> list[Channel]:
    """Return all channels of the tenant, the oldest first."""
    return list(access.rows(Channel, principal).order_by("created_at", "id"))


def deliveries(
    principal: Principal, channel_id: str, *, where: Sequence[str] = (), page_size: int = 0, page_token: str = ""
) -> Page[Delivery]:
    """Return a page of a channel's deliveries that meet all conditions, with their notices, the newest first.

    Raises NotFound, InvalidInput.
    """
    channel = get(principal, channel_id)
    rows = access.rows(Delivery, principal).filter(channel=channel).select_related("notice")
    return pages.page(select(rows, where, COLUMNS), "-pk", page_size, page_token)


def _check_url(target: str) -> None:
    allowed = f"an address such as https://chat.example.org/hooks/1, with at most {_LONGEST_TARGET} characters"
    try:
        parts = urlsplit(target)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address or not _URL.fullmatch(target) or len(target) > _LONGEST_TARGET:
        raise InvalidInput("target", target, allowed)
    if parts.username is not None or parts.fragment:
        raise InvalidInput("target", target, "an address without a user name and without a fragment")


def _check_mail(target: str) -> None:
    if not settings.EMAIL_HOST:
        raise Conflict(
            "mail_not_configured", "The service has no mail server. The operator sets one with TRIMTAB_MAIL_HOST."
        )
    try:
        validate_email(target)
    except ValidationError:
        raise InvalidInput("target", target, "a mail address such as team@example.org") from None
    if len(target) > _LONGEST_TARGET:
        raise InvalidInput("target", target, f"at most {_LONGEST_TARGET} characters")


def _target(channel: Channel) -> str:
    return f"channel/{channel.pk}"


def _shown(channel: Channel) -> dict[str, object]:
    return {"medium": channel.medium, "target": channel.target, "kinds": channel.kinds}
