"""Trials for charts: a sample of a long study that shows what all trials would, at a bounded cost."""

from __future__ import annotations

from service.core.errors import InvalidInput
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

LEAST, MOST = 200, 10_000
# How many of the latest trials and of the open trials are always shown.
_LATEST, _OPEN = 200, 1000

# Each part of it gives numbers of trials. A metric's name is a parameter of the statement, never part of its text.
_SCOPE = """
WITH scope AS (
    SELECT number, state, metrics, (number - %s)::bigint * %s / %s AS bucket
    FROM studies_trial
    WHERE tenant_id = %s AND study_id = %s AND revision <= %s AND number BETWEEN %s AND %s
)
"""
_STATES = "(SELECT DISTINCT ON (bucket, state) number FROM scope ORDER BY bucket, state, number)"
_NEWEST = "(SELECT number FROM scope ORDER BY number DESC LIMIT %s)"
_RUNNING = "(SELECT number FROM scope WHERE state IN ('REQUESTED', 'ACTIVE') ORDER BY number LIMIT %s)"
_EXTREME = """
(SELECT DISTINCT ON (bucket) number FROM scope WHERE state = 'COMPLETED' AND metrics ->> %s IS NOT NULL
ORDER BY bucket, (metrics ->> %s)::float8 {}, number)
"""
_STEPS = """
(SELECT number FROM (
    SELECT number, value, {}(value) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT number, (metrics ->> %s)::float8 AS value FROM scope WHERE state = 'COMPLETED') AS valued
    WHERE value IS NOT NULL
) AS followed WHERE before IS NULL OR value {} before ORDER BY number DESC LIMIT %s)
"""


def sample(principal: Principal, study: Study, *, most: int, first: int = 1, last: int | None = None) -> list[Trial]:
    """Return trials of a study from number `first` to `last`, by number, as of its revision: all if there are at most
    `most`, otherwise about `most`.

    For each stretch of numbers a sample keeps the best and the worst value of each objective and a trial of each state.
    It also keeps all trials that were the best so far, open trials and the latest trials. Raises InvalidInput.
    """
    if not LEAST <= most <= MOST:
        raise InvalidInput("most", most, f"{LEAST} to {MOST}")
    if first < 1:
        raise InvalidInput("first", first, "1 or more")
    end = study.trial_count if last is None else min(last, study.trial_count)
    found = access.rows(Trial, principal).filter(
        study_id=study.pk, number__gte=first, number__lte=end, revision__lte=study.revision
    )
    if end - first < most:
        return list(found.order_by("number"))
    objectives = spec_of(study).problem.objectives
    buckets = max(1, most // (2 * len(objectives) + 2))
    parts: list[tuple[str, tuple[str | int, ...]]] = [(_STATES, ()), (_NEWEST, (_LATEST,)), (_RUNNING, (_OPEN,))]
    for objective in objectives:
        metric, least = objective.metric, objective.goal == "minimize"
        parts += [(_EXTREME.format(way), (metric, metric)) for way in ("ASC", "DESC")]
        parts.append((_STEPS.format("min" if least else "max", "<" if least else ">"), (metric, buckets)))
    sql = _SCOPE + " UNION ".join(part for part, _ in parts)
    scope = (first, buckets, end - first + 1, principal.tenant_id, study.pk, study.revision, first, end)
    numbers = access.ask(principal, sql, (*scope, *(one for _, parameters in parts for one in parameters)))
    return list(found.filter(number__in=[number for (number,) in numbers]).order_by("number"))
