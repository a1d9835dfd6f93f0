from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, IntParameter, Space
from service.core.trial import TrialRecord
from service.policies import noise
from service.tuner.recommendation import Recommendation, by_estimate, by_posterior, samples_of

SPACE = Space.build([IntParameter("n", 1, 100)])
SECONDS = Problem.build(SPACE, [Objective("seconds", "minimize")])
RATE = Problem.build(SPACE, [Objective("rate", "maximize")])


def by(name: str) -> Callable[[Sequence[float], Sequence[float]], float]:
    options = noise.validate(name, {})
    return lambda values, bounds: noise.estimate(name, values, options, bounds)


MEDIAN, MEAN, MINIMUM = by("median"), by("mean"), by("minimum")


def trials(problem: Problem, *values: tuple[int, float]) -> list[TrialRecord]:
    metric = problem.metrics[0]
    return [
        TrialRecord(number, {"n": n}, TrialState.COMPLETED, {metric: value})
        for number, (n, value) in enumerate(values, start=1)
    ]


def test_the_best_run_is_recommended_without_noise() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize")], noisy=False)
    found = by_estimate(problem, samples_of(problem, trials(problem, (1, 3.0), (2, 1.0), (3, 2.0))), MEDIAN)
    assert (found.configuration, found.value, found.low, found.high) == ({"n": 2}, 1.0, 1.0, 1.0)


def test_a_single_lucky_run_does_not_beat_replicates_that_agree() -> None:
    random = np.random.default_rng(5)
    runs = [(n, random.normal(12, 1)) for n in range(1, 40) for _ in range(2)]
    replicates = [(60, value) for value in (8.9, 9.2, 9.5, 9.7, 9.8, 10.1, 10.4)]
    found = by_estimate(SECONDS, samples_of(SECONDS, trials(SECONDS, *runs, *replicates, (70, 9.0))), MEDIAN)
    assert found.configuration == {"n": 60}, "a single 9.0 looks better than a median of 9.7"
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


def test_a_single_run_is_drawn_towards_its_neighbours() -> None:
    found = by_estimate(
        SECONDS, samples_of(SECONDS, trials(SECONDS, *[(n, 10.0 + n % 2) for n in range(1, 20)], (20, 5.0))), MINIMUM
    )
    assert found.configuration == {"n": 20}
    assert 5.0 < found.value < 11.0
    assert (found.low, found.high) == (None, None), "nothing was measured twice: nothing is known of the noise"


def test_more_is_better_where_the_goal_says_so() -> None:
    runs = trials(RATE, (1, 5.0), (1, 5.2), (50, 9.0), (50, 9.3), (99, 7.0), (99, 7.1))
    found = by_estimate(RATE, samples_of(RATE, runs), MEAN)
    assert found.configuration == {"n": 50}
    assert found.low is not None
    assert found.high is not None
    assert 7.0 < found.low < found.value < found.high < 10.0


def test_robust_against_a_slow_run_in_ten() -> None:
    """The recommended configuration is good on average, though a tenth of all runs is twice as slow."""
    random = np.random.default_rng(1)
    losses = []
    for _ in range(20):
        runs = []
        for n in random.permutation(100)[:40] + 1:
            truth = 10.0 + abs(int(n) - 37) / 10
            for _ in range(int(random.integers(1, 4))):
                slow = 2.0 if random.random() < 0.1 else 1.0
                runs.append((int(n), truth * slow * float(np.exp(random.normal(0, 0.05)))))
        found = by_estimate(SECONDS, samples_of(SECONDS, trials(SECONDS, *runs)), MEDIAN)
        losses.append(abs(int(found.configuration["n"]) - 37) / 10 / 10)
    assert statistics.fmean(losses) < 0.08


