"""One root for every expected error; each kind below it has one place in HTTP and one in gRPC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"

_LONGEST_VALUE = 200


class TrimtabError(Exception):
    """An expected fault, told to the caller.

    `code` is stable and meant for programs, `message` for people; `retryable` says that the same call may succeed
    later; `data` holds what a program may need to react.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, **data: JsonValue) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.data: dict[str, JsonValue] = data


class InvalidInput(TrimtabError):
    """A field of the request has a value that it must not have. `value` None stands for a missing one."""

    def __init__(
        self, field: str, value: object, allowed: str, *, code: str = "invalid_argument", **data: JsonValue
    ) -> None:
        shown = _as_json(value)
        text = shown if isinstance(shown, str) and not isinstance(value, str) else repr(shown)
        message = f"{field} is {'missing' if value is None else text}; allowed: {allowed}"
        super().__init__(code, message, field=field, value=shown, allowed=allowed)
        self.data.update(data)


class NotFound(TrimtabError):
    """There is no such thing, or not in the caller's tenant."""


class AlreadyExists(TrimtabError):
    """The name is taken."""


class Conflict(TrimtabError):
    """The state of things does not allow this step."""


class Unauthenticated(TrimtabError):
    """Nobody knows who is calling."""


class Forbidden(TrimtabError):
    """The caller is known and may not do this."""


class ResourceExhausted(TrimtabError):
    """A quota or a size limit."""


class Unavailable(TrimtabError):
    """Something that is needed is away for now."""


class Internal(TrimtabError):
    """The service's own fault."""


def shorten(text: str, longest: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _as_json(value: object) -> JsonValue:
    """The value where it is short plain JSON, otherwise a short text of it."""
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and value.bit_length() <= 64:
        return value
    try:
        return shorten(value if isinstance(value, str) else repr(value), _LONGEST_VALUE)
    except (RecursionError, ValueError):  # a list within itself many times over; an integer of thousands of digits
        return type(value).__name__
