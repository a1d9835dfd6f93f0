"""The interval of the gain in the demonstration."""

import random

import pytest

from demo.gain import interval_ranks, measure_gain


@pytest.mark.parametrize(("count", "rank", "confidence"), [(6, 0, 0.96875), (9, 1, 0.9609375), (15, 3, 0.96484375)])
def test_ranks_agree_with_the_sign_test(count: int, rank: int, confidence: float) -> None:
    found, reached = interval_ranks(count, 0.95)
    assert found == rank
    assert reached == pytest.approx(confidence)


def test_few_pairs_have_a_lower_confidence() -> None:
    assert measure_gain([(2.0, 1.0), (2.0, 1.5), (2.0, 1.2)]).confidence == pytest.approx(0.75)


def test_a_clear_gain_is_measurable_and_noise_is_not() -> None:
    noise = random.Random(3)
    clear = measure_gain([(noise.gauss(1.0, 0.02), noise.gauss(0.8, 0.02)) for _ in range(11)])
    assert clear.measurable
    assert clear.low < 0.2 < clear.high
    none = measure_gain([(noise.gauss(1.0, 0.05), noise.gauss(1.0, 0.05)) for _ in range(11)])
    assert not none.measurable


def test_the_interval_covers_the_truth_at_its_level() -> None:
    noise = random.Random(5)
    covered = 0
    for _ in range(1000):
        pairs = [(noise.lognormvariate(0.0, 0.1), 0.9 * noise.lognormvariate(0.0, 0.1)) for _ in range(11)]
        gain = measure_gain(pairs)
        covered += gain.low <= 0.1 <= gain.high
    assert covered >= 935  # at least 95 % but for three standard deviations of the count


def test_no_pair_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one pair"):
        measure_gain([])
