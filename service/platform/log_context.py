"""The fields of log lines: the request, and the tenant, study, trial and so on that it concerns.

Code that learns one of these values binds it. Every later log line of the same request carries the value.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NOTHING: Mapping[str, object] = MappingProxyType({})
_fields: ContextVar[Mapping[str, object]] = ContextVar("log_fields", default=_NOTHING)
# A caller's name for a request has only characters that cannot be mistaken for another field of a log line.
_IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,64}")


def begin(identifier: str = "") -> str:
    """Start a new request without bound fields and return its name.

    The name is the caller's `identifier` if that is valid, and otherwise a new one.
    """
    name = identifier if _IDENTIFIER.fullmatch(identifier) else uuid.uuid4().hex
    _fields.set({"request": name})
    return name


def bind(**known: object) -> None:
    """Add these fields to all later log lines of the request. Values None, "" and 0 are left out."""
    _fields.set({**_fields.get(), **{name: value for name, value in known.items() if value}})


def fields() -> Mapping[str, object]:
    """Return the fields of a line that is written now."""
    return _fields.get()


def request() -> str:
    """Return the name of the present request, or a new name outside of a request."""
    return str(_fields.get().get("request") or uuid.uuid4().hex)
