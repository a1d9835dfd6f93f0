from __future__ import annotations

import numpy as np

from service.algorithms.gp.measured_runs import Runs

ROWS = np.array([[0.5], [0.1], [0.5], [0.9], [0.1], [0.5]])
VALUES = np.array([1.0, 4.0, 3.0, 9.0, 6.0, 2.0])


def test_replicates_become_one_point_of_less_noise() -> None:
    points = Runs.of(ROWS, VALUES).points(-VALUES, np.zeros(6))
    assert points.rows.ravel().tolist() == [0.5, 0.1, 0.9]
    assert points.outcomes.tolist() == [-2.0, -5.0, -9.0]
    np.testing.assert_allclose(points.share, [1 / 3, 1 / 2, 1.0])
    assert not points.added.any()
    # Of 0.5: 1 + 1; of 0.1: 1 + 1. Six runs less three means.
    assert (points.degrees, points.squares) == (3, 4.0)


def test_bounds_are_no_points_and_disturbed_runs_are_points_of_their_own() -> None:
    runs = Runs.of(ROWS, VALUES, [False, False, True, False, False, False])
    points = runs.points(-VALUES, np.array([0.0, 0.0, 0.0, 0.0, 2.0, 0.0]))
    assert points.rows.ravel().tolist() == [0.5, 0.1, 0.9, 0.1]
    assert points.outcomes.tolist() == [-1.5, -4.0, -9.0, -6.0]
    assert points.share.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert points.added.tolist() == [0.0, 0.0, 0.0, 2.0]
    assert points.degrees == 1


def test_thinning_keeps_the_best_configurations_and_the_latest_with_all_their_runs() -> None:
    runs = Runs.of(np.arange(20.0)[[*range(20), 3, 3]][:, None], np.array([*np.arange(20.0)[::-1], 0.5, 0.4]))
    kept = runs.thinned(6)
    assert sorted(set(kept.rows.ravel().tolist())) == [3.0, 15.0, 16.0, 17.0, 18.0, 19.0]
    assert kept.rows.ravel().tolist().count(3.0) == 3
    assert kept.numbers.tolist() == [3, 15, 16, 17, 18, 19, 20, 21], "numbers are those of the whole"
    assert runs.thinned(20) is runs


def test_thinning_does_not_keep_a_configuration_for_one_lucky_run() -> None:
    runs = Runs.of(np.arange(20.0)[[*range(20), 3, 3]][:, None], np.array([*np.arange(20.0)[::-1], -9.0, 17.0]))
    assert 3.0 not in runs.thinned(6).rows


def test_a_digest_distinguishes_a_bound_from_a_value() -> None:
    runs = Runs.of(ROWS, VALUES)
    assert runs.digest("x") == Runs.of(ROWS.copy(), VALUES.copy()).digest("x")
    assert runs.digest("x") != runs.digest("y")
    assert runs.digest("x") != Runs.of(ROWS, VALUES, [True, *[False] * 5]).digest("x")
