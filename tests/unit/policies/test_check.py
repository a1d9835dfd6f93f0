import math
from collections.abc import Callable, Sequence

import pytest

from service.core.errors import InvalidInput
from service.core.problem import Objective
from service.policies.check import CheckResult, FinalCheck, percent_text, slows
from service.policies.check_rounds import Turn
from tests.factories.checks import rounds_of

SECONDS = Objective("seconds", "minimize")


def result(check: FinalCheck, defaults: Sequence[float], bests: Sequence[float], objective: Objective) -> CheckResult:
    return check.result(rounds_of(defaults, bests), objective)


def measured(check: FinalCheck, values: Callable[[int, int], float], seed: int = 0) -> tuple[list[Turn], CheckResult]:
    """Return the turns and the result of a check whose runs have these values, by side and by number from 1."""
    found: tuple[list[float], list[float]] = ([], [])
    turns: list[Turn] = []
    while one := check.turns(rounds_of(*found), 2, seed, 1):
        turns += one
        found[one[0].side].append(values(one[0].side, len(turns)))
    return turns, result(check, *found, SECONDS)


def test_both_are_measured_in_rounds_until_the_interval_is_narrow() -> None:
    check = FinalCheck(width=0.05, max_trials=40)
    turns, found = measured(check, lambda side, number: (88.0 if side else 100.0) + number % 3)
    assert [turn.round for turn in turns] == [1 + place // 2 for place in range(len(turns))]
    assert 12 <= len(turns) < 40
    assert found.text == "faster by 11.9 % (95 %: 10.9 to 12.9)"
    assert (found.rounds, found.n) == (len(turns) // 2, len(turns))


def test_it_ends_with_its_budget_however_noisy() -> None:
    check = FinalCheck(width=0.001, max_trials=9)
    turns, _ = measured(check, lambda side, number: 3.0 ** (number % 4))
    assert len(turns) == 8, "only whole rounds"


def test_the_interval_of_an_early_look_is_the_one_that_is_reported() -> None:
    """A check ends where its interval is narrow by chance, so that a look has a higher level than it states."""
    values = [100.0 + place**1.5 / 9 for place in range(8)], [80.0 + place**1.2 / 9 for place in range(8)]
    early = result(FinalCheck(width=0.2, max_trials=20), *values, SECONDS)
    last = result(FinalCheck(width=0.2, max_trials=16), *values, SECONDS)
    assert early.low < last.low
    assert early.high > last.high
    assert "(95 %: " in early.text


def test_a_lucky_run_is_no_gain() -> None:
    verdict = result(FinalCheck(), [10.0, 11.0, 10.5, 10.2], [2.0, 11.0, 10.4, 10.6], SECONDS)
    assert verdict.text.startswith("no measurable gain (95 %: ")
    assert not verdict.proven
    assert verdict.n == 8


def test_worse_is_said_to_be_worse() -> None:
    verdict = result(FinalCheck(), [10.0, 10.1, 10.2, 10.3], [12.0, 12.1, 12.2, 12.3], SECONDS)
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
    text = result(FinalCheck(), defaults, bests, objective).text
    assert text.startswith(f"{word} by {'24.5' if sign < 0 else '19.7'} %")


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


def test_too_few_values_are_no_verdict_but_are_shown() -> None:
    found = result(FinalCheck(), [1.0, 3.0, 2.0], [0.5, 0.7], SECONDS)
    assert found.text == ("no measurable gain: 2 of the 10 rounds of the final check were complete: 4 are needed")
    assert (found.known, found.default, found.value, found.runs, found.default_runs) == (False, 2.0, 0.6, 2, 3)
    assert "nothing was compared" in result(FinalCheck(), [], [], SECONDS).text


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
    assert result(check, *values, Objective("joules_per_s", "minimize", "J")).text.startswith("lower by")
    assert result(check, *values, Objective("p99/latency", "minimize")).text.startswith("faster by")
    assert result(check, *values, Objective("seconds", "minimize", "W")).text.startswith("lower by")


def test_a_gain_that_no_number_can_hold_stays_finite() -> None:
    """Users report such values as a penalty, for instance, and JSON has no infinity."""
    for low, high in ((-1e-300, -1e300), (1e-300, 1e300), (-1e300, 1e300)):
        found = result(FinalCheck(), [low] * 4, [high] * 4, SECONDS)
        assert all(map(math.isfinite, (found.gain, found.low, found.high)))


def test_small_numbers_keep_a_digit() -> None:
    values = [100.0, 100.1, 100.2, 100.3], [100.0, 100.1, 100.2, 100.3]
    assert result(FinalCheck(), *values, SECONDS).text == "no measurable gain (95 %: -0.3 to 0.3)"


def test_a_level_that_so_few_trials_cannot_reach_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        FinalCheck.parse({"level": 0.999, "max_trials": 12}, "final_check")
    assert caught.value.data["field"] == "final_check.max_trials"
    least = int(str(caught.value.data["allowed"]).split()[0])
    check = FinalCheck.parse({"level": 0.999, "max_trials": least}, "final_check")
    half = least // 2
    values = [2.0 + i / 99 for i in range(half)], [1.0 + i / 99 for i in range(half)]
    assert result(check, *values, SECONDS).proven


def test_a_drift_of_the_system_is_no_gain() -> None:
    """Everything gets slower by 1 % from trial to trial."""
    for seed in range(10):
        _, found = measured(FinalCheck(width=0.001), lambda _, number: 1.01**number, seed)
        assert abs(found.gain) < 0.011
        assert not found.proven


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (Objective("run", "minimize", "ms"), True),
        (Objective("latency", "minimize"), True),
        (Objective("io", "maximize", "MB/s"), True),
        (Objective("requests", "maximize", "ops per second"), True),
        (Objective("throughput", "maximize"), True),
        (Objective("qps", "maximize"), True),
        (Objective("cache_hit_rate", "maximize"), False),
        (Objective("throughput", "maximize", "%"), False),
        (Objective("errors", "minimize", "1/s"), False),
        (Objective("memory", "minimize", "MB"), False),
        (Objective("uptime", "maximize", "s"), False),
    ],
)
def test_waiting_slows_times_and_rates(objective: Objective, expected: bool) -> None:
    assert slows(objective) is expected
