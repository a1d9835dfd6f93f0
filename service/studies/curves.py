"""Learning curves: the measurements of many trials of a study at their steps."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from service.core.errors import InvalidInput
from service.studies.models import Study
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

MOST_CURVES = 300
# The trials that are named and belong to the sample in any case.
MOST_NAMED = 20
LONGEST_METRIC = 200
# The most points of a curve, and the trials that are searched for measurements.
_POINTS, _SEARCHED = 60, 5000
# A hash of the number chooses the trials, without regard to their results. Each point of a curve is one look-up in the
# index, so that the number of measurements of a trial does not matter.
_CURVES = """
WITH searched AS (
    SELECT id, number, state FROM studies_trial WHERE tenant_id = %s AND study_id = %s
    ORDER BY number = ANY(%s) DESC, hashint8(number) LIMIT %s
), measured AS (
    SELECT searched.*, ends.first, ends.last, count(*) OVER () AS total
    FROM searched CROSS JOIN LATERAL (
        SELECT min(step) AS first, max(step) AS last FROM studies_measurement
        WHERE tenant_id = %s AND trial_id = searched.id
    ) AS ends
    WHERE ends.first IS NOT NULL
    ORDER BY number = ANY(%s) DESC, hashint8(number) LIMIT %s
)
SELECT DISTINCT measured.number, measured.state, measured.total, point.step, point.value
FROM measured CROSS JOIN generate_series(0, %s) AS place CROSS JOIN LATERAL (
    SELECT step, (metrics ->> %s)::float8 AS value FROM studies_measurement
    WHERE tenant_id = %s AND trial_id = measured.id
        AND step >= measured.first + (measured.last - measured.first)::numeric * place / %s
    ORDER BY step LIMIT 1
) AS point
WHERE point.value IS NOT NULL ORDER BY measured.number, point.step
"""


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of a metric in one trial at increasing steps: all, or some of them at even distances."""

    trial: int
    state: str
    steps: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves by the numbers of their trials. `total`: how many trials of the searched ones have measurements."""

    metric: str
    total: int
    curves: Sequence[Curve]


def curves(principal: Principal, study: Study, *, metric: str = "", trials: Sequence[int] = ()) -> Curves:
    """Return the learning curves of a metric, by default the first objective: all, or a uniform sample.

    The curves of `trials` are always among them. Raises InvalidInput.
    """
    if len(trials) > MOST_NAMED:
        raise InvalidInput("trial", f"{len(trials)} trials", f"at most {MOST_NAMED} trials")
    if len(metric) > LONGEST_METRIC:
        raise InvalidInput("metric", metric, f"a name of at most {LONGEST_METRIC} characters")
    wanted = metric or spec_of(study).problem.objectives[0].metric
    named, tenant = list(trials), principal.tenant_id
    rows = access.query(
        principal,
        _CURVES,
        (
            *(tenant, study.pk, named, _SEARCHED),
            *(tenant, named, MOST_CURVES),
            *(_POINTS - 1, wanted, tenant, _POINTS - 1),
        ),
    )
    found = []
    for (number, state), points in itertools.groupby(rows, operator.itemgetter(0, 1)):
        steps, values = zip(*((step, value) for *_, step, value in points), strict=True)
        found.append(Curve(number, state, steps, values))
    return Curves(wanted, rows[0][2] if rows else 0, found)
