"""The interval of a gain on machines that other processes use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.core.problem import Objective
from service.policies.check import CheckResult, FinalCheck
from service.policies.check_interval import Pair
from service.policies.noise import Scale, gain_interval, gain_of, shift_interval
from tests.factories.checks import rounds_of, run

SECONDS = Objective("s", "minimize", "s")
WIDE = FinalCheck(width=1e-6, max_trials=20)


def noise(seed: int, count: int = 10, deviation: float = 0.01) -> list[float]:
    return [float(value) for value in np.exp(deviation * np.random.default_rng(seed).normal(size=count))]


def checked(defaults: list[object], bests: list[object]) -> CheckResult:
    return WIDE.result(rounds_of(defaults, bests), SECONDS)  # type: ignore[arg-type]


def test_one_machine_gives_the_rank_tests_interval() -> None:
    before, after = noise(1), [0.9 * value for value in noise(2)]
    plain = gain_interval(before, after)
    found = checked([*before], [*after])
    assert plain is not None
    assert (found.gain, found.low, found.high) == (plain.estimate, plain.low, plain.high)


def test_runs_on_unlike_machines_are_compared_on_their_own_machine() -> None:
    speeds = [1.0] * 4 + [1.3] * 4 + [1.8] * 4
    names = [f"agent{speed}" for speed in speeds]
    before, after = noise(3, 12), noise(4, 12)
    pairs = [
        [run(size * value * speed, machine=name) for value, speed, name in zip(values, speeds, names, strict=True)]
        for size, values in ((1.0, before), (0.8, after))
    ]
    found = FinalCheck(width=1e-6, max_trials=24).result(rounds_of(*pairs), SECONDS)
    assert found.proven
    assert found.gain == pytest.approx(0.2, abs=0.02)
    values = [[one.values[0] for one in side] for side in pairs]
    plain = gain_interval(values[0], values[1])
    assert plain is not None
    assert plain.low < 0, "their differences hide the gain"


def test_machines_with_few_runs_are_taken_together() -> None:
    """Clients that ask for single runs may each have one side only."""
    before = [run(value, machine=f"client{place}") for place, value in enumerate(noise(5))]
    after = [run(0.9 * value, machine=f"client{place + 5}") for place, value in enumerate(noise(6))]
    assert checked([*before], [*after]).proven


def test_the_distribution_of_several_strata_is_exact() -> None:
    """All permutations of labels inside the strata, by simulation."""
    random = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        strata = [(random.normal(size=4) + shift, random.normal(size=size) + shift) for shift, size in ((0, 3), (9, 5))]
        shifts = shift_interval(strata, 0.9)
        assert shifts is not None
        held += shifts[1] <= 0 <= shifts[2]
    assert held / 2000 == pytest.approx(0.92, abs=0.025), "at least 90 %, by the steps of the distribution"


def test_a_level_beyond_reach_gives_no_interval() -> None:
    few = np.array([1.0, 2.0, 3.0])
    assert shift_interval([(few, few)], 0.95) is None
    assert shift_interval([(few, few), (few, few)], 0.95) is not None
    assert shift_interval([], 0.95) is None


def test_waiting_is_no_part_of_a_time() -> None:
    """The default waits for a third of its time. The interval is widened by what the wait explains."""
    before = [run(value / (1 - 1 / 3), wait=1 / 3, share=0.4) for value in noise(7)]
    after = [run(value, wait=0.0, share=0.4) for value in noise(8)]
    found = checked([*before], [*after])
    assert found.gain == pytest.approx(1 / 3, abs=0.02), "as it was measured"
    assert not found.better
    assert found.low < -0.3
    assert found.high > found.gain
    eight = checked([*before], [run(value / 8, wait=0.0, share=0.4) for value in noise(8)])
    assert eight.proven
    assert eight.text.endswith("; 10 of 10 rounds were disturbed")


def test_the_gain_is_the_one_of_the_values_as_they_were_measured() -> None:
    """The wait says nothing of values that the program computes, and the interval contains both gains."""
    before = [run(0.5, wait=0.02, share=0.5) for _ in range(4)]
    after = [run(0.0625, wait=0.4, share=0.5) for _ in range(4)]
    found = checked([*before], [*after])
    assert found.gain == pytest.approx(0.875)
    assert found.low == pytest.approx(0.875)
    assert found.high > 0.95
    assert found.proven


def test_waiting_lowers_a_rate() -> None:
    before = [run(-value * (1 - 0.2), wait=0.2) for value in noise(9)]
    after = [run(-value * (1 - 0.2), wait=0.2) for value in noise(10)]
    found = FinalCheck().result(rounds_of(before, [run(1.2 * one.values[0], wait=0.2) for one in after]), SECONDS)
    assert found.gain == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("unknown", "counted", "certain"), [(2, 8, True), (3, 10, False)])
def test_a_few_runs_of_unknown_wait_are_left_out(unknown: int, counted: int, certain: bool) -> None:
    """With more of them, no run is corrected."""
    before = [run(value, wait=0.3 if place >= unknown else None, share=0.5) for place, value in enumerate(noise(11))]
    after = [run(0.7 * value, wait=0.3, share=0.5) for value in noise(12)]
    found = checked([*before], [*after])
    assert (found.default_runs, found.runs, found.certain) == (counted, 10, certain)
    assert found.better


def test_runs_that_are_disturbed_more_than_usual_are_left_out_of_both_sides() -> None:
    before = [
        run(value * (2 if place < 3 else 1), share=0.6 if place < 3 else 0.02) for place, value in enumerate(noise(13))
    ]
    after = [
        run(0.9 * value * (2 if place == 9 else 1), share=0.6 if place == 9 else 0.02)
        for place, value in enumerate(noise(14))
    ]
    found = checked([*before], [*after])
    assert (found.default_runs, found.runs, found.rounds, found.disturbed, found.doubtful) == (7, 9, 10, 0, 0)
    assert found.proven


def test_a_disturbed_run_counts_for_the_constraints() -> None:
    before = [run(value, share=0.0) for value in noise(13)]
    after = [
        replace(run(0.9 * value, share=0.6 if place < 6 else 0.0), broken=place < 6)
        for place, value in enumerate(noise(14))
    ]
    found = checked([*before], [*after])
    assert (found.runs, found.acceptable) == (4, False)
    assert found.text == "no gain to use: 6 of 10 runs of the final check broke an outcome constraint"


def test_where_most_runs_are_disturbed_all_of_them_count() -> None:
    before = [run(value, share=0.02 if place < 2 else 0.6) for place, value in enumerate(noise(15))]
    after = [run(0.9 * value, share=0.6) for value in noise(16)]
    found = checked([*before], [*after])
    assert (found.default_runs, found.runs, found.disturbed) == (10, 10, 10)


def test_a_side_needs_enough_runs_that_are_quiet() -> None:
    quiet = Pair.of(
        rounds_of([run(1.0, share=0.0)] * 10, [run(1.0, share=0.0)] * 3 + [run(1.0, share=0.5)] * 7), 1, 0.95
    )
    assert (len(quiet.before), len(quiet.after)) == (10, 3)
    every = Pair.of(
        rounds_of([run(1.0, share=0.0)] * 10, [run(1.0, share=0.0)] * 2 + [run(1.0, share=0.5)] * 8), 1, 0.95
    )
    assert (len(every.before), len(every.after)) == (10, 10)


@pytest.mark.parametrize("members", [1, 3])
def test_no_run_is_left_out_if_the_others_are_too_few_for_the_level(members: int) -> None:
    """Four rounds are just enough, and the wait of one run is unknown because it was too short to be read."""
    check = FinalCheck(width=1e-6, max_trials=40)
    count = check.rounds(members, 1)
    before, after = ([run(size * value, wait=0.1) for value in noise(20, count)] for size in (1.0, 0.5))
    after[0] = run(after[0].values[0], wait=None)
    found = check.comparisons(rounds_of(before, *[after] * members), members + 1)
    assert found[0] is not None
    assert found[0][0].gain.low > 0


@pytest.mark.parametrize(("ratio", "certain"), [(0.9, False), (0.3, True)])
def test_without_a_wait_the_gain_must_exceed_all_that_interference_can_do(ratio: float, certain: bool) -> None:
    before = [run(value, share=0.5) for value in noise(17)]
    after = [run(ratio * value, share=0.5) for value in noise(18)]
    found = checked([*before], [*after])
    assert found.better
    assert (found.certain, found.proven) == (certain, certain)
    assert found.share == pytest.approx(0.5)
    assert found.disturbed == 10
    assert found.text.endswith(
        "; 10 of 10 rounds were disturbed"
        if certain
        else " while other processes took 50 % of the CPUs in 10 of 10 rounds; not proven for a quiet machine"
    )


def test_the_gain_of_values_of_both_signs_is_never_certain_in_a_disturbance() -> None:
    before = [run(value, share=0.5) for value in np.linspace(-1, 1.5, 10)]
    after = [run(value, share=0.5) for value in np.linspace(-9, -7, 10)]
    found = checked([*before], [*after])
    assert found.better
    assert not found.certain


def test_gain_of_a_linear_scale() -> None:
    found = gain_of(Scale(0.0), np.array([-2.0, -3.0, -1.0]), 10.0)
    assert (found.estimate, found.low, found.high) == pytest.approx((0.2, 0.1, 0.3))
