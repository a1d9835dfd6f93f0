from dataclasses import replace
from typing import Any

import pytest

from service.core.problem import Objective, Problem
from service.core.space import IntParameter, Space
from service.policies.check import CheckResult
from service.tuner.recommendation import Recommendation
from service.tuner.verdict import Compared, Finding, Level, after_check, conclude, why_unrepeated

SPACE = Space.build([IntParameter("n", 1, 100, default=1)])
SECONDS = Problem.build(SPACE, [Objective("seconds", "minimize", "s")])
EXACT = Problem.build(SPACE, [Objective("seconds", "minimize", "s")], noisy=False)
RATE = Problem.build(SPACE, [Objective("rate", "maximize")])


def recommended(gain: float | None, low: float | None, high: float | None, n: int = 2) -> Recommendation:
    default = None if gain is None else 10.0
    return Recommendation({"n": n}, 8.0, 7.0, 9.0, default, gain, low, high)


@pytest.mark.parametrize(
    ("problem", "found", "level", "code", "text"),
    [
        (
            SECONDS,
            recommended(None, None, None),
            Level.UNKNOWN,
            "default_unmeasured",
            "not yet known: the default was not measured",
        ),
        (
            SECONDS,
            recommended(0.2, None, None),
            Level.UNKNOWN,
            "unrepeated",
            "not yet known: too few measurements were repeated",
        ),
        (
            SECONDS,
            recommended(0.0, None, None, n=1),
            Level.NO_GAIN,
            "default_best",
            "no measurable gain: the default is the best so far",
        ),
        (SECONDS, recommended(0.2, -0.01, 0.3), Level.NO_GAIN, "not_better", "no measurable gain (95 %: -1.0 to 30.0)"),
        (
            SECONDS,
            recommended(0.2, 0.1, 0.3),
            Level.PROVISIONAL,
            "better",
            "provisional: faster by 20.0 % (95 %: 10.0 to 30.0)",
        ),
        (EXACT, recommended(0.2, 0.2, 0.2), Level.PROVEN, "better", "faster by 20.0 %"),
    ],
)
def test_the_interval_of_the_search_decides_without_a_final_check(
    problem: Problem, found: Recommendation, level: Level, code: str, text: str
) -> None:
    runs = 0 if found.default is None else 1
    verdict = conclude(problem, found, None, 3, runs)
    assert verdict.level is level
    assert verdict.text.startswith(text)
    assert verdict.code == code
    assert (verdict.gain, verdict.low, verdict.high) == (found.gain, found.gain_low, found.gain_high)
    assert (verdict.value, verdict.default, verdict.runs, verdict.trials) == (8.0, found.default, 3, 0)


@pytest.mark.parametrize(("low", "level"), [(0.1, Level.PROVEN), (0.0, Level.NO_GAIN), (-0.1, Level.NO_GAIN)])
def test_a_check_that_excludes_no_gain_proves_it(low: float, level: Level) -> None:
    checked = CheckResult("the text", 0.2, low, 0.3, 12, 10.0)
    found = after_check(SECONDS, {"n": 2}, checked)
    assert found is not None
    verdict = conclude(SECONDS, found, checked, 9, 7)
    assert (verdict.level, verdict.text, verdict.trials) == (level, "the text", 12)
    if level is Level.PROVEN:
        assert (verdict.code, verdict.configuration, verdict.compared) == (Finding.BETTER, {"n": 2}, None)
        assert (verdict.gain, verdict.low, verdict.high, verdict.runs) == (0.2, low, 0.3, 9)
        return
    # The default is recommended, and the configuration found is what it was compared with.
    assert (verdict.code, verdict.configuration) == (Finding.NOT_BETTER, {"n": 1})
    assert (verdict.value, verdict.default, verdict.runs, verdict.default_runs) == (10.0, 10.0, 7, 7)
    assert (verdict.gain, verdict.low, verdict.high) == (0.0, None, None)
    assert verdict.compared == Compared({"n": 2}, 8.0, 9, 0.2, low, 0.3)


def test_a_gain_that_breaks_an_outcome_constraint_is_not_proven() -> None:
    checked = CheckResult("the text", 0.2, 0.1, 0.3, 12, 10.0, acceptable=False)
    found = after_check(SECONDS, {"n": 2}, checked)
    assert found is not None
    verdict = conclude(SECONDS, found, checked, 9, 7)
    assert (verdict.level, verdict.code, verdict.gain) == (Level.NO_GAIN, Finding.BREAKS_CONSTRAINT, 0.0)
    assert (verdict.configuration, verdict.compared and verdict.compared.gain) == ({"n": 1}, 0.2)
    assert CheckResult.from_json(checked.to_json()) == checked


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"low": -0.4, "gain": -0.3, "high": -0.2}, Finding.WORSE),
        ({"failing": True}, Finding.FAILS),
        ({"known": False, "gain": 0.0, "low": 0.0, "high": 0.0, "value": 7.0}, Finding.CHECK_FAILED),
        ({"known": False, "gain": 0.0, "low": 0.0, "high": 0.0, "value": 7.0, "failing": True}, Finding.FAILS),
    ],
)
def test_whatever_is_not_shown_to_be_better_is_not_recommended(change: dict[str, Any], code: Finding) -> None:
    checked = replace(CheckResult("the text", 0.2, 0.1, 0.3, 12, 10.0), **change)
    found = after_check(SECONDS, {"n": 2}, checked)
    assert found is not None
    verdict = conclude(SECONDS, found, checked, 9, 7)
    assert (verdict.level, verdict.code, verdict.text) == (Level.NO_GAIN, code, "the text")
    assert (verdict.configuration, verdict.value, verdict.gain) == ({"n": 1}, 10.0, 0.0)
    assert verdict.compared is not None
    expected = (checked.gain, checked.low, checked.high) if checked.known else (None, None, None)
    assert (verdict.compared.gain, verdict.compared.low, verdict.compared.high) == expected
    if not checked.known:
        assert verdict.compared.value == 7.0, "the median of its runs, and not the default's value"


