"""The cost of a live trial whose agent has fallen silent."""

from __future__ import annotations

from uuid import UUID

from service.live.models import Loss
from service.live.permission import rooms_of
from service.live.system import Offered, state_of
from service.studies.change import Work
from service.tenancy import access


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
