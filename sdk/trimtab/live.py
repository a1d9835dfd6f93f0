"""The state of a live study: what is in force on its system, what waits for people, and what it has cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trimtab.space import Scalar
from trimtab.spec import StudyState
from trimtab.trial import TrialState


@dataclass(frozen=True)
class LivePlan:
    """The plan of a trial that waits or runs."""

    trial: int
    trial_state: TrialState
    state: str
    """PLANNED: it waits for an approval; or APPROVED, DECLINED, EXPIRED."""
    before: Mapping[str, Scalar]
    """The present values of the parameters that would change."""
    after: Mapping[str, Scalar]
    restarts: bool
    """True if the trial restarts the system."""
    people: int
    """How many people must approve it."""
    approved_by: tuple[str, ...]
    expires_at: datetime | None
    reason: str
    """Why it waits; empty while it runs."""
    expected: float | None
    """The logarithm of the objective's ratio to the settings in force that the model expects; below 0 is better."""
    worst: float | None
    """The same, which it is rarely above."""


@dataclass(frozen=True)
class KeptSettings:
    """Settings that a live study has kept."""

    trial: int
    params: Mapping[str, Scalar]
    effect: float | None
    """The logarithm of the ratio of the objective to the settings before, from `low` to `high` (95 %)."""
    low: float | None
    high: float | None
    pairs: int
    instances: tuple[str, ...]
    at: datetime | None
    in_force: bool
    """False: they were taken back, or other settings were found in force since."""
    reason: str
    """Why they are not in force any more; may be empty."""


@dataclass(frozen=True)
class LiveCheck:
    """A comparison of all kept settings with those of the start."""

    trial: int
    at: datetime | None
    effect: float | None
    """The logarithm of the ratio of the objective to the start, from `low` to `high` (95 %)."""
    low: float | None
    high: float | None
    pairs: int
    """How many pairs of blocks there were in this check and those before it."""
    steps: int
    """How many kept trials had their settings in force together."""


@dataclass(frozen=True)
class LiveRollout:
    """The roll-out of the settings that a trial has kept."""

    trial: int
    state: str
    """rolling: the settings go to further instances; or watching."""
    stage: int
    """How many stages are done."""
    stages: tuple[int, ...]
    """How many instances have the settings after each stage."""
    in_force: tuple[str, ...]
    """The instances with the settings, oldest first."""
    waiting: tuple[str, ...]
    held_back: tuple[str, ...]
    """The instances that keep the earlier settings, for comparison."""
    reason: str
    """The present step and its reason."""
    due_at: datetime | None
    """When its next trial may begin."""
    watched_until: datetime | None
    """When the watch ends; None while the settings go to further instances."""
    checks: int


@dataclass(frozen=True)
class LiveBudget:
    """The state of a budget in its present period."""

    name: str
    metric: str
    of: str
    per: str
    began_at: datetime | None
    limit: float | None
    """How much may be lost; None while the rate is unknown."""
    left: float | None
    spent: float
    worst: float
    """How much a trial costs that fails totally."""


@dataclass(frozen=True)
class LiveReading:
    """The reading of a guard."""

    name: str
    metric: str
    above: bool
    """True: the metric must not be above the limit; False: not below it."""
    limit: float | None
    """None: the guard does not hold now."""
    value: float | None
    """None: there is no reading."""
    seconds: float
    """The seconds beyond the limit after which the guard is broken."""
    beyond: float


@dataclass(frozen=True)
class LiveInstance:
    """An instance of a live system, as its agent has reported it last."""

    study: str
    """The study that has switched it last."""
    component: str
    instance: str
    agent: str
    seen_at: datetime | None
    state: str
    """idle, running, kept, stuck or stopped."""
    trial: int | None
    """The trial that runs or whose settings are in force."""
    phase: str
    candidate: bool
    """True if the settings in force are the trial's."""
    settings: Mapping[str, Scalar]
    reason: str
    guards: tuple[LiveReading, ...]
    pairs: int
    revert_at: datetime | None
    """When somebody has asked for the old settings; None if nobody has or it has happened."""


@dataclass(frozen=True)
class LiveBrief:
    """A live study among others."""

    study: str
    state: StudyState
    state_reason: str
    component: str
    application: str
    """The instance that the study names; empty: all of the component."""
    waiting: int
    """How many plans wait for people."""
    running: int
    """How many trials run."""


@dataclass(frozen=True)
class LiveOverview:
    """The live studies, open ones first, and the instances that agents have switched for them."""

    studies: tuple[LiveBrief, ...]
    instances: tuple[LiveInstance, ...]
    left_off: int
    """How many further studies there are."""


@dataclass(frozen=True)
class LiveJobs:
    """The jobs that a live study of jobs learns from."""

    record: str
    """The id of the record whose jobs these are; empty if it was deleted."""
    matched: int
    """How many jobs have matched the record within the last `days`."""
    days: int
    candidates: int
    """How many jobs have had a candidate."""
    open: int
    """How many pairs are open; `counted` ones are evidence, and `void` ones are none."""
    counted: int
    void: int
    share: float | None
    """The share of matched jobs that may get a candidate; None if no agent has told it."""
    reason: str
    """Why no pair may begin now; empty if one may."""
    reason_code: str


@dataclass(frozen=True)
class LiveStatus:
    """The state of a live study."""

    study: str
    state: StudyState
    state_reason: str
    in_force: Mapping[str, Scalar]
    known: bool
    """False: no trial has read the settings yet, and `in_force` has the defaults."""
    original: Mapping[str, Scalar]
    """The settings that the first trial found."""
    plans: tuple[LivePlan, ...]
    kept: tuple[KeptSettings, ...]
    budgets: tuple[LiveBudget, ...]
    settled: int
    """How many candidates have been in force."""
    broken: int
    """How many of them broke a guard."""
    deviation: float
    """The deviation of the effect in one pair; 0: it is unknown."""
    rollout: LiveRollout | None
    """The roll-out that goes on."""
    checks: tuple[LiveCheck, ...]
    """Comparisons of the kept settings with those of the start, oldest first."""
    instances: tuple[LiveInstance, ...] = ()
    """The instances that agents have switched for the study."""
    jobs: LiveJobs | None = None
    """None for a study whose trials are not jobs."""
