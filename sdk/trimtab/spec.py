"""The specification and the status of a study."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from trimtab.context import ContextVariable
from trimtab.errors import JsonValue
from trimtab.method import Choice, FinalCheck, Policy
from trimtab.objective import Objective
from trimtab.space import Parameter, Scalar


class StudyState(StrEnum):
    """The state of a study. It equals its name: `study.state == "PAUSED"`."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"

    @property
    def finished(self) -> bool:
        """True if the study has ended."""
        return self in (StudyState.COMPLETED, StudyState.ABORTED)


@dataclass(frozen=True)
class Placement:
    """Where the trials of a study on agents run."""

    exclusive: bool = True
    """Each trial has a node for itself, so that trials do not disturb each other's timing."""
    spread: bool = True
    """Trials of one configuration run on different nodes if there are several, so that a slow node does not look like
    a slow configuration."""


@dataclass(frozen=True)
class Execution:
    """The component and application that agents run for a study."""

    component: str
    application: str
    digest: str = ""
    """sha256 of the component's file; empty: the version that the agents offer."""
    parallelism: int = 1
    """How many trials run at the same time."""
    trial_timeout: float | None = None
    """Seconds after which an agent stops a trial."""
    placement: Placement = Placement()


@dataclass(frozen=True)
class JobMetadata:
    """The job that a study tunes, by which later jobs match its result. An empty field has its default."""

    user: str = ""
    """The user who submits it; empty: the study's creator."""
    name: str = ""
    """The name of the job; empty: the application or the component."""
    program: str = ""
    """The program without its folder; empty: the program of the trials."""
    command: str = ""
    """The command with all arguments; empty: the command of the trials."""
    nodes: int | None = None
    """The number of nodes; None: the number of the trials."""


@dataclass(frozen=True)
class StudySpec:
    """The specification of a study. Times are in seconds. Only the budget and the ranges can change later."""

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
    final_check: FinalCheck | Literal[False] | None = None
    """None in a new study: the service decides. False: none."""
    stability: Mapping[str, JsonValue] | None = None
    """How configurations that stay good on all nodes are found; None: the study does not look for them."""
    start_from: tuple[str, ...] = ()
    description: str = ""
    """A note on the study in Markdown."""
    trial_timeout: float | None = None
    """Without an execution: after this time another client gets a trial that has no result yet."""
    job: JobMetadata | None = None
    """The job that the study tunes; None: the defaults."""
    context: tuple[ContextVariable, ...] = ()
    """The parameters of the space that are observed with each trial and never chosen."""
    live: Mapping[str, JsonValue] | None = None
    """How a system that serves is tuned, with the keys of `live` in a study file; None: it has no other users."""

    def differences(self, existing: "StudySpec") -> list[str]:
        """Return how the method and the budget of an existing study differ, such as "seed is 1, not 2"."""
        found = [
            f"{name} is {getattr(existing, name)!r}, not {getattr(self, name)!r}"
            for name in ("algorithm", "seed", "noisy", "max_trials", "max_time", "max_node_hours")
            if getattr(existing, name) != getattr(self, name)
        ]
        if existing.algorithm == self.algorithm:
            # The service adds the options that are left out.
            options = existing.algorithm_options
            found += [
                f"option {name} is {options.get(name)!r}, not {value!r}"
                for name, value in self.algorithm_options.items()
                if options.get(name) != value
            ]
        return found


@dataclass(frozen=True)
class StartedFrom:
    """The configurations that a new study takes from an earlier study."""

    study: str
    taken: int
    """How many of the earlier study's configurations are measured first."""
    passed_over: int
    """How many of its best configurations lie outside the new study's space."""


@dataclass(frozen=True)
class Outside:
    """How many trials lie outside a changed space, by their state before the change."""

    finished: int
    """They stay in the history, but the algorithm does not learn from them and none is recommended."""
    running: int
    """They may finish."""
    waiting: int
    """They are withdrawn and do not count against the budget."""


@dataclass(frozen=True)
class EarlierTrials:
    """How the trials of a study count after an edit of its space."""

    total: int
    used: int
    """How many of them the algorithm uses."""
    imputed: int
    """How many of the used trials lack a parameter and count with its value in `values`."""
    unfinished: int
    """How many of all trials were running or waiting. They finish with their configuration."""
    left_out: Mapping[str, int]
    """How many trials are left out, by the parameter of which they have another value."""
    values: Mapping[str, Scalar]
    text: str
    """The numbers as a sentence."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class SpaceEdit:
    """An edit of the parameters of a study's space."""

    version: int
    """The version of the space that the edit has made."""
    added: tuple[str, ...]
    removed: Mapping[str, Scalar]
    """The removed parameters, with the values that they have since."""
    fixed: Mapping[str, Scalar]
    freed: tuple[str, ...]
    trials: EarlierTrials
    actor: str
    made_at: datetime | None


@dataclass(frozen=True)
class StudyStatus:
    """The progress of a study at the time when it was read."""

    state: StudyState
    reason: str
    """Why the study is in this state; may be empty."""
    revision: int
    """The number of changes of the study."""
    trial_count: int
    finished_count: int
    space_exhausted: bool
    created_at: datetime | None
    updated_at: datetime | None
    algorithm_choice: Choice | None = None
    search_end_reason: str = ""
    """Why the search has ended; empty before its end and without a final check."""
    space_version: int = 1
    """It increases by one with each change of the space."""
    started_from: tuple[StartedFrom, ...] = ()
    """The configurations taken from each study in `start_from`."""
    space_size: int | None = None
    """The number of configurations; known only right after the creation of a study with constraints."""
    feasible_size: int | None = None
    """The number of these that the constraints leave, of which the first twelve digits are exact; known as above."""
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    """The values of the fixed parameters. In `Study.spec`, such a parameter has only this value."""
    removed: Mapping[str, Scalar] = field(default_factory=dict)
    """The removed parameters, with the values that they have since."""
    imputed: Mapping[str, Scalar] = field(default_factory=dict)
    """The added parameters, with the values with which trials that lack them count."""
    space_edits: tuple[SpaceEdit, ...] = ()
