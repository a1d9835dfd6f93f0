import time

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from service.core.feasibility import FeasibleSet, feasible_set
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


def built(parameters: list[Parameter], *constraints: str) -> FeasibleSet:
    return FeasibleSet(Space.build(parameters, constraints))


def floats(count: int) -> list[Parameter]:
    return [FloatParameter(f"x{n}", 0, 1) for n in range(count)]


def draws(found: FeasibleSet, count: int) -> np.ndarray:
    """Draws as an array, [n, parameters]."""
    names = found.space.names()
    some = found.draw(count, np.random.default_rng(0))
    for one in some:
        found.space.validate(one)
    return np.array([[one[name] for name in names] for one in some], dtype=np.float64)


def test_a_budget_of_continua_is_drawn_evenly() -> None:
    drawn = draws(built(floats(10), " + ".join(f"x{n}" for n in range(10)) + " <= 1"), 1000)
    # The sum of a uniform point of the simplex has the distribution s ** 10, and each coordinate is Beta(1, 10).
    assert kstest(drawn.sum(1) ** 10, "uniform").pvalue > 1e-4
    assert kstest(1.0 - (1.0 - drawn[:, 3]) ** 10, "uniform").pvalue > 1e-4


def test_an_order_of_continua_is_drawn_evenly() -> None:
    drawn = draws(built(floats(6), *(f"x{n} <= x{n + 1}" for n in range(5))), 1000)
    # Sorted uniform numbers: the largest has the distribution x ** 6.
    assert kstest(drawn[:, -1] ** 6, "uniform").pvalue > 1e-4


def test_a_corner_is_drawn_evenly_and_also_on_a_logarithmic_scale() -> None:
    drawn = draws(built(floats(2), "x0 + x1 <= 0.001"), 1000)
    assert kstest((drawn.sum(1) / 0.001) ** 2, "uniform").pvalue > 1e-4
    log = [FloatParameter(f"x{n}", 1e-6, 1, log=True) for n in range(2)]
    assert len(np.unique(draws(built([*log], "x0 + x1 <= 1e-5"), 50), axis=0)) == 50


def test_draws_by_rejection_keep_an_even_spread() -> None:
    found = built([*floats(2), IntParameter("n", 1, 4)], "x0 * n <= 1")
    assert found.even
    drawn = draws(found, 2000)
    counts = np.unique(drawn[:, 2], return_counts=True)[1]
    shares = np.array([1.0, 1 / 2, 1 / 3, 1 / 4])
    assert chisquare(counts, counts.sum() * shares / shares.sum()).pvalue > 1e-4


def test_finite_constraints_beside_mixed_ones_leave_enough_for_rejection() -> None:
    sizes: list[Parameter] = [IntParameter(name, 1, 4096) for name in ("a", "b")]
    found = built([*sizes, *floats(1)], "a * b == 4096", "x0 * a <= 4096")
    assert found.even
    assert len(np.unique(draws(found, 300)[:, 0])) == 13


def test_a_space_without_structure_says_that_draws_are_those_of_a_walk() -> None:
    names = [f"n{index}" for index in range(6)]
    numbers: list[Parameter] = [IntParameter(name, 1, 100_000, default=1) for name in names]
    found = built(numbers, f"({' + '.join(f'{name} ** 2' for name in names)}) % 99991 <= 20")
    assert not found.even
    assert found.size is None
    assert found.existence == "known"
    assert len(draws(found, 3)) == 3


@pytest.mark.parametrize(
    ("parameters", "constraints"),
    [
        (floats(2), ["x0 + x1 > 3"]),
        (floats(3), ["x0 + x1 >= 1.5", "x1 + x2 >= 1.5", "x0 + x2 >= 1.5", "x0 + x1 + x2 <= 2"]),
        ([IntParameter("n", 1, 9), BoolParameter("huge")], ["n > 10 or n < 1"]),
        ([IntParameter("n", 1, 2**40), IntParameter("m", 1, 2**40)], ["n * m < 0"]),
        ([IntParameter("n", 1, 9), *floats(1)], ["2 * n == 7", "x0 <= n"]),
        ([IntParameter("n", 0, 10**9), IntParameter("m", 0, 10**9), *floats(1)], ["n + m <= x0 - 2"]),
        ([*floats(2)], ["x0 * x1 > 1.5"]),
    ],
)
def test_proves_that_nothing_is_feasible(parameters: list[Parameter], constraints: list[str]) -> None:
    assert built(parameters, *constraints).existence == "none"


