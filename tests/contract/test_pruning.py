"""The contract of every pruning policy."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord
from service.policies import pruning
from service.policies.pruning import Pruning, Running, Step

PROBLEM = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0, default=0.5)]), [Objective("seconds", "minimize")])
OPTIONS: dict[str, dict[str, object]] = {"limit": {"seconds": 20}}


def make(name: str, problem: Problem = PROBLEM) -> Pruning:
    options = pruning.validate(name, OPTIONS.get(name, {}), problem)
    return pruning.create(name, problem, options=options, start=3)


def finished(number: int, value: float, state: TrialState = TrialState.COMPLETED) -> tuple[TrialRecord, list[Step]]:
    """A trial that took as many seconds as its value says, and reported nine steps on its way there."""
    trial = TrialRecord(number, {"x": 0.5}, state, {"seconds": value}, seconds=value)
    return trial, [Step(step, value + 0.01 * (step % 3), value * step / 9) for step in range(1, 10)]


def feed(policy: Pruning, values: list[float], state: TrialState = TrialState.COMPLETED) -> None:
    for number, value in enumerate(values):
        trial, steps = finished(number + 1, value, state)
        policy.update([trial], {trial.number: steps})


def running(value: float, seconds: float = 0.1) -> Running:
    _, steps = finished(99, value)
    return Running(99, {"x": 0.1}, seconds, steps)


@pytest.fixture(params=pruning.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_far_worse_trial_is_stopped_and_a_better_one_continues(name: str) -> None:
    policy = make(name)
    feed(policy, [10.0, 11.0, 12.0, 13.0, 14.0])
    reason = policy.prune(running(30.0, seconds=30.0))
    assert reason
    assert reason.endswith(".")
    assert policy.prune(running(5.0, seconds=5.0)) is None


def test_nothing_is_stopped_before_there_is_anything_to_compare_with(name: str) -> None:
    policy = make(name)
    assert policy.prune(running(15.0, seconds=15.0)) is None


def test_a_trial_without_measurements_is_judged_by_its_time_alone(name: str) -> None:
    policy = make(name)
    feed(policy, [10.0] * 6)
    reason = policy.prune(Running(99, {"x": 0.1}, 40.0))
    assert (reason is None) == pruning.describe(name).needs_measurements


def test_failures_of_machines_teach_nothing(name: str) -> None:
    policy = make(name)
    feed(policy, [1.0] * 6, TrialState.FAILED)
    assert policy.prune(running(15.0, seconds=15.0)) is None


def test_more_is_better_where_the_objective_says_so() -> None:
    problem = Problem.build(PROBLEM.space, [Objective("seconds", "maximize")])
    for name in ("median", "asha", "wilcoxon"):
        policy = make(name, problem)
        feed(policy, [10.0, 11.0, 12.0, 13.0, 14.0])
        assert policy.prune(running(5.0)), name
        assert policy.prune(running(30.0)) is None, name


CURVE = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8).map(
    lambda values: [Step(step, value, float(step)) for step, value in enumerate(values)]
)


@given(
    ended=st.lists(
        st.tuples(
            st.sampled_from([TrialState.COMPLETED, TrialState.PRUNED, TrialState.FAILED, TrialState.INFEASIBLE]),
            st.none() | st.floats(0.0, 1e6),
            CURVE,
        ),
        max_size=12,
    ),
    own=CURVE,
    seconds=st.floats(0.0, 1e6),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_history_gives_one_answer_in_one_update_or_in_several(
    name: str, ended: list[tuple[TrialState, float | None, list[Step]]], own: list[Step], seconds: float
) -> None:
    at_once, piece_by_piece = make(name), make(name)
    trials = [TrialRecord(n, {"x": 0.5}, state, {}, seconds=took) for n, (state, took, _) in enumerate(ended)]
    steps = {n: curve for n, (_, _, curve) in enumerate(ended)}
    about = Running(99, {"x": 0.1}, seconds, own)
    at_once.update(trials, steps)
    for trial in trials:
        piece_by_piece.prune(about)
        piece_by_piece.update([trial], {trial.number: steps[trial.number]})
    assert at_once.prune(about) == piece_by_piece.prune(about) == at_once.prune(about)


def test_bad_input_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        pruning.validate(name, {"nonsense": 1}, PROBLEM, "pruning[0]")
    assert caught.value.data["field"] == "pruning[0].options.nonsense"
