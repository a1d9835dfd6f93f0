import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from service.core.encoding import FloatArray
from service.core.pareto import hypervolume, non_dominated

small_numbers = st.sampled_from([-1.0, 0.0, 1.0, 2.0, np.inf, np.nan])


def test_front_of_two_objectives() -> None:
    values = np.array([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [1.0, 5.0], [np.nan, 0.0]])
    assert non_dominated(values).tolist() == [True, True, True, False, False, False]


def test_copies_are_all_in_the_front() -> None:
    assert non_dominated(np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]])).tolist() == [True, True, False]


def test_empty() -> None:
    assert non_dominated(np.empty((0, 2))).tolist() == []


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=small_numbers))
def test_agrees_with_the_definition(values: FloatArray) -> None:
    for place, kept in enumerate(non_dominated(values)):
        point = values[place]
        dominated = any((other <= point).all() and (other < point).any() for other in values)
        assert kept == (not np.isnan(point).any() and not dominated)


def test_hypervolume_by_hand() -> None:
    two = np.array([1.0, 1.0])
    assert hypervolume(np.array([[0.0, 0.5], [0.5, 0.0]]), two) == pytest.approx(0.75)
    assert hypervolume(np.array([[0.0, 0.5], [0.0, 0.5], [0.9, 0.9]]), two) == pytest.approx(0.5)
    assert hypervolume(np.array([[1.0, 0.0], [2.0, -1.0]]), two) == 0
    assert hypervolume(np.empty((0, 2)), two) == 0
    # the box of one, the slab of another: 0.5 + 0.25 - 0.125
    three = np.array([[0.0, 0.0, 0.5], [0.5, 0.5, 0.0]])
    assert hypervolume(three, np.ones(3)) == pytest.approx(0.5 + 0.25 - 0.125)


def test_hypervolume_agrees_with_counting() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((12, 3))
    probes = rng.random((200_000, 3))
    dominated = np.zeros(len(probes), dtype=np.bool_)
    for point in points:
        dominated |= (point <= probes).all(axis=1)
    counted = float(dominated.mean())
    assert hypervolume(points, np.ones(3)) == pytest.approx(counted, abs=0.005)
