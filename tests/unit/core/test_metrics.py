"""The bound on values of metrics."""

from __future__ import annotations

import math
import sys

import pytest

from service.core import metrics
from service.core.errors import InvalidInput
from service.core.metrics import LARGEST, checked, limited
from trimtab._internal.messages.values import LARGEST_METRIC
from trimtab_agent.metrics.extract import LARGEST as LARGEST_OF_AGENTS


@pytest.mark.parametrize("value", [0, -0.0, 1, LARGEST, -LARGEST, 5e-324, 10**100])
def test_values_within_the_bound_are_taken_as_they_are(value: float) -> None:
    found = checked("metrics.seconds", value)
    assert (found, type(found)) == (float(value), float)


@pytest.mark.parametrize("value", [sys.float_info.max, -1.7e308, 1e155, math.nextafter(LARGEST, math.inf), 10**400])
def test_a_larger_value_is_refused_with_the_reason(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"metrics\.seconds: .* is too large for a measurement\. Use a number") as no:
        checked("metrics.seconds", value)
    assert (no.value.code, no.value.data["field"]) == ("metric_too_large", "metrics.seconds")
    assert "from -1e+100 to 1e+100" in no.value.message
    assert "infeasible" in no.value.message


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, True, "1", None])
def test_what_is_no_number_is_refused_too(value: object) -> None:
    with pytest.raises(InvalidInput) as no:
        checked("metrics.seconds", value)
    assert no.value.code == "invalid_argument"


def test_values_of_earlier_versions_are_limited() -> None:
    plain = {"seconds": 1.0, "rate": -LARGEST}
    assert limited(plain) is plain
    assert limited({"seconds": 1.7e308, "rate": -1e200, "more": 2.0}) == {
        "seconds": LARGEST, "rate": -LARGEST, "more": 2.0,
    }  # fmt: skip


def test_neither_squares_nor_sums_of_squares_overflow() -> None:
    assert math.isfinite(1e6 * metrics.LARGEST**2)


def test_all_parts_have_the_same_bound() -> None:
    assert LARGEST == LARGEST_METRIC == LARGEST_OF_AGENTS
