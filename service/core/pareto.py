"""Pareto dominance, and the hypervolume of Pareto sets with its reference point."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from service.core.errors import InvalidInput
from service.core.metrics import LARGEST
from service.core.problem import Problem


def non_dominated(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return one flag for each row: whether no other row dominates it. Smaller is better in every column.

    `values` has a row for each point and a column for each objective. A row with a NaN is never part of the front.
    Equal rows do not dominate each other, so all copies of a point of the front are in it.
    """
    comparable = ~np.isnan(values).any(axis=1)
    front = np.zeros(len(values), dtype=np.bool_)
    # In lexicographic order no row can be dominated by a later row.
    left = np.flatnonzero(comparable)
    left = left[np.lexsort(values[left].T[::-1])] if len(left) else left
    while len(left):
        first = values[left[0]]
        same = (values[left] == first).all(axis=1)
        front[left[same]] = True
        # A row that is not better than `first` in any column is a copy of `first` or is dominated by it.
        left = left[(values[left] < first).any(axis=1)]
    return front


def front(values: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the places of the rows that no other row dominates, in lexicographic order."""
    places = np.flatnonzero(non_dominated(values))
    return places[np.lexsort(values[places].T[::-1])]


def hypervolume(points: npt.NDArray[np.float64], reference: npt.NDArray[np.float64]) -> float:
    """Return the volume that the points, [n, m], dominate up to the reference, [m]; smaller is better."""
    inside = points[(points < reference).all(axis=1)]
    if not len(inside):
        return 0.0
    if inside.shape[1] == 1:
        return float(reference[0] - inside.min())
    ordered = inside[np.argsort(inside[:, -1], kind="stable")]
    edges = np.append(ordered[:, -1], reference[-1])
    return float(
        sum(
            depth * hypervolume(ordered[: place + 1, :-1], reference[:-1])
            for place, depth in enumerate(np.diff(edges))
            if depth > 0
        )
    )


def reference_point(
    problem: Problem, text: str, where: str = "algorithm.options.reference_point"
) -> npt.NDArray[np.float64]:
    """Return the m coordinates that a text such as "120, 4096" gives, in the objectives' units.

    Raises InvalidInput (field `where`).
    """
    allowed = f"{len(problem.objectives)} numbers, each at most {LARGEST:g} in size, for {', '.join(problem.metrics)}"
    try:
        numbers = np.array([float(one) for one in re.split(r"[\s,;]+", text.strip())])
    except ValueError:
        raise InvalidInput(where, text, allowed) from None
    if len(numbers) != len(problem.objectives) or not (np.abs(numbers) <= LARGEST).all():  # not for NaN either
        raise InvalidInput(where, text, allowed)
    return numbers
