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
class Interference:
    """The numbers that an agent measured of other processes during a trial. A number is None if it cannot measure it.

    `str(interference)` is a sentence for people.
    """

    share: float | None = None
    """The part of the time of the trial's CPUs that other processes took."""
    wait: float | None = None
    """The part of the running time in which the trial waited for a CPU because of them."""
    steal: float | None = None
    """The part of its CPUs that other virtual machines took."""
    swapped: float | None = None
    """The pages that the machine swapped in or out."""
    memory: float | None = None
    """The part of the machine's memory that was available before the run."""
    unaffected: tuple[str, ...] = ()
    """The metrics that contain no waiting, such as CPU time."""

    def __str__(self) -> str:
        parts = [] if self.share is None else [f"Other processes took {100 * self.share:.0f} % of the CPUs"]
        if self.wait is not None:
            parts.append(f"the run waited {100 * self.wait:.0f} % of its time")
        return "; ".join(parts)


@dataclass(frozen=True)
class Trial:
    """A trial at the time when it was read. `study`, `study_uid` and `number` identify it."""

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
    final check), "default" (the default configuration), "added" (you measured it), "enqueued" (you asked for it),
    "earlier" (one of the best configurations of an earlier study) or "rollout" (a stage or a check of kept settings of
    a live study)."""
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    log: str = ""
    """The end of its output; only `Study.trial(number)` returns it."""
    node: str = ""
    """The node of the last attempt; empty if no agent has run it. Several nodes in the cluster's own notation."""
    doubt: str = ""
    """Why the timing may be wrong, such as other processes that used the machine; empty if there is no doubt."""
    interference: Interference | None = None
    """The interference that its agent measured; None if no agent has run it, or one of an earlier version."""
    machine: str = ""
    """Processor, kernel and compiler of the machine where it ran; empty if they are unknown."""
    seconds: float | None = None
    """Its running time in seconds; None if its agent has not reported it."""
    breaks: tuple[str, ...] = ()
    """The outcome constraints that its metrics break, such as "memory_mb <= 4096"."""
    round: int | None = None
    """Its round of the final check, from 1; None for other trials. A round has one run of each configuration."""
    repeat: str = ""
    """Why it measures a configuration again; empty if it does not."""
    study_uid: str = ""
    """The identity of its study, by which a result is refused after another study has got the study's name."""

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        from trimtab import html

        return html.pairs(
            {
                "trial": f"{self.study}/{self.number}",
                "state": str(self.state),
                "params": self.params,
                "metrics": self.metrics,
                "reason": self.reason,
                "breaks": "; ".join(self.breaks),
                "doubt": self.doubt,
                "agent": self.agent,
            }
        )

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
