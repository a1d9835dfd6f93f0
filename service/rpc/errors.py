"""Translate every exception to one gRPC status with a typed ErrorDetail. No other module does this."""

from collections.abc import Mapping

import grpc
from django.db import DataError, InterfaceError, OperationalError
from google.protobuf import any_pb2, duration_pb2, struct_pb2
from google.rpc import error_details_pb2, status_pb2

from service._gen import errordetails_pb2
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
from service.logger import Logger
from service.platform import error_pages, log_context, tracing
from service.tenancy.outages import unavailable

logger = Logger(__name__)

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
# An error travels in HTTP/2 headers, and gRPC accepts 8 KiB of them in total. They contain the message three times,
# once percent-encoded (up to three bytes for one).
MAX_MESSAGE_BYTES = 800
MAX_DATA_BYTES = 800
MAX_VALUE_CHARACTERS = 200


def translate(error: Exception, method: str) -> TrimtabError:
    """Return the error that the caller may see. An unexpected error becomes a reference to the log."""
    if isinstance(error, TrimtabError):
        return error
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database failed", method=method, error=error)
        return unavailable(error)
    if isinstance(error, DataError):
        # Only a text with NUL or a number out of range passes all other checks and is refused by PostgreSQL.
        return InvalidInput("request", str(error).splitlines()[0], "text without NUL characters, numbers in range")
    reference = log_context.request()
    logger.error("a call failed unexpectedly", method=method, reference=reference, exc_info=error)
    return Internal(
        "internal", f"The service failed unexpectedly. Its log explains the error under reference {reference}.",
        reference=reference,
    )  # fmt: skip


def status_of(error: TrimtabError) -> grpc.StatusCode:
    """Return the gRPC status for the kind of the error."""
    return next(STATUS_OF_KIND[kind] for kind in type(error).__mro__ if kind in STATUS_OF_KIND)


def details_of(error: TrimtabError) -> tuple[str, bytes]:
    """Return the message and the serialised google.rpc.Status with the ErrorDetail, both short enough for the headers.

    If the time of the next attempt is known, the status also has a RetryInfo. The data names the trace if there is one.
    """
    trace = tracing.trace()
    message = _cut(error.message, MAX_MESSAGE_BYTES)
    detail = errordetails_pb2.ErrorDetail(
        code=error.code,
        message=message,
        retryable=error.retryable,
        data=_struct({"trace": trace, **error.data} if trace else error.data),
        docs=error_pages.page(error.code),
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
