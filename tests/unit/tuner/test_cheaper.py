"""Cheaper runs: how the time is divided, what they lead to, and where none is made."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from service.algorithms import registry
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.parameters import FloatParameter, IntParameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord
from service.tuner.cheaper import Cheaper
from service.tuner.contextual import ContextualTuner, tuner_for
from service.tuner.method import Method

SPACE = Space.build([FloatParameter("x", 0.0, 1.0, default=0.5), IntParameter("size", 1, 8, log=True, default=8)])
CONTEXT = [{"name": "size", "values": [8], "cheaper": [1, 2]}]
PROBLEM = Problem.build(SPACE, [Objective("rate", "maximize")], noisy=False, context=CONTEXT)
METHOD = Method(algorithm="gp", seed=1, budget=40)
WHOLE: Configuration = {"size": 8}


def rate(configuration: Mapping[str, Any]) -> float:
    """Return a synthetic rate whose best x is 0.8, and a little less at small sizes."""
    size, x = float(configuration["size"]), float(configuration["x"])
    return 10.0 - (x - 0.8 + 0.02 / size) ** 2 - 1.0 / size


class Driver:
    """A tuner whose trials finish as soon as they are suggested, each after as many seconds as its size."""

    def __init__(self, problem: Problem = PROBLEM, works: Callable[[Configuration], bool] = lambda _: True) -> None:
        tuner = tuner_for(problem, METHOD)
        assert isinstance(tuner, ContextualTuner)
        self.tuner, self.cursor, self.numbers, self.works = tuner, 0, count(1), works
        self.trials: list[TrialRecord] = []

    def search(self, trials: int, **fixed: Any) -> None:
        for _ in range(trials):
            answer = self.tuner.suggest(1, cursor=self.cursor, fixed=fixed)
            self.cursor = answer.cursor
            [item] = answer.items
            number = next(self.numbers)
            works = self.works(item.configuration)
            trial = TrialRecord(
                number,
                item.configuration,
                TrialState.COMPLETED if works else TrialState.INFEASIBLE,
                {"rate": rate(item.configuration)} if works else {},
                number,
                seconds=float(item.configuration["size"]),
                origin=item.origin,
            )
            self.trials.append(trial)
            self.tuner.update([trial])

    def sizes(self) -> list[Any]:
        return [trial.configuration["size"] for trial in self.trials]


def test_the_default_comes_first_at_each_size() -> None:
    found = Driver()
    found.search(3)
    assert [(trial.configuration, trial.origin) for trial in found.trials] == [
        ({"x": 0.5, "size": size}, "default") for size in (8, 1, 2)
    ]


def test_at_most_half_of_the_time_goes_to_cheaper_runs() -> None:
    found = Driver()
    for _ in range(30):
        found.search(1)
        own, cheaper = (sum(size for size in found.sizes() if (size == 8) == whole) for whole in (True, False))
        # The last cheaper run may exceed the half.
        assert cheaper < own + 2
    assert found.sizes().count(1) > 5


def test_cheaper_runs_lead_to_the_best_where_it_counts() -> None:
    found = Driver()
    found.search(24)
    table = found.tuner.found()
    assert table is not None
    [row] = table.rows
    assert row.configuration["size"] == 8
    assert abs(float(row.configuration["x"]) - 0.8) < 0.03


def test_what_is_better_in_cheaper_runs_is_measured_next_where_it_counts() -> None:
    measured = [(0.5, 8), (0.5, 1), (0.1, 1), (0.7, 1), (0.95, 1)]
    trials = [
        TrialRecord(
            number, {"x": x, "size": size}, TrialState.COMPLETED, {"rate": rate({"x": x, "size": size})}, number
        )
        for number, (x, size) in enumerate(measured, 1)
    ]
    algorithm = registry.create("gp", PROBLEM, seed=1, options={})
    algorithm.update(trials)
    cheaper = Cheaper(PROBLEM, WHOLE).plus(trials)
    assert cheaper.promoted(algorithm, {}) == {"x": 0.7, "size": 8}
    assert cheaper.promoted(algorithm, {"x": 0.1}) is None
    running = TrialRecord(6, {"x": 0.7, "size": 8}, TrialState.ACTIVE, {})
    assert cheaper.plus([running]).promoted(algorithm, {}) != {"x": 0.7, "size": 8}


def test_what_broke_an_outcome_constraint_or_probably_fails_is_not_measured_where_it_counts() -> None:
    problem = Problem.build(
        SPACE, [Objective("rate", "maximize")], noisy=False, context=CONTEXT, outcome_constraints=["mb <= 10"]
    )

    def trial(number: int, x: float, size: int, state: TrialState = TrialState.COMPLETED) -> TrialRecord:
        metrics = {"rate": rate({"x": x, "size": size}), "mb": 20.0 if 0.65 < x < 0.85 else 5.0}
        return TrialRecord(number, {"x": x, "size": size}, state, metrics if state == "COMPLETED" else {}, number)

    broken = [trial(number, x, 1) for number, x in enumerate((0.7, 0.75, 0.8), 1)]
    fine = [trial(number, x, 1) for number, x in enumerate((0.1, 0.5, 0.9, 0.95), 4)]
    failed = [trial(number, x, 8, TrialState.INFEASIBLE) for number, x in enumerate((0.88, 0.93, 0.97), 8)]
    trials = [*broken, *fine, trial(20, 0.3, 8), *failed]
    algorithm = registry.create("gp", problem, seed=1, options={})
    algorithm.update(trials)
    cheaper = Cheaper(problem, WHOLE).plus(trials)
    assert cheaper.promoted(algorithm, {}) == {"x": 0.5, "size": 8}


def test_a_context_that_is_given_has_no_cheaper_run() -> None:
    found = Driver()
    found.search(8, **WHOLE)
    assert found.sizes() == [8] * 8


def test_a_size_at_which_a_configuration_is_not_allowed_is_left_out() -> None:
    space = Space.build(SPACE.parameters, ["x <= 0.3 * size + 0.3"])
    found = Driver(Problem.build(space, [Objective("rate", "maximize")], noisy=False, context=CONTEXT))
    found.search(24)
    assert all(space.feasible(trial.configuration) for trial in found.trials)
    assert 2 in found.sizes()


def test_pending_trials_count_as_begun() -> None:
    tuner = tuner_for(PROBLEM, METHOD)
    asked = tuner.suggest(8, cursor=0)
    configurations: list[Configuration] = [item.configuration for item in asked.items]
    assert configurations[:3] == [{"x": 0.5, "size": size} for size in (8, 1, 2)]
    assert len({PROBLEM.space.key(one) for one in configurations}) == 8


def test_the_table_shares_the_trials_that_cheaper_runs_leave() -> None:
    found = Driver()
    found.search(12)
    part = found.tuner.part({"x": 0.5, "size": 8})
    assert part is not None
    counting = found.sizes().count(8)
    assert 0 < counting < 10
    assert part._resampling.budget == 40 * counting // 12, "cheaper runs go on as before"


def test_a_cheaper_size_at_which_nothing_works_is_given_up() -> None:
    found = Driver(works=lambda configuration: configuration["size"] != 1)
    found.search(24)
    assert found.sizes().count(1) == 3
    assert found.sizes().count(2) > 3


def test_a_cheaper_size_that_the_constraints_rule_out_leaves_the_other() -> None:
    space = Space.build(SPACE.parameters, ["x + size >= 2.5"])
    found = Driver(Problem.build(space, [Objective("rate", "maximize")], noisy=False, context=CONTEXT))
    found.search(24)
    assert 1 not in found.sizes()
    # More than the default.
    assert found.sizes().count(2) > 1


def test_added_measurements_are_known_and_cost_nothing() -> None:
    found = Driver()
    added = [
        TrialRecord(number, {"x": number / 60, "size": 1}, TrialState.COMPLETED, {"rate": number / 60}, number, 1.0)
        for number in range(1, 51)
    ]
    found.tuner.update([replace(one, origin="added") for one in added])
    found.search(9)
    assert found.sizes().count(8) < 8
    part = found.tuner.part({"x": 0.5, "size": 8})
    assert part is not None
    assert part._resampling.budget == 40 * found.sizes().count(8) // 9


def test_an_algorithm_that_learns_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cheaper") as refused:
        tuner_for(PROBLEM, Method(algorithm="random", seed=1, budget=40))
    assert refused.value.data["field"] == "algorithm.name"
