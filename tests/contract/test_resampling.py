"""The contract of every resampling policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.trial import TrialRecord
from service.policies import resampling
from service.policies.resampling import Resampling

SPACE = Space.build([FloatParameter("x", 0.0, 1.0)])
BUDGET = 40


def problem(goal: str = "minimize") -> Problem:
    return Problem.build(SPACE, [Objective("seconds", goal)])  # type: ignore[arg-type]


def make(name: str, about: Problem, **options: object) -> Resampling:
    complete = resampling.validate(name, options, about)
    return resampling.create(name, about, seed=1, options=complete, budget=BUDGET, start=4)


def unknown(configurations: Sequence[Configuration]) -> None:
    return None


def flat(configurations: Sequence[Configuration]) -> Prediction:
    """A model that has learned: lowest at x = 0.3."""
    x = np.array([float(str(one["x"])) for one in configurations])
    return Prediction(10 + 5 * (x - 0.3) ** 2, np.full(len(x), 0.3), 0.5)


def trial(number: int, x: float, value: float | None = None, state: TrialState = TrialState.COMPLETED) -> TrialRecord:
    metrics = {} if value is None else {"seconds": value}
    return TrialRecord(number, {"x": x}, state, metrics, revision=number)


def history(count: int, seed: int = 0, sign: float = 1.0) -> list[TrialRecord]:
    rng = np.random.default_rng(seed)
    xs = rng.random(count)
    return [trial(i + 1, float(x), sign * float(10 + x + rng.normal(0, 1))) for i, x in enumerate(xs)]


@pytest.fixture(params=resampling.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("predict", [unknown, flat])
def test_it_answers_with_a_configuration_that_was_measured(name: str, predict: resampling.Predict) -> None:
    policy = make(name, problem())
    trials = history(12)
    known = {SPACE.key(one.configuration) for one in trials}
    for count in range(len(trials)):
        policy.update(trials[count : count + 1])
        again = policy.again(pending=[], predict=predict)
        assert again is None or SPACE.key(again) in known


def test_the_start_design_comes_first(name: str) -> None:
    policy = make(name, problem())
    policy.update(history(3))
    assert policy.again(pending=[], predict=flat) is None


def test_the_same_history_gives_the_same_answer_however_it_was_fed(name: str) -> None:
    trials = history(15)
    at_once, piece_by_piece = make(name, problem()), make(name, problem())
    at_once.update(trials)
    for one in trials:
        piece_by_piece.update([one])
        piece_by_piece.again(pending=[], predict=flat)
    for pending in ([], [trial(99, 0.5)]):
        assert at_once.again(pending=pending, predict=flat) == piece_by_piece.again(pending=pending, predict=flat)


def test_a_policy_stops_repeating_pending_trials(name: str) -> None:
    """A policy does not request pending trials again."""
    policy = make(name, problem())
    policy.update(history(20))
    pending: list[TrialRecord] = []
    while (again := policy.again(pending=pending, predict=unknown)) is not None:
        pending.append(TrialRecord(100 + len(pending), again, TrialState.REQUESTED, {}))
        assert len(pending) <= 20 * 3


def test_failed_trials_do_not_count(name: str) -> None:
    policy, other = make(name, problem()), make(name, problem())
    trials = history(8)
    policy.update(trials)
    other.update([*trials, trial(50, 0.9, state=TrialState.FAILED)])
    assert policy.again(pending=[], predict=flat) == other.again(pending=[], predict=flat)


@pytest.mark.parametrize("state", [TrialState.INFEASIBLE, TrialState.PRUNED])
def test_clearly_worse_configurations_are_not_measured_again(name: str, state: TrialState) -> None:
    policy = make(name, problem())
    policy.update(history(6))
    policy.update([trial(7, 0.123, 0.1 if state == TrialState.PRUNED else None, state)])
    pending: list[TrialRecord] = []
    while (again := policy.again(pending=pending, predict=unknown)) is not None and len(pending) < 50:
        assert again != {"x": 0.123}
        pending.append(TrialRecord(100 + len(pending), again, TrialState.REQUESTED, {}))


# Not so for `thesis`: its filter compares by ratio, which differs between a value and its negative.
@pytest.mark.parametrize("name", [name for name in resampling.names() if name != "thesis"])
def test_better_means_the_objectives_goal(name: str) -> None:
    """Values to be maximised are the same problem with the other sign."""
    low, high = make(name, problem()), make(name, problem("maximize"))
    low.update(history(12))
    high.update(history(12, sign=-1.0))
    assert low.again(pending=[], predict=unknown) == high.again(pending=[], predict=unknown)


RUNS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.2, 0.4, 0.6]),
        st.sampled_from([TrialState.COMPLETED] * 5 + [TrialState.FAILED, TrialState.INFEASIBLE, TrialState.PRUNED]),
        st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, 1e-300]),
        st.sampled_from(["suggested", "replicate", "default", "check", "added"]),
    ),
    max_size=30,
)


@given(runs=RUNS, waiting=st.lists(st.sampled_from([0.0, 0.2, 0.8]), max_size=4), model=st.booleans())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_gives_a_valid_answer(
    name: str, runs: list[tuple[float, TrialState, float, str]], waiting: list[float], model: bool
) -> None:
    policy = make(name, problem())
    for number, (x, state, value, origin) in enumerate(runs, start=1):
        metrics = {"seconds": value} if state in (TrialState.COMPLETED, TrialState.PRUNED) else {}
        policy.update([TrialRecord(number, {"x": x}, state, metrics, number, 1.0, origin)])
    pending = [TrialRecord(100 + place, {"x": x}, TrialState.ACTIVE, {}) for place, x in enumerate(waiting)]
    again = policy.again(pending=pending, predict=flat if model else unknown)
    if again is not None:
        states = {state for x, state, _, origin in runs if x == again["x"] and origin != "check"}
        assert TrialState.COMPLETED in states
        assert not states & {TrialState.INFEASIBLE, TrialState.PRUNED}


def test_unknown_names_and_options_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        resampling.validate(name, {"nonsense": 1}, problem())
    assert caught.value.data["field"] == "resampling.options.nonsense"
    with pytest.raises(InvalidInput) as caught:
        resampling.validate("nonsense", {}, problem(), "study.resampling")
    assert caught.value.data["field"] == "study.resampling.name"
    assert name in str(caught.value.data["allowed"])
