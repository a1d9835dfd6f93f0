"""An algorithm's predictions for configurations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Prediction:
    """The predicted first objective of n configurations, in its own unit times its sign: smaller is better.

    `mean`: [n], of the latent value. `deviation`: [n], the standard deviation of the latent value, not of a
    measurement. `noise`: the standard deviation of one measurement around its latent value, without outliers.
    """

    mean: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    noise: float
