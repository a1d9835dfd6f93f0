"""The errors that the service expects: one root, and for each kind one status in HTTP and one in gRPC."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from trimtab_components.terminal import without_passwords

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

_LONGEST_VALUE = 200
_PARAMETER_PREFIX = "params."
# repr() of a large list would take seconds, for a text of which the beginning is shown.
_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _LONGEST_VALUE // 2
_short.maxstring = _short.maxlong = _short.maxother = _LONGEST_VALUE
_short.maxlevel = 8


class TrimtabError(Exception):
    """An expected fault that is reported to the caller.

    `code` is stable and meant for programs, `message` is meant for people. `retryable` says that the same call may
    succeed later. `data` holds what a program may need to react.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, **data: JsonValue) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.data: dict[str, JsonValue] = data


class InvalidInput(TrimtabError):
    """A field of the request is missing (`value` None) or has a value that is not allowed.

    The message reads "<field>: <value> <problem>. Use <allowed>." A problem is a predicate such as "is above the
    maximum 9", and `allowed` a noun phrase such as "a number from 1 to 9". Where the two say too little, `message`
    replaces the whole text.
    """

    def __init__(
        self,
        field: str,
        value: object,
        allowed: str,
        *,
        problem: str = "is not allowed",
        message: str = "",
        code: str = "invalid_argument",
        **data: JsonValue,
    ) -> None:
        shown = _as_json(value)
        text = shown if isinstance(shown, str) and not isinstance(value, str) else repr(shown)
        name = field.removeprefix(_PARAMETER_PREFIX)
        subject = field if name == field else f"parameter {name!r}"
        fault = "a value is missing" if value is None else f"{text} {problem}"
        super().__init__(
            code, message or f"{subject}: {fault}. Use {allowed}.", field=field, value=shown, allowed=allowed
        )
        self.data.update(data)


class NotFound(TrimtabError):
    """The object does not exist in the caller's tenant."""


class AlreadyExists(TrimtabError):
    """The name is already in use."""


class Conflict(TrimtabError):
    """The present state of the object does not allow this step."""


class Unauthenticated(TrimtabError):
    """The caller has not proven an identity."""


class Forbidden(TrimtabError):
    """The caller is known but lacks the permission."""


class ResourceExhausted(TrimtabError):
    """A quota or a size limit is exceeded."""


class Unavailable(TrimtabError):
    """Something that the service needs does not answer at present."""


class Internal(TrimtabError):
    """The service itself has failed."""


def too_many(what: str, whose: str, most: int) -> ResourceExhausted:
    """Return the error of a caller that has the most calls (or streams: `what`) in progress that it may have."""
    return ResourceExhausted(
        f"too_many_{what}",
        f"{whose} has {most} {what} in progress, which is the limit. Try again when some have ended.",
        retryable=True,
        limit=most,
        retry_after_seconds=1,
    )


def took_too_long(seconds: float) -> ResourceExhausted:
    """Return the error of a computation that has used up its seconds of CPU."""
    return ResourceExhausted(
        "computation_too_long",
        f"The computation needed more than {seconds:g} s of CPU, so it was ended. Use a smaller search space, or fewer"
        " or simpler conditions, constraints and objectives.",
        seconds=seconds,
    )


def kind_of(error: Exception) -> tuple[str, bool]:
    """Return the code of an error, or its class without one, and whether the service failed rather than the caller."""
    if isinstance(error, TrimtabError):
        return error.code, isinstance(error, Internal | Unavailable)
    return type(error).__name__, True


def shorten(text: str, longest: int) -> str:
    """Return the text, cut to at most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _as_json(value: object) -> JsonValue:
    """Return the value if it is short plain JSON, otherwise a short text that represents it."""
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and value.bit_length() <= 64:
        return value
    try:
        # The value may be an address with a password, and errors are logged and passed on.
        return shorten(without_passwords(value if isinstance(value, str) else _short.repr(value)), _LONGEST_VALUE)
    except (RecursionError, ValueError):  # a list that contains itself; an integer of thousands of digits
        return type(value).__name__
