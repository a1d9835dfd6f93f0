"""The spec of a study: the JSON that is stored, sent over REST and made by rpc from protobuf.

    {"space": core Space JSON, "objectives": [{"metric", "goal", "unit"}], "outcome_constraints": [texts],
     "context": [{"name": name of a parameter, "values": [...], "cheaper": [...]}], "noisy": true, "seed": 0,
     "algorithm": {"name", "options"}, "resampling": {"name", "options"},
     "estimator": {"name", "options"}, "pruning": [{"name", "options"}],
     "stopping": rule of policies/stopping.py or null,
     "final_check": {"width", "max_trials", "level", "effects"} or null,
     "budget": {"max_trials", "max_seconds", "max_node_hours"},
     "execution": {"component", "digest", "application", "parallelism", "trial_timeout_seconds",
                   "placement": {"exclusive", "spread"}} or null,
     "start_from": [names of earlier studies], "description": Markdown,
     "job": {"user", "name", "program", "command", "nodes"}}

Only `space` and `objectives` are required. A stored spec also has "space_version"; "algorithm_choice": {"name",
"reason", "options"} where the algorithm is one that chooses another; with "drifts" the changes of
the system that were found; with "start_from" its result, "started_from":
[{"study", "taken", "passed_over"}]; and once its space was edited, "edited" (`core/edits.py`) and "edits"
(`edit_records.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from service.core.edits import EditedSpace
from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.parameters import Scalar
from service.core.problem import Problem
from service.core.space import Configuration, Space
from service.platform.lru_cache import LruCache
from service.studies import job_metadata
from service.studies.edit_records import EditRecord
from service.studies.job_metadata import JobMetadata

if TYPE_CHECKING:
    from service.studies.models import Study

DEFAULT_ALGORITHM = "auto"
DEFAULT_ESTIMATOR = "median"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_PROBLEM_KEYS = ("space", "objectives", "outcome_constraints", "noisy", "context")
_KEYS = frozenset(
    {
        *_PROBLEM_KEYS,
        "algorithm",
        "seed",
        "resampling",
        "estimator",
        "pruning",
        "stopping",
        "final_check",
        "budget",
        "execution",
        "trial_timeout_seconds",
        "start_from",
        "description",
        "job",
    }
)
_FINAL_CHECK_KEYS = frozenset({"width", "max_trials", "level", "effects"})
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


@dataclass(frozen=True, slots=True)
class Budget:
    """When a study is done; None: no limit."""

    max_trials: int | None = None
    # Wall time from the study's first trial.
    max_seconds: float | None = None
    # The trials' own running time together, in hours.
    max_node_hours: float | None = None

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit of any kind."""
        return self.max_trials is not None or self.is_timed

    @property
    def is_timed(self) -> bool:
        """Return whether time limits the search, and the number of trials does not."""
        return self.max_trials is None and (self.max_seconds, self.max_node_hours) != (None, None)

    def to_json(self) -> dict[str, Any]:
        return {
            "max_trials": self.max_trials,
            "max_seconds": self.max_seconds,
            "max_node_hours": self.max_node_hours,
        }


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by name, with its options."""

    name: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "options": dict(self.options)}


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm that `auto` chose for a study when it was created, why, and its options."""

    name: str
    reason: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where trials run. `exclusive`: no other job shares a trial's node. `spread`: trials of one configuration run on
    different nodes, as far as there are any.

    Both are the default: otherwise a neighbour's load, or one slow node, would be taken for the configuration's effect.
    """

    exclusive: bool = True
    spread: bool = True


@dataclass(frozen=True, slots=True)
class Execution:
    """The component that agents tune, and how they do it. An empty digest accepts every version of the component."""

    component: str
    digest: str = ""
    application: str = ""
    parallelism: int = 1
    trial_timeout_seconds: float | None = None
    placement: Placement = Placement()


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
    """A spec whose shape was checked; names and options of algorithm and policies are for `trials/method.py`.

    `resampling` None: what suits the algorithm. `trial_timeout_seconds`: after this time another client gets a trial of
    a study without `execution`. `stopping` and `final_check` are JSON as it came. `space_version`: 1 for the space that
    the study was created with, one more with each change of it. `start_from`: names of the studies whose best
    configurations were to be measured first, and `started_from` what came of each. `edited`: the space with its edits,
    None before the first; `edits`: the records of these edits.
    `drifts`: the changes of the system that were found. `problem` has the space that is searched now. `job`: the
    job that the study tunes, by which later jobs match its result (`service/matching`).
    """

    problem: Problem
    algorithm: str = DEFAULT_ALGORITHM
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    seed: int = 0
    choice: Choice | None = None
    resampling: Policy | None = None
    estimator: Policy = Policy(DEFAULT_ESTIMATOR)
    pruning: Sequence[Policy] = ()
    stopping: JsonValue = None
    final_check: Mapping[str, JsonValue] | None = None
    budget: Budget = Budget()
    execution: Execution | None = None
    trial_timeout_seconds: float | None = None
    space_version: int = 1
    start_from: tuple[str, ...] = ()
    started_from: tuple[StartedFrom, ...] = ()
    description: str = ""
    job: JobMetadata = job_metadata.UNSAID
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
        execution, resampling = self.execution, self.resampling
        return {
            **self.problem.to_json(),
            "algorithm": {"name": self.algorithm, "options": dict(self.options)},
            "seed": self.seed,
            "resampling": None if resampling is None else resampling.to_json(),
            "estimator": self.estimator.to_json(),
            "pruning": [policy.to_json() for policy in self.pruning],
            "stopping": self.stopping,
            "final_check": None if self.final_check is None else dict(self.final_check),
            "budget": self.budget.to_json(),
            "execution": None
            if execution is None
            else {
                "component": execution.component,
                "digest": execution.digest,
                "application": execution.application,
                "parallelism": execution.parallelism,
                "trial_timeout_seconds": execution.trial_timeout_seconds,
                "placement": {"exclusive": execution.placement.exclusive, "spread": execution.placement.spread},
            },
            **({} if self.trial_timeout_seconds is None else {"trial_timeout_seconds": self.trial_timeout_seconds}),
            **({"start_from": list(self.start_from)} if self.start_from else {}),
            **({"description": self.description} if self.description else {}),
            **({"job": self.job.to_json()} if self.job.to_json() else {}),
        }


def parse(data: object) -> StudySpec:
    """Return a checked spec. Raises InvalidInput with the path of the field at fault."""
    spec = _object("spec", data, _KEYS)
    algorithm = _policy("algorithm", spec.get("algorithm") or {}, DEFAULT_ALGORITHM)
    pruning = spec.get("pruning") or []
    if not isinstance(pruning, Sequence) or isinstance(pruning, str) or len(pruning) > _MOST_POLICIES:
        raise InvalidInput(
            "pruning", pruning, f"a list of at most {_MOST_POLICIES} policies, each with name and options"
        )
    problem = Problem.from_json({key: spec[key] for key in _PROBLEM_KEYS if key in spec})
    budget = _budget(spec.get("budget") or {})
    execution = _execution(spec["execution"]) if spec.get("execution") is not None else None
    if "final_check" in spec:
        final_check = spec["final_check"]
    else:
        final_check = None if execution is None else _usual_check(problem, budget)
    return StudySpec(
        problem=problem,
        algorithm=algorithm.name,
        options=algorithm.options,
        seed=_integer("seed", spec.get("seed", 0), 0, 2**63 - 1),
        resampling=_policy("resampling", spec["resampling"]) if spec.get("resampling") is not None else None,
        estimator=_policy("estimator", spec.get("estimator") or {}, DEFAULT_ESTIMATOR),
        pruning=tuple(_policy(f"pruning[{index}]", policy) for index, policy in enumerate(pruning)),
        stopping=spec.get("stopping"),
        final_check=None if final_check is None else dict(_object("final_check", final_check, _FINAL_CHECK_KEYS)),
        budget=budget,
        execution=execution,
        trial_timeout_seconds=_trial_timeout(spec.get("trial_timeout_seconds"), execution),
        start_from=_start_from(spec.get("start_from")),
        description=_description(spec.get("description")),
        job=job_metadata.parse(spec.get("job") or {}),
    )


def check_name(field: str, name: object) -> None:
    """Refuse what cannot name a study. Raises InvalidInput."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(field, name, "a letter or digit, then at most 62 letters, digits and . _ -")


