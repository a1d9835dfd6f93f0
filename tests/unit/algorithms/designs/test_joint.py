from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from service.algorithms import registry
from service.algorithms.designs.joint import fraction
from service.algorithms.designs.part import Part, coordinates
from service.algorithms.start import start_design
from service.core.encoding import Encoding, FloatArray
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
)
from service.core.trial import TrialRecord

DESIGNS = ("factorial", "fractional", "maximin", "minimax", "d-optimal", "i-optimal")
CUBE = [FloatParameter(f"x{index}", 0, 1) for index in range(3)]
GRID = [IntParameter(f"n{index}", 1, 8) for index in range(4)]


def problem_of(parameters: list[Parameter], *constraints: str) -> Problem:
    return Problem.build(Space.build(parameters, constraints), [Objective("seconds", "minimize")], noisy=False)


def points(problem: Problem, configurations: list[Configuration]) -> FloatArray:
    encoding = Encoding(problem.space)
    return coordinates(encoding, encoding.encode(configurations))


def designed(name: str, problem: Problem, count: int, seed: int = 0) -> FloatArray:
    return points(problem, start_design(name, problem, count, seed))


def separation(cube: FloatArray) -> float:
    return float(pdist(cube).min())


def coverage(cube: FloatArray) -> float:
    references = np.random.default_rng(7).random((3000, cube.shape[1]))
    return float(cdist(references, cube).min(1).max())


def log_determinant(cube: FloatArray) -> float:
    return float(np.linalg.slogdet(correlation(cube, cube) + 1e-6 * np.eye(len(cube)))[1])


def mean_variance(cube: FloatArray) -> float:
    references = np.random.default_rng(7).random((3000, cube.shape[1]))
    cross = correlation(cube, references)
    among = correlation(cube, cube) + 1e-6 * np.eye(len(cube))
    return float((1.0 - (cross * np.linalg.solve(among, cross)).sum(0)).mean())


def correlation(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * cdist(first, second, "sqeuclidean") / (0.09 * first.shape[1])))


@pytest.mark.parametrize("name", ["maximin", "minimax"])
def test_no_two_points_of_a_hypercube_share_a_value(name: str) -> None:
    cube = designed(name, problem_of([*CUBE]), 12)
    for column in cube.T:
        assert sorted(np.floor(column * 12).astype(int)) == list(range(12))


@pytest.mark.parametrize("name", ["maximin", "minimax"])
def test_each_level_of_a_grid_comes_equally_often(name: str) -> None:
    found = start_design(name, problem_of([*GRID]), 16, seed=3)
    for parameter in GRID:
        values = [one[parameter.name] for one in found]
        assert all(values.count(value) == 2 for value in range(1, 9))


@pytest.mark.parametrize(
    ("name", "criterion", "sign"),
    [
        ("maximin", separation, -1),
        ("minimax", coverage, 1),
        ("d-optimal", log_determinant, -1),
        ("i-optimal", mean_variance, 1),
    ],
)
def test_design_is_better_by_its_criterion_than_forty_hypercubes(name: str, criterion: object, sign: int) -> None:
    assert callable(criterion)
    problem = problem_of([*CUBE])
    others = [sign * criterion(designed("lhs", problem, 12, seed)) for seed in range(40)]
    for seed in range(3):
        assert sign * criterion(designed(name, problem, 12, seed)) < min(others)


@pytest.mark.parametrize("name", DESIGNS)
def test_constraints_and_conditions_are_honoured(name: str) -> None:
    child = FloatParameter("x", 0, 1, condition=Condition("b", (True,)))
    problem = problem_of([*GRID, BoolParameter("b"), child], "n0 + n1 <= 6", "x <= 0.5 or n2 > 4")
    found = start_design(name, problem, 14, seed=1)
    assert len({repr(one) for one in found}) == len(found) == 14
    for one in found:
        assert repr(problem.space.validate(one)) == repr(one)


@pytest.mark.parametrize("name", DESIGNS)
def test_goes_on_when_its_points_are_used_up(name: str) -> None:
    problem = problem_of([IntParameter("n", 1, 6), IntParameter("m", 1, 6)], "n + m <= 9")
    algorithm = registry.create(name, problem, seed=0, options={"size": 8})
    whole = problem.space.enumerate(100)
    assert whole is not None
    found: list[Configuration] = []
    for count in (5, 1, 7, 100):
        batch = algorithm.suggest(count, cursor=0)
        assert batch.exhausted == (count == 100)
        new = [
            TrialRecord(len(found) + place, one, TrialState.COMPLETED, {"seconds": 1.0}, place)
            for place, one in enumerate(batch.configurations, start=1)
        ]
        algorithm.update(new)
        found += batch.configurations
    assert sorted(map(repr, found)) == sorted(map(repr, whole))


@pytest.mark.parametrize("name", ["maximin", "d-optimal", "i-optimal"])
def test_additions_keep_a_distance_from_measured_configurations(name: str) -> None:
    problem = problem_of([FloatParameter("x", 0, 1)])
    algorithm = registry.create(name, problem, seed=0, options={"size": 2})
    known: list[Configuration] = [{"x": value} for value in np.linspace(0, 0.7, 15).tolist()]
    measured = [*known, *algorithm.suggest(2, cursor=0).configurations]
    algorithm.update([TrialRecord(n, one, TrialState.COMPLETED, {"seconds": 1.0}, n) for n, one in enumerate(measured)])
    (addition,) = algorithm.suggest(1, cursor=0).configurations
    assert float(addition["x"]) > 0.7
    assert min(abs(float(addition["x"]) - float(one["x"])) for one in measured) > 0.02


