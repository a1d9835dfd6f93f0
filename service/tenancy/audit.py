"""The audit trail: one row for each change, in the change's own transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import F, Q, QuerySet

from service.tenancy import access
from service.tenancy.conditions import Column, select
from service.tenancy.models import AuditEntry
from service.tenancy.pages import LARGEST, Page
from service.tenancy.pages import page as page_of
from service.tenancy.principal import Principal


def record(
    principal: Principal,
    action: str,
    target: str,
    detail: Mapping[str, object] | None = None,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Write that `principal` did `action` (noun.verb) to `target`, inside the caller's transaction.

    `before` and `after`: the values that changed, before and after the change.
    Changes of studies write theirs with `studies.change.Work`, which saves a statement.
    """
    access.add(
        principal,
        AuditEntry(
            actor=principal.actor,
            credential=principal.credential,
            address=principal.address,
            action=action,
            target=target,
            detail=dict(detail or {}),
            before=before,
            after=after,
        ),
    )


class By(StrEnum):
    """The authors of changes: people with their scripts, or the service with its agents."""

    PEOPLE = "people"
    MACHINERY = "machinery"


# The changes of the service itself, and of agents: an agent may have the token of a person.
_MACHINERY = (
    Q(actor="system")
    | Q(actor__startswith="agent/")
    | Q(action__startswith="lease.")
    | Q(action__in=["trial.start", "trial.wait", "trial.take_back", "trial.expire", "agent.register"])
)


# The columns that conditions can name.
COLUMNS: Mapping[str, Column] = {
    "time": Column(F("at"), "time"),
    **{name: Column(F(name)) for name in ("actor", "action", "target", "credential", "address")},
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of entries by all given fields. `target` and `action` match the beginning of a value.

    `where`: conditions that all hold, such as "actor != system"; `COLUMNS` lists their columns.
    """

    by: str = ""
    actor: str = ""
    action: str = ""
    target: str = ""
    since: datetime | None = None
    until: datetime | None = None
    where: Sequence[str] = ()

    def apply(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Return the entries that match the filter. Raises InvalidInput (`where`)."""
        if self.by:
            entries = entries.filter(_MACHINERY if self.by == By.MACHINERY else ~_MACHINERY)
        if self.actor:
            entries = entries.filter(actor=self.actor)
        if self.action:
            entries = entries.filter(action__startswith=self.action)
        if self.target:
            entries = entries.filter(target__startswith=self.target)
        if self.since:
            entries = entries.filter(at__gte=self.since)
        if self.until:
            entries = entries.filter(at__lt=self.until)
        return select(entries, self.where, COLUMNS)


def page(principal: Principal, wanted: Filter, *, size: int = 0, token: str = "") -> Page[AuditEntry]:
    """Return a page of entries, the newest first. Raises InvalidInput."""
    return page_of(wanted.apply(access.rows(AuditEntry, principal)), "-pk", size, token)


def export(principal: Principal, wanted: Filter) -> Iterator[list[AuditEntry]]:
    """Return an iterator over all entries in parts, the oldest first. The last entry is that of this export.

    Raises InvalidInput before the first part.
    """
    entries = wanted.apply(access.rows(AuditEntry, principal)).order_by("pk")
    fields = {name: value for name, value in asdict(wanted).items() if value}
    detail = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}
    with access.work(principal):
        record(principal, "audit.export", "audit", detail)
    return _parts(entries)


def _parts(entries: QuerySet[AuditEntry]) -> Iterator[list[AuditEntry]]:
    last = 0
    while found := list(entries.filter(pk__gt=last)[:LARGEST]):
        yield found
        last = found[-1].pk


def as_json(entry: AuditEntry) -> dict[str, object]:
    """Return the JSON form of an entry for users and exports."""
    return {
        "id": entry.pk,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "credential": entry.credential,
        "address": entry.address,
        "action": entry.action,
        "target": entry.target,
        "detail": entry.detail,
        "before": entry.before,
        "after": entry.after,
    }
