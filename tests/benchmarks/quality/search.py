"""One search of one optimiser on one problem, for a process of its own."""

from __future__ import annotations

import time
from typing import Any

from tests.benchmarks.quality import optimisers, problems

FIRST_SEED = {"development": 0, "reported": 5000}


def cases(half: str) -> list[problems.Case]:
    """Return the problems of one half."""
    return problems.development() if half == "development" else problems.reported()


def search(half: str, name: str, optimiser: str, seed: int) -> dict[str, Any]:
    """Run one search and return its distances and its cost."""
    case = next(one for one in cases(half) if one.name == name)
    factors = case.runs(seed)

    def measure(configuration: dict[str, Any]) -> float:
        return (1.0 + case.distance(configuration)) * next(factors)

    began = time.process_time()
    found = optimisers.run(optimiser, case, seed, measure)
    return {
        "case": name,
        "optimiser": optimiser,
        "seed": seed,
        "recommended": case.distance(found.recommended),
        "luckiest": case.distance(found.luckiest),
        "seconds": time.process_time() - began,
    }
