from __future__ import annotations

import subprocess
import sys

import pytest

from service.algorithms import registry
from service.algorithms.base import Cost
from service.algorithms.gp.algorithm import GpAlgorithm
from service.core.errors import InvalidInput
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, Condition, FloatParameter, IntParameter, Parameter, Space

TINY: list[Parameter] = [IntParameter("n", 1, 5), BoolParameter("b")]
LARGE: list[Parameter] = [IntParameter(f"n{index}", 1, 100) for index in range(6)]
NESTED: list[Parameter] = [BoolParameter("b"), FloatParameter("x", 0, 1, condition=Condition("b", (True,)))]


def problem_of(parameters: list[Parameter], objectives: int = 1, *, noisy: bool = True) -> Problem:
    metrics = [Objective(f"m{index}", "minimize") for index in range(objectives)]
    return Problem.build(Space.build(parameters), metrics, noisy=noisy)


@pytest.mark.parametrize(
    ("problem", "budget", "parallelism", "name", "why"),
    [
        (problem_of(TINY, noisy=False), 10, 1, "grid", "each of 10 configurations once"),
        (problem_of(TINY, 2, noisy=False), 10, 1, "grid", "each of 10 configurations once"),
        (problem_of(TINY, noisy=False), 9, 1, "gp", "9 trials"),
        (problem_of(TINY, noisy=False), None, None, "gp", "a budget that is not known"),
        (problem_of(TINY), 1000, 1, "gp", "1000 trials"),
        (problem_of(LARGE), 100, 8, "gp", "one objective"),
        (problem_of(LARGE), 2000, 128, "gp", "2000 trials"),
        (problem_of(LARGE), 2001, 1, "cmaes", "2001 trials"),
        (problem_of(LARGE, noisy=False), 5000, 1, "cmaes", "shape of the objective"),
        (problem_of(LARGE), 5000, 50, "cmaes", "averages noise"),
        (problem_of(LARGE, noisy=False), 5000, 50, "ga", "as it comes"),
        (problem_of(LARGE), 100, 129, "cmaes", "129 trials at once"),
        (problem_of(NESTED), 5000, 1, "ga", "depend on others"),
        (problem_of(LARGE, 2), 500, 32, "gp", "2 objectives"),
        (problem_of(LARGE, 2), 501, 1, "nsga2", "501 trials"),
        (problem_of(LARGE, 3), 100, 33, "nsga2", "33 trials at once"),
    ],
)
def test_choices(problem: Problem, budget: int | None, parallelism: int | None, name: str, why: str) -> None:
    chosen = registry.resolve("auto", problem, budget=budget, parallelism=parallelism)
    assert chosen.name == name
    assert why in chosen.reason
    # Those options are complete.
    assert registry.validate(chosen.name, chosen.options, problem) == chosen.options


def test_an_explicit_budget_option_precedes_the_budget_of_the_caller() -> None:
    problem = problem_of(LARGE)
    assert registry.resolve("auto", problem, {"budget": 9000}, budget=100).name == "cmaes"
    assert registry.resolve("auto", problem, {"budget": 100}, budget=9000).name == "gp"
    assert registry.resolve("auto", problem, {"budget": None}, budget=9000).name == "cmaes"
    with pytest.raises(InvalidInput) as caught:
        registry.resolve("auto", problem, {"budget": 0})
    assert caught.value.data["field"] == "algorithm.options.budget"


def test_a_budget_of_time_prefers_quick_trials() -> None:
    problem = problem_of(LARGE)
    chosen = registry.resolve("auto", problem, timed=True)
    assert (chosen.name, chosen.options["per_second"]) == ("gp", True)
    assert "budget of time" in chosen.reason
    others = [
        registry.resolve("auto", problem_of(LARGE, 2), timed=True),
        registry.resolve("auto", problem, {"budget": 100}, timed=True),
        registry.resolve("auto", problem, budget=100),
    ]
    assert [one.options["per_second"] for one in others] == [False] * 3
    assert registry.resolve("auto", problem, parallelism=500, timed=True).name == "cmaes"
    assert registry.resolve("gp", problem, timed=True).options["per_second"] is False


def test_the_population_grows_to_a_large_parallelism() -> None:
    assert registry.resolve("auto", problem_of(LARGE), budget=5000, parallelism=50).options["population"] == 50
    assert registry.resolve("auto", problem_of(LARGE), budget=5000, parallelism=4).options["population"] is None


def test_another_algorithm_stands_for_itself() -> None:
    chosen = registry.resolve("lhs", problem_of(LARGE), {"block": 8}, budget=9000)
    assert (chosen.name, chosen.options, chosen.reason) == ("lhs", {"block": 8, "centred": False}, "")


def test_auto_is_the_default_and_covers_the_algorithms_it_chooses() -> None:
    assert registry.DEFAULT == "auto"
    assert isinstance(registry.create("auto", problem_of(LARGE), seed=0, options={}), GpAlgorithm)
    for problem in (problem_of(TINY, noisy=False), problem_of(LARGE)):
        for budget in (10, 5000):
            chosen = registry.describe(registry.resolve("auto", problem, budget=budget).name)
            entry = registry.describe("auto")
            assert entry.cost == Cost.COSTLY
            assert entry.uses_history >= chosen.uses_history


def test_choosing_imports_no_algorithm(programs_start: None) -> None:
    code = """
import sys
from service.algorithms import registry
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
problem = Problem.build(Space.build([FloatParameter("x", 0, 1)]), [Objective("a", "minimize")])
for budget in (10, 10_000):
    registry.describe(registry.resolve("auto", problem, budget=budget).name)
heavy = ("torch", "scipy", "optuna", "cmaes", "service.algorithms.designs.sequences")
print([name for name in heavy if name in sys.modules])
"""
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"
