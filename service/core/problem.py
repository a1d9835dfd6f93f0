"""The problem of a study: its search space, its objectives, its outcome constraints and its context."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from service.core import constraints as language
from service.core.constraints import Constraint
from service.core.context import Context
from service.core.errors import InvalidInput, JsonValue
from service.core.space import Scalar, Space

__all__ = ["JsonValue", "Objective", "Problem"]

MAX_OBJECTIVES = 8
MAX_OUTCOME_CONSTRAINTS = 8
Goal = Literal["minimize", "maximize"]

NO_CONTEXT = Context()

_METRIC = re.compile(r"[^\W\d][\w.:/-]{0,126}")
_METRIC_IN_WORDS = "a letter or _, then letters, digits and _ . : / -"


@dataclass(frozen=True)
class Objective:
    """A metric and the direction in which it is better. `unit` is text for people."""

    metric: str
    goal: Goal
    unit: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `from_json` makes an equal objective."""
        return {"metric": self.metric, "goal": self.goal, **({"unit": self.unit} if self.unit else {})}

    @classmethod
    def from_json(cls, data: object, where: str = "objective") -> Objective:
        """Return the objective that the JSON describes. Raises InvalidInput (field `where` or below)."""
        if not isinstance(data, Mapping):
            raise InvalidInput(where, data, 'an object such as {"metric": "seconds", "goal": "minimize"}')
        if unknown := sorted(set(data) - {"metric", "goal", "unit"}):
            allowed = "only the keys metric, goal and unit"
            raise InvalidInput(f"{where}.{unknown[0]}", data[unknown[0]], allowed, problem="belongs to an unknown key")
        metric, goal, unit = data.get("metric"), data.get("goal"), data.get("unit", "")
        if not isinstance(metric, str) or not _METRIC.fullmatch(metric):
            raise InvalidInput(f"{where}.metric", metric, _METRIC_IN_WORDS)
        if goal not in ("minimize", "maximize"):
            raise InvalidInput(f"{where}.goal", goal, "minimize or maximize")
        if not isinstance(unit, str) or len(unit) > 32:
            raise InvalidInput(f"{where}.unit", unit, "a text of at most 32 characters")
        return cls(metric, cast(Goal, goal), unit)