def check_identifier(field: str, value: object, longest: int, *, required: bool = False) -> None:
    """Refuse what cannot be kept as an identifier that a client chose. Raises InvalidInput."""
    if not isinstance(value, str) or len(value) > longest or "\0" in value or (required and not value):
        raise InvalidInput(field, value, f"a text of {int(required)} to {longest} characters")


def check_texts(field: str, texts: Mapping[str, str], *, most: int, longest: int) -> None:
    """Refuse a mapping with more than `most` texts, or with a key or text of more than `longest` characters.

    Raises InvalidInput.
    """
    if len(texts) > most:
        raise InvalidInput(field, f"{len(texts)} entries", f"at most {most}")
    for key, value in texts.items():
        check_identifier(field, key, longest, required=True)
        check_identifier(f"{field}.{key}", value, longest)


def check_tags(tags: Sequence[str]) -> list[str]:
    """Return the tags without duplicates, in alphabetical order. Raises InvalidInput."""
    if len(tags) > _MOST_TAGS:
        raise InvalidInput("tags", f"{len(tags)} tags", f"at most {_MOST_TAGS}")
    for tag in tags:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise InvalidInput("tags", tag, "1 to 50 letters, digits, spaces and . _ : / -, not beginning with a space")
    return sorted(set(tags))


