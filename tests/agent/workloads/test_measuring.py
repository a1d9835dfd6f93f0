"""Tests of the tools that the scripts measure.py share."""

import itertools
import re
import statistics

import pytest

from tests.agent.workloads.shared import WORKLOADS, module_of

measuring = module_of(WORKLOADS / "small-read-optimizer", "measure").measuring


def test_fixed_arrivals_have_equal_gaps_and_random_ones_those_of_a_poisson_process() -> None:
    assert list(itertools.islice(measuring.gaps("fixed", 5.2), 3)) == [5.2] * 3
    random = list(itertools.islice(measuring.gaps("random", 5.2, seed=1), 4000))
    assert statistics.fmean(random) == pytest.approx(5.2, rel=0.05)
    assert statistics.stdev(random) == pytest.approx(5.2, rel=0.05)
    assert random == list(itertools.islice(measuring.gaps("random", 5.2, seed=1), 4000))
    assert random != list(itertools.islice(measuring.gaps("random", 5.2, seed=2), 4000))


def test_the_interval_of_a_gain_pairs_the_rounds() -> None:
    slow = [1.0, 1.1, 0.9, 3.0, 1.0, 1.05, 0.95, 2.0]
    # in every round 20 % faster, however slow the round is
    assert measuring.gain(slow, [0.8 * one for one in slow]) == "20 % (20 to 20)"
    text = measuring.gain(slow, slow[::-1])
    found = re.fullmatch(r"(-?\d+) % \((-?\d+) to (-?\d+)\)", text)
    assert found is not None
    value, low, high = map(int, found.groups())
    assert low < value < high
