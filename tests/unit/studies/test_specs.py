"""The description and the job in the spec of a study."""

from datetime import UTC, datetime
from typing import Any

import pytest

from service.core.errors import InvalidInput
from service.studies.models import Study
from service.studies.specs import StartedFrom, parse, spec_of

SPEC: dict[str, Any] = {
    "space": {"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}]},
    "objectives": [{"metric": "seconds", "goal": "minimize"}],
}


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_a_spec_that_is_no_object_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(given)
    assert caught.value.data["field"] == "spec"


@pytest.mark.parametrize(
    ("given", "kept"), [("\n\n    code\n\nend\n \n", "    code\n\nend"), ("x" * 10_000 + "\n", "x" * 10_000)]
)
def test_a_description_is_kept_without_empty_lines_around_it(given: str, kept: str) -> None:
    spec = parse({**SPEC, "description": given})
    assert spec.description == spec.to_json()["description"] == spec.stored()["description"] == kept
    assert parse(spec.to_json()).description == kept


@pytest.mark.parametrize("given", [None, "", " \n"])
def test_a_spec_without_a_description_does_not_store_one(given: str | None) -> None:
    assert "description" not in parse({**SPEC, "description": given}).stored()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("x" * 10_001, "the text has 10,001 characters. Use a text of at most 10,000 characters."),
        (5, "5 is not allowed. Use a text of at most 10,000 characters"),
        ("a\0", "without NUL characters"),
    ],
)
def test_a_description_is_refused(given: object, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse({**SPEC, "description": given})
    assert caught.value.data["field"] == "description"
    assert caught.value.message.startswith("description: ")
    assert words in caught.value.message
    assert len(str(caught.value.data["value"])) <= 210


def test_the_job_of_a_spec_comes_back_with_the_fields_that_were_given() -> None:
    job = {"user": "ada", "command": "ant --steps 9", "nodes": 2}
    spec = parse({**SPEC, "job": job})
    assert (spec.job.user, spec.job.name, spec.job.command, spec.job.nodes) == ("ada", "", "ant --steps 9", 2)
    assert spec.to_json()["job"] == spec.stored()["job"] == job
    assert parse(spec.to_json()).job == spec.job
    for nothing in ({}, None, {"user": "", "nodes": None}):
        assert "job" not in parse({**SPEC, "job": nothing}).stored()


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ("ant", "job"),
        ({"queue": "long"}, "job.queue"),
        ({"user": 5}, "job.user"),
        ({"name": "x" * 256}, "job.name"),
        ({"program": "a\0b"}, "job.program"),
        ({"command": "x" * 4097}, "job.command"),
        ({"nodes": 0}, "job.nodes"),
        ({"nodes": 1_000_001}, "job.nodes"),
        ({"nodes": True}, "job.nodes"),
    ],
)
def test_a_job_is_refused(job: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse({**SPEC, "job": job})
    assert caught.value.data["field"] == field


def test_a_study_that_learned_from_earlier_ones_starts_from_them_alone() -> None:
    """An older version stored such entries."""
    stored = {
        **parse(SPEC).stored(),
        "start_from": [{"study": "one", "learn": True}, "two"],
        "started_from": [
            {"study": "one", "taken": 3, "passed_over": 1, "learned": 40},
            {"study": "two", "taken": 2, "passed_over": 0, "learned": 0},
        ],
    }
    spec = spec_of(Study(pk=1, created_at=datetime(2026, 11, 24, tzinfo=UTC), spec=stored))
    assert spec.start_from == ("one", "two")
    assert spec.started_from == (StartedFrom("one", 3, 1), StartedFrom("two", 2, 0))
    again = spec_of(Study(pk=2, created_at=datetime(2026, 11, 24, tzinfo=UTC), spec=spec.stored()))
    assert (again.start_from, again.started_from) == (spec.start_from, spec.started_from)
