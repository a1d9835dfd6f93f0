import math
import sys

import pytest

from service.core.estimates import aggregate, best, mean, median
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord

SPACE = Space.build([FloatParameter("x", 0, 10)])
ONE = Problem.build(SPACE, [Objective("seconds", "minimize")])
TWO = Problem.build(SPACE, [Objective("seconds", "minimize"), Objective("rate", "maximize")])


def trial(number: int, x: float, state: TrialState = TrialState.COMPLETED, **metrics: float) -> TrialRecord:
    return TrialRecord(number, {"x": x}, state, metrics)


def test_replicates_are_one_estimate() -> None:
    found = aggregate(
        ONE,
        [trial(3, 1.0, seconds=9.0), trial(2, 2.0, seconds=5.0), trial(1, 1, seconds=1.0), trial(4, 1.0, seconds=2.0)],
    )
    assert [(one.configuration["x"], one.numbers, one.n) for one in found] == [(1.0, (1, 3, 4), 3), (2.0, (2,), 1)]
    assert found[0].mean == {"seconds": 4.0}
    assert found[0].median == {"seconds": 2.0}


def test_the_largest_numbers_have_a_mean() -> None:
    largest = sys.float_info.max
    assert mean([largest] * 3) == largest
    assert mean([largest, largest, -largest, -largest]) == 0.0
    (found,) = aggregate(ONE, [trial(1, 1.0, seconds=1.5e308), trial(2, 1.0, seconds=1.7e308)])
    assert math.isclose(found.mean["seconds"], 1.6e308)


def test_only_complete_measurements_count() -> None:
    trials = [
        trial(1, 1.0, TrialState.PRUNED, seconds=0.1),
        trial(2, 2.0, TrialState.INFEASIBLE),
        trial(3, 3.0, TrialState.ACTIVE),
        trial(4, 4.0, seconds=math.nan),
        trial(5, 5.0, rate=1.0),
        trial(6, 6.0, seconds=3.0),
    ]
    assert [one.numbers for one in aggregate(ONE, trials)] == [(6,)]
    assert [one.numbers for one in best(ONE, trials)] == [(6,)]
    assert best(ONE, trials[:5]) == []


def test_one_lucky_run_among_replicates_does_not_win() -> None:
    lucky = [trial(1, 1.0, seconds=1.0), trial(2, 1.0, seconds=9.0), trial(3, 1.0, seconds=9.0)]
    steady = [trial(4, 2.0, seconds=5.0), trial(5, 2.0, seconds=5.0)]
    assert best(ONE, lucky + steady)[0].configuration == {"x": 2.0}


def test_among_equals_the_better_measured_then_the_first() -> None:
    assert best(ONE, [trial(1, 1.0, seconds=1.0), trial(2, 2.0, seconds=1.0)])[0].numbers == (1,)
    replicated = [trial(1, 1.0, seconds=1.0), trial(2, 2.0, seconds=1.0), trial(3, 2.0, seconds=1.0)]
    assert best(ONE, replicated)[0].numbers == (2, 3)


def test_goal_is_respected() -> None:
    maximise = Problem.build(SPACE, [Objective("seconds", "maximize")])
    trials = [trial(1, 1.0, seconds=1.0), trial(2, 2.0, seconds=3.0)]
    assert best(ONE, trials)[0].numbers == (1,)
    assert best(maximise, trials)[0].numbers == (2,)


def test_several_objectives_give_the_pareto_set() -> None:
    trials = [
        trial(1, 1.0, seconds=3.0, rate=9.0),
        trial(2, 2.0, seconds=1.0, rate=2.0),
        trial(3, 3.0, seconds=2.0, rate=1.0),
        trial(4, 4.0, seconds=2.0, rate=5.0),
    ]
    assert [one.numbers for one in best(TWO, trials)] == [(2,), (4,), (1,)]


def test_a_penalty_in_one_objective_is_not_in_the_pareto_set() -> None:
    values = [(3.0, 8.0), (2.0, 7.0), (4.0, 9.0), (1e6, 99.0), (2.5, 6.0)]
    trials = [trial(number, number, seconds=seconds, rate=rate) for number, (seconds, rate) in enumerate(values, 1)]
    assert [one.numbers for one in best(TWO, trials)] == [(2,), (1,), (3,)]
    assert [one.numbers for one in best(TWO, trials[3:4])] == [(4,)]


@pytest.mark.parametrize("values", [[1.0, 3.0], [2.0], [1.0, 5.0, 3.0], [1.7e308, 1.7e308], [-1.7e308, 1.7e308]])
def test_the_median_of_any_numbers_is_finite(values: list[float]) -> None:
    assert median(values) == sum(sorted(values)[i] / 2 for i in ((len(values) - 1) // 2, len(values) // 2))


def test_outcome_constraints_come_before_the_objective() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize")], outcome_constraints=["memory_mb <= 100"])
    trials = [
        trial(1, 1.0, seconds=1.0, memory_mb=200.0),
        trial(2, 2.0, seconds=2.0, memory_mb=90.0),
        trial(3, 2.0, seconds=2.0, memory_mb=110.0),
        trial(4, 3.0, seconds=4.0, memory_mb=90.0),
        trial(5, 3.0, seconds=4.0, memory_mb=110.0),
        trial(6, 3.0, seconds=4.0, memory_mb=90.0),
    ]
    # Half of the runs is not enough.
    assert [one.acceptable for one in aggregate(problem, trials)] == [False, False, True]
    assert best(problem, trials)[0].numbers == (4, 5, 6)
    # Where nothing keeps them, the objective decides.
    assert best(problem, trials[:3])[0].numbers == (1,)
