"""Which changes carry a gain: the whole procedure on simulated systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.problem import Objective
from service.core.space import Scalar
from service.core.trial import TrialRecord
from service.policies.check import CheckResult, FinalCheck
from service.policies.screening import Screening
from tests.factories.elimination import GAIN, Checked, Truth, carriers, problem_of


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_the_only_one_of_14_changes_that_matters_is_found(goal: str) -> None:
    sizes: list[int] = []
    for seed in range(20):
        study = Checked(problem_of(14, goal), carriers("p6"), seed)
        state = study.to_the_end()
        told = study.told(state)
        assert {"p6"} <= {one.name for one in told.parameters if one.low > 0}
        assert told.trials == state.trials <= 32
        if state.smallest is None:
            continue
        assert state.smallest.params["p6"] == 1, seed
        sizes.append(sum(map(bool, state.smallest.params.values())))
        assert told.text.startswith(f"{sizes[-1]} of 14 changes keep")
    # Two slow runs of a comparison may hide that it is enough.
    assert len(sizes) >= 19
    assert np.mean(sizes) <= 1.5


def test_no_change_that_matters_is_dropped() -> None:
    """Changes may depend on each other: the offered configuration has the gain."""
    together = ("p1", "p7")
    truths: list[Truth] = [
        carriers("p0", "p5", "p9"),
        lambda one: GAIN * all(one[name] for name in together),
        lambda one: GAIN * any(one[name] for name in together),
        lambda one: 1.3 * GAIN * float(one["p3"]) - 0.3 * GAIN * float(one["p4"]),
    ]
    kept = []
    for number, truth in enumerate(truths):
        for seed in range(5):
            study = Checked(problem_of(10), truth, 100 * number + seed)
            smallest = study.to_the_end().smallest
            if smallest is not None:
                kept.append(truth(smallest.params) / truth(study.best))
    assert len(kept) >= 15
    assert min(kept) >= 0.8


@pytest.mark.parametrize("wait", [True, False])
def test_a_disturbance_that_only_slow_runs_show_hides_no_effect(wait: bool) -> None:
    """A run is doubtful if it is slow, as it is without the change p2. In half of them, it waits for a CPU."""
    study = Checked(problem_of(4), carriers("p2"), 1, noise=0.02)

    def disturbed(trial: TrialRecord) -> TrialRecord:
        is_slow = trial.metrics["value"] > 80
        waited = 0.3 if is_slow and trial.number % 2 else 0.0
        metrics = {"value": trial.metrics["value"] / (1 - waited)} if wait else trial.metrics
        found = Interference(share=0.4, wait=waited) if wait else None
        return replace(trial, metrics=metrics, doubtful=is_slow, interference=found)

    study.problem = replace(study.problem, objectives=(Objective("value", "minimize", "s"),))
    state = study.ask().begin(len(study.trials) + 1)
    assert state is not None
    study.trials[:] = map(disturbed, study.trials)
    while not state.over:
        found = study.ask().next(state, 1)
        if not found:
            state = study.ask().advance(state, len(study.trials) + 1)
            continue
        study.run(found[0])
        study.trials[-1] = disturbed(study.trials[-1])
    [effect] = [one for one in state.found if one.names == ("p2",)]
    assert effect.low > 0.2
    assert state.smallest is not None
    assert state.smallest.params["p2"] == 1


def test_a_comparison_is_in_rounds() -> None:
    study = Checked(problem_of(6), carriers("p2"), 2, noise=0.02)
    state = study.ask().begin(len(study.trials) + 1)
    assert state is not None
    while state.keep is None:
        for configuration in study.ask().next(state, 1):
            study.run(configuration)
        if not study.ask().next(state, 1):
            state = study.ask().advance(state, len(study.trials) + 1)
    runs = study.ask().next_runs(state, 20)
    assert [one.round for one in runs] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [one.configuration == study.best for one in runs].count(True) == 4
    assert [one.round for one in study.ask().next_runs(state, 20, most_open=1)] == [1, 1]


def test_a_machine_of_another_speed_is_no_effect() -> None:
    study = Checked(problem_of(4), carriers("p2"), 3, noise=0.02)
    state = study.ask().begin(len(study.trials) + 1)
    assert state is not None
    place = 0
    while state.keep is None and not state.over:
        for configuration in study.ask().next(state, 1):
            trial = study.run(configuration)
            speed, agent = ((1.0, ""), (1.5, "slow"))[len(study.trials) % 2]
            study.trials[-1] = replace(trial, metrics={"value": speed * trial.metrics["value"]}, agent=agent)
            place += 1
        if not study.ask().next(state, 1):
            state = replace(study.ask().advance(state, len(study.trials) + 1), over=True)
    runs = study.ask()._runs(state)
    assert place >= 8
    assert {run.machine for run in runs} == {"/", "slow/"}
    effects = Screening.of(runs).effects(study.ask().changes.units, 0.95)
    assert [one.matters for one in effects] == [False, False, True, False]


def test_changes_that_all_matter_leave_nothing_smaller() -> None:
    study = Checked(problem_of(2), carriers("p0", "p1"), 3, noise=0.01)
    told = study.told(study.to_the_end())
    assert told.smallest is None
    assert all(one.matters for one in told.parameters)
    assert told.text == "no smaller set of the 2 changes was shown to keep the gain; these matter: p0, p1"


def test_a_single_change_needs_no_trial() -> None:
    study = Checked(problem_of(1), carriers("p0"), 1)
    state = study.ask().begin(len(study.trials) + 1)
    assert state is not None
    assert (state.over, state.trials) == (True, 0)
    told = study.told(state)
    assert told.text == "the only change carries the gain: p0"
    assert told.parameters[0].effect == study.checked.gain


def test_the_question_is_not_asked_without_a_proven_gain_or_trials_for_it() -> None:
    study = Checked(problem_of(3), carriers("p0"), 1)
    unproven = CheckResult("no measurable gain", 0.01, -0.1, 0.1, 20, 100.0)
    assert replace(study.ask(), checked=unproven).begin(1) is None
    assert replace(study.ask(), policy=FinalCheck(effects=0)).begin(1) is None


def test_every_measured_configuration_satisfies_conditions_and_constraints() -> None:
    problem = problem_of(6, constraints=["p0 + p1 != 1"], p3="p2", p4="p3")
    study = Checked(problem, carriers("p4"), 5)
    smallest = study.to_the_end().smallest
    assert smallest is not None
    # p4 is active only with p2 and p3.
    assert [smallest.params.get(name) for name in ("p2", "p3", "p4")] == [1, 1, 1]


def test_constraints_may_allow_nothing_between() -> None:
    study = Checked(problem_of(2, constraints=["p0 == p1"]), carriers("p0"), 1)
    told = study.told(study.to_the_end())
    assert (told.trials, told.parameters, told.smallest) == (0, (), None)
    assert told.text.startswith("the constraints allow nothing")


def test_many_changes_are_screened_in_groups() -> None:
    study = Checked(problem_of(80), carriers("p40"), 2)
    state = study.to_the_end()
    told = study.told(state)
    assert len(told.parameters) == 80
    [carrier] = [one for one in told.parameters if one.name == "p40"]
    assert carrier.matters
    assert 1 <= len(carrier.together) <= 4
    assert state.trials <= 32


def test_trials_that_fail_are_counted_and_end_the_question() -> None:
    study = Checked(problem_of(5), carriers("p2"), 4)
    state = study.to_the_end(lambda _: TrialState.FAILED)
    assert state.over
    assert state.smallest is None
    assert state.trials <= 32


def test_a_smaller_configuration_that_cannot_work_is_not_offered() -> None:
    """It needs p0, which has no effect of its own."""
    study = Checked(problem_of(5), carriers("p2"), 4)
    state = study.to_the_end(lambda one: TrialState.COMPLETED if one["p0"] else TrialState.INFEASIBLE)
    assert state.smallest is None or state.smallest.params["p0"] == 1


def test_open_trials_count_and_the_next_follow_without_waiting() -> None:
    study = Checked(problem_of(14), carriers("p6"), 0)
    state = study.ask().begin(len(study.trials) + 1)
    assert state is not None
    first = study.ask().next(state, 4)
    assert len(first) == 4
    for configuration in first:
        study.run(configuration)
    opened = study.trials[-4:]
    more = study.ask(opened).next(state, 100)
    # 16 runs screen 14 changes.
    assert len(more) == 12
    key: Callable[[Mapping[str, Scalar]], str] = study.problem.space.key
    assert len({key(one) for one in [*first, *more]}) == 16
    assert study.ask(opened).next(state, 4) == more[:4], "the same trials give the same answer in any process"
