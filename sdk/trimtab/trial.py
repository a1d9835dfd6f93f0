"""One evaluation of one configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trimtab.space import Params


class TrialState(StrEnum):
    """Where a trial is in its life; compares with its name: `trial.state == "ACTIVE"`."""

    REQUESTED = "REQUESTED"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    INFEASIBLE = "INFEASIBLE"
    FAILED = "FAILED"
    PRUNED = "PRUNED"

    @property
    def finished(self) -> bool:
        """Whether nothing more is to come."""
        return self not in (TrialState.REQUESTED, TrialState.ACTIVE)


@dataclass(frozen=True)
class Measurement:
    """Metric values at one step of a trial; `elapsed` in seconds, where the reporter gave it."""

    step: int
    metrics: Mapping[str, float]
    elapsed: float | None = None


@dataclass(frozen=True)
class Trial:
    """A trial as it was when it was read. `study` and `number` name it."""

    study: str
    number: int
    state: TrialState
    params: Params
    """The values of the configuration's active parameters, in plain Python types."""
    metrics: Mapping[str, float]
    """Of the final measurement; empty before it."""
    measurements: tuple[Measurement, ...]
    reason: str
    """Why it is INFEASIBLE, FAILED or PRUNED, or waits; of a COMPLETED one, what makes its timing doubtful."""
    client_id: str
    agent: str
    attempt: int
    origin: str
    """"suggested", "replicate" (a policy had it measured again), "check" (of the final check), "default" (the
    configuration of the defaults), "added" (you measured it), "enqueued" (you wanted it measured) or "earlier" (it was
    among the best of a study that this one starts from)."""
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    log: str = ""
    """The end of what it printed; only from `Study.trial(number)`."""
    node: str = ""
    """Where it runs or ran last; empty: not on an agent, or not yet. Several nodes as their cluster writes them."""
    seconds: float | None = None
    """Its own running time, where its agent has told it."""

    def should_prune(self) -> bool:
        """Whether it was stopped, by a pruning policy or a user, as of when it was read: no need to go on.

        For example:

            for step in range(100):
                trial = study.report(trial, step=step, metrics=train(model))
                if trial.should_prune():
                    break
        """
        return self.state is TrialState.PRUNED
