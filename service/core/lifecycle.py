"""Every state of a study, a trial, an operation and a lease, and every step between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from service.core.errors import Conflict


class StudyState(StrEnum):
    """ACTIVE takes asks; PAUSED takes reports only; COMPLETED and ABORTED are final."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


class TrialState(StrEnum):
    """REQUESTED waits for an agent, ACTIVE is being measured, the others are final.

    INFEASIBLE: the configuration cannot work. FAILED: the machine's fault. PRUNED: its value is a bound.
    """

    REQUESTED = "REQUESTED"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    INFEASIBLE = "INFEASIBLE"
    FAILED = "FAILED"
    PRUNED = "PRUNED"


class OperationState(StrEnum):
    """PENDING waits for a worker; STALE: its worker has been silent for a while; SUCCEEDED and FAILED are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STALE = "STALE"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class LeaseState(StrEnum):
    """HELD until its agent settles it (SETTLED) or lets its time run out (EXPIRED). An agent that is heard again holds
    it again, while nobody else has its trial."""

    HELD = "HELD"
    SETTLED = "SETTLED"
    EXPIRED = "EXPIRED"


Kind = Literal["study", "trial", "operation", "lease"]
State = StudyState | TrialState | OperationState | LeaseState

# A state that is not a key here is final.
STEPS: Mapping[Kind, Mapping[State, frozenset[State]]] = {
    "study": {
        StudyState.ACTIVE: frozenset({StudyState.PAUSED, StudyState.COMPLETED, StudyState.ABORTED}),
        StudyState.PAUSED: frozenset({StudyState.ACTIVE, StudyState.COMPLETED, StudyState.ABORTED}),
    },
    "trial": {
        # PRUNED and FAILED: stopped by a user, or withdrawn with its study, before any agent took it.
        TrialState.REQUESTED: frozenset({TrialState.ACTIVE, TrialState.PRUNED, TrialState.FAILED}),
        # REQUESTED: its lease ran out or its machine failed, and it is tried again elsewhere.
        TrialState.ACTIVE: frozenset(
            {
                TrialState.REQUESTED,
                TrialState.COMPLETED,
                TrialState.INFEASIBLE,
                TrialState.FAILED,
                TrialState.PRUNED,
            }
        ),
    },
    "operation": {
        OperationState.PENDING: frozenset({OperationState.RUNNING, OperationState.FAILED}),
        # PENDING: what it asks of was changed meanwhile, and it is computed anew.
        OperationState.RUNNING: frozenset(
            {OperationState.STALE, OperationState.PENDING, OperationState.SUCCEEDED, OperationState.FAILED}
        ),
        # PENDING: given to another worker. RUNNING and SUCCEEDED: the worker was only slow.
        OperationState.STALE: frozenset(
            {
                OperationState.PENDING,
                OperationState.RUNNING,
                OperationState.SUCCEEDED,
                OperationState.FAILED,
            }
        ),
    },
    "lease": {
        LeaseState.HELD: frozenset({LeaseState.SETTLED, LeaseState.EXPIRED}),
        # A result that came late, while the trial still waits for another agent.
        LeaseState.EXPIRED: frozenset({LeaseState.SETTLED, LeaseState.HELD}),
    },
}


def check_step(kind: Kind, old: State, new: State) -> None:
    """Raise Conflict (`invalid_step`) unless the table allows the step."""
    allowed = STEPS[kind].get(old, frozenset())
    if new not in allowed:
        onward = ", ".join(sorted(allowed)) if allowed else "nothing, it is final"
        raise Conflict(
            "invalid_step",
            f"A {kind} that is {old} cannot become {new}; allowed: {onward}.",
            kind=kind,
            old=old.value,
            new=new.value,
        )
