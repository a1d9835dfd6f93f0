import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.grids import AdditiveGrid, Grid, IntegerGrid, MultiplicativeGrid


def points(grid: Grid) -> list[float]:
    return [grid.at(rank) for rank in range(grid.size)]


def test_decimal_steps_give_exact_decimal_grid_points() -> None:
    assert points(AdditiveGrid(0.0, 0.5, 0.1)) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert points(AdditiveGrid(-0.3, 0.35, 0.1)) == [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]


def test_last_point_survives_rounding() -> None:
    assert AdditiveGrid(0.0, 1.0, 1 / 3).size == 4
    assert points(AdditiveGrid(0.0, 1.0, 1 / 3))[-1] <= 1.0
    assert points(MultiplicativeGrid.of_floats(1e-3, 10.0, 10.0)) == [0.001, 0.01, 0.1, 1.0, 10.0]


def test_a_multiplicative_grid_has_each_integer_once() -> None:
    assert points(MultiplicativeGrid.of_integers(1, 20, 1.5)) == [1, 2, 3, 5, 8, 11, 17]
    assert points(MultiplicativeGrid.of_integers(1, 4, 1.1)) == [1, 2, 3, 4]


def test_integer_grid_is_exact_beyond_floats() -> None:
    grid = IntegerGrid(-(2**63), 2**63 - 1, 1)
    assert grid.size == 2**64
    for value in (-(2**63), 2**53 + 1, 2**63 - 1):
        assert grid.at(grid.rank(value)) == value
    assert IntegerGrid(0, 10, 4).find(8) == 8
    assert IntegerGrid(0, 10, 4).find(10) is None


def test_nearest_is_nearest_on_the_own_scale() -> None:
    assert MultiplicativeGrid.of_floats(1.0, 100.0, 10.0).rank(3.0) == 0
    assert MultiplicativeGrid.of_floats(1.0, 100.0, 10.0).rank(3.3) == 1
    assert IntegerGrid(0, 100, 10).rank(44) == 4
    assert IntegerGrid(0, 100, 10).rank(-5) == 0
    assert IntegerGrid(0, 100, 10).rank(1000) == 10


@pytest.mark.parametrize("value", [0.30000000000000004, 0.1 * 3, 1 - 0.7])
def test_rounding_errors_still_mean_the_point(value: float) -> None:
    assert AdditiveGrid(0.0, 1.0, 0.1).find(value) == 0.3


def test_values_off_the_grid_are_not_found() -> None:
    assert AdditiveGrid(0.0, 1.0, 0.1).find(0.35) is None
    assert AdditiveGrid(0.0, 1.0, 0.1).find(0.3001) is None
    assert AdditiveGrid(1e12, 1e12 + 1, 0.25).find(1e12 + 0.1) is None
    assert MultiplicativeGrid.of_floats(1.0, 100.0, 10.0).find(10.1) is None


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e3), st.integers(0, 10**6))
def test_every_point_of_an_additive_grid_is_found(least: float, step: float, rank: int) -> None:
    grid = AdditiveGrid(least, least + step * 10**6, step)
    rank = min(rank, grid.size - 1)
    assert grid.rank(grid.at(rank)) == rank
    assert grid.find(grid.at(rank)) == grid.at(rank)


@given(st.floats(1e-9, 1e9), st.floats(1.001, 100.0), st.integers(1, 50))
def test_every_point_of_a_multiplicative_grid_is_found(least: float, factor: float, count: int) -> None:
    grid = MultiplicativeGrid.of_floats(least, min(least * factor**count, 1e200), factor)
    assert [grid.rank(point) for point in points(grid)] == list(range(grid.size))
    assert points(grid) == sorted(set(points(grid)))
