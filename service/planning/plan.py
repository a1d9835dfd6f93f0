"""The plan of a study that does not exist yet: its completed spec, its first configurations and its duration.

A plan writes nothing and runs no costly algorithm.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from service.algorithms import registry
from service.algorithms.base import Cost
from service.algorithms.start import default_first
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.planning.component_check import SpaceCheck, places_of, takes_all
from service.planning.warm_start import WarmStart, warm_start
from service.studies.models import Study, Trial
from service.studies.specs import StartedFrom, StudySpec, parse
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.method import bare_tuner, completed

FIRST = 3
# The duration is estimated from at most _TRIALS trials of the latest _STUDIES studies.
_STUDIES, _TRIALS = 20, 500


@dataclass(frozen=True, slots=True)
class Duration:
    """The expected duration of the search, from past trials of the same component and application.

    All times are in seconds. `trial` is the median time of a trial from start to end, builds included. `total` is the
    duration if all trials take that time; `low` and `high` are the durations with the first and the third quartile.
    They are None for a study without a limit. `basis` is the number of past trials.
    """

    trial: float
    total: float | None
    low: float | None
    high: float | None
    basis: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a study.

    `first` holds the configurations that it measures first, in this order. They are fewer than FIRST if only a worker
    can compute the next one. `size` is the number of configurations in the space, None if they cannot be counted.
    `feasible` is the number that the constraints leave, None without constraints or if they cannot be counted.
    `started_from` says how many configurations each earlier study contributes.
    """

    spec: StudySpec
    size: int | None
    feasible: int | None
    first: Sequence[Configuration]
    duration: Duration | None
    started_from: Sequence[StartedFrom]


def plan(principal: Principal, spec: object, *, check_space: SpaceCheck = takes_all) -> Plan:
    """Return the plan of a study. Raises InvalidInput and Forbidden as creating the study would."""
    found, start = checked(principal, parse(spec), check_space=check_space)
    first = first_configurations(found, start)
    feasible = found.space.feasible_count()
    return Plan(found, found.space.cardinality(), feasible, first, _duration(principal, found), start.started_from)


def checked(
    principal: Principal, spec: StudySpec, *, check_space: SpaceCheck = takes_all
) -> tuple[StudySpec, WarmStart]:
    """Return the completed spec and its warm start. Raises InvalidInput and Forbidden as creating the study would."""
    found = completed(spec)
    check_space(principal, found, places_of(found))
    return found, warm_start(principal, found, may_lag=True)


def first_configurations(spec: StudySpec, start: WarmStart) -> list[Configuration]:
    """Return at most FIRST configurations that a study of a completed spec measures first, in this order.

    Leaves out the configurations that only a worker can compute.
    """
    if spec.problem.context:
        # The tuner suggests the default in each context, and what follows depends on the results.
        contexts = spec.problem.context.table()[:FIRST]
        return [one for context in contexts if (one := default_first(spec.space.restrict(context))) is not None]
    default = default_first(spec.space)
    found = [*([] if default is None else [default]), *start.configurations][:FIRST]
    chosen = spec.choice or spec.algorithm
    name, options = chosen.name, chosen.options
    entry = registry.describe(name)
    most = FIRST
    if entry.opening:
        # After the start design a costly model suggests, and a plan does not run it.
        name, options, most = entry.opening, {}, min(FIRST, bare_tuner(spec).method.start(spec.problem))
    elif entry.cost == Cost.COSTLY:
        return found
    algorithm = registry.create(name, spec.problem, seed=spec.seed, options=dict(options))
    cursor = 0
    taken = {spec.space.key(one) for one in found}
    repeats = spec.problem.noisy and not entry.opening and not algorithm.uses_history
    for _ in range(10 * FIRST):
        if len(found) >= most:
            break
        pending = [
            TrialRecord(number=number, configuration=one, state=TrialState.REQUESTED, metrics={})
            for number, one in enumerate(found, 1)
        ]
        batch = algorithm.suggest(1, cursor=cursor, pending=pending)
        cursor = batch.cursor
        for one in batch.configurations:
            key = spec.space.key(one)
            if repeats or key not in taken:
                found.append(one)
                taken.add(key)
        if batch.exhausted:
            break
    return found


def _duration(principal: Principal, spec: StudySpec) -> Duration | None:
    execution = spec.execution
    if execution is None:
        return None
    alike = access.rows(Study, principal).filter(component=execution.component)
    if execution.application:
        alike = alike.filter(application=execution.application)
    latest = list(alike.order_by("-pk").values_list("pk", flat=True)[:_STUDIES])
    done = access.rows(Trial, principal).filter(study_id__in=latest, state=TrialState.COMPLETED)
    times = [
        (finished - started).total_seconds()
        for started, finished in done.order_by("-pk").values_list("started_at", "finished_at")[:_TRIALS]
        if started is not None and finished is not None
    ]
    if not times:
        return None
    middle = statistics.median(times)
    if len(times) > 1:
        quick, _, slow = statistics.quantiles(times, n=4, method="inclusive")
    else:
        quick = slow = middle
    budget = spec.budget
    rounds = None if budget.max_trials is None else -(-budget.max_trials // execution.parallelism)

    def total(seconds: float) -> float | None:
        limits = [] if rounds is None else [rounds * seconds]
        if budget.max_seconds is not None:
            limits.append(budget.max_seconds)
        if budget.max_node_hours is not None:
            limits.append(budget.max_node_hours * 3600 / execution.parallelism)
        return min(limits, default=None)

    return Duration(middle, total(middle), total(quick), total(slow), len(times))
