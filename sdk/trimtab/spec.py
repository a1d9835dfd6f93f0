"""What a study is asked to do, and how far it has come."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trimtab.errors import JsonValue
from trimtab.method import Choice, FinalCheck, Policy, Verdict
from trimtab.objective import Objective
from trimtab.space import Parameter


class StudyState(StrEnum):
    """Where a study is in its life; compares with its name: `study.state == "PAUSED"`."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"

    @property
    def finished(self) -> bool:
        """Whether nothing more is to come."""
        return self in (StudyState.COMPLETED, StudyState.ABORTED)


@dataclass(frozen=True)
class Placement:
    """Where the trials of a study on agents run."""

    exclusive: bool = True
    """Each trial has its node for itself, so that none disturbs another's timing."""
    spread: bool = True
    """Trials of one configuration run on different nodes, as far as there are any, so that a slow node does not pass
    for a slow configuration."""


@dataclass(frozen=True)
class Execution:
    """What agents run for a study. Without one a study is ask/tell only."""

    component: str
    application: str
    digest: str = ""
    """sha256 of the component's file; empty: whichever version the agents have."""
    parallelism: int = 1
    trial_timeout: float | None = None
    """Seconds."""
    placement: Placement = Placement()


@dataclass(frozen=True)
class StudySpec:
    """What a study is asked to do. Times are in seconds. Its budget and the ranges of its space may be changed."""

    space: tuple[Parameter, ...]
    objectives: tuple[Objective, ...]
    constraints: tuple[str, ...]
    algorithm: str
    algorithm_options: Mapping[str, JsonValue]
    seed: int
    noisy: bool
    max_trials: int | None
    max_time: float | None
    execution: Execution | None
    max_node_hours: float | None = None
    outcome_constraints: tuple[str, ...] = ()
    resampling: Policy | None = None
    estimator: Policy | None = None
    pruning: tuple[Policy, ...] = ()
    stopping: Mapping[str, JsonValue] | None = None
    final_check: FinalCheck | None = None
    start_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class StartedFrom:
    """What an earlier study gave to one that starts from it."""

    study: str
    taken: int
    """How many of its configurations are measured first."""
    passed_over: int
    """How many of its best lie outside of the new study's space."""


@dataclass(frozen=True)
class Outside:
    """How many trials of a study lie outside of its space once that was changed, by what they were before."""

    finished: int
    """They stay, but nothing is learned from them, and none of them is recommended."""
    running: int
    """They may finish."""
    waiting: int
    """They are withdrawn, and do not count against the budget."""


@dataclass(frozen=True)
class StudyStatus:
    """What changes about a study, as it was when it was read."""

    state: StudyState
    reason: str
    """Why it is in this state; empty while nothing is to be said."""
    revision: int
    """Counts the study's changes."""
    trial_count: int
    finished_count: int
    space_exhausted: bool
    created_at: datetime | None
    updated_at: datetime | None
    algorithm_choice: Choice | None = None
    search_end_reason: str = ""
    """Why the search is over; empty before, and without a final check."""
    verdict: Verdict | None = None
    """Of the final check, once it is over."""
    space_version: int = 1
    """One more with each change of the space."""
    started_from: tuple[StartedFrom, ...] = ()
    """What came of `start_from`, when it was created."""
