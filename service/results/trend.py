"""The best value so far of a study at a few moments, for a small line in lists."""

from __future__ import annotations

from service.studies.models import Study
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

# The most points, and the most trials of a study that are read for them.
_POINTS, _MOST = 24, 20_000
# The best value of each of equally many trials. Only the name of the function is put into the text.
_BEST = """
SELECT {}(value) FROM (
    SELECT (number - 1)::bigint * %s / %s AS place, (metrics ->> %s)::float8 AS value FROM studies_trial
    WHERE tenant_id = %s AND study_id = %s AND state = 'COMPLETED' AND breaks IS NULL
) AS placed GROUP BY place ORDER BY place
"""


def trend(principal: Principal, study: Study) -> list[float]:
    """Return the best values so far of trials that break no outcome constraint, in the order of the trials.

    The list is empty for a study with several objectives, with a context, or with more than 20,000 trials.
    """
    problem = spec_of(study).problem
    if len(problem.objectives) > 1 or problem.context or not 0 < study.trial_count <= _MOST:
        return []
    objective = problem.objectives[0]
    best = min if objective.goal == "minimize" else max
    wanted = (_POINTS, study.trial_count, objective.metric, principal.tenant_id, study.pk)
    rows = access.query(principal, _BEST.format(best.__name__), wanted)
    found: list[float] = []
    for (value,) in rows:
        if value is not None:
            found.append(best(found[-1], value) if found else value)
    return found
