"""What a study would do if it were created now: all of its spec, its first configurations, how long it takes.

Nothing is written, and nothing costly is computed.
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
# Past trials that an estimate is made of: of the latest studies, and so many at most.
_STUDIES, _TRIALS = 20, 500


@dataclass(frozen=True, slots=True)
class Duration:
    """How long the search takes, by past trials of the same component and application.

    Seconds. `trial`: the median from start to end, builds included; `low` and `high`: if all trials took as long as the
    quickest or the slowest quarter. `total` None: the study has no limit.
    """

    trial: float
    total: float | None
    low: float | None
    high: float | None
    basis: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`first`: what would be measured first, in this order; fewer than FIRST where only a worker can say more.
    `size`: how many configurations the space holds, None where they cannot be counted. `started_from`: what the earlier
    studies give that it starts from."""

    spec: StudySpec
    size: int | None
    first: Sequence[Configuration]
    duration: Duration | None
    started_from: Sequence[StartedFrom]


def plan(principal: Principal, spec: object, *, check_space: SpaceCheck = takes_all) -> Plan:
    """Return the plan of a study. Raises InvalidInput and Forbidden as creating the study would."""
    found, start = checked(principal, parse(spec), check_space=check_space)
    first = first_configurations(found, start)
    return Plan(found, found.space.cardinality(), first, _duration(principal, found), start.told)


def checked(
    principal: Principal, spec: StudySpec, *, check_space: SpaceCheck = takes_all
) -> tuple[StudySpec, WarmStart]:
    """Return the completed spec and its warm start. Raises InvalidInput and Forbidden as creating the study would."""
    found = completed(spec)
    check_space(principal, found, places_of(found))
    return found, warm_start(principal, found, may_lag=True)


def first_configurations(spec: StudySpec, start: WarmStart) -> list[Configuration]:
    """Return what a study of a completed spec measures first, in this order, as far as no worker is needed."""
    default = default_first(spec.space)
    found = [*([] if default is None else [default]), *start.configurations][:FIRST]
    name, options = (spec.algorithm, spec.options) if spec.choice is None else (spec.choice.name, spec.choice.options)
    entry = registry.describe(name)
    most = FIRST
    if entry.opening:
        # The start design ends where the costly model takes over.
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
