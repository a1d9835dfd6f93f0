import pytest

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord
from service.policies import stopping
from service.policies.stopping import History, Progress
from service.tuner.method import Method
from service.tuner.tuner import Tuner

SPACE = Space.build([FloatParameter("x", 0.0, 1.0, default=0.5)])
PROBLEM = Problem.build(SPACE, [Objective("seconds", "minimize")])


def progress(values: list[float], xs: list[float] | None = None, problem: Problem = PROBLEM, **more: float) -> Progress:
    places = xs or [index / len(values) for index in range(len(values))]
    metric = problem.metrics[0]
    trials = [
        TrialRecord(number, {"x": x}, TrialState.COMPLETED, {metric: value})
        for number, (x, value) in enumerate(zip(places, values, strict=True), 1)
    ]
    history = History(problem)
    history.update(trials)
    return Progress(history, more.pop("seconds", 0.0), more.pop("node_hours", 0.0), **more)


def ends(rule: object, at: Progress) -> bool:
    parsed = stopping.parse(rule, at.history.problem)
    assert stopping.parse(parsed.to_json(), at.history.problem).to_json() == parsed.to_json()
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


def test_the_machines_faults_and_the_final_check_are_no_part_of_the_search() -> None:
    history = History(PROBLEM)
    history.update(
        [
            TrialRecord(1, {"x": 0.1}, TrialState.FAILED, {}),
            TrialRecord(2, {"x": 0.1}, TrialState.COMPLETED, {"seconds": 3}),
        ]
    )
    history.update([TrialRecord(3, {"x": 0.1}, TrialState.COMPLETED, {"seconds": 0.1}, origin="check")])
    at = Progress(history, 0.0, 0.0)
    assert not ends({"rule": "trials", "trials": 2}, at)
    assert not ends({"rule": "reference", "value": 1.0}, at)


def test_a_reference_is_reached_by_replicates_not_by_one_lucky_run_among_them() -> None:
    rule = {"rule": "reference", "value": 2.0}
    assert not ends(rule, progress([5.0, 1.0, 5.0], xs=[0.1, 0.1, 0.1]))
    assert ends(rule, progress([2.0, 1.0, 5.0], xs=[0.1, 0.1, 0.1]))


def test_a_trial_that_breaks_an_outcome_constraint_is_not_the_best() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize")], outcome_constraints=["mb <= 10"])

    def at(*runs: tuple[float, float]) -> Progress:
        history = History(problem)
        for number, (seconds, mb) in enumerate(runs):
            metrics = {"seconds": seconds, "mb": mb}
            history.update([TrialRecord(number, {"x": number / 99}, TrialState.COMPLETED, metrics)])
        return Progress(history, 0.0, 0.0)

    rule = {"rule": "best_improvement", "trials": 2}
    assert not ends({"rule": "reference", "value": 2.0}, at((1.0, 99.0)))
    assert not ends(rule, at((1.0, 99.0), (5.0, 99.0), (4.0, 1.0)))
    assert not ends(rule, at((1.0, 99.0), (5.0, 99.0), (4.0, 99.0)))
    assert not ends(rule, at((5.0, 1.0), (1.0, 99.0), (4.0, 1.0)))
    assert ends(rule, at((5.0, 1.0), (1.0, 99.0), (5.0, 1.0)))


def test_a_threshold_of_zero_asks_for_any_improvement() -> None:
    rule = {"rule": "best_improvement", "threshold": 0, "trials": 2}
    assert ends(rule, progress([5.0, 6.0, 7.0]))
    assert not ends(rule, progress([5.0, 6.0, 4.999]))


def test_rules_within_rules_have_an_end() -> None:
    rule: dict[str, object] = {"rule": "trials", "trials": 3}
    for _ in range(8):
        rule = {"any": [rule]}
    assert stopping.parse(rule, PROBLEM).to_json() == rule
    with pytest.raises(InvalidInput) as caught:
        stopping.parse({"all": [rule]}, PROBLEM)
    assert caught.value.data["field"] == "stopping" + ".all[0]" + ".any[0]" * 7 + ".any"
    with pytest.raises(InvalidInput) as caught:
        stopping.parse({"any": [{"rule": "trials", "trials": 3}] * 33}, PROBLEM)
    assert caught.value.data["allowed"] == "1 to 32 rules"


def test_replicates_are_no_iterations() -> None:
    """Five runs of one configuration are one iteration that is better known, not five without an improvement."""
    suggested = [TrialRecord(n, {"x": n / 10}, TrialState.COMPLETED, {"seconds": 9.0 - n}) for n in (1, 2, 3)]
    replicates = [
        TrialRecord(n, {"x": 0.3}, TrialState.COMPLETED, {"seconds": 6.0}, origin="replicate") for n in range(4, 9)
    ]
    history = History(PROBLEM)
    history.update([*suggested, *replicates])
    at = Progress(history, 0.0, 0.0)
    assert not ends({"rule": "best_improvement", "trials": 3}, at)
    assert not ends({"rule": "count_movement", "trials": 3, "threshold": 2}, at)
    assert not ends({"rule": "distance_movement", "trials": 3, "threshold": 0.05}, at)
    # They are trials of the budget all the same.
    assert ends({"rule": "trials", "trials": 8}, at)


def test_an_improvement_is_one_of_medians_not_of_single_runs() -> None:
    history = History(PROBLEM)
    history.update([TrialRecord(1, {"x": 0.1}, TrialState.COMPLETED, {"seconds": 1.0})])
    history.update(
        [
            TrialRecord(n, {"x": 0.1}, TrialState.COMPLETED, {"seconds": seconds}, origin="replicate")
            for n, seconds in ((2, 9.0), (3, 9.0))
        ]
    )
    history.update([TrialRecord(4, {"x": 0.2}, TrialState.COMPLETED, {"seconds": 5.0})])
    # The run of 1.0 was a lucky one: the first configuration takes 9.0, so 5.0 is an improvement.
    assert not ends({"rule": "best_improvement", "trials": 1}, Progress(history, 0.0, 0.0))


def test_rules_wait_for_configurations_that_are_measured_again() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "minimize")], noisy=True)
    rule = stopping.parse({"rule": "reference", "value": 2.0}, problem)
    tuner = Tuner(problem, Method(algorithm="random", resampling="static", stopping=rule))
    tuner.update([TrialRecord(n, {"x": n / 99}, TrialState.COMPLETED, {"seconds": 9.0}) for n in range(1, 8)])
    for n in range(1, 8):
        replicate = TrialRecord(10 + n, {"x": n / 99}, TrialState.COMPLETED, {"seconds": 9.0}, origin="replicate")
        tuner.update([replicate])
    tuner.update([TrialRecord(90, {"x": 0.95}, TrialState.COMPLETED, {"seconds": 1.0})])
    assert tuner.stop(0.0, 0.0) is None
    tuner.update([TrialRecord(91, {"x": 0.95}, TrialState.COMPLETED, {"seconds": 1.2}, origin="replicate")])
    assert tuner.stop(0.0, 0.0) == "The reference of 2 is reached."
