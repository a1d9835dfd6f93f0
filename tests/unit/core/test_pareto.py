import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from service.core.encoding import FloatArray
from service.core.pareto import non_dominated

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
