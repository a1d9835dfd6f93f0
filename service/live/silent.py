"""The cost of a live trial whose agent has fallen silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from service.core.errors import Conflict
from service.core.live_results import LiveResult
from service.live.models import Loss
from service.live.permission import rooms_of
from service.live.system import Offered, state_of
from service.studies.change import Deleted, Work, changing
from service.tenancy import access
from service.tenancy.principal import Principal


def note_loss(work: Work, lease: UUID, offered: Offered) -> None:
    """Write the cost of a total failure into the ledger for an expired lease of a live study; a result replaces it.

    The settings of its trial were in force until the machine itself has taken them back, and nobody knows what that
    has cost.
    """
    if work.spec.live is None:
        return
    for name, room in rooms_of(work, state_of(work.principal, work.study), offered).items():
        if room.worst:
            loss = {"by_agent": 0.0, "by_service": room.worst, "counted": room.worst}
            access.add(work.principal, Loss(study_id=work.study.pk, lease=lease, budget=name, at=work.time, **loss))


@contextmanager
def counting_cost(principal: Principal, study_id: int, lease: UUID, result: LiveResult | None) -> Iterator[None]:
    """Settle a lease in the block. If that is too late (Conflict `lease_lost`), count what its trial has cost.

    The agent sends the cost once, and its own ledger has it as reported then.
    """
    try:
        yield
    except Conflict as error:
        if error.code == "lease_lost" and result is not None and any(result.cost.values()):
            with suppress(Deleted), changing(principal, study_id, "live.cost", detail={"lease": str(lease)}) as work:
                _note_cost(work, lease, result)
        raise


def _note_cost(work: Work, lease: UUID, result: LiveResult) -> None:
    """Write what a lease has cost into the ledger, if that is more than was assumed."""
    assumed = {row.budget: row for row in access.rows(Loss, work.principal).filter(study_id=work.study.pk, lease=lease)}
    for name in work.spec.live.budget if work.spec.live is not None else ():
        cost = result.cost.get(name, 0.0)
        row = assumed.get(name)
        if row is None:
            row = Loss(study_id=work.study.pk, lease=lease, budget=name, at=work.time, by_service=0.0, counted=0.0)
            row.by_agent = row.counted = cost
            access.add(work.principal, row)
        elif row.by_agent < cost:
            row.by_agent, row.counted = cost, max(cost, row.by_service)
            access.save(work.principal, row, "by_agent", "counted")
        work.revise()