def test_the_best_posterior_mean_is_recommended_with_its_interval() -> None:
    found = samples_of(RATE, trials(RATE, *((1, 5.0), (1, 5.5), (2, 5.5), (2, 9.0), (3, 5.5), (3, 8.0))))
    prediction = Prediction(mean=np.array([-5.0, -6.0, -7.0]), deviation=np.array([1.0, 1.0, 0.5]), noise=1.0)
    recommended = by_posterior(RATE, found, prediction)
    assert recommended.configuration == {"n": 3}
    # The best of several noisy values is too good: the expected value is worse, and most of the interval is below it.
    assert recommended.low is not None
    assert recommended.high is not None
    assert recommended.low < recommended.value < 7.0 < recommended.high
    assert recommended.value - recommended.low > recommended.high - recommended.value


def with_default(sign: float, default: float, best: float) -> tuple[Problem, Recommendation]:
    space = Space.build([IntParameter("n", 1, 100, default=1)])
    problem = Problem.build(space, [Objective("m", "minimize" if sign > 0 else "maximize")])
    found = samples_of(problem, trials(problem, *((1, default) for _ in range(3)), *((50, best) for _ in range(3))))
    deviation = np.array([0.01, 0.01])
    prediction = Prediction(mean=sign * np.array([default, best]), deviation=deviation, noise=0.1)
    return problem, by_posterior(problem, found, prediction)


@pytest.mark.parametrize(("sign", "default", "best"), [(1.0, 10.0, 8.0), (-1.0, 8.0, 10.0), (1.0, -8.0, -10.0)])
def test_the_gain_is_the_one_of_the_value_over_the_default(sign: float, default: float, best: float) -> None:
    _, found = with_default(sign, default, best)
    assert found.default == default
    assert found.gain is not None
    assert found.gain == pytest.approx(sign * (default - found.value) / abs(default))
    assert found.gain_low is not None
    assert found.gain_high is not None
    assert 0 < found.gain_low < found.gain < found.gain_high


def test_a_value_next_to_zero_has_an_interval() -> None:
    """The logarithm of such a value says nothing, and its interval would overflow."""
    space = Space.build([IntParameter("n", 1, 100, default=100)])
    problem = Problem.build(space, [Objective("seconds", "minimize")])
    found = samples_of(problem, trials(problem, *((1, 1e-9), (50, 4.0), (100, 9.0)) * 2))
    one = by_posterior(problem, found, Prediction(np.array([1e-9, 4.0, 9.0]), np.full(3, 0.3), 0.1))
    assert one.low is not None
    assert one.high is not None
    assert one.low <= one.value < one.high < 4.0
    assert one.gain_low is not None
    assert one.gain_high is not None
    assert 0.5 < one.gain_low < 1.0 < one.gain_high < 1.5


def test_the_gain_of_the_default_itself_is_zero() -> None:
    _, found = with_default(1.0, 8.0, 10.0)
    assert (found.gain, found.gain_low, found.gain_high) == (0.0, None, None)
    assert found.default == found.value


@pytest.mark.parametrize(("values", "is_known"), [((5.0,), False), ((5.0, 5.1), False), ((5.0, 5.1, 4.9, 5.2), True)])
def test_no_interval_is_given_when_the_noise_cannot_be_estimated(values: tuple[float, ...], is_known: bool) -> None:
    found = samples_of(RATE, trials(RATE, *((1, value) for value in values), (2, 9.0)))
    prediction = Prediction(mean=np.array([-5.0, -9.0]), deviation=np.array([1e-9, 1e-9]), noise=1e-9)
    assert (by_posterior(RATE, found, prediction).low is not None) is is_known


@pytest.mark.parametrize("problem", [RATE, SECONDS])
def test_the_interval_is_not_much_narrower_than_the_replicates_allow(problem: Problem) -> None:
    """A model of few runs may be sure of a value, although the runs of one configuration differ."""
    best = 9.0 if problem is RATE else 4.0
    found = samples_of(problem, trials(problem, (1, 5.0), (1, 6.0), *((2, best * by) for by in (0.9, 1.0, 1.0, 1.1))))
    sign = -1.0 if problem is RATE else 1.0

    def width(deviation: float) -> float:
        prediction = Prediction(sign * np.array([5.5, best]), np.array([deviation, deviation]), 1e-9)
        recommended = by_posterior(problem, found, prediction)
        assert recommended.configuration == {"n": 2}
        assert recommended.low is not None
        assert recommended.high is not None
        return (recommended.high - recommended.low) / best

    assert width(1e-3) == pytest.approx(width(1e-9), rel=0.01)
    assert width(1e-9) > 0.1
    assert width(3.0) > 2 * width(1e-3)


