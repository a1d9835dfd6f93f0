"""Tests of values with their units."""

import pytest

import trimtab
from trimtab.cli.quantities import quantity


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.060805, "60.81 ms"),  # a tie; the console rounds it up as well
        (0.060815, "60.82 ms"),
        (-0.060805, "-60.81 ms"),
        (0.0608, "60.8 ms"),
        (0.0, "0 s"),
        (1.0, "1 s"),
        (123456.0, "123456 s"),
        (1.2345e-5, "12.35 µs"),
        (1e300, "1e+300 s"),
        (float("inf"), "inf s"),
    ],
)
def test_a_value_has_the_digits_of_the_console(value: float, shown: str) -> None:
    assert quantity(value, trimtab.Minimize("seconds")) == shown
