"""Levels of metrics in a live study: sums of ratios to the incumbents of their times."""

from __future__ import annotations

import math

import pytest

from service.core.live import LiveRecord, Ratio, base_level, incumbent, levels
from service.core.space import Configuration

A: Configuration = {"x": 1}
B: Configuration = {"x": 2}
C: Configuration = {"x": 3}


def test_the_ratios_of_kept_steps_are_added() -> None:
    records = [
        LiveRecord(B, A, {"ms": Ratio(-0.2, 0.03)}, kept=True),
        LiveRecord(C, B, {"ms": Ratio(0.1, 0.04)}),
    ]
    first, second = levels(records, "ms")
    assert (first.configuration, first.mean, first.deviation) == (B, -0.2, 0.03)
    assert second.mean == pytest.approx(-0.1)
    assert second.deviation == pytest.approx(0.05), "the deviations of both comparisons count"
    assert incumbent(records) == B
    assert base_level(records, "ms") == pytest.approx(-0.2)


def test_a_broken_guard_is_a_bound() -> None:
    limit = math.log(1.5)
    unknown = LiveRecord(B, A, {}, {"ms": limit}, broken="ms")
    below = LiveRecord(B, A, {"ms": Ratio(0.1, 0.02)}, {"ms": limit}, broken="ms")
    beyond = LiveRecord(B, A, {"ms": Ratio(0.9, 0.02)}, {"ms": limit}, broken="ms")
    assert [one.mean for one in levels([unknown, below, beyond], "ms")] == [limit, limit, 0.9]
    rate = LiveRecord(B, A, {"rate": Ratio(-0.1, 0.02)}, {"rate": -limit}, broken="rate")
    assert [one.mean for one in levels([rate], "rate")] == [-limit]


def test_a_metric_that_was_not_read_has_no_level() -> None:
    records = [LiveRecord(B, A, {"other": Ratio(-0.2, 0.03)}, kept=True)]
    assert levels(records, "ms") == []
    assert base_level(records, "ms") == 0.0
    assert incumbent([]) is None
