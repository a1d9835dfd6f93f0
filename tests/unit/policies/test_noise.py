import itertools
import math

import numpy as np
import pytest

from service.core.errors import InvalidInput
from service.policies import noise


def test_estimators() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 100.0]
    found = {name: noise.estimate(name, values, noise.validate(name, {}, "estimator")) for name in noise.names()}
    assert found["median"] == 3.0
    assert found["mean"] == pytest.approx(22.0)
    assert found["trimmed_mean"] == pytest.approx(3.0)
    assert found["minimum"] == 1.0
    assert found["quantile"] == pytest.approx(np.quantile(values, 0.9))


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("mode", {}, "estimator.name"),
        ("quantile", {"q": 2}, "estimator.options.q"),
        ("mean", {"q": 1}, "estimator.options.q"),
    ],
)
def test_bad_estimators_are_refused(name: str, options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        noise.validate(name, options, "estimator")
    assert caught.value.data["field"] == field


def shared_cluster(rng: np.random.Generator, count: int, value: float) -> list[float]:
    """5 % log-normal noise, and one run in ten 1.5 to 3 times slower."""
    slow = np.where(rng.random(count) < 0.1, rng.uniform(1.5, 3.0, count), 1.0)
    return list(value * np.exp(0.05 * rng.standard_normal(count)) * slow)


def test_the_interval_holds_the_gain_as_often_as_it_says_under_heavy_tails() -> None:
    rng = np.random.default_rng(7)
    held, wrong, runs = 0, 0, 1000
    for _ in range(runs):
        gain = noise.gain_interval(shared_cluster(rng, 8, 100.0), shared_cluster(rng, 8, 88.0))
        none = noise.gain_interval(shared_cluster(rng, 8, 100.0), shared_cluster(rng, 8, 100.0))
        assert gain is not None
        assert none is not None
        held += gain.low <= 0.12 <= gain.high
        wrong += none.low > 0
    assert held / runs > 0.93  # 95 % less three standard deviations
    assert wrong / runs < 0.045  # 2.5 % and three more


def test_a_gain_is_a_share_of_the_default_whichever_way_is_better() -> None:
    faster = noise.gain_interval([100.0] * 5, [80.0] * 5)
    higher = noise.gain_interval([-100.0] * 5, [-120.0] * 5)
    mixed = noise.gain_interval([10.0, 10.0, 10.0, 10.0, -1.0], [5.0] * 5)
    assert faster is not None
    assert higher is not None
    assert mixed is not None
    assert faster.estimate == pytest.approx(0.2)
    assert higher.estimate == pytest.approx(0.2)
    assert mixed.estimate == pytest.approx(0.5)


def test_too_few_values_say_nothing() -> None:
    assert noise.gain_interval([1.0] * 3, [2.0] * 3) is None
    assert noise.gain_interval([], [2.0] * 30) is None


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 4), (6, 6), (7, 5)])
def test_the_interval_is_that_of_the_rank_test(n: int, m: int) -> None:
    """All arrangements of two samples, counted one by one."""
    statistics = [sum(places) - n * (n - 1) // 2 for places in itertools.combinations(range(n + m), n)]
    rare = max(u for u in range(n * m) if sum(one <= u for one in statistics) / len(statistics) <= 0.025)
    first, second = [float(one) - 100 for one in range(n)], [math.sqrt(one) for one in range(m)]
    shifts = sorted(b - a for a in first for b in second)
    gain = noise.gain_interval(first, second)
    assert gain is not None
    scale = abs(float(np.median(first)))
    assert gain.low == pytest.approx(-shifts[-1 - rare] / scale)
    assert gain.high == pytest.approx(-shifts[rare] / scale)


def test_noise_is_that_between_replicates_freak_runs_aside() -> None:
    rng = np.random.default_rng(3)
    groups = [list(50 * index + rng.normal(0, 2.0, 4)) for index in range(60)]
    assert noise.replicate_deviation(groups) == pytest.approx(2.0, rel=0.25)
    for index in range(0, 60, 6):
        groups[index][0] += 500
    assert noise.replicate_deviation(groups) == pytest.approx(2.0, rel=0.3)
    assert noise.replicate_deviation([[1.0], [2.0]]) is None


def test_neighbours_share_their_values() -> None:
    rows = np.array([[0.0], [0.05], [0.9]])
    found = noise.aggregate_neighbours(rows, np.array([1.0, 3.0, 10.0]), np.ones(3))
    assert found[0] == pytest.approx(2.0, abs=0.1)
    assert found[2] == pytest.approx(10.0, abs=0.01)
    weighed = noise.aggregate_neighbours(rows, np.array([1.0, 3.0, 10.0]), np.array([9.0, 1.0, 1.0]))
    assert weighed[1] < 1.5


def test_an_even_number_of_values_is_trimmed_by_shares() -> None:
    assert noise.estimate("trimmed_mean", [1.0, 2.0, 9.0], {"share": 0.2}) == pytest.approx(
        (0.4 / 3 + 2 / 3 + 1.2) / 0.6
    )
    assert noise.estimate("trimmed_mean", [5.0], {"share": 0.49}) == 5.0


@pytest.mark.parametrize("name", ["median", "mean", "trimmed_mean", "quantile"])
def test_bounds_help_against_leaving_them_out_and_against_taking_them_as_values(name: str) -> None:
    """Runs are stopped at 11 s where they would have taken longer: half of them."""
    rng = np.random.default_rng(11)
    options = {"share": 0.2, "q": 0.45}
    errors: dict[str, list[float]] = {"bounds": [], "dropped": [], "values": []}
    for _ in range(300):
        times = 10.0 + rng.exponential(1.5, 12)
        limits = 10.3 + 3 * rng.random(12)
        values, bounds = list(times[times <= limits]), list(limits[times > limits])
        if not values:
            continue
        truth = noise.estimate(name, list(times), options)
        errors["bounds"].append(noise.estimate(name, values, options, bounds) - truth)
        errors["dropped"].append(noise.estimate(name, values, options) - truth)
        errors["values"].append(noise.estimate(name, [*values, *bounds], options) - truth)
    bias = {way: abs(float(np.mean(found))) for way, found in errors.items()}
    assert bias["bounds"] < 0.7 * bias["dropped"]
    assert bias["bounds"] < 0.7 * bias["values"]


def test_a_bound_below_all_values_takes_nothing_away() -> None:
    assert noise.estimate("median", [3.0, 4.0, 5.0], {}, [0.1]) == 4.0
    assert noise.estimate("minimum", [3.0, 4.0], {}, [0.1]) == 3.0


def test_noise_counts_each_configuration_by_its_replicates() -> None:
    """Many pairs of one configuration do not drown those of the others."""
    rng = np.random.default_rng(4)
    groups = [list(rng.normal(0, 5.0, 40)), *(list(rng.normal(0, 1.0, 3)) for _ in range(60))]
    found = noise.replicate_deviation(groups)
    assert found is not None
    assert found < 2.0


def test_a_lucky_run_is_not_believed_and_replicates_are() -> None:
    rng = np.random.default_rng(0)
    groups = [list(rng.normal(12.0, 1.0, 3)) for _ in range(60)]
    beliefs, _ = noise.believe([*groups, [9.5], [9.9, 9.6, 10.2, 9.0, 10.6]])
    assert int(np.argmin(beliefs.mean)) == 61
    assert beliefs.mean[60] > 10.2
    assert beliefs.deviation[60] > 1.2 * beliefs.deviation[61]
    assert (beliefs.low < beliefs.mean).all()
    assert (beliefs.mean < beliefs.high).all()


@pytest.mark.parametrize("penalty", [1e200, 1e300, 1.7e308])
def test_very_large_values_are_estimated_like_others(penalty: float) -> None:
    beliefs, places = noise.believe([[penalty], [-penalty], [0.0], [1e-300], [5.0, 5.1]])
    reported = np.concatenate([beliefs.mean, beliefs.deviation, beliefs.low, beliefs.high])
    assert np.isfinite([*reported, beliefs.noise, beliefs.spread]).all()
    assert np.argmin(beliefs.mean) == 1
    assert list(places) == [0, 1, 2, 3, 4]


def test_the_better_of_two_contradicting_runs_is_believed() -> None:
    groups = [[10.0, 10.2], [11.0, 10.8], [12.1, 12.0], [9.0, 9.1], [10.1, 24.0]]
    beliefs, _ = noise.believe(groups)
    assert beliefs.mean[4] == pytest.approx(10.1, abs=0.5)
    assert beliefs.deviation[4] > beliefs.deviation[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_rare_optimum_is_no_freak(sign: float) -> None:
    """Most configurations do nothing, a few are four times better: they are not drawn to the others."""
    rng = np.random.default_rng(2)

    def run(value: float) -> float:
        return float((value if sign > 0 else -1 / value) * np.exp(0.05 * rng.normal()))

    groups = [[run(36.0)] for _ in range(30)] + [[run(36.0), run(36.0)] for _ in range(5)] + [[run(9.0)], [run(9.5)]]
    beliefs, _ = noise.believe(groups)
    best = beliefs.mean[-2:] if sign > 0 else -1 / beliefs.mean[-2:]
    assert best == pytest.approx([9.0, 9.5], rel=0.15)


def test_intervals_keep_their_coverage_under_heavy_tails() -> None:
    rng = np.random.default_rng(5)
    held = []
    for _ in range(40):
        truth = 100 * np.exp(0.2 * rng.standard_normal(40))
        groups = [shared_cluster(rng, int(rng.integers(1, 5)), float(one)) for one in truth]
        beliefs, _ = noise.believe(groups)
        held += list((beliefs.low <= truth) & (truth <= beliefs.high))
    assert np.mean(held) > 0.92


def test_beliefs_about_the_most_promising_groups_equal_the_full_beliefs() -> None:
    rng = np.random.default_rng(6)
    groups = [list(rng.normal(10, 1, int(rng.integers(1, 4)))) for _ in range(50)]
    everything, places = noise.believe(groups)
    assert list(places) == list(range(50))
    few, places = noise.believe(groups, most=7)
    assert len(places) == 7
    assert few.mean == pytest.approx(everything.mean[places])
    assert few.noise == everything.noise


@pytest.mark.parametrize("groups", [[[3.0]], [[0.0], [0.0, 0.0]], [[-1.0], [1.0, 2.0]], [[5.0, 5.0], [5.0, 5.0]]])
def test_beliefs_are_finite_whatever_the_values(groups: list[list[float]]) -> None:
    beliefs, _ = noise.believe(groups)
    assert np.isfinite(beliefs.mean).all()
    assert np.isfinite(beliefs.deviation).all()
    assert beliefs.noise > 0
    assert beliefs.measured is any(len(group) > 1 for group in groups)


def test_neighbours_speak_against_luck() -> None:
    """Two runs alike: one where such values are common, one where everything around is much worse."""
    rng = np.random.default_rng(1)
    around = np.array([10.0 + place % 3 for place in range(90)] + [10.0, 13.0])
    groups = [list(one * np.exp(0.05 * rng.normal() + 0.06 * rng.normal(size=2))) for one in around[:90]]
    beliefs, _ = noise.believe([*groups, [9.5], [9.5]], around)
    assert 9.5 < beliefs.mean[90] < beliefs.mean[91] - 0.1


def test_fast_neighbours_do_not_improve_the_belief_about_a_slow_run() -> None:
    """A single slow run among fast neighbours may have been a freak, but nobody has seen it to be good."""
    rng = np.random.default_rng(3)
    groups = [list(25 * np.exp(0.05 * rng.normal(size=2))) for _ in range(30)]
    beliefs, _ = noise.believe([*groups, [48.0]], np.full(31, 25.0))
    assert beliefs.mean[30] == pytest.approx(48.0)


def test_a_point_without_its_own_value_takes_its_neighbours_value() -> None:
    rows = np.array([[0.0], [0.05], [0.9]])
    found = noise.aggregate_neighbours(rows, np.array([1.0, 3.0, 10.0]), np.ones(3), 0.1, itself=False)
    assert found[0] == pytest.approx(3.0, abs=0.01)
    assert found[2] == pytest.approx(3.0, abs=0.1)


def test_surroundings_are_the_nearest_others() -> None:
    rows = np.linspace(0, 1, 21)[:, None]
    found = noise.surroundings(rows, np.arange(21.0))
    assert found[0] == 3.0  # of 1 to 5
    assert found[20] == 17.0
    assert found[10] == pytest.approx(10.0, abs=1.0)
    assert list(noise.surroundings(rows[:3], np.array([1.0, 5.0, 6.0]))) == [5.0] * 3
