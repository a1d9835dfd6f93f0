"""Conditions on the columns of lists, as text."""

from __future__ import annotations

import pytest

from service.core.errors import InvalidInput
from service.tenancy.conditions import _condition, _parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = b", ("a", "=", "b")),
        ("a=b", ("a", "=", "b")),
        ("  a  !=  b c  ", ("a", "!=", "b c")),
        ("a <= 5", ("a", "<=", "5")),
        ("a>=5", ("a", ">=", "5")),
        ("a ~ = b", ("a", "~", "= b")),
        # A name may contain an operator if spaces surround the one of the condition.
        ("a=b > 5", ("a=b", ">", "5")),
        ("a<b>c = 5", ("a<b>c", "=", "5")),
        ("a = ", ("a", "=", "")),
        ("a=", ("a", "=", "")),
        ("a\n=\nb", ("a", "=", "b")),
        ("= = b", ("=", "=", "b")),
        (" = b", ("", "=", "b")),
        ("a", ("", "", "")),
        ("", ("", "", "")),
    ],
)
def test_a_condition_has_a_column_an_operator_and_a_value(text: str, parts: tuple[str, str, str]) -> None:
    assert _parts(text.lstrip()) == parts


def test_a_long_text_is_read_in_one_pass() -> None:
    """With a pattern of the whole condition, this took longer than the life of the test."""
    for text in (" " * 200_000, "a " * 100_000, "!" * 200_000, "a = " + " " * 200_000):
        _parts(text)


@pytest.mark.parametrize("text", ["", "   ", "a", "= b", "! b", "a ! b", "a !b"])
def test_a_text_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="COLUMN OPERATOR VALUE"):
        _condition(text, lambda _: None, "a")
