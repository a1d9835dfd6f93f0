from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policies.ledger import Block, Pace, cost, left, may_start, worst


def test_a_block_costs_what_is_beyond_the_incumbents_share() -> None:
    incumbent = Block(bad=10, units=1000)
    assert cost([(Block(30, 1000), incumbent)]) == pytest.approx(20)
    assert cost([(Block(30, 2000), incumbent)]) == pytest.approx(10), "the load of both blocks may differ"
    assert cost([(Block(0, 1000), incumbent), (Block(30, 1000), incumbent)]) == pytest.approx(20), (
        "gains give no credit"
    )
    assert cost([(Block(5, 10), Block(0, 0))]) == 5, "without a unit of the incumbent, all bad ones count"


def test_a_day_of_the_specification() -> None:
    """200 requests a second, 1 % a day: 172,800 slow requests, which survive 72 total failures of 12 s each."""
    pace = Pace(rate=200, notice=10, revert=1, switch=0.5)
    assert worst(pace) == 2400
    whole = left(0.01, 200 * 86_400)
    assert whole == pytest.approx(172_800)
    assert may_start(whole - 71 * 2400, pace)
    assert not may_start(whole - 71 * 2400 - 1, pace)


def test_the_larger_count_is_believed() -> None:
    assert left(0.01, 1000, 3, 7) == 3
    assert left(0.01, 1000) == 10


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 1e6)),
        max_size=20,
    )
)
def test_costs_are_never_negative_and_only_grow(parts: list[tuple[float, float, float, float]]) -> None:
    pairs = [(Block(a * n, n), Block(b * m, m)) for a, b, n, m in parts]
    so_far = [cost(pairs[:count]) for count in range(len(pairs) + 1)]
    assert so_far[0] == 0
    assert so_far == sorted(so_far)
