import math
from collections.abc import Sequence

import pytest

from service.core.errors import InvalidInput
from service.core.problem import Objective
from service.policies.check import FinalCheck, Side, percent_text

SECONDS = Objective("seconds", "minimize")


def turn(check: FinalCheck, defaults: Sequence[float], bests: Sequence[float]) -> int | None:
    """Return the side to measure next: 0 for the default, 1 for the best; None if the check is over."""
    sides = [Side([(value,) for value in values]) for values in (defaults, bests)]
    return next(iter(check.turns(sides, 1)), None)


def test_both_are_measured_in_turns_until_the_interval_is_narrow() -> None:
    check = FinalCheck(width=0.05, max_trials=40)
    values: tuple[list[float], list[float]] = ([], [])
    order = []
    while (side := turn(check, *values)) is not None:
        order.append(side)
        values[side].append((88.0 if side else 100.0) + len(order) % 3)
    assert order == [(0, 1, 1, 0)[place % 4] for place in range(len(order))]
    assert 8 <= len(order) < 40
    assert check.result(*values, SECONDS).text == "faster by 12.8 % (95 %: 10.9 to 13.7)"


def test_it_ends_with_its_budget_however_noisy() -> None:
    check = FinalCheck(width=0.001, max_trials=8)
    assert turn(check, [1.0, 9.0, 3.0, 30.0], [1.0, 9.0, 3.0]) == 1
    assert turn(check, [1.0, 9.0, 3.0, 30.0], [1.0, 9.0, 3.0, 2.0]) is None


def test_trials_that_are_asked_for_together_alternate_as_well() -> None:
    """Several agents measure at once; a drift would favour the side that always begins."""
    assert FinalCheck().turns([Side([]), Side([])], 8) == [0, 1, 1, 0, 0, 1, 1, 0]
    assert FinalCheck().turns([Side([], waiting=1), Side([], waiting=1)], 4) == [1, 0, 0, 1]


def test_a_lucky_run_is_no_gain() -> None:
    verdict = FinalCheck().result([10.0, 11.0, 10.5, 10.2], [2.0, 11.0, 10.4, 10.6], SECONDS)
    assert verdict.text.startswith("no measurable gain (95 %: ")
    assert not verdict.proven
    assert verdict.n == 8


def test_worse_is_said_to_be_worse() -> None:
    verdict = FinalCheck().result([10.0, 10.1, 10.2, 10.3], [12.0, 12.1, 12.2, 12.3], SECONDS)
    assert verdict.text.startswith("the default is better")
    assert verdict.high < 0


@pytest.mark.parametrize(
    ("objective", "sign", "word"),
    [
        (SECONDS, 1, "faster"),
        (Objective("run", "minimize", "ms"), 1, "faster"),
        (Objective("joules", "minimize"), 1, "lower"),
        (Objective("throughput", "maximize"), -1, "higher"),
    ],
)
def test_the_words_suit_the_metric(objective: Objective, sign: int, word: str) -> None:
    low, high = [sign * value for value in (80.0, 81.0, 82.0, 83.0)], [sign * value for value in (100.0, 101, 102, 103)]
    defaults, bests = (high, low) if sign > 0 else (low, high)
    assert (
        FinalCheck().result(defaults, bests, objective).text.startswith(f"{word} by {'24.5' if sign < 0 else '19.7'} %")
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.1234, "12.3"),
        (0.01234, "1.2"),
        (2.5, "250"),
        (-0.05, "-5.0"),
        (-0.000001, "0.0"),
        (0.9994, "99.9"),
        (0.99984, "99.98"),
        (1 - 1e-12, "99.9999"),
        (1.0, "100"),
    ],
)
def test_percents_are_written_as_in_the_console(share: float, text: str) -> None:
    """The cases are those of `formatGain` in web/src/lib/format.test.ts."""
    assert percent_text(share) == text


def test_too_few_values_are_no_verdict() -> None:
    assert "too few" in FinalCheck().result([1.0], [], SECONDS).text


def test_parsing() -> None:
    assert FinalCheck.parse({"width": 0.1}, "final_check") == FinalCheck(width=0.1)
    assert FinalCheck.parse(FinalCheck(0.2, 30, 0.9).to_json(), "final_check") == FinalCheck(0.2, 30, 0.9)
    assert FinalCheck.parse(FinalCheck(effects=0).to_json(), "final_check").effects == 0
    for data, field in (
        (3, "final_check"),
        ({"effects": 15}, "final_check.effects"),
        ({"width": 0}, "final_check.width"),
        ({"n": 1}, "final_check.n"),
    ):
        with pytest.raises(InvalidInput) as caught:
            FinalCheck.parse(data, "final_check")
        assert caught.value.data["field"] == field


def test_a_unit_says_whether_it_is_a_time() -> None:
    check = FinalCheck()
    values = [10.0, 10.1, 10.2, 10.3], [8.0, 8.1, 8.2, 8.3]
    assert check.result(*values, Objective("joules_per_s", "minimize", "J")).text.startswith("lower by")
    assert check.result(*values, Objective("p99/latency", "minimize")).text.startswith("faster by")
    assert check.result(*values, Objective("seconds", "minimize", "W")).text.startswith("lower by")


def test_a_gain_that_no_number_can_hold_stays_finite() -> None:
    """Users report such values as a penalty, for instance, and JSON has no infinity."""
    for low, high in ((-1e-300, -1e300), (1e-300, 1e300), (-1e300, 1e300)):
        found = FinalCheck().result([low] * 4, [high] * 4, SECONDS)
        assert all(map(math.isfinite, (found.gain, found.low, found.high)))


def test_small_numbers_keep_a_digit() -> None:
    values = [100.0, 100.1, 100.2, 100.3], [100.0, 100.1, 100.2, 100.3]
    assert FinalCheck().result(*values, SECONDS).text == "no measurable gain (95 %: -0.3 to 0.3)"


def test_a_level_that_so_few_trials_cannot_reach_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        FinalCheck.parse({"level": 0.999, "max_trials": 12}, "final_check")
    assert caught.value.data["field"] == "final_check.max_trials"
    least = int(str(caught.value.data["allowed"]).split()[0])
    check = FinalCheck.parse({"level": 0.999, "max_trials": least}, "final_check")
    half = least // 2
    assert check.result([2.0 + i / 99 for i in range(half)], [1.0 + i / 99 for i in range(half)], SECONDS).proven


def test_a_drift_of_the_system_is_no_gain() -> None:
    """Everything gets slower by 1 % from trial to trial."""
    check, clock = FinalCheck(width=0.001, max_trials=20), 100.0
    values: tuple[list[float], list[float]] = ([], [])
    while (side := turn(check, *values)) is not None:
        values[side].append(clock)
        clock *= 1.01
    verdict = check.result(*values, SECONDS)
    assert abs(verdict.gain) < 0.006
    assert not verdict.proven
