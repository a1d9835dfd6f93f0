from __future__ import annotations

import numpy as np
import pytest

from service.algorithms.gp.fits import Fits, Kind
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.models import Layout, Prior
from service.algorithms.gp.outliers import pursue
from service.core.encoding import FloatArray

LAYOUT = Layout((0, 1), ())
THETA = np.log([0.6, 0.6, 1.0, 0.01])


def smooth(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sin(4 * rows[:, 0]) + rows[:, 1])


def measured(count: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Rows, and outcomes (larger is better) with a noise of 0.1."""
    random = np.random.default_rng(seed)
    rows = random.random((count, 2))
    return rows, smooth(rows) + 0.1 * random.normal(size=count)


def test_only_disturbed_measurements_are_outliers() -> None:
    rows, outcomes = measured(60, 0)
    disturbed = [7, 20, 41, 55]
    outcomes[disturbed] -= [0.9, 1.2, 0.7, 2.0]
    added, price = pursue(Runs.of(rows, -outcomes), outcomes, LAYOUT, THETA, np.zeros(60))
    assert np.flatnonzero(added).tolist() == disturbed
    assert price == pytest.approx(4 * (np.log(9) + 0.5 * np.log(60)))
    # About the square of what was added to each.
    np.testing.assert_allclose(np.sqrt(added[disturbed]), [0.9, 1.2, 0.7, 2.0], atol=0.35)


def test_ordinary_noise_gives_no_outliers() -> None:
    for seed in range(5):
        rows, outcomes = measured(60, seed)
        added, price = pursue(Runs.of(rows, -outcomes), outcomes, LAYOUT, THETA, np.zeros(60))
        assert (added > 0.0).sum() <= 1
        assert price == 0.0 or added.any()


def test_a_lucky_run_needs_more_to_be_disbelieved_than_an_unlucky_one() -> None:
    rows, outcomes = measured(60, 1)

    def needed(place: int, side: float) -> float:
        for change in np.arange(0.1, 1.5, 0.05):
            changed = outcomes.copy()
            changed[place] = smooth(rows[place : place + 1])[0] + side * change
            added, _ = pursue(Runs.of(rows, -changed), changed, LAYOUT, THETA, np.zeros(60))
            if added[place] > 0.0:
                return float(change)
        raise AssertionError("it was always believed")

    places = range(0, 60, 10)
    assert sum(needed(place, -1.0) for place in places) < 0.95 * sum(needed(place, 1.0) for place in places)


def test_replicates_judge_each_other() -> None:
    # Far from all others, a process alone could tell nothing.
    rows = np.vstack([measured(20, 2)[0] / 10.0, np.ones((4, 2))])
    outcomes = np.concatenate([smooth(rows[:20]), [0.0, 0.05, -0.8, 0.02]])
    added, _ = pursue(Runs.of(rows, -outcomes), outcomes, LAYOUT, THETA, np.zeros(24))
    assert np.flatnonzero(added).tolist() == [22]


def test_a_run_comes_back_when_others_agree_with_it() -> None:
    rows, outcomes = measured(40, 3)
    rows[36:] = rows[36]
    outcomes[36:] = smooth(rows[36:37]) - np.array([0.9, 0.0, 0.0, 0.0])
    runs = Runs.of(rows, -outcomes)
    added, _ = pursue(runs.part(slice(37)), outcomes[:37], LAYOUT, THETA, np.zeros(37))
    assert added[36] > 0.0
    outcomes[36:] = smooth(rows[36:37]) - 0.9
    again, _ = pursue(Runs.of(rows, -outcomes), outcomes, LAYOUT, THETA, np.append(added, np.zeros(3)))
    assert not again[36:].any()


def test_never_more_than_a_third() -> None:
    rows, outcomes = measured(30, 4)
    outcomes[:15] -= 5.0 * np.random.default_rng(0).random(15)
    added, _ = pursue(Runs.of(rows, -outcomes), outcomes, LAYOUT, THETA, np.zeros(30), leniency=0.1)
    assert 0 < (added > 0.0).sum() <= 10


def test_a_robust_fit_predicts_better_than_a_plain_one() -> None:
    """5 % noise, one run in ten 1.5 to 3 times slower; times between 10 and 20."""
    better = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        rows, at = random.random((70, 2)), random.random((300, 2))
        true = 15.0 - 2.5 * (smooth(np.vstack([rows, at])) - 0.5)
        slower = np.where(random.random(70) < 0.1, random.uniform(1.5, 3.0, 70), 1.0)
        runs = Runs.of(rows, true[:70] * np.exp(0.05 * random.normal(size=70)) * slower)
        errors = {}
        for robust in (True, False):
            process = Fits(LAYOUT).process(runs, Kind("objective", "bent", Prior.of(LAYOUT, noisy=True), robust=robust))
            mean, _ = process.scale.restore(*process.alone.predict(at))
            errors[robust] = float(np.sqrt(((mean - true[70:]) ** 2).mean()))
        better += errors[True] < 0.8 * errors[False]
    assert better >= 5
