"""A random forest with the interface of the process in `smbo.py` [hutter-2011, section 4.1]."""

from __future__ import annotations

import numpy as np

from service.core.encoding import FloatArray

_TREES = 50
# A tree considers this share of the parameters for each split, as in [hutter-2011], so that trees differ.
_FEATURES = 5 / 6
_LEAST_DEVIATION = 1e-6


class Forest:
    """A forest that is fitted to n standardised values at `points`, [n, d].

    `counts`, [n]: the number of measurements of which each value is the mean. The prediction is the mean over the
    trees, and its uncertainty the standard deviation over them. `deviation` is the standard deviation of one
    measurement: in a noisy study the one of the errors for points that a tree has not seen, which also holds what the
    forest does not know.
    """

    def __init__(self, points: FloatArray, values: FloatArray, counts: FloatArray, *, noisy: bool, seed: int) -> None:
        # scikit-learn takes a second to import, and no other model of this algorithm needs it.
        from sklearn.ensemble import RandomForestRegressor

        self.points, self.values, self.counts = points, values, counts
        self._noisy, self._seed = noisy, seed
        self._forest = RandomForestRegressor(
            _TREES, max_features=_FEATURES, oob_score=noisy and len(values) > 1, random_state=seed % 2**32
        )
        self._forest.fit(points, values, sample_weight=counts)
        self.deviation = 0.0
        if noisy and len(values) > 1:
            self.deviation = float(np.std(values - self._forest.oob_prediction_))

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations, [m] each, of the latent values."""
        by_tree = np.array([tree.predict(points) for tree in self._forest.estimators_])
        return by_tree.mean(0), np.maximum(by_tree.std(0), _LEAST_DEVIATION)

    def believing(self, points: FloatArray) -> Forest:
        """Return the forest as if each pending point had been measured once with its expected value."""
        means, _ = self.predict(points)
        return Forest(
            np.vstack([self.points, points]),
            np.concatenate([self.values, means]),
            np.concatenate([self.counts, np.ones(len(points))]),
            noisy=self._noisy,
            seed=self._seed,
        )