def test_a_trial_that_breaks_an_outcome_constraint_is_recommended_only_if_all_do() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize")], outcome_constraints=["mb <= 10"])

    def trial(number: int, n: int, seconds: float, mb: float) -> TrialRecord:
        return TrialRecord(number, {"n": n}, TrialState.COMPLETED, {"seconds": seconds, "mb": mb})

    big, small = trial(1, 1, 1.0, 50.0), trial(2, 2, 2.0, 5.0)
    assert [one.configuration for one in samples_of(problem, [big, small])] == [{"n": 2}]
    assert [one.configuration for one in samples_of(problem, [big])] == [{"n": 1}]


@pytest.mark.parametrize(
    ("chances", "expected"),
    [(None, 3), ([0.9, 0.7, 0.6], 2), ([0.9, 0.4, 0.4], 1), ([0.2, 0.4, 0.3], 2), ([0.8, 0.8, 0.8], 3)],
)
def test_a_configuration_that_probably_breaks_a_constraint_is_recommended_only_if_all_do(
    chances: list[float] | None, expected: int
) -> None:
    found = samples_of(SECONDS, trials(SECONDS, (1, 3.0), (2, 2.0), (3, 1.0)))
    known = None if chances is None else np.array(chances)
    prediction = Prediction(np.array([3.0, 2.0, 1.0]), np.full(3, 0.1), 0.1, known)
    assert by_posterior(SECONDS, found, prediction).configuration == {"n": expected}


def test_only_completed_trials_with_a_finite_value_count() -> None:
    problem = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0)]), [Objective("seconds", "minimize")])
    states = [TrialState.PRUNED, TrialState.FAILED, TrialState.INFEASIBLE]
    others = [TrialRecord(number, {"x": 0.1}, state, {"seconds": 0.1}) for number, state in enumerate(states, start=1)]
    broken = TrialRecord(4, {"x": 0.2}, TrialState.COMPLETED, {"seconds": float("nan")})
    assert samples_of(problem, [*others, broken]) == []


def test_neighbours_may_decide() -> None:
    """The best run of all is among bad ones, and a good region has many that are nearly as good."""
    runs = [(n, 20.0) for n in range(1, 30)] + [(n, 9.0) for n in (60, 61, 62, 63)] + [(15, 8.0), (15, 8.2)]
    found = samples_of(SECONDS, trials(SECONDS, *runs))
    assert by_estimate(SECONDS, found, MEDIAN, neighbours=0.05).configuration["n"] in (60, 61, 62, 63)


def test_a_pruned_replicate_counts_against_its_configuration() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize")], noisy=False)
    ran = trials(problem, (1, 3.0), (1, 3.8), (2, 3.4), (2, 3.6))
    stopped = [
        TrialRecord(number, {"n": n}, TrialState.PRUNED, {"seconds": bound})
        for number, n, bound in ((9, 1, 5.0), (10, 3, 1.0))
    ]
    assert by_estimate(problem, samples_of(problem, ran), MEAN).configuration == {"n": 1}
    assert by_estimate(problem, samples_of(problem, [*ran, *stopped]), MEAN).configuration == {"n": 2}


def test_many_configurations_cost_little() -> None:
    random = np.random.default_rng(0)
    problem = Problem.build(
        Space.build([FloatParameter(name, 0.0, 1.0) for name in "abcdef"]), [Objective("seconds", "minimize")]
    )
    runs = [
        TrialRecord(
            number, dict(zip("abcdef", map(float, row), strict=True)), TrialState.COMPLETED, {"seconds": row.sum()}
        )
        for number, row in enumerate(random.random((3000, 6)), start=1)
    ]
    found = by_estimate(problem, samples_of(problem, runs), MEDIAN)
    assert sum(float(value) for value in found.configuration.values()) < 1.2
