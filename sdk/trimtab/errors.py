"""The errors that the SDK raises.

Every error is a `TrimtabError`. Programs test its stable `code`, people read its `message`. `retryable` says whether
the same call can succeed later. For invalid input `data` holds the field, its value and the allowed values.

    try:
        client.get_study("no-such-study")
    except trimtab.errors.NotFound as error:
        print(error.code)            # study_not_found
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from trimtab.terminal import visible, without_passwords

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_PLAIN = (bool, int, float, str, type(None))
_NO_DATA: Mapping[str, JsonValue] = MappingProxyType({})


class TrimtabError(Exception):
    """The base class of all errors of this package.

    `code` is stable and in snake_case. `retryable` says whether the same call can succeed later. `docs` is the address
    of the page that explains the error, below the address of the console; it is empty if there is none.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        data: Mapping[str, JsonValue] = _NO_DATA,
        docs: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.data: dict[str, JsonValue] = dict(data)
        self.docs = docs

    def __str__(self) -> str:
        # A traceback prints it, and the message may contain names that other people have chosen.
        return visible(self.message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.message!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own pickling would lose the keyword arguments when an error crosses a process boundary.
        return _rebuild, (type(self), self.code, self.message, self.retryable, self.data, self.docs)


def _rebuild(
    kind: type[TrimtabError], code: str, message: str, retryable: bool, data: Mapping[str, JsonValue], docs: str
) -> TrimtabError:
    return kind(code, message, retryable=retryable, data=data, docs=docs)


class InvalidInput(TrimtabError):
    """A value is not allowed. `data` has `field`, `value` and `allowed`. The call changed nothing."""

    @classmethod
    def of(cls, field: str, value: object, allowed: str, *, code: str = "invalid_argument") -> "InvalidInput":
        """Return the error for a value that the SDK refuses without asking the service."""
        fault = "a value is missing" if value is None else f"{value!r} is not allowed"
        plain = value if isinstance(value, _PLAIN) else repr(value)
        shown = without_passwords(plain) if isinstance(plain, str) else plain
        return cls(
            code,
            without_passwords(f"{field}: {fault}. Use {allowed}."),
            data={"field": field, "value": shown, "allowed": without_passwords(allowed)},
        )


class NotFound(TrimtabError):
    """There is no such study, trial or operation, or the caller may not see it."""


class AlreadyExists(TrimtabError):
    """The name is already in use."""


class Conflict(TrimtabError):
    """The call does not fit the current state, for example an ask of a paused study."""


class Unauthenticated(TrimtabError):
    """There is no token, or the service does not accept it."""


class Forbidden(TrimtabError):
    """The token does not allow this."""


class ResourceExhausted(TrimtabError):
    """A limit is exceeded: the message is too large, or a quota is used up."""


class Unavailable(TrimtabError):
    """The service did not answer within the client's `retry_seconds`."""


class Insecure(Unavailable):
    """The client and the service do not agree on encryption. The message says what to do."""


class Internal(TrimtabError):
    """The service has a defect. Its log has details under the reference in the message."""


class OperationFailed(TrimtabError):
    """The algorithm could not compute a suggestion. The message has its reason."""


class Timeout(TrimtabError):
    """The caller's time limit is over. The service continues the work: ask again to get its result."""


class Infeasible(Exception):
    """A configuration cannot work. The function given to `Study.optimize` raises it.

    For example:

        def fn(params):
            if not compiles(params):
                raise trimtab.Infeasible("does not compile")
    """
