"""Log calls with fields: `logger.warning("lease expired", lease=lease.id, error=error)`.

The service, the agent and the SDK, which share only the protocol, each have this file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, MutableMapping
from typing import Any

# What logging itself does with keyword arguments of a call.
_OWN = frozenset({"exc_info", "stack_info", "stacklevel", "extra"})


class Message:
    """A constant text and the fields of one line. A formatter that does not know it writes `text name=value`."""

    def __init__(self, text: str, fields: Mapping[str, object]) -> None:
        self.text, self.fields = text, fields

    def __str__(self) -> str:
        return " ".join((self.text, *(f"{name}={_shown(value)}" for name, value in self.fields.items())))


class Logger(logging.LoggerAdapter[logging.Logger]):
    """A logger whose calls take fields as keyword arguments. Fields that are None or "" are left out."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name))

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return the message with its fields, and the keyword arguments that logging knows."""
        fields = {name: value for name, value in kwargs.items() if name not in _OWN and value not in (None, "")}
        return Message(msg, fields), {name: kwargs[name] for name in kwargs.keys() & _OWN}


def _shown(value: object) -> str:
    """Return the value on one line, quoted if it could be mistaken for several fields."""
    text = str(value)
    if text and text.isprintable() and not any(letter in text for letter in ' "='):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
