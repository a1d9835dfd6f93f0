"""Pages of the trials of a study, sorted by any column and filtered, and the reasons of trials without a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, DurationField, ExpressionWrapper, F, FloatField, Max, Min, QuerySet, TextField
from django.db.models.expressions import CombinedExpression, RawSQL

from service.core.edits import EditedSpace
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.reasons import restored
from service.studies.conditions import NAMES, column
from service.studies.models import Study, Trial
from service.studies.selectors import check_states
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.conditions import select_by
from service.tenancy.pages import check_size
from service.tenancy.principal import Principal

# The last row that pages can reach. Later pages would cost more, and people sort or filter instead.
_FURTHEST = 1_000_000
_MOST_REASONS = 50
_WITHOUT_RESULT = (TrialState.FAILED, TrialState.INFEASIBLE, TrialState.PRUNED)


@dataclass(frozen=True, slots=True)
class TrialRows:
    """One page of the table, and the number of all rows."""

    trials: list[Trial]
    total_count: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Trials that ended in one state for one reason: their number, the first and the last trial."""

    state: str
    reason: str
    count: int
    first: int
    last: int


def rows(
    principal: Principal,
    study: Study,
    *,
    order: str = "number",
    descending: bool = False,
    states: Sequence[str] = (),
    reason: str | None = None,
    where: Sequence[str] = (),
    offset: int = 0,
    size: int = 0,
) -> TrialRows:
    """Return a page of trials by `order`: number, state, agent, duration, metric:NAME or param:NAME.

    Trials without a value come last. `reason` selects trials that ended for this reason; "" selects trials without a
    reason. `where`: conditions that all hold, such as "param:threads > 8" (`conditions.py`). Raises InvalidInput.
    """
    if not 0 <= offset <= _FURTHEST:
        raise InvalidInput("offset", offset, f"0 to {_FURTHEST}")
    found = access.rows(Trial, principal).filter(study_id=study.pk)
    if states:
        found = found.filter(state__in=check_states(states, list(TrialState)))
    if reason is not None:
        found = found.filter(reason=reason)
    space = spec_of(study).whole_space
    found = select_by(found, where, lambda name: column(name, space), NAMES)
    total = found.count()
    ordered = _ordered(found, space, order, descending)
    return TrialRows(list(ordered[offset : offset + check_size(size)]), total)


def failures(principal: Principal, study: Study) -> list[Failure]:
    """Return the reasons why trials of a study gave no result, the most frequent first."""
    ended = access.rows(Trial, principal).filter(study_id=study.pk, state__in=_WITHOUT_RESULT)
    counted = ended.values("state", "reason").annotate(count=Count("pk"), first=Min("number"), last=Max("number"))
    found = list(counted.order_by("-count", "first")[:_MOST_REASONS])
    # The type json cannot be grouped, so each group has the code of its first trial.
    firsts = access.rows(Trial, principal).filter(study_id=study.pk, number__in=[one["first"] for one in found])
    data = dict(firsts.values_list("number", "reason_data"))
    return [
        Failure(one["state"], restored(one["reason"], data.get(one["first"])), one["count"], one["first"], one["last"])
        for one in found
    ]


def _ordered(found: QuerySet[Trial], space: EditedSpace, order: str, descending: bool) -> QuerySet[Trial]:
    key = _key(space, order)
    way = key.desc(nulls_last=True) if descending else key.asc(nulls_last=True)
    return found.order_by(way, "number")


def _key(space: EditedSpace, order: str) -> F | RawSQL | ExpressionWrapper[CombinedExpression]:
    kind, _, name = order.partition(":")
    if order in ("number", "state"):
        return F(order)
    if order == "agent":
        return RawSQL("NULLIF(agent || node || client_id, '')", (), output_field=TextField())
    if order == "duration":
        return ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())
    if kind == "metric" and name:
        return RawSQL("(metrics ->> %s)::float8", (name,), output_field=FloatField())
    parameter = space.parameter(name) if kind == "param" else None
    if parameter is None:
        raise InvalidInput("order", order, "number, state, agent, duration, metric:NAME, param:NAME of a parameter")
    if parameter.kind in ("float", "int"):
        return RawSQL("(params ->> %s)::float8", (name,), output_field=FloatField())
    return RawSQL("params ->> %s", (name,), output_field=TextField())
