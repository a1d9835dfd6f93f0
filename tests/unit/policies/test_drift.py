"""The detection of drift: no alarm without a change, and a quick one after it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.policies import drift

SEEDS = 60


def series(seed: int, count: int, shift_at: int | None = None, shift: float = 0.06) -> list[float]:
    """Return times with 3 % of noise, which are longer by `shift` (twice the noise) from a place on."""
    values = 100.0 * np.exp(0.03 * np.random.default_rng(seed).standard_normal(count))
    if shift_at is not None:
        values[shift_at:] *= math.exp(shift)
    found: list[float] = values.tolist()
    return found


def test_few_series_without_drift_have_an_alarm_in_200_values() -> None:
    alarms = sum(drift.alarm(series(seed, 220)) is not None for seed in range(SEEDS))
    # About 10 % were measured in many more series.
    assert alarms <= 0.2 * SEEDS


@pytest.mark.parametrize("sign", [1, -1])
def test_most_shifts_of_two_deviations_are_found_within_ten_values(sign: int) -> None:
    found = [drift.alarm(series(seed, 30, 20, sign * 0.06)) for seed in range(SEEDS)]
    within = [place is not None and place >= 20 for place in found]
    assert sum(within) >= 0.75 * SEEDS


def test_the_mean_capital_of_normal_values_is_their_number() -> None:
    shifts, log_means = drift._bets()
    deviates = np.clip(np.random.default_rng(0).standard_normal(200_000), -2.5, 2.5)
    means = np.exp(np.outer(deviates, shifts) - log_means).mean(axis=0)
    assert means == pytest.approx(1.0, abs=0.05)


def test_one_disturbed_run_is_no_drift() -> None:
    for seed in range(SEEDS):
        values = series(seed, 20)
        if drift.alarm(values) is None:
            assert drift.alarm([*values, 1.5 * values[-1]]) is None


def test_a_shift_of_four_deviations_is_found_within_five_values() -> None:
    found = [drift.alarm(series(seed, 25, 20, 0.12)) for seed in range(SEEDS)]
    assert sum(place is not None for place in found) >= 0.95 * SEEDS


@given(st.lists(st.floats(0.5, 2.0), min_size=0, max_size=drift.LEAST))
def test_the_first_values_never_make_an_alarm(values: list[float]) -> None:
    assert drift.alarm(values) is None


@settings(deadline=None)
@given(st.floats(-1e6, 1e6, allow_nan=False), st.integers(0, 60))
def test_equal_values_never_make_an_alarm(value: float, count: int) -> None:
    assert drift.alarm([value] * count) is None


@settings(deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e6))
def test_the_unit_of_the_values_does_not_matter(seed: int, unit: float) -> None:
    values = series(seed, 30, 20)
    assert drift.alarm([unit * value for value in values]) == drift.alarm(values)


@given(st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=0, max_size=40))
def test_any_values_have_finite_residuals(values: list[float]) -> None:
    assert all(math.isfinite(one) for one in drift.residuals(values))
