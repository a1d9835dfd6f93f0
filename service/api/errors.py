"""Translate every exception to one problem document (RFC 9457). No other module does this."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from service.core.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Internal,
    InvalidInput,
    JsonValue,
    NotFound,
    ResourceExhausted,
    TrimtabError,
    Unauthenticated,
    Unavailable,
    took_too_long,
)
from service.logger import Logger
from service.platform import deadlines, error_pages, log_context, tracing, valid_json
from service.tenancy.outages import unavailable

CONTENT_TYPE = "application/problem+json"

# Status and title of each kind of error.
KINDS: Mapping[type[TrimtabError], tuple[int, str]] = {
    InvalidInput: (400, "Invalid input"),
    Unauthenticated: (401, "Not signed in"),
    Forbidden: (403, "Not allowed"),
    NotFound: (404, "Not found"),
    AlreadyExists: (409, "Already exists"),
    Conflict: (409, "Not possible in this state"),
    ResourceExhausted: (429, "Limit reached"),
    Internal: (500, "Internal error"),
    Unavailable: (503, "Temporarily unavailable"),
}
# Error codes for which HTTP has a more specific status than the kind of the error.
STATUS_OF_CODE: Mapping[str, int] = {
    "message_too_large": 413,
    "computation_too_long": 422,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "request_too_slow": 408,
    "unsupported_media_type": 415,
}
SIGN_IN_HEADERS = {"WWW-Authenticate": 'Bearer realm="trimtab"'}

logger = Logger(__name__)


class MalformedRequest(InvalidInput):
    """A request that is wrong as a whole and not in one field."""

    def __init__(self, code: str, message: str) -> None:
        TrimtabError.__init__(self, code, message)


def answer(error: Exception, context: Mapping[str, Any]) -> Response:
    """Return the response for an exception. This is REST framework's exception handler."""
    request = context.get("request")
    known = translate(error, _sent(request) if isinstance(error, exceptions.ValidationError) and request else None)
    status, problem = describe(known)
    return Response(problem, status=status, headers=headers_of(known), content_type=CONTENT_TYPE)


def respond(error: Exception) -> HttpResponse:
    """Return the same for views that do not use REST framework."""
    known = translate(error)
    status, problem = describe(known)
    return HttpResponse(valid_json.dumps(problem), status=status, headers=headers_of(known), content_type=CONTENT_TYPE)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the answer to a request that failed outside of a view: a problem below /api/, elsewhere a page."""
    error = sys.exc_info()[1]
    if request.path.startswith("/api/") and isinstance(error, Exception):
        return respond(error)
    return defaults.server_error(request)


def translate(error: Exception, data: object = None) -> TrimtabError:
    """Return the error that the caller may see. An unexpected error is logged, and the caller gets only a reference.

    `data` is the content of the request, from which the error takes the value at fault.
    """
    if isinstance(error, TrimtabError):
        return error
    if isinstance(error, exceptions.APIException):
        return _of_rest_framework(error, data)
    if isinstance(error, Http404):
        return NotFound("not_found", "There is no resource at this address.")
    if isinstance(error, RequestDataTooBig):
        allowed = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return ResourceExhausted(
            "message_too_large", f"The body of the request is larger than {allowed} bytes.", allowed=allowed
        )
    if isinstance(error, SuspiciousOperation | BadRequest):
        return MalformedRequest("malformed_request", str(error) or "The request is not well-formed.")
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("the database failed", error=error)
        return unavailable(error)
    if isinstance(error, DataError):
        # Only a text with NUL or a number out of range passes all other checks and is refused by PostgreSQL.
        return MalformedRequest("invalid_argument", str(error).splitlines()[0])
    if isinstance(error, deadlines.Exceeded):
        return took_too_long(error.seconds)
    if isinstance(error, deadlines.Unwanted):
        return Unavailable("caller_gone", "The caller has gone, so its request was ended.", retryable=True)
    reference = log_context.request()
    logger.error("a request failed unexpectedly", reference=reference, exc_info=error)
    return Internal(
        "internal",
        f"The service failed unexpectedly. Its log explains the error under reference {reference}.",
        reference=reference,
    )


def describe(error: TrimtabError) -> tuple[int, dict[str, JsonValue]]:
    """Return the HTTP status and the problem document of an error. It names the trace and a page if there are some."""
    trace, page = tracing.trace(), error_pages.page(error.code)
    kind = next(kind for kind in type(error).__mro__ if kind in KINDS)
    status, title = KINDS[kind]
    status = STATUS_OF_CODE.get(error.code, status)
    return status, {
        "type": f"urn:trimtab:error:{error.code}",
        "title": title,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "retryable": error.retryable,
        "data": error.data,
        **({"docs": page} if page else {}),
        **({"trace": trace} if trace else {}),
    }


def headers_of(error: TrimtabError) -> dict[str, str]:
    """Return the headers that the answer needs."""
    if isinstance(error, Unauthenticated):
        return SIGN_IN_HEADERS
    seconds = error.data.get("retry_after_seconds", 1 if error.retryable else None)
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _of_rest_framework(error: exceptions.APIException, data: object) -> TrimtabError:
    match error:
        case exceptions.ValidationError():
            return _of_validation(error, data)
        case exceptions.ParseError():
            return MalformedRequest("malformed_request", f"The body is not valid JSON. {error.detail}")
        case exceptions.MethodNotAllowed():
            return MalformedRequest("method_not_allowed", f"{error.detail} See /api/v1/schema.")
        case exceptions.NotAcceptable():
            return MalformedRequest(
                "not_acceptable", "Answers are application/json. Request this type in the header Accept."
            )
        case exceptions.UnsupportedMediaType():
            return MalformedRequest("unsupported_media_type", "Send the body as Content-Type: application/json.")
        case exceptions.NotFound():
            return NotFound("not_found", str(error.detail))
        case _:
            return Internal("internal", str(error.detail))


def _of_validation(error: exceptions.ValidationError, data: object) -> InvalidInput:
    """Return the first fault as an error with all faults in its data."""
    faults = list(_faults(cast("JsonValue", error.detail)))
    field, message = faults[0]
    known = InvalidInput(field or "request", _value_at(data, field), message.rstrip("."))
    known.data["errors"] = [{"field": name, "message": text} for name, text in faults]
    return known


def _sent(request: Request) -> object:
    """Return the query parameters of a GET, else the body."""
    if request.method != "GET":
        return request.data
    return {name: values if len(values) > 1 else values[0] for name, values in request.query_params.lists()}


def _faults(detail: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each message of REST framework's nested errors with the path of its field: `spec`, `held_trials[3]`."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            if key == "non_field_errors":
                yield from _faults(value, path)
            else:
                step = f"[{key}]" if isinstance(key, int) else f".{key}" if path else str(key)
                yield from _faults(value, path + step)
    elif isinstance(detail, Sequence) and not isinstance(detail, str):
        for item in detail:
            yield from _faults(item, path)
    else:
        yield path, str(detail)


def _value_at(data: object, path: str) -> object:
    """Return the value in the body at such a path, as far as the path can be followed."""
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(data, list):
            data = data[int(step)] if step.isdigit() and int(step) < len(data) else None
    return data
