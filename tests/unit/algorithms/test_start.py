import pytest

from service.algorithms.start import default_first, start_design
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    Scalar,
    Space,
)


def space(constraint: str = "n <= 8", **defaults: Scalar) -> Space:
    return Space.build(
        [
            IntParameter("n", 1, 8, default=defaults.get("n")),
            BoolParameter("huge", default=defaults.get("huge")),
            CategoricalParameter("mode", (1, True), condition=Condition("huge", (True,))),
        ],
        [constraint],
    )


def test_default_is_first_where_the_user_gave_one() -> None:
    assert default_first(space(n=3)) == {"n": 3, "huge": False}
    assert default_first(space(huge=True)) == {"n": 4, "huge": True, "mode": 1}


def test_derived_default_means_nothing() -> None:
    assert default_first(space()) is None


def test_default_that_breaks_a_constraint_is_not_measured() -> None:
    assert default_first(space("n <= 2", n=3)) is None


@pytest.mark.parametrize(
    ("fixed", "first"),
    [
        ({}, True),
        ({"n": 3}, True),
        ({"n": 4}, False),
        ({"mode": 1}, True),
        ({"mode": True}, False),
        ({"huge": False}, False),
    ],
)
def test_default_with_other_values_than_the_fixed_is_not_first(fixed: dict[str, Scalar], first: bool) -> None:
    assert (default_first(space(n=3, huge=True), fixed) is not None) == first


def test_the_latin_hypercube_of_a_start_design_has_centred_cells() -> None:
    problem = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0)]), [Objective("seconds", "minimize")])
    found = sorted(float(one["x"]) for one in start_design("lhs", problem, 5, seed=3))
    assert found == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