def test_a_gain_that_other_processes_may_have_caused_is_provisional() -> None:
    checked = CheckResult(
        "the text", 0.2, 0.1, 0.3, 12, 10.0, rounds=6, disturbed=5, doubtful=9, share=0.5, certain=False
    )
    found = after_check(SECONDS, {"n": 2}, checked)
    assert found is not None
    verdict = conclude(SECONDS, found, checked, 9, 7)
    assert (verdict.level, verdict.code, verdict.configuration) == (Level.PROVISIONAL, Finding.DISTURBED, {"n": 2})
    assert (verdict.gain, verdict.low, verdict.high) == (0.2, 0.1, 0.3)
    assert (verdict.rounds, verdict.disturbed_rounds, verdict.doubtful) == (6, 5, 9)
    [condition] = verdict.conditions
    assert condition == "5 of 6 rounds were disturbed: other processes took 50 % of the CPUs"
    assert condition.data == {"code": "load", "values": {"share": 0.5, "rounds": 6, "disturbed": 5}}
    proven = conclude(SECONDS, found, replace(checked, certain=True), 9, 7)
    assert (proven.level, proven.code, proven.conditions) == (Level.PROVEN, Finding.BETTER, (condition,))


def test_the_numbers_of_runs_are_those_of_the_check_as_the_values_are() -> None:
    checked = CheckResult("faster", 0.2, 0.1, 0.3, 8, 10.0, value=8.0, runs=4, default_runs=3)
    found = conclude(SECONDS, recommended(0.2, 0.1, 0.3), checked, 11, 9)
    assert (found.runs, found.default_runs) == (4, 3)
    worse = conclude(SECONDS, recommended(-0.2, -0.3, -0.1), replace(checked, low=-0.3, high=-0.1), 11, 9)
    assert worse.runs == worse.default_runs == 3
    assert worse.compared is not None
    assert worse.compared.runs == 4
    earlier = conclude(SECONDS, recommended(0.2, 0.1, 0.3), CheckResult("faster", 0.2, 0.1, 0.3, 8, 10.0), 11, 9)
    assert (earlier.runs, earlier.default_runs) == (11, 9)


def test_without_any_value_of_the_default_the_configuration_found_stays() -> None:
    checked = CheckResult("the default failed", 0.0, 0.0, 0.0, 8, None, known=False, value=7.0)
    assert after_check(SECONDS, {"n": 2}, checked) is None
    verdict = conclude(SECONDS, recommended(None, None, None), checked, 4, 0)
    assert (verdict.code, verdict.configuration, verdict.compared) == (Finding.CHECK_FAILED, {"n": 2}, None)


@pytest.mark.parametrize(("problem", "value", "low", "high"), [(SECONDS, 8.0, 7.0, 9.0), (RATE, 12.0, 11.0, 13.0)])
def test_the_numbers_after_a_check_agree_with_its_gain(problem: Problem, value: float, low: float, high: float) -> None:
    found = after_check(problem, {"n": 2}, CheckResult("", 0.2, 0.1, 0.3, 12, 10.0))
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high))
    assert (found.default, found.gain) == (10.0, 0.2)


def test_a_check_without_the_defaults_value_gives_no_recommendation() -> None:
    assert after_check(SECONDS, {"n": 2}, CheckResult("", 0.2, 0.1, 0.3, 12)) is None


@pytest.mark.parametrize(
    ("resampling", "limited", "over", "spent", "why"),
    [
        ("none", True, True, True, "because the study repeats no measurement"),
        ("closing", False, False, False, "because repeats come last and the study has no budget"),
        ("closing", True, False, False, "measured once so far"),
        ("adaptive", False, True, False, "because the search ended before a repeat"),
        ("adaptive", True, True, True, "because the budget is used up"),
    ],
)
def test_a_single_measurement_says_why_it_was_not_repeated(
    resampling: str, limited: bool, over: bool, spent: bool, why: str
) -> None:
    reason = why_unrepeated(resampling, limited=limited, over=over, spent=spent)
    found = recommended(0.2, 0.1, 0.3)
    assert why in conclude(SECONDS, found, None, 1, 1, reason).text
    assert "measured once" in conclude(SECONDS, recommended(0.2, None, None), None, 1, 1, reason).text
    assert "once" not in conclude(SECONDS, found, None, 2, 1, reason).text, "it was repeated"
    assert "once" not in conclude(EXACT, found, None, 1, 1, reason).text, "there is no noise"
