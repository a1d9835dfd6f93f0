"""The members of a Pareto set that a final check compares with the default, and their hypervolume over it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from service.core.pareto import hypervolume

FloatArray = npt.NDArray[np.float64]


def choose(values: FloatArray, default: FloatArray | None, most: int) -> list[int]:
    """Return the places of at most `most` members, the most valuable first.

    Each of the first members adds the most hypervolume over the default. Then, while there is room, the best member in
    each objective follows.

    Args:
        values: [n, m] the members' values. Smaller is better.
        default: [m] the default's values; None if they are unknown.
        most: the largest number of members, 1 or more.
    """
    chosen = [] if default is None else _greedy(default - values, most)
    for place in np.argmin(values, axis=0).tolist() if len(values) else []:
        if len(chosen) < most and place not in chosen:
            chosen.append(place)
    return chosen


def volume(gains: Sequence[Sequence[float]]) -> float:
    """Return the volume of the union of the boxes from zero to each member's gains, as a share of the default's values.

    `gains`: [n, m]. A member that is not better than the default in every objective adds nothing.
    """
    if not len(gains):
        return 0.0
    points = -np.asarray(gains, float)
    with np.errstate(over="ignore"):
        return min(hypervolume(points, np.zeros(points.shape[1])), sys.float_info.max)


def _greedy(gains: FloatArray, most: int) -> list[int]:
    """Return the places of the members, [n, m], each of which adds the most volume to the earlier ones.

    A member that adds nothing is left out. A member adds less volume if there are more others. The volume that it has
    added to fewer members is therefore an upper bound, and few volumes have to be computed.
    """
    bounds = np.where((gains > 0).all(axis=1), np.prod(np.maximum(gains, 0.0), axis=1), 0.0)
    chosen: list[int] = []
    reached = 0.0
    while len(chosen) < most and (bounds > 0).any():
        place = int(np.argmax(bounds))
        total = volume(gains[[*chosen, place]].tolist())
        # A copy of a chosen member adds nothing but an error of rounding.
        bounds[place] = total - reached if total - reached > 1e-9 * total else 0.0
        if bounds[place] > 0 and int(np.argmax(bounds)) == place:
            chosen.append(place)
            reached, bounds[place] = total, 0.0
    return chosen
