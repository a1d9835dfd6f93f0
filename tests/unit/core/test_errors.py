import json
import math

import pytest

from service.core.errors import Conflict, InvalidInput, NotFound, TrimtabError


def test_every_kind_has_the_one_root() -> None:
    error = Conflict("trial_already_finished", "Trial 3 is COMPLETED.", retryable=True, trial=3)
    assert isinstance(error, TrimtabError)
    assert (error.code, error.message, error.retryable, error.data) == (
        "trial_already_finished",
        "Trial 3 is COMPLETED.",
        True,
        {"trial": 3},
    )
    assert str(error) == error.message
    assert not NotFound("study_not_found", "No such study.").retryable


def test_invalid_input_names_the_field_the_value_and_the_allowed_values() -> None:
    error = InvalidInput("space[0].min", 5, "at most 3")
    assert error.code == "invalid_argument"
    assert error.message == "space[0].min: 5 is not allowed. Use at most 3."
    assert error.data == {"field": "space[0].min", "value": 5, "allowed": "at most 3"}
    assert InvalidInput("x", "a", "b").message == "x: 'a' is not allowed. Use b."
    assert InvalidInput("x", None, "b").message == "x: a value is missing. Use b."
    assert InvalidInput("x", 1, "b", code="special").code == "special"


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        pytest.param(10**5000, id="digits"),
        "x" * 10_000,
        [1, "2"],
        {"a": object()},
        object(),
        b"\xff",
    ],
)
def test_any_value_makes_short_plain_json(value: object) -> None:
    error = InvalidInput("x", value, "something else")
    assert len(json.dumps(error.data, allow_nan=False)) < 1000
    assert len(error.message) < 1000
