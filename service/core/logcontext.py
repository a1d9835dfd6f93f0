"""What the lines of a log are about: the request, and the tenant, study, trial ... that it turns out to concern.

Whoever learns one of them binds it; every line that is written after that, in the same request, carries it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

_NOTHING: Mapping[str, object] = MappingProxyType({})
_fields: ContextVar[Mapping[str, object]] = ContextVar("log_fields", default=_NOTHING)
# What a caller may choose as the name of a request: nothing that could pass for something else in a log.
_IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,64}")


def begin(identifier: str = "") -> str:
    """A new request, under the caller's own name for it if that is a name, else under a new one, which it gives back.

    What was bound before is forgotten.
    """
    name = identifier if _IDENTIFIER.fullmatch(identifier) else uuid.uuid4().hex
    _fields.set({"request": name})
    return name


def bind(**known: object) -> None:
    """Lines from here on are about these as well. What is None, "" or 0 is left out: no such thing has that name."""
    _fields.set({**_fields.get(), **{name: value for name, value in known.items() if value}})


def fields() -> Mapping[str, object]:
    """What a line that is written now is about."""
    return _fields.get()


def request() -> str:
    """The name of the request that is being served, or a new one where there is none."""
    return str(_fields.get().get("request") or uuid.uuid4().hex)