@dataclass(frozen=True)
class Problem:
    """A search space and one or more objectives.

    `noisy`: two measurements of one configuration may differ, so that a second measurement can be worth its cost.
    `outcome_constraints`: conditions on a trial's metrics, such as `memory_mb <= 4096`, that a configuration must meet
    to be acceptable. `context`: the parameters of the space that are observed and never chosen.
    """

    space: Space
    objectives: tuple[Objective, ...]
    noisy: bool = True
    outcome_constraints: tuple[Constraint, ...] = ()
    context: Context = NO_CONTEXT

    @classmethod
    def build(
        cls,
        space: Space,
        objectives: Sequence[Objective],
        *,
        noisy: bool = True,
        outcome_constraints: Sequence[str] = (),
        context: object = (),
    ) -> Problem:
        """Return a checked problem.

        Raises InvalidInput for no, too many or repeated objectives, for `outcome_constraints[<n>]` if it cannot be read
        or names a parameter in place of a metric, and as `Context.parse` does, also for a context together with several
        objectives.
        """
        if not 1 <= len(objectives) <= MAX_OBJECTIVES:
            raise InvalidInput("objectives", len(objectives), f"1 to {MAX_OBJECTIVES} objectives")
        seen: set[str] = set()
        for index, objective in enumerate(objectives):
            if objective.metric in seen:
                field = f"objectives[{index}].metric"
                raise InvalidInput(field, objective.metric, "each metric once", problem="is repeated")
            seen.add(objective.metric)
        if len(outcome_constraints) > MAX_OUTCOME_CONSTRAINTS:
            allowed = f"at most {MAX_OUTCOME_CONSTRAINTS} outcome constraints"
            raise InvalidInput("outcome_constraints", len(outcome_constraints), allowed)
        parameters = set(space.names()) - seen
        parsed = [
            _outcome_constraint(text, f"outcome_constraints[{index}]", parameters)
            for index, text in enumerate(outcome_constraints)
        ]
        found = Context.parse(context, space)
        if found and len(objectives) > 1:
            raise InvalidInput("context", list(found.names), "no context for a study with several objectives")
        return cls(space, tuple(objectives), noisy, tuple(parsed), found)

    def within(self, context: Mapping[str, Scalar]) -> Problem:
        """Return the problem in one context: its space has only the configurations with these values."""
        return replace(self, space=self.space.restrict(context), context=NO_CONTEXT)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The objectives' metrics, in their order."""
        return tuple(objective.metric for objective in self.objectives)

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        """The metrics that every completed trial must report: the objectives', then the outcome constraints'."""
        named = sorted({name for constraint in self.outcome_constraints for name in constraint.names})
        return tuple(dict.fromkeys([*self.metrics, *named]))

    def signs(self) -> NDArray[np.float64]:
        """Return one sign for each of the m objectives: +1 to minimise, -1 to maximise.

        A metric times its sign is better if it is smaller.
        """
        return np.array([1.0 if objective.goal == "minimize" else -1.0 for objective in self.objectives])

    def acceptable(self, metrics: Mapping[str, float]) -> bool:
        """Return whether a completed trial's metrics meet the outcome constraints; a missing metric meets none."""
        return not self.broken(metrics)

    def broken(self, metrics: Mapping[str, float]) -> tuple[Constraint, ...]:
        """Return the outcome constraints that a completed trial's metrics break."""
        return tuple(one for one in self.outcome_constraints if not _keeps(one, metrics))

    def mostly_acceptable(self, runs: Sequence[Mapping[str, float]]) -> bool:
        """Return whether more than half of the runs, given by their metrics, meet the outcome constraints."""
        return 2 * sum(map(self.acceptable, runs)) > len(runs)

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `from_json` makes an equal problem."""
        data: dict[str, JsonValue] = {
            "space": self.space.to_json(),
            "objectives": [objective.to_json() for objective in self.objectives],
            "noisy": self.noisy,
        }
        if self.outcome_constraints:
            data["outcome_constraints"] = [constraint.text for constraint in self.outcome_constraints]
        if self.context:
            data["context"] = self.context.to_json()
        return data

    @classmethod
    def from_json(cls, data: object) -> Problem:
        """Return the problem that the JSON describes. Raises InvalidInput with the path of the field at fault."""
        if not isinstance(data, Mapping):
            raise InvalidInput("problem", data, "an object with space and objectives")
        objectives = data.get("objectives")
        if not isinstance(objectives, Sequence) or isinstance(objectives, str):
            raise InvalidInput("objectives", objectives, "a list of objectives")
        noisy = data.get("noisy", True)
        if not isinstance(noisy, bool):
            raise InvalidInput("noisy", noisy, "true or false")
        constraints = data.get("outcome_constraints", [])
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            raise InvalidInput("outcome_constraints", constraints, "a list of texts such as 'memory_mb <= 4096'")
        return cls.build(
            Space.from_json(data.get("space")),
            [Objective.from_json(entry, f"objectives[{index}]") for index, entry in enumerate(objectives)],
            noisy=noisy,
            outcome_constraints=constraints,
            context=data.get("context") or (),
        )


def _keeps(constraint: Constraint, metrics: Mapping[str, float]) -> bool:
    known = all(math.isfinite(metrics.get(name, math.nan)) for name in constraint.names)
    return known and constraint.holds(metrics)


def _outcome_constraint(text: object, where: str, parameters: Set[str]) -> Constraint:
    constraint = language.parse(text, where)
    for name in sorted(constraint.names):
        if not _METRIC.fullmatch(name):
            allowed = f"names of metrics: {_METRIC_IN_WORDS}"
            raise InvalidInput(where, text, allowed, problem=f"contains {name!r}, which cannot be a metric's name")
        if name in parameters:
            allowed = "names of metrics here, and the space's constraints for parameters"
            raise InvalidInput(where, text, allowed, problem=f"names the parameter {name}")
    constraint.check(dict.fromkeys(constraint.names, "number"), where)
    return constraint