def _policy(field: str, data: object, default: str = "") -> Policy:
    policy = _object(field, data, {"name", "options"})
    options = policy.get("options") or {}
    if not isinstance(options, Mapping):
        raise InvalidInput(f"{field}.options", options, "an object")
    return Policy(_text(f"{field}.name", policy.get("name") or default, 64), dict(options))


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


def _budget(data: object) -> Budget:
    budget = _object("budget", data, {"max_trials", "max_seconds", "max_node_hours"})
    trials, seconds, hours = budget.get("max_trials"), budget.get("max_seconds"), budget.get("max_node_hours")
    if hours is not None and (
        isinstance(hours, bool) or not isinstance(hours, int | float) or not 1e-6 <= hours <= 1e9
    ):
        raise InvalidInput("budget.max_node_hours", hours, "a number of hours from 1e-6 to 1e9")
    return Budget(
        max_trials=None if trials is None else _integer("budget.max_trials", trials, 1, 10**9),
        max_seconds=None if seconds is None else _seconds("budget.max_seconds", seconds),
        max_node_hours=None if hours is None else _hours("budget.max_node_hours", hours),
    )


def _execution(data: object) -> Execution:
    execution = _object(
        "execution", data, {"component", "digest", "application", "parallelism", "trial_timeout_seconds", "placement"}
    )
    component = _text("execution.component", execution.get("component"), 200)
    if not component:
        raise InvalidInput("execution.component", component, "the name of a component that an agent has")
    timeout = execution.get("trial_timeout_seconds")
    return Execution(
        component=component,
        digest=_text("execution.digest", execution.get("digest") or "", 64),
        application=_text("execution.application", execution.get("application") or "", 200),
        parallelism=_integer("execution.parallelism", execution.get("parallelism") or 1, 1, 10_000),
        trial_timeout_seconds=None if timeout is None else _seconds("execution.trial_timeout_seconds", timeout),
        placement=_placement(execution.get("placement") or {}),
    )


def _trial_timeout(data: object, execution: Execution | None) -> float | None:
    if data is None:
        return None
    if execution is not None:
        raise InvalidInput(
            "trial_timeout_seconds", data, "nothing: in a study on agents it is execution.trial_timeout_seconds"
        )
    return _seconds("trial_timeout_seconds", data)


def _start_from(data: object) -> tuple[str, ...]:
    if data is None:
        return ()
    if not isinstance(data, Sequence) or isinstance(data, str) or len(data) > MOST_EARLIER:
        raise InvalidInput("start_from", data, f"a list of at most {MOST_EARLIER} names of studies")
    for index, name in enumerate(data):
        check_name(f"start_from[{index}]", name)
        if name in data[:index]:
            raise InvalidInput(f"start_from[{index}]", name, "each study once")
    return tuple(data)


def _description(data: object) -> str:
    """Return a note on a study without empty lines around it."""
    if data is None:
        return ""
    allowed = f"a text of at most {LONGEST_DESCRIPTION:,} characters"
    if not isinstance(data, str) or "\0" in data:
        raise InvalidInput("description", data, f"{allowed}, without NUL characters")
    text = data.rstrip().lstrip("\r\n")
    if len(text) > LONGEST_DESCRIPTION:
        message = f"description: the text has {len(text):,} characters. Use {allowed}."
        raise InvalidInput("description", shorten(text, 60), allowed, message=message)
    return text


def _placement(data: object) -> Placement:
    given = _object("execution.placement", data, {"exclusive", "spread"})
    flags = {name: True if given.get(name) is None else given[name] for name in ("exclusive", "spread")}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise InvalidInput(f"execution.placement.{name}", flag, "true or false")
    return Placement(**flags)


def _object(field: str, data: object, keys: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise InvalidInput(field, data, "an object with " + ", ".join(sorted(keys)))
    for key in data:
        if key not in keys:
            where = str(key) if field == "spec" else f"{field}.{key}"
            raise InvalidInput(where, data[key], "the keys " + ", ".join(sorted(keys)))
    return data


def _text(field: str, value: object, longest: int) -> str:
    check_identifier(field, value, longest)
    return str(value)


def _integer(field: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(field, value, f"an integer from {least} to {most}")
    return value


def _seconds(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST_SECONDS:
        allowed = "a number of seconds above 0, at most ten years"
        # As numbers too, for those who show the field in another unit.
        raise InvalidInput(field, value, allowed, above=0, at_most=LONGEST_SECONDS)
    return float(value)


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


def _hours(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-6 <= value <= 1e9:
        raise InvalidInput(field, value, "a number of hours from 1e-6 to 1e9")
    return float(value)


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
    return _budget(data)
