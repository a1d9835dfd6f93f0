"""The answer to "is the result of this study better than that of another one?", from replicates."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from service.core.errors import JsonValue
from service.core.metrics import limited
from service.core.problem import Goal, Objective
from service.policies.noise import gain_interval
from service.results.analysis import Analysis
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal

# The confidence with which all intervals of one comparison hold at once.
CONFIDENCE = 0.95


class Answer(StrEnum):
    """The answer for the result of a study next to that of the other."""

    BETTER = "better"
    WORSE = "worse"
    # The interval contains zero.
    NO_DIFFERENCE = "no measurable difference"
    # The rank test cannot reach the confidence level with so few runs, or the units differ.
    UNKNOWN = "not yet known"


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of the recommended configuration of a study.

    `fair` says whether they are runs of its final check. Other runs include those whose results led to the choice of
    the configuration, and such runs are too good on average.
    """

    values: Sequence[float]
    fair: bool
    machines: Collection[str]


@dataclass(frozen=True, slots=True)
class Better:
    """The gain of a study's result over that of `against`, as a share of the latter, and the `answer` that follows.

    The interval from `low` to `high` holds together with those of the other studies of the comparison. `fair` says
    whether the runs of both sides are of final checks, and `same_machine` that no two machines are known to have
    measured them.
    """

    study: str
    against: str
    answer: Answer
    gain: float | None
    low: float | None
    high: float | None
    runs: int
    against_runs: int
    fair: bool
    same_machine: bool


def runs_of(principal: Principal, study: Study, analysis: Analysis, objective: Objective) -> Runs:
    """Return the runs of the configuration that stands for the study; of its final check if that has measured it.

    A study with a context has none, since runs in different contexts cannot be compared.
    Runs with a doubtful timing count only if there are no others.
    """
    best = next((one for one in analysis.best if one.params == analysis.configuration), None)
    if best is None:
        return Runs([], fair=False, machines=())
    rows = access.rows(Trial, principal).filter(study_id=study.pk, number__in=best.numbers)
    found = [
        (limited(metrics)[objective.metric], origin, doubt, machine)
        for metrics, origin, doubt, machine in rows.order_by("number").values_list(
            "metrics", "origin", "doubt", "machine"
        )
        if metrics is not None and math.isfinite(metrics.get(objective.metric, math.nan))
    ]
    checked = [one for one in found if one[1] == "check"]
    chosen = checked or found
    chosen = [one for one in chosen if not one[2]] or chosen
    return Runs([one[0] for one in chosen], bool(checked), {one[3] for one in chosen if one[3]})


def compare_runs(study: tuple[str, Runs], against: tuple[str, Runs], goal: Goal, comparisons: int) -> Better:
    """Return the gain of one study over another. Both measure the metric in the same unit.

    `comparisons`: the number of intervals that have to hold at once (Bonferroni).
    """
    (name, mine), (other, theirs) = study, against
    sign = 1.0 if goal == "minimize" else -1.0
    level = 1 - (1 - CONFIDENCE) / comparisons
    gain = gain_interval([sign * value for value in theirs.values], [sign * value for value in mine.values], level)
    if gain is None:
        answer = Answer.UNKNOWN
    elif gain.low > 0:
        answer = Answer.BETTER
    else:
        answer = Answer.WORSE if gain.high < 0 else Answer.NO_DIFFERENCE
    return Better(
        study=name,
        against=other,
        answer=answer,
        gain=None if gain is None else gain.estimate,
        low=None if gain is None else gain.low,
        high=None if gain is None else gain.high,
        runs=len(mine.values),
        against_runs=len(theirs.values),
        fair=mine.fair and theirs.fair,
        same_machine=len({*mine.machines, *theirs.machines}) <= 1,
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in which studies differ, by its path in a spec. `values`: its text in each study; None: it has none."""

    name: str
    values: Sequence[str | None]


def different_settings(specs: Sequence[JsonValue]) -> list[Setting]:
    """Return the settings in which the specs differ, in the order of the specs.

    A parameter of the space is one setting. Objects are followed to their single values, and lists are compared whole.
    """
    flat = [_flat(spec) for spec in specs]
    names = dict.fromkeys(name for one in flat for name in one)
    found = [Setting(name, [_text(one.get(name)) for one in flat]) for name in names]
    return [setting for setting in found if len(set(setting.values)) > 1]


def _text(value: JsonValue) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(value: JsonValue, path: str = "") -> dict[str, JsonValue]:
    if path == "space.parameters" and isinstance(value, list):
        return {f"space.{one['name']}": _without_name(one) for one in value if isinstance(one, dict)}
    if not isinstance(value, dict):
        return {path: value}
    found: dict[str, JsonValue] = {}
    for name, part in value.items():
        found.update(_flat(part, f"{path}.{name}" if path else name))
    return found


def _without_name(parameter: dict[str, JsonValue]) -> JsonValue:
    return {key: value for key, value in parameter.items() if key != "name"}
