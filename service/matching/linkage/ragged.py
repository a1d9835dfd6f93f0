"""Lists of different lengths in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Floats: TypeAlias = npt.NDArray[np.float64]
S = TypeVar("S", bound=np.generic)


class Ragged:
    """Lists of records with `width` integers each, in the order in which they were appended."""

    def __init__(self, width: int) -> None:
        self._flat = np.zeros((width, 64), np.int32)
        self._starts = np.zeros(64, np.int64)
        self._size = 0

    def append(self, elements: Sequence[Sequence[int]]) -> None:
        """Append a list of elements."""
        begin = int(self._starts[self._size])
        end = begin + len(elements)
        if end > self._flat.shape[1]:
            self._flat = doubled(self._flat, end)
        if self._size + 2 > len(self._starts):
            self._starts = doubled(self._starts, self._size + 2)
        if elements:
            self._flat[:, begin:end] = np.array(elements, np.int32).T
        self._size += 1
        self._starts[self._size] = end

    def lengths(self, places: Ints) -> Ints:
        """Return the length of each list."""
        lengths: Ints = self._starts[places + 1] - self._starts[places]
        return lengths

    def gather(self, places: Ints) -> tuple[Ints, npt.NDArray[np.int32]]:
        """Return all elements of the lists at `places`.

        The first array has, for each element, the position in `places` of its list. The second has shape (width,
        elements).
        """
        lengths = self.lengths(places)
        ends = lengths.cumsum()
        owners = np.arange(len(places)).repeat(lengths)
        positions = np.arange(len(owners)) + (self._starts[places] + lengths - ends)[owners]
        return owners, self._flat[:, positions]


def doubled(array: npt.NDArray[S], least: int) -> npt.NDArray[S]:
    """Return a copy whose last axis is at least twice as long, and at least `least`; new elements are 0."""
    size = max(least, 2 * array.shape[-1])
    larger = np.zeros((*array.shape[:-1], size), array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger
