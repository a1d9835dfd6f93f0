from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.reasons import Reason
from service.core.trial import TrialRecord
from service.results.unchanged import FEWEST, unchanged
from service.studies.specs import parse
from tests.factories.domain import make_spec


def problem() -> Problem:
    return parse(make_spec()).problem


def measured(*values: float) -> list[list[TrialRecord]]:
    return [[TrialRecord(number, {}, TrialState.COMPLETED, {"seconds": value})] for number, value in enumerate(values)]


def test_equal_results_of_several_configurations_ask_whether_a_value_arrives() -> None:
    text = unchanged(problem(), measured(*[1.25] * 8))
    assert isinstance(text, Reason)
    assert "All 8 configurations gave the same result, seconds 1.25. Has no parameter reached the program?" in text
    assert text.data == {"code": "all_equal", "values": {"configurations": 8, "metrics": {"seconds": 1.25}}}


def test_few_configurations_repeats_and_any_difference_say_nothing() -> None:
    assert unchanged(problem(), measured(*[1.25] * (FEWEST - 1))) == ""
    assert unchanged(problem(), measured(*[1.25] * 8, 1.2500001)) == ""
    (one,) = measured(1.25)
    assert unchanged(problem(), [one * 8]) == ""
    assert unchanged(problem(), []) == ""
