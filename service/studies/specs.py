"""The spec of a study: the JSON that is stored, sent over REST and made by rpc from protobuf.

`StudySpec` and the classes of its parts declare each key once (`spec_keys.py`). Only `space` and `objectives` are
required. A stored spec also has "space_version"; "algorithm_choice": {"name", "reason", "options"} where the algorithm
is one that chooses another; with "drifts" the changes of the system that were found; with "start_from" its result,
"started_from": [{"study", "taken", "passed_over"}]; and once its space was edited, "edited" (`core/edits.py`) and
"edits" (`edit_records.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from service.core.edits import EditedSpace
from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.parameters import Scalar
from service.core.problem import Problem
from service.core.space import Configuration, Space
from service.core.stability import Stability
from service.platform.lru_cache import LruCache
from service.studies.edit_records import EditRecord
from service.studies.job_metadata import UNSAID, JobMetadata
from service.studies.live_spec import LOST_NODE_HOURS, NODE_HOURS, Live, Losses
from service.studies.problem_keys import PROBLEM_KEYS
from service.studies.spec_keys import (
    Key,
    Kind,
    Record,
    as_object,
    is_empty,
    is_null,
    key,
    own_keys,
    read,
    record,
    record_of,
    write,
)

if TYPE_CHECKING:
    from service.studies.models import Study

DEFAULT_ALGORITHM = "auto"
DEFAULT_ESTIMATOR = "median"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MOST_POLICIES = 10
# From this number of trials on, the usual final check is not bounded by the budget; below, it has at least so many, and
# does not ask which changes matter.
_LARGE_BUDGET, _LEAST_CHECK = 40, 8
# From this budget on, neither are its trials that ask which changes matter.
_LARGE_FOR_EFFECTS = 64
_TAG = re.compile(r"[\w.:/-][\w.:/ -]{0,49}")
_MOST_TAGS = 20
MOST_EARLIER = 5
LONGEST_DESCRIPTION = 10_000
LONGEST_SECONDS = 10 * 366 * 24 * 3600.0


def check_name(field: str, name: object) -> None:
    """Refuse what cannot name a study. Raises InvalidInput."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(field, name, "a letter or digit, then at most 62 letters, digits and . _ -")


def check_identifier(field: str, value: object, longest: int, *, required: bool = False) -> str:
    """Return what can be kept as an identifier that a client chose. Raises InvalidInput."""
    if not isinstance(value, str) or len(value) > longest or "\0" in value or (required and not value):
        raise InvalidInput(field, value, f"a text of {int(required)} to {longest} characters")
    return value


def check_texts(field: str, texts: Mapping[str, str], *, most: int, longest: int) -> None:
    """Refuse a mapping with more than `most` texts, or with a key or text of more than `longest` characters.

    Raises InvalidInput.
    """
    if len(texts) > most:
        raise InvalidInput(field, f"{len(texts)} entries", f"at most {most}")
    for name, value in texts.items():
        check_identifier(field, name, longest, required=True)
        check_identifier(f"{field}.{name}", value, longest)


def check_tags(tags: Sequence[str]) -> list[str]:
    """Return the tags without duplicates, in alphabetical order. Raises InvalidInput."""
    if len(tags) > _MOST_TAGS:
        raise InvalidInput("tags", f"{len(tags)} tags", f"at most {_MOST_TAGS}")
    for tag in tags:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise InvalidInput("tags", tag, "1 to 50 letters, digits, spaces and . _ : / -, not beginning with a space")
    return sorted(set(tags))


def _text(longest: int) -> Kind:
    return Kind("text", partial(check_identifier, longest=longest), is_left_out=is_empty)


