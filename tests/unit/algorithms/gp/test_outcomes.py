from __future__ import annotations

import numpy as np
import pytest

from service.algorithms.gp.outcomes import Scale, offsets
from service.core.encoding import FloatArray

EXAMPLES = [
    [3.0, 1.0, 2.0, 5.0],
    [1.0, 1.0 + 1e-12, 2.0],
    [1e300, -1e300, 0.0, 1.0],
    [1.0, 2.0, 3.0, 1e18],
    [5.0],
    [2.0, 2.0, 2.0],
    [1.7e308, -1.7e308],
]


def standardise(values: FloatArray, offset: float | None) -> tuple[FloatArray, float]:
    scale, jacobian = Scale.of(values, offset)
    return scale.apply(values), jacobian


@pytest.mark.parametrize(
    ("values", "offset"), [(values, offset) for values in EXAMPLES for offset in offsets(np.array(values), noisy=False)]
)
def test_outcomes_are_standard_finite_and_in_order(values: list[float], offset: float | None) -> None:
    given = np.array(values)
    found, jacobian = standardise(given, offset)
    assert np.isfinite(found).all()
    assert np.isfinite(jacobian)
    order = np.argsort(given, kind="stable")
    assert (np.diff(found[order]) <= 0.0).all(), "smaller values are better, larger outcomes are"
    assert abs(found.mean()) < 1e-9
    assert found.std() == pytest.approx(1.0) or not found.any()


def test_equal_values_have_no_logarithm() -> None:
    assert offsets(np.array([2.0, 2.0, 2.0]), noisy=False) == (None,)


def test_the_jacobian_is_that_of_the_transformation() -> None:
    values = np.array([1.0, 1.5, 2.0, 2.2, 3.0, 4.0, 1.2])

    def spread(given: FloatArray) -> FloatArray:
        gaps = (given - values.min()) / 2.0
        return np.asarray(np.log(gaps / np.median((values - values.min()) / 2.0) + 0.1), dtype=np.float64)

    scale = spread(values).std()
    slope = (spread(values + 1e-7) - spread(values - 1e-7)) / 2e-7 / scale
    plain, _ = standardise(values, 0.1)
    np.testing.assert_allclose(plain, -(spread(values) - spread(values).mean()) / scale)
    # Up to a constant, the same for every offset: the unit of the gaps.
    unit = 1.0 / (2.0 * np.median((values - values.min()) / 2.0))
    assert standardise(values, 0.1)[1] == pytest.approx(np.log(slope / unit).sum(), abs=1e-4)


def test_very_bad_values_do_not_hide_differences_between_good_ones() -> None:
    values = np.array([*np.linspace(1.0, 2.0, 20), 1e9])
    found, _ = standardise(values, None)
    assert np.ptp(found[:20]) > 0.5


@pytest.mark.parametrize("offset", offsets(np.array([1.0, 2.0, 3.0]), noisy=False))
def test_values_come_back(offset: float | None) -> None:
    values = np.array([10.0, 11.0, 12.5, 14.0, 30.0])
    scale, _ = Scale.of(values, offset)
    outcomes = scale.apply(values)
    restored, deviations = scale.restore(outcomes, np.full(5, 0.01))
    np.testing.assert_allclose(restored, values)
    shifted, _ = scale.restore(outcomes - 0.01, np.zeros(5))
    np.testing.assert_allclose(deviations, shifted - values, rtol=0.03)