def test_says_that_nothing_was_found_without_a_proof() -> None:
    hidden = "(x0 - 0.3) ** 2 + (x1 - 0.6) ** 2 == 0"
    found = built(floats(2), hidden)
    assert found.existence == "unknown"
    assert found.tries > 100_000
    default: list[Parameter] = [FloatParameter("x0", 0, 1, default=0.3), FloatParameter("x1", 0, 1, default=0.6)]
    assert built(default, hidden).existence == "known"


def test_finds_a_narrow_region_of_a_nonlinear_constraint() -> None:
    found = built(floats(6), " + ".join(f"(x{n} - 0.7) ** 2" for n in range(6)) + " <= 1e-6")
    assert found.existence == "known"
    assert np.abs(draws(found, 20) - 0.7).max() <= 1e-3


def test_even_numbers_give_an_even_spread_of_feasible_configurations() -> None:
    found = built([IntParameter("a", 1, 4096), IntParameter("b", 1, 4096)], "a * b == 4096")
    grid = np.stack([(np.arange(13) + 0.5) / 13, np.full(13, 0.5)], 1)
    assert sorted(str(one["a"]) for one in found.spread(grid)) == sorted(str(2**n) for n in range(13))


def test_counts_and_lists_what_conditions_and_constraints_leave() -> None:
    space = Space.build(
        [
            CategoricalParameter("kind", ("plain", "tiled")),
            IntParameter("tile", 1, 64, condition=Condition("kind", ("tiled",))),
            IntParameter("n", 1, 64),
        ],
        ["n % tile == 0"],
    )
    found = feasible_set(space)
    divisors = sum(n % tile == 0 for n in range(1, 65) for tile in range(1, 65))
    assert found.size is not None
    assert (found.size.number, found.size.exact) == (64 + divisors, True)
    assert len(set(found.keys)) == 64 + divisors
    assert feasible_set(Space.build(space.parameters, ["n % tile == 0"])) is found


def test_goes_through_more_than_it_lists() -> None:
    found = built([IntParameter(f"n{k}", 1, 68) for k in range(3)], "n0 <= n1 <= n2")
    assert found.listed is None
    assert found.size is not None
    assert found.size.number == 70 * 69 * 68 // 6
    ranks = found.space.finite.at(range(found.size.number))
    assert ranks is not None
    everything = set(map(found.space.key, found.space.configurations(ranks)))
    assert len(everything) == found.size.number
    last = everything.pop()
    started = time.thread_time()
    unseen = found.unseen(everything, np.random.default_rng(0))
    assert unseen is not None
    assert found.space.key(unseen) == last
    assert time.thread_time() - started < 60
    assert found.unseen({*everything, last}, np.random.default_rng(0)) is None


def test_factors_and_divisors_are_geometric() -> None:
    sizes: list[Parameter] = [IntParameter("a", 1, 4096), IntParameter("b", 1, 4096), IntParameter("n", 1, 4096)]
    assert built(sizes, "a * b == 4096", "n != 7").geometric == {"a", "b"}
    assert built(sizes, "a + b <= 4096").geometric == set()


def test_repairs_and_neighbours_stay_near() -> None:
    found = built([IntParameter(name, 1, 512) for name in ("x", "y", "z")], "x * y * z == 512")
    random = np.random.default_rng(0)
    parent: Configuration = {"x": 8, "y": 8, "z": 8}
    repaired = found.repaired({"x": 16, "y": 8, "z": 8}, parent, random)
    assert sorted(map(str, repaired.values())) == ["16", "4", "8"]
    neighbours = found.neighbours({"x": 8, "y": 8, "z": 8}, 50, random)
    assert len(neighbours) > 5
    assert all(found.space.feasible(one) and one != parent for one in neighbours)
