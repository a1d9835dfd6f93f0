"""The search of a live study: the next candidate from what its trials have shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from service.core.live import LiveRecord
from service.core.problem import Problem
from service.policies import trust_region

if TYPE_CHECKING:
    from service.algorithms.gp.safe import Candidate

# The objective counts as guarded at this ratio if no guard names it.
_WORST_RATIO = 1.2


def suggest(
    problem: Problem,
    records: Sequence[LiveRecord],
    *,
    step: float,
    limits: Mapping[str, float],
    seed: int,
    b: float = 2.0,
) -> Candidate | None:
    """Return the next candidate of a live study, or None if nothing new is safe enough.

    `step`: the largest change of a parameter, as a share of its range, before gains and broken guards change it.
    `limits`: by guarded metric, the logarithm of the largest ratio to the incumbent that its guard allows now; negative
    for a guard that a small value breaks. `b`: how many deviations of the model a candidate keeps away from a limit.
    """
    from service.algorithms.gp.safe import Rules, next_candidate  # imports torch

    objective = problem.objectives[0]
    own = math.log(_WORST_RATIO) * (1.0 if objective.goal == "minimize" else -1.0)
    rules = Rules(
        {objective.metric: own, **limits}, min(1.0, step * trust_region.factor(records)), trust_region.SHARE, b
    )
    return next_candidate(problem, records, rules, seed=seed)
