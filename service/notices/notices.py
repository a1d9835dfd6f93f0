"""Notices: written in the transaction of what they are about, listed, and marked as read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Greatest

from service.core.errors import InvalidInput
from service.core.reasons import restored, stored
from service.notices import messages
from service.notices.models import Channel, Delivery, Kind, Notice, Reader
from service.studies.change import Work
from service.studies.listen_notify import notify_lists
from service.tenancy import access, pages
from service.tenancy.conditions import Column, select
from service.tenancy.pages import Page
from service.tenancy.principal import Principal

LIST = "notices"
# A higher number of unread notices is not counted.
MOST_UNREAD = 100
# The columns that conditions can name.
COLUMNS: Mapping[str, Column] = {
    "kind": Column(F("kind"), "word"),
    "study": Column(F("study")),
    "reason": Column(F("reason")),
    "time": Column(F("created_at"), "time"),
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of notices, the number of unread ones (at most MOST_UNREAD), and the last notice that was read."""

    page: Page[Notice]
    unread: int
    seen: int


def study_ended(work: Work, gain: str = "") -> None:
    """Write that the study of this change has ended; with a `gain`, that it has proven this gain."""
    study = work.study
    if gain:
        add(work.principal, Kind.GAIN_PROVEN, study=study.name, reason=gain)
    else:
        add(work.principal, Kind.STUDY_ENDED, study=study.name, reason=_state_reason(work))


def study_failed(work: Work) -> None:
    """Write that the service has paused the study of this change, because it cannot go on."""
    add(work.principal, Kind.STUDY_FAILED, study=work.study.name, reason=_state_reason(work))


def record_withdrawn(principal: Principal, record: int, study: str, reason: str) -> None:
    """Write that no job matches a record any more."""
    add(principal, Kind.RECORD_WITHDRAWN, study=study, record=record, reason=reason)


def add(principal: Principal, kind: Kind, *, study: str = "", record: int | None = None, reason: str = "") -> Notice:
    """Write a notice in the caller's transaction, and send it through the channels that want it on commit."""
    found = Notice(kind=kind, study=study, record=record, reason=reason, reason_data=stored(reason))
    notice = access.add(principal, found)
    wanting = access.rows(Channel, principal).filter(kinds__contains=[kind])
    for channel in wanting:
        send(principal, notice, channel)
    _remove_oldest(principal)
    notify_lists(principal, LIST)
    return notice


def send(principal: Principal, notice: Notice, channel: Channel) -> Delivery:
    """Send a notice through one channel when the caller's transaction is committed."""
    delivery = access.add(principal, Delivery(notice=notice, channel=channel))
    messages.send_on_commit(principal.tenant_id, delivery.pk)
    return delivery


def page(principal: Principal, *, where: Sequence[str] = (), page_size: int = 0, page_token: str = "") -> Listed:
    """Return a page of the notices that meet all conditions, the newest first. Raises InvalidInput."""
    reader = access.rows(Reader, principal).filter(actor=principal.actor).first()
    seen = reader.seen if reader else 0
    unread = access.rows(Notice, principal).filter(pk__gt=seen).order_by("pk")[:MOST_UNREAD].count()
    found = select(access.rows(Notice, principal), where, COLUMNS)
    return Listed(pages.page(found, "-pk", page_size, page_token), unread, seen)


def mark_read(principal: Principal, through: int) -> None:
    """Mark all notices of the caller up to the one with this id as read. Raises InvalidInput."""
    newest = access.rows(Notice, principal).order_by("-pk").values_list("pk", flat=True).first() or 0
    if not 0 <= through <= newest:
        raise InvalidInput("through", through, f"the id of a notification, at most {newest}")
    with access.work(principal):
        mine = access.rows(Reader, principal).filter(actor=principal.actor)
        if not mine.update(seen=Greatest("seen", through)):
            access.add(principal, Reader(actor=principal.actor, seen=through))
        # Other windows of the same person show the new number.
        notify_lists(principal, LIST)


def _state_reason(work: Work) -> str:
    return restored(work.study.state_reason, work.study.state_reason_data)


def _remove_oldest(principal: Principal) -> None:
    most = settings.TRIMTAB_NOTICES_PER_TENANT
    kept = access.rows(Notice, principal).order_by("-pk").values_list("pk", flat=True)
    beyond = list(kept[most : most + 1])
    if beyond:
        access.rows(Notice, principal).filter(pk__lte=beyond[0]).delete()
