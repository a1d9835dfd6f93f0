"""Every error that the SDK raises.

All of them are `TrimtabError`s with a stable `code` to look at in a program, a `message` for people, whether trying
again can help (`retryable`), and `data`: for bad input the field, its value and what is allowed.

    try:
        client.get_study("no-such-study")
    except trimtab.errors.NotFound as error:
        print(error.code)            # study_not_found
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

_PLAIN = (bool, int, float, str, type(None))
_NO_DATA: Mapping[str, JsonValue] = MappingProxyType({})


class TrimtabError(Exception):
    """The root of all errors of this package.

    `code` is stable and in snake_case; `retryable` says whether the same call can succeed later.
    """

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, data: Mapping[str, JsonValue] = _NO_DATA
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.data: dict[str, JsonValue] = dict(data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.message!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # So that an error crosses process borders whole: Exception's own way would forget the keywords.
        return _rebuild, (type(self), self.code, self.message, self.retryable, self.data)


def _rebuild(
    kind: type[TrimtabError], code: str, message: str, retryable: bool, data: Mapping[str, JsonValue]
) -> TrimtabError:
    return kind(code, message, retryable=retryable, data=data)


class InvalidInput(TrimtabError):
    """A value that is not allowed; `data` has `field`, `value` and `allowed`. Nothing was changed."""

    @classmethod
    def of(cls, field: str, value: object, allowed: str) -> "InvalidInput":
        """Return the error for a value that the SDK refuses without asking the service."""
        fault = "a value is missing" if value is None else f"{value!r} is not allowed"
        return cls(
            "invalid_argument",
            f"{field}: {fault}. Use {allowed}.",
            data={"field": field, "value": value if isinstance(value, _PLAIN) else repr(value), "allowed": allowed},
        )


class NotFound(TrimtabError):
    """There is no such study, trial or operation, or it belongs to somebody else."""


class AlreadyExists(TrimtabError):
    """The name is taken."""


class Conflict(TrimtabError):
    """The call does not fit the present state: a finished trial told again, an ask of a paused study."""


class Unauthenticated(TrimtabError):
    """There is no token, or the service does not know it."""


class Forbidden(TrimtabError):
    """The token does not allow this."""


class ResourceExhausted(TrimtabError):
    """Over a limit: the message is too large, a quota is used up."""


class Unavailable(TrimtabError):
    """The service could not be reached for as long as the client is willing to try."""


class Insecure(Unavailable):
    """The two sides do not agree on an encrypted connection: the message says what to do."""


class Internal(TrimtabError):
    """A fault of the service; its log has more under the reference in the message."""


class OperationFailed(TrimtabError):
    """The computation of a suggestion failed, with the algorithm's own reason."""


class Timeout(TrimtabError):
    """The time that the caller gave is over. The work goes on in the service: ask again to get its result."""


class Infeasible(Exception):
    """Raised by a function under `Study.optimize`: this configuration cannot work.

    For example:

        def fn(params):
            if not compiles(params):
                raise trimtab.Infeasible("does not compile")
    """
