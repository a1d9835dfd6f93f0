"""One search of one optimiser on one problem, for a process of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.benchmarks.quality import bayesmark, coco, constrained, optimisers, problems, several
from tests.benchmarks.quality.case import Case

# The first seed of each set of problems.
FIRST_SEED = {
    "development": 0,
    "reported": 5000,
    constrained.SUITE: 5000,
    several.SUITE: 5000,
    **dict.fromkeys([*coco.INSTANCES, bayesmark.SUITE], 1),
}


def cases(half: str) -> Sequence[Case]:
    """Return the problems of one half, of a suite of COCO, Bayesmark's, or those with constraints or objectives."""
    if half == several.SUITE:
        return several.cases()
    if half == constrained.SUITE:
        return constrained.cases()
    if half == bayesmark.SUITE:
        return bayesmark.cases()
    if half in coco.INSTANCES:
        return coco.cases(half)
    return problems.development() if half == "development" else problems.reported()


def search(half: str, name: str, optimiser: str, seed: int) -> dict[str, Any]:
    """Run one search and return its distances and its cost."""
    case = next(one for one in cases(half) if one.name == name)
    began = time.process_time()
    found = optimisers.run(optimiser, case, seed, case.runs(seed))
    seconds = time.process_time() - began + found.seconds
    return {
        "case": name,
        "optimiser": optimiser,
        "seed": seed,
        "recommended": case.judge(found.recommended),
        "luckiest": case.judge(found.luckiest),
        "seconds": seconds,
    }
