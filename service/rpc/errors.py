"""Errors on the wire: every exception becomes one gRPC status with a typed ErrorDetail, here and nowhere else."""

import logging
from collections.abc import Mapping

import grpc
from django.db import DataError, InterfaceError, OperationalError
from google.protobuf import any_pb2, duration_pb2, struct_pb2
from google.rpc import error_details_pb2, status_pb2

from service._gen import errordetails_pb2
from service.core import logcontext
from service.core.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Internal,
    InvalidInput,
    NotFound,
    ResourceExhausted,
    TrimtabError,
    Unauthenticated,
    Unavailable,
)

logger = logging.getLogger(__name__)

STATUS_OF_KIND: Mapping[type[TrimtabError], grpc.StatusCode] = {
    InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    Conflict: grpc.StatusCode.FAILED_PRECONDITION,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
    Internal: grpc.StatusCode.INTERNAL,
}
DETAILS_KEY = "grpc-status-details-bin"
# An error travels in HTTP/2 headers, of which gRPC accepts 8 KiB in all. The message is in there three times, once
# of them percent-encoded (up to three bytes for one).
MAX_MESSAGE_BYTES = 800
MAX_DATA_BYTES = 800
MAX_VALUE_CHARACTERS = 200


def translate(error: Exception, method: str) -> TrimtabError:
    """The error as the caller may see it: of what nobody expected only a reference to the log."""
    if isinstance(error, TrimtabError):
        return error
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("%s: the database did not answer: %s", method, error)
        return Unavailable(
            "database_unavailable", "The service cannot reach its database just now; try again.", retryable=True
        )
    if isinstance(error, DataError):
        # The only texts that pass all checks and that PostgreSQL refuses.
        return InvalidInput("request", str(error).splitlines()[0], "text without NUL characters, numbers in range")
    reference = logcontext.request()
    logger.error("%s failed unexpectedly, reference %s", method, reference, exc_info=error)
    return Internal(
        "internal", f"Something went wrong in the service; its log knows more under reference {reference}.",
        reference=reference,
    )  # fmt: skip


def status_of(error: TrimtabError) -> grpc.StatusCode:
    """The gRPC status of the error's kind."""
    return next(STATUS_OF_KIND[kind] for kind in type(error).__mro__ if kind in STATUS_OF_KIND)


def details_of(error: TrimtabError) -> tuple[str, bytes]:
    """The message, and the serialised google.rpc.Status with the ErrorDetail: both short enough for the wire.

    Where it is known when to try again, a RetryInfo stands beside it.
    """
    message = _cut(error.message, MAX_MESSAGE_BYTES)
    detail = errordetails_pb2.ErrorDetail(
        code=error.code, message=message, retryable=error.retryable, data=_struct(error.data)
    )
    packed = any_pb2.Any()
    packed.Pack(detail)
    details = [packed]
    seconds = error.data.get("retry_after_seconds")
    if isinstance(seconds, int):
        again = any_pb2.Any()
        again.Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=seconds)))
        details.append(again)
    status = status_pb2.Status(code=status_of(error).value[0], message=message, details=details)
    return message, status.SerializeToString()


def _struct(data: Mapping[str, object]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    for key, value in data.items():
        field = struct.fields[key]
        if isinstance(value, bool):
            field.bool_value = value
        elif isinstance(value, (int, float)):
            field.number_value = value
        elif value is None:
            field.null_value = struct_pb2.NULL_VALUE
        else:
            field.string_value = _cut(value if isinstance(value, str) else repr(value), MAX_VALUE_CHARACTERS)
        if struct.ByteSize() > MAX_DATA_BYTES:
            del struct.fields[key]
            break
    return struct


def _cut(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "replace")
    return raw.decode() if len(raw) <= limit else raw[: limit - 3].decode("utf-8", "ignore") + "…"
