"""The comparison of studies with a common metric: their curves, results, configurations and settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.core.errors import InvalidInput, NotFound
from service.core.lifecycle import TrialState
from service.core.metrics import limited
from service.core.problem import Goal
from service.core.space import Configuration
from service.results.analysis import analyse
from service.results.better import Better, Runs, Setting, compare_runs, different_settings, runs_of
from service.studies import selectors
from service.studies.models import StudySummary, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

MOST_STUDIES = 10


@dataclass(frozen=True, slots=True)
class Curve:
    """The trials of a study that were better than all earlier ones, as (number, value).

    `trials` is the number of trials with a value, and `last_number` the number of the last of them. `objective` is the
    metric's progress from the study's summary, in the numbers of the verdict; None before there is one.
    `configuration` is the one that stands for the study, to which the objective's numbers belong; None with a context
    and before the first result. `default` is the default configuration of the space, and `units` are those of its
    parameters.
    """

    study: str
    unit: str
    steps: Sequence[tuple[int, float]]
    trials: int
    last_number: int
    objective: Mapping[str, Any] | None
    configuration: Configuration | None
    default: Configuration
    units: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The curves of one metric.

    `metrics` holds the metrics that all studies have as objectives, `missing` the names for which no study exists.
    `better` says for each study but the first whether its result is better than that of the first. Studies with another
    unit than the first are left out. `settings` are those in which the studies differ.
    """

    metric: str
    goal: Goal
    metrics: Sequence[str]
    curves: Sequence[Curve]
    missing: Sequence[str]
    better: Sequence[Better]
    settings: Sequence[Setting]


def compare(principal: Principal, names: Sequence[str], metric: str = "") -> Comparison:
    """Return the curves of the named studies that exist, in the order of the names.

    Without a metric, the comparison uses the first objective that all studies share. Raises InvalidInput if they share
    no objective or not this one; NotFound if none of the studies exists.
    """
    if not 1 <= len(names) <= MOST_STUDIES or len(set(names)) < len(names):
        raise InvalidInput("study", list(names), f"1 to {MOST_STUDIES} different studies")
    found = {name: selectors.find_study(principal, name) for name in names}
    studies = [study for study in found.values() if study is not None]
    if not studies:
        raise NotFound("study_not_found", f"No study is called {' or '.join(names)}.")
    specs = [spec_of(study) for study in studies]
    common = [
        objective
        for objective in specs[0].problem.objectives
        if all(
            any((other.metric, other.goal) == (objective.metric, objective.goal) for other in spec.problem.objectives)
            for spec in specs
        )
    ]
    chosen = next((objective for objective in common if metric in ("", objective.metric)), None)
    missing = [name for name, study in found.items() if study is None]
    if chosen is None:
        allowed = ", ".join(objective.metric for objective in common)
        raise InvalidInput(
            "metric", metric, allowed or "studies that have an objective in common, with the same goal",
            code="nothing_in_common" if not common else "invalid_argument", missing=missing,
        )  # fmt: skip
    sign = 1.0 if chosen.goal == "minimize" else -1.0
    summaries = access.rows(StudySummary, principal).filter(study_id__in=[study.pk for study in studies])
    progress = dict(summaries.values_list("study_id", "objectives"))
    curves: list[Curve] = []
    runs: list[Runs] = []
    for study, spec in zip(studies, specs, strict=True):
        completed = access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.COMPLETED)
        steps: list[tuple[int, float]] = []
        count, last = 0, 0
        for number, metrics in completed.order_by("number").values_list("number", "metrics"):
            assert metrics is not None
            value = limited(metrics).get(chosen.metric, math.nan)
            if not math.isfinite(value) or not spec.problem.acceptable(metrics):
                continue
            count, last = count + 1, number
            # Values of several contexts cannot be compared.
            if not spec.problem.context and (not steps or sign * value < sign * steps[-1][1]):
                steps.append((number, value))
        own = next(one for one in spec.problem.objectives if one.metric == chosen.metric)
        objective = next((one for one in progress.get(study.pk, ()) if one["metric"] == chosen.metric), None)
        analysis = analyse(principal, study, may_lag=True)
        runs.append(runs_of(principal, study, analysis, own))
        curves.append(
            Curve(
                study=study.name,
                unit=own.unit,
                steps=steps,
                trials=count,
                last_number=last,
                objective=objective,
                configuration=analysis.configuration,
                default=spec.problem.space.default(),
                units={one.name: one.unit for one in spec.problem.space.parameters if one.unit},
            )
        )
    first = (curves[0].study, runs[0])
    return Comparison(
        metric=chosen.metric,
        goal=chosen.goal,
        metrics=[objective.metric for objective in common],
        curves=curves,
        missing=missing,
        better=[
            compare_runs((curve.study, own_runs), first, chosen.goal, len(curves) - 1)
            for curve, own_runs in zip(curves[1:], runs[1:], strict=True)
            if curve.unit == curves[0].unit
        ],
        settings=different_settings([spec.to_json() for spec in specs]),
    )
