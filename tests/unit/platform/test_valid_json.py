from __future__ import annotations

import json
import logging
import math

import pytest

from service.platform import valid_json


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_number_that_is_not_finite_becomes_null_and_is_logged(value: float, caplog: pytest.LogCaptureFixture) -> None:
    text = valid_json.dumps({"a": [1.0, {"b": (value, "x")}], "c": value})
    assert json.loads(text) == {"a": [1.0, {"b": [None, "x"]}], "c": None}
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_other_content_is_written_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    content = {"a": [1, 1.5, True, None, "ü"], "b": {}}
    assert valid_json.dumps(content, ensure_ascii=False, separators=(",", ":")) == (
        '{"a":[1,1.5,true,null,"ü"],"b":{}}'
    )
    assert not caplog.records


def test_another_fault_is_an_error() -> None:
    content: list[object] = []
    content.append(content)
    with pytest.raises((ValueError, RecursionError)):
        valid_json.dumps(content)
