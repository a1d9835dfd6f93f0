"""The bounds of a decision diagram."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Elementary operations on arrays (a second is about 4e8 of them), states, values of a parameter. They are counts, not
# times, so that every process gets the same result.
_MOST_WORK, MOST_STATES, MOST_DOMAIN = 15e8, 4_000_000, 2**21


class TooLarge(Exception):
    """The constraints connect so many values that a diagram would take too much time or memory."""


class Work:
    """The elementary operations that a diagram has taken."""

    def __init__(self) -> None:
        self._done = 0.0

    def spend(self, count: int, cost: float) -> None:
        """Add so many evaluations of a cost each. Raises TooLarge."""
        self._done += float(count) * cost
        if self._done > _MOST_WORK:
            raise TooLarge
