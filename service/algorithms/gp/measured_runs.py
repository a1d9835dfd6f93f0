"""The measured runs, and the points to which a process is fitted: replicates are joined, bounds are separate."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from service.algorithms.gp.models import Points
from service.core.encoding import FloatArray

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Runs:
    """n runs in the order in which they finished: encoded `rows`, [n, d], with one value each; smaller is better.

    If `bounded`, [n], the value is a bound: the run's own value would have been at least as large. `numbers`, [n],
    identify runs in a part as in the whole. `stale`, [n], are variances that runs have in addition because the system
    has changed since, on the scale of outcomes, whose variance is about 1.
    """

    rows: FloatArray
    values: FloatArray
    bounded: BoolArray
    numbers: IntArray
    stale: FloatArray

    @classmethod
    def of(
        cls,
        rows: FloatArray,
        values: FloatArray,
        bounded: Sequence[bool] | BoolArray | None = None,
        stale: FloatArray | None = None,
    ) -> Runs:
        """Return runs with numbers from 0."""
        flags = np.zeros(len(rows), dtype=np.bool_) if bounded is None else np.array(bounded, dtype=np.bool_)
        return cls(rows, values, flags, np.arange(len(rows)), np.zeros(len(rows)) if stale is None else stale)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def groups(self) -> IntArray:
        """A number for each of n runs, equal for runs of one configuration and counted by its first run."""
        _, first, inverse = np.unique(self.rows, axis=0, return_index=True, return_inverse=True)
        place = np.empty(len(first), dtype=np.intp)
        place[np.argsort(first)] = np.arange(len(first))
        return place[inverse.ravel()]

    @cached_property
    def measured(self) -> FloatArray:
        """The values that are not bounds."""
        return self.values[~self.bounded]

    def part(self, chosen: Any) -> Runs:
        """Return some of the runs, by places or flags."""
        return Runs(
            self.rows[chosen], self.values[chosen], self.bounded[chosen], self.numbers[chosen], self.stale[chosen]
        )

    def thinned(self, most: int) -> Runs:
        """Return the runs of at most `most` configurations: half of them those with the best medians, then the latest.

        A configuration that was measured again is not kept for one lucky run.
        """
        groups = self.groups
        count = int(groups.max(initial=-1)) + 1
        if count <= most:
            return self
        medians = np.full(count, np.inf)
        measured = groups[~self.bounded]
        order = np.lexsort((self.measured, measured))
        found, first, counts = np.unique(measured[order], return_index=True, return_counts=True)
        ascending = self.measured[order]
        medians[found] = (ascending[first + (counts - 1) // 2] + ascending[first + counts // 2]) / 2
        kept = np.argsort(medians, kind="stable")[: most // 2]
        others = np.setdiff1d(np.arange(count), kept)
        return self.part(np.isin(groups, np.concatenate([kept, others[-(most - len(kept)) :]])))

    def points(self, outcomes: FloatArray, added: FloatArray) -> Points:
        """Return the measured values as points, without bounds.

        `outcomes`: [n], the values on a process's scale. `added`: [n], additional variances of runs; runs without any
        are joined with their replicates.
        """
        added = added + self.stale
        alone = ~self.bounded & (added > 0.0)
        plain = ~self.bounded & ~alone
        groups, place = np.unique(self.groups[plain], return_inverse=True)
        counts = np.bincount(place, minlength=len(groups)).astype(np.float64)
        sums = np.bincount(place, weights=outcomes[plain], minlength=len(groups))
        means = sums / np.maximum(counts, 1.0)
        first = np.flatnonzero(plain)[np.unique(place, return_index=True)[1]] if len(groups) else np.zeros(0, np.intp)
        squares = float(((outcomes[plain] - means[place]) ** 2).sum())
        joined = Points(
            self.rows[first], means, 1.0 / counts, np.zeros(len(groups)), int(plain.sum()) - len(groups), squares
        )
        return joined if not alone.any() else joined.joined(self.rows[alone], outcomes[alone], added[alone], share=1.0)

    def digest(self, what: str) -> str:
        """Return a text that differs whenever a fit could differ."""
        text = hashlib.sha256(f"{what} {self.rows.shape}".encode())
        for array in (self.rows, self.values, self.bounded, self.stale):
            text.update(np.ascontiguousarray(array).tobytes())
        return text.hexdigest()[:32]