def _integer(least: int, most: int, is_left_out: Callable[[object], bool] = is_null) -> Kind:
    def read(field: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidInput(field, value, f"an integer from {least} to {most}")
        return value

    return Kind("integer", read, is_left_out=is_left_out)


def _hours(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-6 <= value <= 1e9:
        raise InvalidInput(field, value, "a number of hours from 1e-6 to 1e9")
    return float(value)


def _seconds(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST_SECONDS:
        allowed = "a number of seconds above 0, at most ten years"
        # As numbers too, for those who show the field in another unit.
        raise InvalidInput(field, value, allowed, above=0, at_most=LONGEST_SECONDS)
    return float(value)


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, value, "true or false")
    return value


def _mapping(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(field, value, "an object")
    return dict(value)


_TIME = Kind("time", _seconds)
_FLAG = Kind("boolean", _flag)


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a study; null: no limit."""

    max_trials: int | None = key(_integer(1, 10**9), "Number of trials.", nullable=True)
    max_seconds: float | None = key(
        _TIME, "Time from the first trial.", nullable=True, short="max_time", file_form="90s, 20m, 8h"
    )
    max_node_hours: float | None = key(
        Kind("number", _hours), "Running time of all trials together, in hours.", nullable=True
    )

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit of any kind."""
        return self.max_trials is not None or self.is_timed

    @property
    def is_timed(self) -> bool:
        """Return whether time limits the search, and the number of trials does not."""
        return self.max_trials is None and (self.max_seconds, self.max_node_hours) != (None, None)

    def to_json(self) -> dict[str, Any]:
        return write(self)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy and its options."""

    name: str = key(Kind("text", lambda field, value: check_identifier(field, value or "", 64)))
    options: Mapping[str, JsonValue] = key(Kind("mapping", _mapping, dict, is_empty), default=dict, always_written=True)


def _policy(field: str, data: object) -> Policy:
    return read(Policy, field, data)


def _policies(field: str, data: object) -> tuple[Policy, ...]:
    if not isinstance(data, Sequence) or isinstance(data, str) or len(data) > _MOST_POLICIES:
        raise InvalidInput(field, data, f"a list of at most {_MOST_POLICIES} policies, each with name and options")
    return tuple(_policy(f"{field}[{index}]", policy) for index, policy in enumerate(data))


_POLICY = record_of(Policy)
_ALGORITHM = Record("Algorithm", "An algorithm and its options.", _POLICY.keys)


def _policy_or(name: str, record: Record) -> Kind:
    """Return the kind of a policy that has this name where it names none."""

    def read_or(field: str, data: object) -> Policy:
        found = _policy(field, data)
        return found if found.name else replace(found, name=name)

    return Kind("policy", read_or, write, is_empty, record)


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm that `auto` chose for a study when it was created, why, and its options."""

    name: str
    reason: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of trials on nodes.

    Both flags are the default: otherwise a neighbour's load, or one slow node, would be taken for the configuration's
    effect.
    """

    exclusive: bool = key(
        _FLAG,
        "Whether each trial has its node for itself, so that trials do not disturb each other's timing.",
        default=True,
    )
    spread: bool = key(
        _FLAG, "Whether the trials of one configuration run on different nodes, if there are enough.", default=True
    )


def _component(field: str, value: object) -> str:
    if not check_identifier(field, value, 200):
        raise InvalidInput(field, value, "the name of a component that an agent has")
    return str(value)


@dataclass(frozen=True, slots=True)
class Execution:
    """The component that agents tune, and how."""

    component: str = key(Kind("text", _component), "Component that agents tune; without one, a script asks and tells.")
    digest: str = key(
        _text(64),
        "Version of the component: the SHA-256 of its file.",
        note="Empty: the version that the agent has.",
        default="",
        always_written=True,
        file_default="",
    )
    application: str = key(
        _text(200), "Application of the component.", default="", always_written=True, file_default=""
    )
    parallelism: int = key(
        _integer(1, 10_000, is_empty), "Number of trials that agents run at the same time.", default=1
    )
    trial_timeout_seconds: float | None = key(
        _TIME,
        "Time after which an agent stops a trial.",
        nullable=True,
        short="trial_timeout",
        file_form="60s, 5m. Without a component, another client gets the trial then",
    )
    placement: Placement = key(record(Placement), default=Placement())


FINAL_CHECK = Record(
    "FinalCheck",
    "Alternating trials of the best and the default configuration, until the interval of the gain is narrow.",
    (
        Key("width", Kind("number"), "Width of the interval, as a share of the default's value."),
        Key("max_trials", Kind("integer"), "Trials in addition to the search."),
        Key("level", Kind("number"), "Probability that the gain is in its interval: 0.95."),
        Key(
            "effects",
            Kind("integer"),
            "Further trials at most that find which changes carry a proven gain: 0, or 16 or more.",
        ),
    ),
)


STABILITY = Record(
    "Stability",
    "How configurations that stay good are found: on which nodes and when they are measured, and what they are worth.",
    (
        Key("nodes", Kind("integers"), "Number of nodes of each stage. Few configurations reach the last one."),
        Key(
            "times",
            Kind("time"),
            "Seconds, or a text such as 24h: the last stage begins so long after the first measurement of a"
            " configuration.",
            nullable=True,
        ),
        Key(
            "value",
            Kind("mapping"),
            "What a configuration is worth: {mean_plus: 1.0} (its mean plus deviations) or {quantile: 0.9} of nodes.",
        ),
        Key(
            "unstable",
            Kind("number"),
            "Share of its mean by which the nodes of a configuration differ if it is unstable: 0.3.",
        ),
        Key("adjust", Kind("text"), "auto: values are corrected by what machines did, where that helps. none: never."),
    ),
)


def _final_check(field: str, data: object) -> dict[str, JsonValue]:
    return dict(as_object(field, data, [one.name for one in FINAL_CHECK.keys]))


def _start_from(field: str, data: object) -> tuple[str, ...]:
    if not isinstance(data, Sequence) or isinstance(data, str) or len(data) > MOST_EARLIER:
        raise InvalidInput(field, data, f"a list of at most {MOST_EARLIER} names of studies")
    for index, name in enumerate(data):
        check_name(f"{field}[{index}]", name)
        if name in data[:index]:
            raise InvalidInput(f"{field}[{index}]", name, "each study once")
    return tuple(data)


def _description(field: str, data: object) -> str:
    """Return a note on a study without empty lines around it."""
    allowed = f"a text of at most {LONGEST_DESCRIPTION:,} characters"
    if not isinstance(data, str) or "\0" in data:
        raise InvalidInput(field, data, f"{allowed}, without NUL characters")
    text = data.rstrip().lstrip("\r\n")
    if len(text) > LONGEST_DESCRIPTION:
        message = f"{field}: the text has {len(text):,} characters. Use {allowed}."
        raise InvalidInput(field, shorten(text, 60), allowed, message=message)
    return text


@dataclass(frozen=True, slots=True)
class DriftRecord:
    """A change of the system in a context: trials up to this number were measured before it."""

    context: Configuration
    number: int
    at: str

    def to_json(self) -> dict[str, Any]:
        return {"context": self.context, "number": self.number, "at": self.at}


@dataclass(frozen=True, slots=True)
class StartedFrom:
    """The contribution of an earlier study to one that starts from it: how many of its best configurations were taken,
    and how many were passed over because they lie outside of the new space."""

    study: str
    taken: int
    passed_over: int

    def to_json(self) -> dict[str, Any]:
        return {"study": self.study, "taken": self.taken, "passed_over": self.passed_over}


# Compared by identity: spec_of gives the same object again, until the study's space changes.
@dataclass(frozen=True, eq=False)
class StudySpec:
    """The spec of a study. Only `space` and `objectives` are required.

    Its shape was checked; names and options of algorithm and policies are for `trials/method.py`, which also checks
    `stopping` and `final_check`: they are JSON as it came. `problem` has the space that is searched now.
    `space_version`: 1 for the space that the study was created with, one more with each change of it. `started_from`:
    what came of each study in `start_from`. `edited`: the space with its edits, None before the first; `edits`: the
    records of these edits. `drifts`: the changes of the system that were found.
    """

    KEYS: ClassVar[Sequence[Key]] = PROBLEM_KEYS

    problem: Problem
    algorithm: Policy = key(
        _policy_or(DEFAULT_ALGORITHM, _ALGORITHM),
        "Algorithm that suggests configurations.",
        default=Policy(DEFAULT_ALGORITHM),
        file_form="auto, gp, ga, random, ..., or {name: gp, options: {...}}",
    )
    seed: int = key(
        _integer(0, 2**63 - 1, lambda _: False),
        "The same seed and the same results give the same suggestions.",
        default=0,
        file_default=0,
    )
    choice: Choice | None = None
    resampling: Policy | None = key(
        Kind("policy", _policy, write, record=_POLICY),
        "Policy that decides whether a configuration is measured again.",
        note="Null: the service chooses one that suits the algorithm.",
        nullable=True,
        file_form="adaptive, or {name: static, options: {n: 3}}",
    )
    estimator: Policy = key(
        _policy_or(DEFAULT_ESTIMATOR, _POLICY),
        "How several measurements become one value.",
        default=Policy(DEFAULT_ESTIMATOR),
        file_form="median",
    )
    pruning: Sequence[Policy] = key(
        Kind("policies", _policies, lambda policies: list(map(write, policies)), is_empty, _POLICY),
        "Policies that stop trials early.",
        default=(),
        always_written=True,
        file_form="[default, {name: limit, options: {seconds: 60}}]",
        file_default=[],
    )
    stopping: JsonValue = key(
        Kind("mapping"),
        "When the search ends.",
        note='Either {"rule": ...}, {"any": [...]} or {"all": [...]}.',
        nullable=True,
        file_form="{rule: best_improvement, threshold: 0.01, trials: 20}",
    )
    final_check: Mapping[str, JsonValue] | None = key(
        Kind("check", _final_check, dict, record=FINAL_CHECK),
        "Whether the end measures the gain.",
        note="Null: it does not. If left out: it does if agents measure with noise and there is one objective.",
        nullable=True,
        file_form="false, true or {max_trials: 20, effects: 32}",
    )
    stability: Stability | None = key(
        Kind("mapping", Stability.parse, Stability.to_json, record=STABILITY),
        "How configurations are found that stay good on all nodes.",
        note="Null: each configuration is measured as often as resampling decides.",
        nullable=True,
        file_form="{nodes: [1, 3, 10], times: 24h, value: {mean_plus: 1.0}, unstable: 0.3, adjust: auto}",
    )
    budget: Budget = key(record(Budget), default=Budget())
    execution: Execution | None = key(record(Execution, is_null), nullable=True, file="")
    trial_timeout_seconds: float | None = key(
        _TIME,
        "Without an execution: after this time another client gets a trial that has no result yet.",
        default=None,
        short="trial_timeout",
        file=None,
    )
    space_version: int = 1
    start_from: tuple[str, ...] = key(
        Kind("texts", _start_from, list),
        f"Earlier studies, at most {MOST_EARLIER}, whose best configurations are measured first.",
        default=(),
        file_default=[],
    )
    started_from: tuple[StartedFrom, ...] = ()
    description: str = key(
        Kind("text", _description),
        f"Note on the study in Markdown, at most {LONGEST_DESCRIPTION:,} characters.",
        default="",
    )
    job: JobMetadata = key(
        record(JobMetadata),
        "The job that the study tunes. Later jobs that resemble it match the study's result.",
        default=UNSAID,
    )
    live: Live | None = key(
        record(Live, is_null),
        "How a system that serves is tuned. Without it, trials have the system for themselves.",
        default=None,
    )
    edited: EditedSpace | None = None
    edits: tuple[EditRecord, ...] = ()
    drifts: tuple[DriftRecord, ...] = ()

    @property
    def space(self) -> Space:
        return self.problem.space

    @property
    def whole_space(self) -> EditedSpace:
        """The space with its edits, of which there may be none."""
        return EditedSpace(self.space) if self.edited is None else self.edited

    def present(self, configuration: Mapping[str, Scalar]) -> Configuration | None:
        """Return the configuration of an earlier trial as one of the present space; None if the trial does not count.

        This is the only place that decides how a trial counts after a change of the space.
        """
        if self.space_version == 1:
            return dict(configuration)
        return self.space.inside(configuration) if self.edited is None else self.edited.present(configuration)

    def is_stale(self, number: int, configuration: Mapping[str, Scalar]) -> bool:
        """Return whether a trial was measured before the system changed in its context."""
        return any(
            number <= one.number and all(configuration.get(name) == value for name, value in one.context.items())
            for one in self.drifts
        )

    def same_question(self, study: Study) -> bool:
        """Return whether a stored study has the same space and objectives, so that both have the same results.

        The space may also be the one that the study was created with: the caller may not know that it was changed.
        """
        mine, theirs = self.problem.to_json(), spec_of(study).problem.to_json()
        same = mine["objectives"] == theirs["objectives"]
        same = same and self.problem.context.is_for(spec_of(study).problem.context)
        return same and mine["space"] in (theirs["space"], study.first_space)

    def with_space(self, space: EditedSpace) -> StudySpec:
        """Return the spec with the next version of its space.

        Raises InvalidInput (`outcome_constraints[<n>]`) if an outcome constraint names a new parameter, and
        (`context[<n>]...`) if the space has lost a context variable or one of its values. Cheaper values may be lost.
        """
        problem = self.problem
        constraints = [constraint.text for constraint in problem.outcome_constraints]
        changed = Problem.build(
            space.searched,
            problem.objectives,
            noisy=problem.noisy,
            outcome_constraints=constraints,
            context=problem.context.kept(space.searched),
        )
        if self.execution is not None:
            _expect_none_optional(space.declared)
        is_plain = self.edited is None and space == EditedSpace(space.declared)
        return replace(self, problem=changed, edited=None if is_plain else space, space_version=self.space_version + 1)

    def stored(self) -> dict[str, Any]:
        """Return the form for the database, which `spec_of` parses."""
        choice = self.choice
        return {
            **self.to_json(),
            "space_version": self.space_version,
            "algorithm_choice": None
            if choice is None
            else {"name": choice.name, "reason": choice.reason, "options": dict(choice.options)},
            **({"started_from": [one.to_json() for one in self.started_from]} if self.started_from else {}),
            **({} if self.edited is None else {"edited": self.edited.to_json()}),
            **({"edits": [one.to_json() for one in self.edits]} if self.edits else {}),
            **({"drifts": [one.to_json() for one in self.drifts]} if self.drifts else {}),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the form for users, which `parse` parses."""
        return {**self.problem.to_json(), **write(self)}


def parse(data: object, kept: type[StudySpec] = StudySpec) -> StudySpec:
    """Return a checked spec. Raises InvalidInput with the path of the field at fault."""
    given = as_object("", data, [one.name for one in (*PROBLEM_KEYS, *own_keys(kept))])
    problem = Problem.from_json({one.name: given[one.name] for one in PROBLEM_KEYS if one.name in given})
    spec = read(kept, "", given, problem=problem)
    if spec.execution is None:
        if spec.live is not None:
            raise InvalidInput(
                "live", given["live"], "null for a study without a component: an agent switches settings"
            )
        return spec
    _expect_none_optional(problem.space)
    if spec.trial_timeout_seconds is not None:
        allowed = "nothing: in a study on agents it is execution.trial_timeout_seconds"
        raise InvalidInput("trial_timeout_seconds", given["trial_timeout_seconds"], allowed)
    if spec.live is not None:
        return _live(spec)
    return spec if "final_check" in given else replace(spec, final_check=_usual_check(problem, spec.budget))


def _live(spec: StudySpec) -> StudySpec:
    """Return the spec of a live study. Raises InvalidInput for what a live study cannot have.

    Its trials compare each candidate with the settings in force, one after the other, so there are no repeats, no
    parallel trials and no final check.
    """
    assert spec.execution is not None
    problem, pairs = spec.problem, "null for a live study: its pairs compare each candidate with the settings in force"
    if len(problem.objectives) != 1:
        raise InvalidInput("objectives", [one.metric for one in problem.objectives], "one objective for a live study")
    if problem.context:
        raise InvalidInput("context", list(problem.context.names), "no context for a live study")
    if spec.execution.parallelism != 1:
        raise InvalidInput("execution.parallelism", spec.execution.parallelism, "1 for a live study")
    if not problem.space.has_explicit_default:
        raise InvalidInput("space", problem.space.names(), "parameters with defaults for a live study")
    if spec.final_check:
        raise InvalidInput("final_check", dict(spec.final_check), pairs)
    if spec.pruning:
        raise InvalidInput(
            "pruning", [one.name for one in spec.pruning], "no policy for a live study: guards end trials"
        )
    if spec.resampling is not None and spec.resampling.name != "none":
        raise InvalidInput("resampling.name", spec.resampling.name, "none for a live study: pairs repeat it")
    if spec.stability is not None:
        allowed = "null for a live study: it compares on the instances of one system; use live.rollout and live.watch"
        raise InvalidInput("stability", spec.stability.to_json(), allowed)
    if spec.start_from:
        raise InvalidInput("start_from", list(spec.start_from), "no earlier study for a live study: they are not safe")
    return replace(spec, final_check=None, resampling=Policy("none"), live=spec.live and _live_of_jobs(spec, spec.live))


def _live_of_jobs(spec: StudySpec, live: Live) -> Live:
    """Return the rules of a live study, with a budget if its trials are jobs. Raises InvalidInput."""
    if live.record is None:
        return live
    objective = spec.problem.objectives[0]
    if objective.goal != "minimize":
        raise InvalidInput("objectives[0].goal", objective.goal, "minimize: the objective of jobs is their run time")
    if spec.problem.outcome_constraints:
        texts = [one.text for one in spec.problem.outcome_constraints]
        raise InvalidInput("outcome_constraints", texts, "none for a study of jobs: only run times are known of jobs")
    if live.guards:
        raise InvalidInput("live.guards", list(live.guards), "none for a study of jobs: the scheduler guards jobs")
    for name, one in live.budget.items():
        if (one.metric, one.of, one.rate) != (LOST_NODE_HOURS, NODE_HOURS, None):
            allowed = f"{{metric: {LOST_NODE_HOURS}, of: {NODE_HOURS}}} without a rate for a study of jobs"
            raise InvalidInput(f"live.budget.{name}", one.to_json(), allowed)
    usual = {NODE_HOURS: Losses(LOST_NODE_HOURS, NODE_HOURS, 0.01, "week")}
    return replace(live, budget=live.budget or usual)


def _expect_none_optional(space: Space) -> None:
    """Raise InvalidInput for an optional parameter: agents give each run a value of every active parameter."""
    for index, parameter in enumerate(space.parameters):
        if parameter.optional:
            raise InvalidInput(f"space[{index}].optional", True, "false in a study on agents")


def _usual_check(problem: Problem, budget: Budget) -> dict[str, JsonValue] | None:
    """Return the final check of a study on agents that asks for none and refuses none.

    A small budget bounds each part of it to half of its trials, because the check comes on top of the budget.
    """
    space = problem.space
    is_possible = len(problem.objectives) == 1 and space.has_explicit_default and space.feasible(space.default())
    if not problem.noisy or not is_possible:
        return None
    trials = budget.max_trials
    if problem.context:
        # Each context has a check of its own.
        trials = None if trials is None else trials // len(problem.context.table())
        return {"effects": 0} if trials is None or trials >= _LARGE_BUDGET else _small_check(trials)
    if trials is None or trials >= _LARGE_FOR_EFFECTS:
        return {}
    if trials >= _LARGE_BUDGET:
        return {"effects": trials // 2}
    return _small_check(trials)


def _small_check(trials: int) -> dict[str, JsonValue]:
    return {"max_trials": max(_LEAST_CHECK, trials // 2), "effects": 0}


def _read(stored: Mapping[str, Any]) -> StudySpec:
    # Studies that are older than policies go on without any.
    data = {"resampling": {"name": "none"}, **stored}
    if data.get("execution"):
        # Studies that are older than placement keep their behaviour: trials run on any node and share nodes.
        data["execution"] = {"placement": {"exclusive": False, "spread": False}, **data["execution"]}
    if data.get("final_check"):
        # Checks that are older than this part of them go on without it.
        data["final_check"] = {"effects": 0, **data["final_check"]}
    choice, version = data.pop("algorithm_choice", None), data.pop("space_version", 1)
    # Studies whose algorithm learned from earlier ones go on without that. Such an entry is {"study", "learn"}, and the
    # result has "learned".
    if data.get("start_from"):
        data["start_from"] = [one["study"] if isinstance(one, Mapping) else one for one in data["start_from"]]
    started = tuple(StartedFrom(one["study"], one["taken"], one["passed_over"]) for one in data.pop("started_from", ()))
    drifts = tuple(DriftRecord(**one) for one in data.pop("drifts", ()))
    edited, edits = data.pop("edited", None), tuple(EditRecord.from_json(one) for one in data.pop("edits", ()))
    if edited is not None:
        # The searched space follows from the declared one. Its own JSON need not be a space that a user may declare.
        data["space"] = edited["declared"]
    spec = replace(
        parse(data),
        choice=None if choice is None else Choice(**choice),
        space_version=version,
        started_from=started,
        edits=edits,
        drifts=drifts,
    )
    if edited is None:
        return spec
    space = EditedSpace.from_json(edited)
    return replace(spec, edited=space, problem=replace(spec.problem, space=space.searched))


# Creation time is part of the key because a database that was emptied gives its keys again.
_specs: LruCache[tuple[int, datetime, int], StudySpec] = LruCache(512)


def spec_of(study: Study) -> StudySpec:
    """Return the spec of a stored study. It is remembered: reading a large space would cost more than an ask."""
    known = _specs.get((study.pk, study.created_at, study.space_version))
    if known is not None:
        return known
    parsed = _read(study.spec)
    # Without a lock on the study's row, a spec that is fetched only now may be of a later version than the row.
    return _specs.get_or_put((study.pk, study.created_at, parsed.space_version), lambda: parsed)


def forget(study: Study) -> None:
    """Forget the spec of a study whose change was undone."""
    _specs.pop((study.pk, study.created_at, study.space_version))


def budget_of(study: Study) -> Budget:
    """Return the budget of a stored study: its spec's, or the one that replaced it."""
    return spec_of(study).budget if study.budget is None else Budget(**study.budget)


def parse_budget(data: object) -> Budget:
    """Return a checked budget. Raises InvalidInput with the path of the field at fault, from `budget`."""
    return read(Budget, "budget", data)