def test_factorial_has_all_combinations_of_the_centres_of_intervals() -> None:
    found = start_design("factorial", problem_of([*CUBE[:2], CategoricalParameter("a", ("p", "q"))]), 18, seed=0)
    assert len(found) == 18
    assert {one["a"] for one in found} == {"p", "q"}
    levels = [sorted({round(float(one[name]), 6) for one in found}) for name in ("x0", "x1")]
    assert levels == [[round((place + 0.5) / 3, 6) for place in range(3)]] * 2
    assert len({repr(one) for one in found}) == 18


def test_factorial_is_finer_where_constraints_leave_little() -> None:
    algorithm = registry.create("factorial", problem_of([*GRID], "n0 <= 2", "n1 <= 2"), seed=0, options={"size": 30})
    found = algorithm.suggest(30, cursor=0).configurations
    assert len({one["n2"] for one in found}) >= 3


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("resolution", [3, 4, 5])
@pytest.mark.parametrize("factors", [1, 3, 6, 9])
def test_fraction_has_its_resolution(levels: int, resolution: int, factors: int) -> None:
    plan = fraction(factors, levels, resolution)
    # Any columns fewer than the resolution have all combinations of levels equally often.
    for count in range(1, min(resolution - 1, factors) + 1):
        for columns in itertools.combinations(range(factors), count):
            _, times = np.unique(plan[:, columns], axis=0, return_counts=True)
            assert len(times) == levels**count
            assert len(set(times.tolist())) == 1


@pytest.mark.parametrize(
    ("factors", "levels", "resolution", "runs"),
    [
        (3, 2, 3, 4),
        (7, 2, 3, 8),
        (15, 2, 3, 16),
        (4, 2, 4, 8),
        (8, 2, 4, 16),
        (5, 2, 5, 16),
        (6, 2, 5, 32),
        (4, 3, 3, 9),
    ],
)
def test_fraction_is_as_small_as_textbooks_have_it(factors: int, levels: int, resolution: int, runs: int) -> None:
    assert len(fraction(factors, levels, resolution)) == runs


def test_fraction_has_the_highest_resolution_that_the_size_allows() -> None:
    assert [len(fraction(5, 2, None, most)) for most in (8, 16, 100)] == [8, 16, 16]
    assert len(fraction(6, 2, None, 16)) == 16
    # Not even main effects fit into so few.
    assert len(fraction(6, 2, None, 4)) == 8
    assert len(fraction(1000, 2)) == 2048


def test_fractional_levels_are_the_centres_of_halves() -> None:
    problem = problem_of([*GRID, CategoricalParameter("a", ("p", "q", "r", "s"))])
    options = {"levels": 2, "resolution": 5}
    found = registry.create("fractional", problem, seed=0, options=options).suggest(16, cursor=0).configurations
    for parameter in GRID:
        assert sorted({one[parameter.name] for one in found}) == [3, 7]
    assert len({one["a"] for one in found}) == 2


@pytest.mark.parametrize("name", registry.START_DESIGNS)
def test_start_design_has_distinct_configurations_with_the_fixed_values(name: str) -> None:
    problem = problem_of([*GRID, FloatParameter("x", 0, 1)], "n0 <= n1")
    found = start_design(name, problem, 9, seed=4, fixed={"n0": 2})
    assert len({repr(one) for one in found}) == len(found) == 9
    assert all(one["n0"] == 2 for one in found)
    assert found == start_design(name, problem, 9, seed=4, fixed={"n0": 2})
    assert found != start_design(name, problem, 9, seed=5, fixed={"n0": 2})
    everything = start_design(name, problem_of([IntParameter("n", 1, 4)]), 40, seed=0)
    assert sorted(one["n"] for one in everything) == [1, 2, 3, 4]


def test_start_design_that_is_none() -> None:
    with pytest.raises(InvalidInput):
        start_design("nonsense", problem_of([*GRID]), 9, seed=4)


def test_a_part_finds_each_remaining_configuration_once() -> None:
    problem = problem_of([IntParameter(key, 1, 32) for key in "abc"], "a * b * c == 16")
    part = Part(problem, {"a": 2})
    assert part.listed is not None
    assert len(part.listed) == 4
    taken: set[str] = set()
    for _ in range(4):
        one = part.unseen(taken, np.random.default_rng(0))
        assert one is not None
        taken.add(problem.space.key(one))
    assert len(taken) == 4
    assert part.unseen(taken, np.random.default_rng(0)) is None
    assert part.nearest(np.zeros(3), taken, np.random.default_rng(0)) is None


def test_choices_are_equally_far_from_each_other() -> None:
    problem = problem_of([CategoricalParameter("a", ("p", "q", "r")), IntParameter("n", 1, 1), BoolParameter("b")])
    cube = points(problem, [{"a": a, "n": 1, "b": False} for a in ("p", "q", "r")])
    assert pdist(cube) == pytest.approx(np.ones(3))
