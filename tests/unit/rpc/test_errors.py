"""Every exception becomes one status with details that fit into a header."""

import logging
from collections.abc import Callable

import grpc
import pytest
from django.db import DataError, InterfaceError, OperationalError, connection
from google.rpc import error_details_pb2, status_pb2
from psycopg.errors import DiskFull

from service._gen import errordetails_pb2
from service.api import errors as api_errors
from service.core import errors as core
from service.rpc import errors


def detail_of(error: core.TrimtabError) -> errordetails_pb2.ErrorDetail:
    message, raw = errors.details_of(error)
    status = status_pb2.Status.FromString(raw)
    assert status.message == message
    assert status.code == errors.status_of(error).value[0]
    detail = errordetails_pb2.ErrorDetail()
    assert status.details[0].Unpack(detail)
    return detail


def kinds(kind: type[core.TrimtabError]) -> list[type[core.TrimtabError]]:
    return [kind, *(below for one in kind.__subclasses__() for below in kinds(one))]


@pytest.mark.parametrize("kind", kinds(core.TrimtabError)[1:])
def test_every_kind_has_a_status(kind: type[core.TrimtabError]) -> None:
    if kind is core.InvalidInput:
        error: core.TrimtabError = core.InvalidInput("a", 1, "2")
    else:
        error = kind("some_code", "Some words.")
    assert errors.status_of(error) not in (grpc.StatusCode.OK, grpc.StatusCode.UNKNOWN)


def test_the_detail_has_the_content_of_the_error() -> None:
    error = core.Unavailable(
        "try_later", "Try later.", retryable=True, number=3, text="x", flag=True, none=None, many=[1]
    )
    detail = detail_of(error)
    assert (detail.code, detail.message, detail.retryable) == ("try_later", "Try later.", True)
    assert dict(detail.data.items()) == {"number": 3.0, "text": "x", "flag": True, "none": None, "many": "[1]"}


def test_the_status_has_the_time_of_the_next_attempt() -> None:
    error = core.ResourceExhausted("rate_limited", "Too many.", retryable=True, retry_after_seconds=17)
    status = status_pb2.Status.FromString(errors.details_of(error)[1])
    again = error_details_pb2.RetryInfo()
    assert status.details[1].Unpack(again)
    assert again.retry_delay.ToTimedelta().total_seconds() == 17
    assert len(status_pb2.Status.FromString(errors.details_of(core.Conflict("code", "No."))[1]).details) == 1


@pytest.mark.parametrize("character", ["x", "ß", "漢", "💡", "\ud800"])
def test_details_fit_into_a_header(character: str) -> None:
    error = core.Conflict("code", character * 100_000)
    error.data.update({f"key{index}": character * 1000 for index in range(50)})
    message, raw = errors.details_of(error)
    # percent-encoded in grpc-message, base64 in the details
    assert 3 * len(message.encode()) + len(raw) * 4 / 3 < 7500


@pytest.mark.parametrize("exception", [OperationalError("secret host"), InterfaceError("closed")])
def test_an_unreachable_database_is_retryable(exception: Exception) -> None:
    error = errors.translate(exception, "/m")
    assert (errors.status_of(error), error.code) == (grpc.StatusCode.UNAVAILABLE, "database_unavailable")
    assert error.retryable
    assert "secret" not in error.message


@pytest.mark.parametrize("translate", [lambda error: errors.translate(error, "/m"), api_errors.translate])
def test_a_full_disk_is_named(translate: Callable[[Exception], core.TrimtabError]) -> None:
    with pytest.raises(OperationalError) as caught, connection.wrap_database_errors:
        raise DiskFull('could not extend file "base/16384/16401": No space left on device')
    error = translate(caught.value)
    assert (errors.status_of(error), error.code) == (grpc.StatusCode.UNAVAILABLE, "database_full")
    assert error.retryable
    assert "disk of the database is full" in error.message
    assert "base/16384" not in error.message


def test_data_that_the_database_refuses_is_the_callers_fault() -> None:
    error = errors.translate(DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), "/m")
    assert errors.status_of(error) == grpc.StatusCode.INVALID_ARGUMENT


def test_an_unexpected_error_is_logged_and_the_caller_gets_a_reference(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = errors.translate(ZeroDivisionError("secret"), "/trimtab/Method")
    assert (errors.status_of(error), error.code) == (grpc.StatusCode.INTERNAL, "internal")
    assert "secret" not in error.message
    reference = str(error.data["reference"])
    assert reference in error.message
    assert reference in caplog.text
    assert "ZeroDivisionError: secret" in caplog.text
