"""The audit trail: one row for each change, in the change's own transaction."""

from __future__ import annotations

from collections.abc import Mapping

from service.tenancy import access
from service.tenancy.models import AuditEntry
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

    `before` and `after`: what changed, as it was and as it is now.
    Changes of studies write theirs with `studies.actions.conclude`, which spares them a statement.
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
