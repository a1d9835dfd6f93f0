"""The description and the job in the spec of a study."""

from typing import Any

import pytest

from service.core.errors import InvalidInput
from service.studies.specs import parse

SPEC: dict[str, Any] = {
    "space": {"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}]},
    "objectives": [{"metric": "seconds", "goal": "minimize"}],
}


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
