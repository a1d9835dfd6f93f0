"""What a study is asked to do: its spec, as the JSON that is stored, sent over REST and made by rpc from protobuf.

    {"space": core Space JSON, "objectives": [{"metric", "goal", "unit"}], "algorithm": {"name", "options"}, "seed": 0,
     "noisy": true, "budget": {"max_trials", "max_seconds"},
     "execution": {"component", "digest", "application", "parallelism", "trial_timeout_seconds"} or null}

Only `space` and `objectives` are required.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from service.core.errors import InvalidInput, JsonValue
from service.core.problem import Problem
from service.core.space import Space

if TYPE_CHECKING:
    from service.studies.models import Study

DEFAULT_ALGORITHM = "gp"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_KEYS = frozenset({"space", "objectives", "noisy", "algorithm", "seed", "budget", "execution"})
LONGEST_SECONDS = 10 * 366 * 24 * 3600.0
_REMEMBERED = 512


@dataclass(frozen=True, slots=True)
class Budget:
    """When a study is done; None: no limit."""

    max_trials: int | None = None
    # Wall time from the study's first trial.
    max_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """Which component agents tune, and how. An empty digest: whichever version an agent has."""

    component: str
    digest: str = ""
    application: str = ""
    parallelism: int = 1
    trial_timeout_seconds: float | None = None


# Compared by identity: a study's spec never changes, and spec_of gives the same object again.
@dataclass(frozen=True, eq=False)
class StudySpec:
    """A spec that was checked, but for the algorithm's name and options, which `algorithms.registry` knows."""

    problem: Problem
    algorithm: str = DEFAULT_ALGORITHM
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    seed: int = 0
    budget: Budget = Budget()
    execution: Execution | None = None

    @property
    def space(self) -> Space:
        return self.problem.space

    def same_question(self, other: StudySpec) -> bool:
        """Whether space and objectives are the same, so that results of one are results of the other."""
        mine, theirs = self.problem.to_json(), other.problem.to_json()
        return (mine["space"], mine["objectives"]) == (theirs["space"], theirs["objectives"])

    def to_json(self) -> dict[str, Any]:
        """The stored form; `parse` reads it back."""
        execution = self.execution
        return {
            **self.problem.to_json(),
            "algorithm": {"name": self.algorithm, "options": dict(self.options)},
            "seed": self.seed,
            "budget": {"max_trials": self.budget.max_trials, "max_seconds": self.budget.max_seconds},
            "execution": None
            if execution is None
            else {
                "component": execution.component,
                "digest": execution.digest,
                "application": execution.application,
                "parallelism": execution.parallelism,
                "trial_timeout_seconds": execution.trial_timeout_seconds,
            },
        }


def parse(data: object) -> StudySpec:
    """A checked spec. Raises InvalidInput with the path of the field at fault."""
    spec = _object("spec", data, _KEYS)
    algorithm = _object("algorithm", spec.get("algorithm") or {}, {"name", "options"})
    options = algorithm.get("options") or {}
    if not isinstance(options, Mapping):
        raise InvalidInput("algorithm.options", options, "an object")
    return StudySpec(
        problem=Problem.from_json({key: spec[key] for key in ("space", "objectives", "noisy") if key in spec}),
        algorithm=_text("algorithm.name", algorithm.get("name") or DEFAULT_ALGORITHM, 64),
        options=dict(options),
        seed=_integer("seed", spec.get("seed", 0), 0, 2**63 - 1),
        budget=_budget(spec.get("budget") or {}),
        execution=_execution(spec["execution"]) if spec.get("execution") is not None else None,
    )


def check_name(field: str, name: object) -> None:
    """Refuse what cannot name a study. Raises InvalidInput."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(field, name, "a letter or digit, then at most 62 letters, digits and . _ -")


def check_identifier(field: str, value: object, longest: int, *, required: bool = False) -> None:
    """Refuse what cannot be kept as an identifier that a client chose. Raises InvalidInput."""
    if not isinstance(value, str) or len(value) > longest or "\0" in value or (required and not value):
        raise InvalidInput(field, value, f"a text of {int(required)} to {longest} characters")


def _budget(data: object) -> Budget:
    budget = _object("budget", data, {"max_trials", "max_seconds"})
    trials, seconds = budget.get("max_trials"), budget.get("max_seconds")
    return Budget(
        max_trials=None if trials is None else _integer("budget.max_trials", trials, 1, 10**9),
        max_seconds=None if seconds is None else _seconds("budget.max_seconds", seconds),
    )


def _execution(data: object) -> Execution:
    execution = _object(
        "execution", data, {"component", "digest", "application", "parallelism", "trial_timeout_seconds"}
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
    )


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
        raise InvalidInput(field, value, "a number of seconds above 0, at most ten years")
    return float(value)


_specs: OrderedDict[tuple[int, datetime], StudySpec] = OrderedDict()
_guard = Lock()


def spec_of(study: Study) -> StudySpec:
    """The spec of a stored study, remembered: reading a large space again would cost more than an ask."""
    # Creation time beside the key: a database that was emptied gives its keys again.
    key = (study.pk, study.created_at)
    with _guard:
        known = _specs.get(key)
        if known is not None:
            _specs.move_to_end(key)
            return known
    parsed = parse(study.spec)
    with _guard:
        parsed = _specs.setdefault(key, parsed)
        while len(_specs) > _REMEMBERED:
            _specs.popitem(last=False)
    return parsed
