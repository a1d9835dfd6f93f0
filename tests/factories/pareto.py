"""Simulated final checks of members of a Pareto set, whose true gains are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, IntParameter, Space
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from service.tuner.verdict import ParetoVerdict

# One run of ten is slow: it takes half as long again.
SLOW_SHARE, SLOWER = 0.1, 1.5


def problem_of(objectives: int) -> Problem:
    """Return a problem whose first configuration is the default."""
    return Problem.build(
        Space.build([IntParameter("n", 0, 100, default=0)]),
        [Objective(f"metric{place}", "minimize") for place in range(objectives)],
    )


def simulate(gains: Sequence[Sequence[float]], policy: FinalCheck, seed: int, noise: float = 0.05) -> ParetoVerdict:
    """Return the verdict of a check of members with these true gains, with log-normal noise and slow runs.

    `gains`: [members, objectives]. The objectives of one run are slow together.
    """
    rng = np.random.default_rng(seed)
    problem = problem_of(len(gains[0]))
    tuner = Tuner(problem, Method(algorithm="random", final_check=policy))
    members: list[Configuration] = [{"n": place} for place in range(1, len(gains) + 1)]
    truth = np.vstack([np.ones(len(gains[0])), 1 - np.asarray(gains)])
    number = 0
    while found := tuner.check(members, 1):
        number += 1
        values = truth[int(found[0]["n"])] * np.exp(noise * rng.normal(size=len(gains[0])))
        values *= SLOWER if rng.random() < SLOW_SHARE else 1.0
        metrics = dict(zip(problem.metrics, values.tolist(), strict=True))
        tuner.update([TrialRecord(number, found[0], TrialState.COMPLETED, metrics, origin="check")])
    return tuner.checked_members(members, policy)
