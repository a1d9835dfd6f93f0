"""The probability that a gain exists, by functions that are drawn from the posterior of Gaussian processes.

In each function the best of many configurations is compared with the default. The share of the functions with a gain
is the probability. docs/how-to/worth-tuning.md has its calibration on measured tables.
"""

from __future__ import annotations

import numpy as np

from service.algorithms.gp.fits import Ensemble
from service.algorithms.gp.sensitivity import drawn, in_unit
from service.core.encoding import FloatArray
from service.core.prospects import GAINS, Prospect

_FUNCTIONS = 512
# The processes are too sure where they have seen little. In replays on measured tables with other seeds than those of
# the page, there was a gain in about one of eight cases in which no function had one.
_LEAST, _MOST = 0.1, 0.97


def prospects(ensemble: Ensemble, rows: FloatArray, default: FloatArray, *, seed: int) -> list[Prospect]:
    """Return a prospect for each of GAINS; none if the default's value is 0, so that it has no shares.

    `rows`, [n, d], are the configurations that are compared with the `default`, [1, d].
    """
    members = ensemble.members
    random = np.random.default_rng([seed % 2**64, len(members[0].runs)])
    points = np.vstack([default, rows])
    each = _FUNCTIONS // len(members)
    values = np.vstack([in_unit(one, drawn(one, points, each, random)) for one in members])
    before = values[:, 0]
    if (before == 0.0).any():
        return []
    gains = (before - values.min(1)) / np.abs(before)
    shares = [float((gains >= wanted).mean()) for wanted in GAINS]
    return [Prospect(wanted, min(max(share, _LEAST), _MOST)) for wanted, share in zip(GAINS, shares, strict=True)]
