"""Weights are checked and normalised."""

import math
from dataclasses import astuple

import pytest

from service.core.errors import InvalidInput
from service.matching.linkage.score import FIELDS, Weights


def test_the_default_weights_add_up_to_1_with_a_sixth_for_each_field_of_the_job() -> None:
    weights = Weights()
    assert math.fsum(astuple(weights)) == pytest.approx(1)
    assert weights.second + weights.minute + weights.hour + weights.weekday == pytest.approx(1 / 6)
    assert (weights.day, weights.night) == (0, 0)


def test_weights_are_divided_by_their_sum() -> None:
    assert Weights(*range(12)).normal() == Weights(*(value / 66 for value in range(12)))


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_a_weight_that_is_no_weight_is_refused_by_its_name(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"weights\.path"):
        Weights(path=value)


def test_weights_that_are_all_0_are_refused() -> None:
    with pytest.raises(InvalidInput, match="sum of all weights"):
        Weights(*[0.0] * len(FIELDS))
