"""Trials: a trial is one evaluation of one configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from trimtab.space import Params

Metrics: TypeAlias = float | Mapping[str, float]
"""The result of a trial: one number if the study has one objective, else values by metric."""


class TrialState(StrEnum):
    """The state of a trial. It equals its name: `trial.state == "ACTIVE"`."""

    REQUESTED = "REQUESTED"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    INFEASIBLE = "INFEASIBLE"
    FAILED = "FAILED"
    PRUNED = "PRUNED"

    @property
    def finished(self) -> bool:
        """True if the trial has ended."""
        return self not in (TrialState.REQUESTED, TrialState.ACTIVE)


@dataclass(frozen=True)
class Measurement:
    """Metric values at one step of a trial. `elapsed` is in seconds, None if it was not reported."""

    step: int
    metrics: Mapping[str, float]
    elapsed: float | None = None


@dataclass(frozen=True)
class Trial:
    """A trial at the time when it was read. `study` and `number` identify it."""

    study: str
    number: int
    state: TrialState
    params: Params
    """The values of the active parameters, as plain Python types."""
    metrics: Mapping[str, float]
    """The values of the last measurement; empty before it."""
    measurements: tuple[Measurement, ...]
    reason: str
    """Why the trial is INFEASIBLE, FAILED, PRUNED or waiting."""
    client_id: str
    agent: str
    attempt: int
    origin: str
    """Why the trial exists: "suggested" (by the algorithm), "replicate" (by the resampling policy), "check" (by the
    final check), "default" (the default configuration), "added" (you measured it), "enqueued" (you asked for it) or
    "earlier" (one of the best configurations of an earlier study)."""
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    log: str = ""
    """The end of its output; only `Study.trial(number)` returns it."""
    node: str = ""
    """The node of the last attempt; empty if no agent has run it. Several nodes in the cluster's own notation."""
    doubt: str = ""
    """Why the timing may be wrong, such as other processes that used the machine; empty if there is no doubt."""
    machine: str = ""
    """Processor, kernel and compiler of the machine where it ran; empty if they are unknown."""
    seconds: float | None = None
    """Its running time in seconds; None if its agent has not reported it."""
    breaks: tuple[str, ...] = ()
    """The outcome constraints that its metrics break, such as "memory_mb <= 4096"."""
    round: int | None = None
    """Its round of the final check, from 1; None for other trials. A round has one run of each configuration."""

    def should_prune(self) -> bool:
        """Return whether a pruning policy or a user had stopped the trial when it was read.

        For example:

            for step in range(100):
                trial = study.report(trial, step=step, metrics=train(model))
                if trial.should_prune():
                    break
        """
        return self.state is TrialState.PRUNED


@dataclass(frozen=True)
class Note:
    """A note of a person or a program on a trial or a study. It changes nothing that is measured."""

    study: str
    trial: int | None
    """The number of the trial; None: it is the note of the study."""
    text: str
    """Markdown."""
    tags: tuple[str, ...]
    attributes: Mapping[str, float | int | str | bool]
    """Values by name, as `Study.set_user_attr` has set them."""
    changed_by: str
    changed_at: datetime | None
