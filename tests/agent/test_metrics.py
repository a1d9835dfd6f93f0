"""Numbers out of output."""

import os
from pathlib import Path
from typing import Any

import pytest

from trimtab_agent.metrics import extract


def regex(pattern: str, take: str = "last") -> dict[str, Any]:
    return {"pattern": pattern, "take": take, "source": "stdout"}


@pytest.mark.parametrize(
    ("take", "expected"),
    [("last", 3.5), ("first", 1.0), ("min", -2e3), ("max", 3.5), ("sum", -1995.5), ("mean", -1995.5 / 3)],
)
def test_a_regular_expression_takes_the_requested_match(take: str, expected: float) -> None:
    assert extract.by_regex("t=1\nt=-2e3\nt=3.5\n", regex(r"^t=(\S+)$", take)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [("16.0ms", "", 0.016), ("16.0ms", "ms", 16), ("1,234.5", "", 1234.5), ("12MiB", "KiB", 12288), ("3m", "s", 180)],
)
def test_a_number_may_have_a_unit(text: str, unit: str, expected: float) -> None:
    assert extract.by_regex(f"t={text}, n=1", {**regex(r"t=(\S+)"), "unit": unit}) == pytest.approx(expected)


def test_a_unit_that_does_not_fit_is_named() -> None:
    with pytest.raises(extract.NoValueError, match="has the unit ms, which is not one of MiB"):
        extract.by_regex("t=16.0ms", {**regex(r"t=(\S+)"), "unit": "MiB"})


def test_regex_prefers_the_group_named_value() -> None:
    assert extract.by_regex("a1 b2", regex(r"a(\d) b(?P<value>\d)")) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing in stdout matches"),
        ("t=fast", "'fast' is not a number"),
        ("t=nan", "not a finite"),
        ("t=inf", "not a finite"),
    ],
)
def test_regex_without_a_number(text: str, words: str) -> None:
    with pytest.raises(extract.NoValueError, match=words):
        extract.by_regex(text, regex(r"t=(\S+)"))


def test_only_the_match_that_is_taken_must_be_a_number() -> None:
    text = "rate: warming up\nrate: 12.5k\nrate: -\nrate: 13\n"
    assert extract.by_regex(text, regex(r"rate: (.+)")) == 13
    with pytest.raises(extract.NoValueError, match="'warming up' is not a number"):
        extract.by_regex(text, {**regex(r"rate: (.+)"), "take": "first"})
    with pytest.raises(extract.NoValueError, match="'warming up' is not a number"):
        extract.by_regex(text, {**regex(r"rate: (.+)"), "take": "max"})


def json_metric(path: str) -> dict[str, Any]:
    return {"path": path, "source": "stdout"}


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ('{"a": {"b": [1, 2.5]}}', "a.b.1", 2.5),
        ('noise\n{"a": 7}\n\n', "a", 7),
        ('begin\n{\n  "a": {"b": 7}\n}\nend\n', "a.b", 7),
        ('result: {"a": 7} in 3 s\n', "a", 7),
        ('{"a": 1}\n{"a": 2}\n{"other": 3}\n', "a", 2),
        ('{"level": "info"}\n{"a": 5}\n[done]\n', "a", 5),
        ('{"a": "16.0 ms"}', "a", 0.016),
        ("3.25", "", 3.25),
        ('{"a": "1e3"}', "a", 1000),
        ("[12:00:01] {worker 3} tick\n" * 50_000 + '{\n  "a": 8\n}\nbye\n', "a", 8),
        ('{"percentile": {"99.000000": 7, "99": 1}}', "percentile.99.000000", 7),
        ('{"jobs": [{"iops.mean": {"read": 5}}]}', "jobs.0.iops.mean.read", 5),
        ('INFO {"a": 1} {broken {"a": 2}\n', "a", 2),
    ],
)
def test_json(text: str, path: str, expected: float) -> None:
    assert extract.by_json(text, json_metric(path)) == expected


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("", "a", "stdout has no JSON document"),
        ("none", "a", "stdout has no JSON document"),
        ("{unclosed", "a", "stdout has no JSON document"),
        ('{"b": 1}\nlog\n{"c": 1}', "a", "'a' is missing"),
        ('{"a": 1}', "b", "'b' is missing"),
        ('{"a": [1]}', "a.4", "'4' is missing"),
        ('{"a": 1}', "a.b", "'b' is missing"),
        ('{"a": true}', "a", "True is not a number"),
        ('{"a": null}', "a", "null is not a number"),
        ("{'a': 1.5}", "a", r"Print json\.dumps\(\.\.\.\) of it"),
        ('{"a": NaN}', "a", "not a finite"),
        ('{"a": 1' + "0" * 400 + "}", "a", "too large"),
        ("[" * 20_000, "a", "stdout has no JSON document"),
        ("[1, " * 200_000, "a", "stdout has no JSON document"),
        ('{"a": ' * 500_000, "a", "stdout has no JSON document"),
    ],
)
def test_json_without_a_number(text: str, path: str, words: str) -> None:
    with pytest.raises(extract.NoValueError, match=words):
        extract.by_json(text, json_metric(path))


@pytest.mark.parametrize(("how", "expected"), [("median", 2.0), ("min", 1.0), ("max", 9.0), ("mean", 4.0)])
def test_aggregate(how: str, expected: float) -> None:
    assert extract.aggregate([9.0, 1.0, 2.0], how) == expected


def test_median_of_an_even_number() -> None:
    assert extract.aggregate([4.0, 1.0, 2.0, 9.0], "median") == 3.0


def test_a_source_that_is_not_a_regular_file_has_no_value(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.json")
    with pytest.raises(extract.NoValueError, match="not a regular file"):
        extract.read_source({"source": "out.json"}, {}, str(tmp_path))
