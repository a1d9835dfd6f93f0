"""All states of a study, a trial, an operation and a lease, and all allowed steps between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from service.core.errors import Conflict


class StudyState(StrEnum):
    """An ACTIVE study accepts asks. A PAUSED one accepts only reports. COMPLETED and ABORTED studies have ended."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


class TrialState(StrEnum):
    """A REQUESTED trial waits for an agent, and an ACTIVE trial is being measured. The other states are final.

    INFEASIBLE: the configuration cannot work. FAILED: the machine is at fault. PRUNED: the trial was stopped early, and
    its value is a bound.
    """

    REQUESTED = "REQUESTED"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    INFEASIBLE = "INFEASIBLE"
    FAILED = "FAILED"
    PRUNED = "PRUNED"


class OperationState(StrEnum):
    """A PENDING operation waits for a worker, and the worker of a STALE one has been silent for some time.

    SUCCEEDED and FAILED are final.
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STALE = "STALE"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class LeaseState(StrEnum):
    """A lease is HELD until its agent settles it (SETTLED) or its time runs out (EXPIRED).

    If the agent reports again before another agent has the trial, the lease is HELD again.
    """

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
        # ACTIVE: it was given more budget or a final check.
        StudyState.COMPLETED: frozenset({StudyState.ACTIVE}),
    },
    "trial": {
        # PRUNED and FAILED: a user stopped the trial, or its study ended, before an agent took it.
        TrialState.REQUESTED: frozenset({TrialState.ACTIVE, TrialState.PRUNED, TrialState.FAILED}),
        # REQUESTED: the lease ran out or the machine failed, and another agent will run the trial.
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
        # PENDING: the study changed during the computation, which therefore starts again.
        OperationState.RUNNING: frozenset(
            {OperationState.STALE, OperationState.PENDING, OperationState.SUCCEEDED, OperationState.FAILED}
        ),
        # PENDING: another worker will compute it. RUNNING and SUCCEEDED: the worker was only slow.
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
        # The result arrived late, while the trial still waited for another agent.
        LeaseState.EXPIRED: frozenset({LeaseState.SETTLED, LeaseState.HELD}),
    },
}


def check_step(kind: Kind, old: State, new: State) -> None:
    """Raise Conflict (`invalid_step`) unless the table allows the step."""
    allowed = STEPS[kind].get(old, frozenset())
    if new not in allowed:
        advice = f"It can become {', '.join(sorted(allowed))}" if allowed else f"{old} is final"
        raise Conflict(
            "invalid_step",
            f"A {kind} that is {old} cannot become {new}. {advice}.",
            kind=kind,
            old=old.value,
            new=new.value,
        )
