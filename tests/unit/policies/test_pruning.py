import random

import pytest
from scipy import stats

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord
from service.policies import pruning
from service.policies.pruning import Pruning, Running, Step, signed_rank

PROBLEM = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0, default=0.5)]), [Objective("loss", "minimize")])


def make(name: str, start: int = 0, **options: object) -> Pruning:
    return pruning.create(name, PROBLEM, options=pruning.validate(name, options, PROBLEM), start=start)


def done(number: int, x: float, seconds: float) -> TrialRecord:
    return TrialRecord(number, {"x": x}, TrialState.COMPLETED, {"loss": 1.0}, seconds=seconds)


def test_default_compares_with_the_defaults_running_time_and_spares_the_default() -> None:
    policy = make("default", factor=1.5)
    policy.update([done(1, 0.5, 10.0), done(2, 0.5, 12.0), done(3, 0.1, 1.0)], {})
    assert policy.prune(Running(4, {"x": 0.1}, 16.6))  # 1.5 times the median of 10 and 12
    assert policy.prune(Running(4, {"x": 0.1}, 16.4)) is None
    assert policy.prune(Running(4, {"x": 0.5}, 100.0)) is None


def test_estimator_waits_for_the_end_of_the_start_design() -> None:
    policy = make("estimator", start=4)
    policy.update([done(number, 0.1, float(number)) for number in (1, 2, 3)], {})
    assert policy.prune(Running(9, {"x": 0.2}, 50.0)) is None
    policy.update([done(4, 0.1, 4.0)], {})
    assert policy.prune(Running(9, {"x": 0.2}, 2.6))
    assert policy.prune(Running(9, {"x": 0.2}, 2.4)) is None


def test_asha_lets_one_in_three_go_on_at_each_rung() -> None:
    policy = make("asha", reduction=3)
    for number in range(8):
        policy.update([done(number, 0.1, 1.0)], {number: [Step(1, number), Step(3, 10 - number)]})
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 1.5)])) is None
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 3.5)]))
    # between two rungs the lower one counts; the next rung decides again
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 1.5), Step(2, 99.0)])) is None
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 1.5), Step(3, 99.0)]))


def test_wilcoxon_does_not_stop_for_chance() -> None:
    policy = make("wilcoxon")
    policy.update([done(1, 0.1, 1.0)], {1: [Step(step, 10.0) for step in range(10)]})
    worse = [Step(step, 10.0 + (1 if step % 2 else -0.9)) for step in range(10)]
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, worse)) is None
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(step, 10.5 + step) for step in range(10)]))
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(step, 11.0) for step in range(3)])) is None


@pytest.mark.parametrize("count", [3, 8, 20, 30, 60])
def test_the_signed_rank_test_is_scipys(count: int) -> None:
    rng = random.Random(count)
    differences = [rng.gauss(0.3, 1.0) for _ in range(count)]
    method = "exact" if count <= 30 else "approx"
    expected = stats.wilcoxon(differences, alternative="greater", method=method, correction=True).pvalue
    assert signed_rank(differences) == pytest.approx(expected, rel=1e-6)


def test_a_limit_has_to_be_given() -> None:
    with pytest.raises(InvalidInput) as caught:
        pruning.validate("limit", {}, PROBLEM, "pruning[1]")
    assert caught.value.data["field"] == "pruning[1].options.seconds"


def pruned(number: int, seconds: float) -> TrialRecord:
    return TrialRecord(number, {"x": 0.3}, TrialState.PRUNED, {"loss": seconds}, seconds=seconds)


def test_pruned_trials_count_as_longer_so_that_the_estimate_stays() -> None:
    """Running times around 10 s: the limit stays where it was, though half of the trials are stopped there."""
    rng = random.Random(1)
    policy = make("estimator", start=10)
    limit = None
    for number in range(300):
        seconds = rng.gauss(10.0, 2.0)
        low, high = 0.0, 40.0
        while limit is None and high - low > 1e-3:  # where it begins to stop
            middle = (low + high) / 2
            low, high = (low, middle) if policy.prune(Running(0, {"x": 0.2}, middle)) else (middle, high)
        if number >= 10 and limit is None:
            limit = high
        if policy.prune(Running(number, {"x": 0.2}, seconds)):
            low, high = 0.0, seconds
            while high - low > 1e-6:
                middle = (low + high) / 2
                low, high = (low, middle) if policy.prune(Running(0, {"x": 0.2}, middle)) else (middle, high)
            policy.update([pruned(number, high)], {})
        else:
            policy.update([done(number, 0.2, seconds)], {})
        limit = None if number < 10 else limit
    assert policy.prune(Running(999, {"x": 0.2}, 10.8))
    assert policy.prune(Running(999, {"x": 0.2}, 8.8)) is None


def test_the_best_curve_of_wilcoxon_is_one_that_was_measured_to_its_end() -> None:
    policy = make("wilcoxon")
    policy.update([done(1, 0.1, 1.0)], {1: [Step(step, 10.0 + step) for step in range(10)]})
    # stopped early, where steps are cheap
    policy.update([pruned(2, 1.0)], {2: [Step(step, 9.0) for step in range(2)]})
    same = [Step(step, 10.0 + step + (0.1 if step % 2 else -0.11)) for step in range(10)]
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, same)) is None


def test_the_median_rule_looks_at_the_best_so_far() -> None:
    policy = make("median", min_step=2)
    for number in range(1, 6):
        policy.update([done(number, 0.1, 1.0)], {number: [Step(1, 5.0), Step(2, number), Step(4, number)]})
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 99.0)])) is None  # before the first step that counts
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 2.9), Step(3, 99.0)])) is None
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, 3.1), Step(3, 99.0)]))
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(5, 99.0)])) is None  # nobody else came so far


def test_the_largest_numbers_are_compared_as_others_are() -> None:
    policy = make("wilcoxon")
    best, worst = ([Step(step, value - step * 1e300) for step in range(9)] for value in (-1.7e308, 1.7e308))
    policy.update([done(number, 0.1, 1.0) for number in (1, 2)], {1: worst, 2: best})
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, worst))
    assert policy.prune(Running(9, {"x": 0.2}, 1.0, best)) is None


def test_values_that_are_no_numbers_are_passed_over() -> None:
    for name in ("median", "asha", "wilcoxon"):
        policy = make(name)
        steps = [Step(1, float("nan")), Step(2, 1.0)]
        policy.update([done(number, 0.1, 1.0) for number in range(1, 7)], dict.fromkeys(range(1, 7), steps))
        assert policy.prune(Running(9, {"x": 0.2}, 1.0, [Step(1, float("nan"))])) is None
