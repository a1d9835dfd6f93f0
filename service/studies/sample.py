"""Trials for charts: a uniform sample of a long study, so that a plot of it has the shape of a plot of all trials."""

from __future__ import annotations

from service.core.errors import InvalidInput
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

LEAST, MOST = 200, 20_000
# The most open trials that are added to a sample.
_OPEN = 1000

# Each part of it gives numbers of trials. A metric's name is a parameter of the statement, never part of its text.
_SCOPE = """
WITH scope AS (
    SELECT number, state, metrics, breaks, (number - %s)::bigint * %s / %s AS bucket
    FROM studies_trial
    WHERE tenant_id = %s AND study_id = %s AND revision <= %s AND number BETWEEN %s AND %s
)
"""
# The hash of the number decides, so that a sample does not follow a pattern of the search, such as every fourth trial
# being a replicate. The same trials are chosen each time.
_UNIFORM = "(SELECT DISTINCT ON (bucket) number FROM scope ORDER BY bucket, hashint8(number), number)"
_RUNNING = "(SELECT number FROM scope WHERE state IN ('REQUESTED', 'ACTIVE') ORDER BY number LIMIT %s)"
_STEPS = """
(SELECT number FROM (
    SELECT number, value, {}(value) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (SELECT number, (metrics ->> %s)::float8 AS value FROM scope
        WHERE state = 'COMPLETED' AND breaks IS NULL) AS valued
    WHERE value IS NOT NULL
) AS followed WHERE before IS NULL OR value {} before ORDER BY number DESC LIMIT %s)
"""


def sample(principal: Principal, study: Study, *, most: int, first: int = 1, last: int | None = None) -> list[Trial]:
    """Return trials of a study from number `first` to `last`, by number, as of its revision: all if there are at most
    `most`, otherwise about `most`.

    A sample has one trial of each of `most` equal intervals of numbers, chosen without regard to its result. Extreme
    values therefore have the share that they have among all trials. Added to these are the trials that were the best so
    far and break no outcome constraint, which the curve of the best needs, and the open trials. Raises InvalidInput.
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
    parts: list[tuple[str, tuple[str | int, ...]]] = [(_UNIFORM, ()), (_RUNNING, (_OPEN,))]
    for objective in spec_of(study).problem.objectives:
        metric, least = objective.metric, objective.goal == "minimize"
        parts.append((_STEPS.format("min" if least else "max", "<" if least else ">"), (metric, most)))
    sql = _SCOPE + " UNION ".join(part for part, _ in parts)
    scope = (first, most, end - first + 1, principal.tenant_id, study.pk, study.revision, first, end)
    numbers = access.query(principal, sql, (*scope, *(one for _, parameters in parts for one in parameters)))
    return list(found.filter(number__in=[number for (number,) in numbers]).order_by("number"))
