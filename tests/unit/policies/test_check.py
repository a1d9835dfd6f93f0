import pytest

from service.core.errors import InvalidInput
from service.core.problem import Objective
from service.policies.check import FinalCheck

SECONDS = Objective("seconds", "minimize")


def test_both_are_measured_in_turns_until_the_interval_is_narrow() -> None:
    check = FinalCheck(width=0.05, max_trials=40)
    values: dict[str, list[float]] = {"default": [], "best": []}
    order = []
    while (side := check.next(values["default"], values["best"])) is not None:
        order.append(side)
        values[side].append((100.0 if side == "default" else 88.0) + len(order) % 3)
    assert order == ["default", "best"] * (len(order) // 2)
    assert 8 <= len(order) < 40
    assert check.verdict(values["default"], values["best"], SECONDS).text.startswith("faster by 12 % (95 %: 1")


def test_it_ends_with_its_budget_however_noisy() -> None:
    check = FinalCheck(width=0.001, max_trials=8)
    assert check.next([1.0, 9.0, 3.0, 30.0], [1.0, 9.0, 3.0]) == "best"
    assert check.next([1.0, 9.0, 3.0, 30.0], [1.0, 9.0, 3.0, 2.0]) is None


def test_a_lucky_run_is_no_gain() -> None:
    verdict = FinalCheck().verdict([10.0, 11.0, 10.5, 10.2], [2.0, 11.0, 10.4, 10.6], SECONDS)
    assert verdict.text.startswith("no measurable gain (95 %: ")
    assert not verdict.proven
    assert verdict.n == 8


def test_worse_is_said_to_be_worse() -> None:
    verdict = FinalCheck().verdict([10.0, 10.1, 10.2, 10.3], [12.0, 12.1, 12.2, 12.3], SECONDS)
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
    assert FinalCheck().verdict(defaults, bests, objective).text.startswith(f"{word} by 2")


def test_too_few_values_are_no_verdict() -> None:
    assert "too few" in FinalCheck().verdict([1.0], [], SECONDS).text


def test_parsing() -> None:
    assert FinalCheck.parse({"width": 0.1}, "final_check") == FinalCheck(width=0.1)
    assert FinalCheck.parse(FinalCheck(0.2, 30, 0.9).to_json(), "final_check") == FinalCheck(0.2, 30, 0.9)
    for data, field in ((3, "final_check"), ({"width": 0}, "final_check.width"), ({"n": 1}, "final_check.n")):
        with pytest.raises(InvalidInput) as caught:
            FinalCheck.parse(data, "final_check")
        assert caught.value.data["field"] == field
