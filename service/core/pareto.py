"""Pareto dominance, and the point that volumes of Pareto sets are measured from."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from service.core.errors import InvalidInput
from service.core.problem import Problem


def non_dominated(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which rows no other row dominates, smaller being better in every column.

    Args:
        values: one row a point, one column an objective. A row with a NaN is never part of the front.

    Returns:
        One flag a row. Equal rows do not dominate each other, so copies of a front's point are all in it.
    """
    comparable = ~np.isnan(values).any(axis=1)
    front = np.zeros(len(values), dtype=np.bool_)
    # In lexicographic order nothing can be dominated by a later row: each point need only look back at the front.
    left = np.flatnonzero(comparable)
    left = left[np.lexsort(values[left].T[::-1])] if len(left) else left
    while len(left):
        first = values[left[0]]
        same = (values[left] == first).all(axis=1)
        front[left[same]] = True
        # Whatever is not better than `first` somewhere is dominated by it, or is a copy of it.
        left = left[(values[left] < first).any(axis=1)]
    return front


def reference_point(
    problem: Problem, text: str, where: str = "algorithm.options.reference_point"
) -> npt.NDArray[np.float64]:
    """[m]: the point that a text such as "120, 4096" gives, in the objectives' units. Raises InvalidInput (`where`)."""
    allowed = f"{len(problem.objectives)} finite numbers: {', '.join(problem.metrics)}"
    try:
        numbers = np.array([float(one) for one in re.split(r"[\s,;]+", text.strip())])
    except ValueError:
        raise InvalidInput(where, text, allowed) from None
    if len(numbers) != len(problem.objectives) or not np.isfinite(numbers).all():
        raise InvalidInput(where, text, allowed)
    return numbers
