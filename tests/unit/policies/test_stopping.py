import pytest

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import Trial
from service.policies import stopping
from service.policies.stopping import Progress

SPACE = Space.build([FloatParameter("x", 0.0, 1.0, default=0.5)])
PROBLEM = Problem.build(SPACE, [Objective("seconds", "minimize")])


def progress(values: list[float], xs: list[float] | None = None, problem: Problem = PROBLEM, **more: float) -> Progress:
    places = xs or [index / len(values) for index in range(len(values))]
    metric = problem.metrics[0]
    trials = [
        Trial(number, {"x": x}, TrialState.COMPLETED, {metric: value})
        for number, (x, value) in enumerate(zip(places, values, strict=True), 1)
    ]
    return Progress(problem, trials, more.pop("seconds", 0.0), more.pop("node_hours", 0.0), **more)


def ends(rule: object, at: Progress) -> bool:
    parsed = stopping.parse(rule, at.problem)
    assert stopping.parse(parsed.to_json(), at.problem).to_json() == parsed.to_json()
    reason = parsed.reason(at)
    assert reason is None or reason.endswith(".")
    return reason is not None


def test_budgets() -> None:
    assert ends({"rule": "trials", "trials": 3}, progress([1.0, 2.0, 3.0]))
    assert not ends({"rule": "trials", "trials": 4}, progress([1.0, 2.0, 3.0]))
    assert ends({"rule": "seconds", "seconds": 60}, progress([1.0], seconds=60.0))
    assert not ends({"rule": "node_hours", "hours": 2}, progress([1.0], node_hours=1.9))
    assert ends({"rule": "node_hours", "hours": 2}, progress([1.0], node_hours=2.0))


def test_references() -> None:
    assert ends({"rule": "reference", "value": 2.0}, progress([5.0, 2.0]))
    assert not ends({"rule": "reference", "value": 1.9}, progress([5.0, 2.0]))
    more = Problem.build(SPACE, [Objective("rate", "maximize")])
    assert ends({"rule": "reference", "value": 4.0}, progress([5.0, 2.0], problem=more))
    assert not ends({"rule": "reference", "value": 6.0}, progress([5.0, 2.0], problem=more))
    # the default is at x = 0.5
    assert ends({"rule": "default_share", "percent": 20}, progress([10.0, 7.9], xs=[0.5, 0.1]))
    assert not ends({"rule": "default_share", "percent": 20}, progress([10.0, 8.1], xs=[0.5, 0.1]))
    assert not ends({"rule": "default_share", "percent": 20}, progress([10.0, 1.0], xs=[0.4, 0.1]))


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("best_improvement", [10.0, 9.9, 9.8, 9.9], True),
        ("best_improvement", [10.0, 12.0, 12.0, 8.0], False),
        ("mean_improvement", [10.0, 10.0, 10.0, 10.0], True),
        ("mean_improvement", [10.0, 2.0, 2.0, 2.0], False),
        ("median_improvement", [10.0, 10.0, 10.0, 1.0], True),
        ("median_improvement", [10.0, 2.0, 2.0, 2.0], False),
    ],
)
def test_improvement_over_three_trials(name: str, values: list[float], expected: bool) -> None:
    rule = {"rule": name, "threshold": 0.05, "trials": 3}
    assert ends(rule, progress(values)) is expected
    assert not ends(rule, progress(values[:3]))


def test_movement() -> None:
    count = {"rule": "count_movement", "threshold": 3, "trials": 4}
    assert ends(count, progress([1.0] * 5, xs=[0.9, 0.1, 0.2, 0.1, 0.2]))
    assert not ends(count, progress([1.0] * 5, xs=[0.9, 0.1, 0.2, 0.3, 0.2]))
    distance = {"rule": "distance_movement", "threshold": 0.05, "trials": 3}
    assert ends(distance, progress([1.0] * 4, xs=[0.9, 0.1, 0.12, 0.1]))
    assert not ends(distance, progress([1.0] * 4, xs=[0.9, 0.1, 0.2, 0.1]))


def test_remaining_improvement_needs_a_model() -> None:
    rule = {"rule": "remaining_improvement", "factor": 0.5}
    assert stopping.parse(rule, PROBLEM).needs_prediction
    assert not ends(rule, progress([1.0]))
    assert ends(rule, progress([1.0], remaining=0.4, noise=1.0))
    assert not ends(rule, progress([1.0], remaining=0.6, noise=1.0))


def test_combinations() -> None:
    few, late = {"rule": "trials", "trials": 2}, {"rule": "seconds", "seconds": 60}
    at = progress([1.0, 2.0])
    assert ends({"any": [late, few]}, at)
    assert not ends({"all": [late, few]}, at)
    assert ends({"all": [{"any": [late, few]}, few]}, at)
    assert stopping.parse({"any": [few, {"rule": "remaining_improvement"}]}, PROBLEM).needs_prediction


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (3, "stopping"),
        ({"rule": "soon"}, "stopping.rule"),
        ({"rule": "trials"}, "stopping.trials"),
        ({"rule": "trials", "trials": 0}, "stopping.trials"),
        ({"rule": "trials", "trials": 3, "seconds": 4}, "stopping.seconds"),
        ({"any": []}, "stopping.any"),
        ({"any": [{"rule": "trials", "trials": 3}], "rule": "trials"}, "stopping.any"),
        ({"all": [{"rule": "trials", "trials": 3}, {"any": [{"rule": "x"}]}]}, "stopping.all[1].any[0].rule"),
    ],
)
def test_bad_rules_are_refused_with_their_path(rule: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        stopping.parse(rule, PROBLEM)
    assert caught.value.data["field"] == field


def test_rules_for_one_objective_are_refused_for_several() -> None:
    several = Problem.build(SPACE, [Objective("seconds", "minimize"), Objective("watts", "minimize")])
    with pytest.raises(InvalidInput):
        stopping.parse({"rule": "best_improvement"}, several)
    assert stopping.parse({"rule": "trials", "trials": 3}, several)
