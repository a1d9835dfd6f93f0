"""An algorithm's predictions for configurations, and their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# The probability of a run from which a configuration counts as one that meets the outcome constraints. At the edge of a
# constraint it is a half, and half of the users' runs would break it.
_PROBABLE = 0.7


@dataclass(frozen=True)
class Prediction:
    """The predicted values of an objective of n configurations, in its own unit times its sign: smaller is better.

    `mean`: [n], of the latent value. `deviation`: [n], the standard deviation of the latent value, not of a
    measurement. `noise`: the standard deviation of one measurement around its latent value, without outliers.
    `chances`: [n], the probabilities that a run meets the outcome constraints; None without constraints.
    """

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    noise: float
    chances: npt.NDArray[np.float64] | None = None

    def best(self) -> npt.NDArray[np.intp]:
        """Return the places of the configurations that probably meet the outcome constraints, the best first.

        Without any such configuration, the result has the places of all, with the largest chance first. Measured values
        do not decide this, because under noise a run may meet a constraint by luck.
        """
        if self.chances is not None and self.chances.max(initial=0.0) < _PROBABLE:
            return np.argsort(-self.chances, kind="stable")
        probable = self.probable()
        return probable[np.argsort(self.mean[probable], kind="stable")]

    def probable(self) -> npt.NDArray[np.intp]:
        """Return the places of the configurations that probably meet the outcome constraints, else of the likeliest."""
        if self.chances is None or not len(self.chances):
            return np.arange(len(self.mean))
        return np.flatnonzero(self.chances >= min(_PROBABLE, float(self.chances.max())))

    def at(self, places: npt.NDArray[np.intp]) -> Prediction:
        """Return the predictions for the configurations at these places."""
        chances = None if self.chances is None else self.chances[places]
        return Prediction(self.mean[places], self.deviation[places], self.noise, chances)
