"""Lines of the log: their fields, and the secrets that they must not contain."""

import json
import logging
import sys
from typing import Any

import pytest

from service.config.log_formats import Json, Line, without_secrets
from service.identity import secret
from service.logger import Message
from service.platform import log_context


def record(message: str, *arguments: Any, **fields: Any) -> logging.LogRecord:
    return logging.LogRecord("name", logging.WARNING, "path", 1, message, arguments, fields.get("exc_info"))


def test_a_line_has_the_bound_fields() -> None:
    assert log_context.begin("mine") == "mine"
    log_context.bind(tenant=3, study="s", trial=0, lease="")
    line = json.loads(Json().format(record("said %d", 1)))
    assert {
        "message": "said 1",
        "level": "WARNING",
        "request": "mine",
        "tenant": 3,
        "study": "s",
    }.items() <= line.items()
    assert not {"trial", "lease"} & line.keys()
    assert Line().format(record("said")).endswith("WARNING name: said [request=mine tenant=3 study=s]")
    assert log_context.begin('x" {}') != 'x" {}'
    assert "tenant" not in log_context.fields()


def test_a_line_has_the_fields_of_its_call() -> None:
    log_context.begin("mine")
    given = record("lease expired")
    given.msg = Message("lease expired", {"lease": "l-1", "trial": 3, "error": OSError("tre_0123456789 is old")})
    line = json.loads(Json().format(given))
    assert {"message": "lease expired", "lease": "l-1", "trial": 3, "request": "mine"}.items() <= line.items()
    assert line["error"] == "*** is old"
    assert Line().format(given).endswith('lease expired lease=l-1 trial=3 error="*** is old" [request=mine]')


def test_text_of_a_caller_cannot_look_like_another_line() -> None:
    forged = record("GET /a\n2026-01-01 00:00:00 INFO root: all is well")
    assert len(Line().format(forged).splitlines()) == len(Json().format(forged).splitlines()) == 1


def test_a_traceback_is_written_completely() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        failed = record("failed", exc_info=sys.exc_info())
    assert "ValueError: no" in json.loads(Json().format(failed))["error"]
    assert len(Line().format(failed).splitlines()) > 2


@pytest.mark.parametrize(
    "text",
    [
        *(pytest.param(f"shown: {secret.create(kind)}.", id=f"a {kind} secret") for kind in secret.Kind),
        "Authorization: Bearer SECRET",
        "connection to postgresql://user:SECRET@host:5432/name failed",
        "redis://:SECRET@redis:6379/0",
        "http://127.0.0.1:8470/login?code=SECRET",
        "host=h user=u password=SECRET dbname=d",
        "password='SECRET with spaces'",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJTRUNSRVQifQ.SECRET",
    ],
)
def test_secrets_are_hidden_and_the_rest_is_not(text: str) -> None:
    hidden = without_secrets(text)
    assert "SECRET" not in hidden
    assert "***" in hidden
    assert not any(word.startswith(("trm_", "tra_", "tre_")) for word in hidden.split())
    harmless = "GET /api/v1/studies/s 200 3.1 ms for trm at http://host:80/path"
    assert without_secrets(harmless) == harmless
