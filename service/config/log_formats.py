"""The two formats of the log: JSON for programs (one object for each line, in hosted mode) and text for people."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from service.logger import Message
from service.platform import log_context, tracing
from service.platform.valid_json import finite
from trimtab_components.terminal import HIDDEN, visible, without_passwords

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Secrets that a text from elsewhere (an error, an address) may contain: the service's own secrets, tokens of an
# identity provider, the text after `Bearer`, and the codes of login links.
_SECRETS = (
    re.compile(r"\btr[mae]_[0-9A-Za-z]{8,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),
    re.compile(r"(?<=[Bb]earer )\S+"),
    re.compile(r"(?<=[?&]code=)[\w.~-]+"),
)


def without_secrets(text: str) -> str:
    """Return the text with its secrets hidden, also the passwords of addresses and settings."""
    for pattern in _SECRETS:
        text = pattern.sub(HIDDEN, text)
    return without_passwords(text)


def _fields() -> dict[str, object]:
    """Return the fields of the log context, and the id of the trace if there is one."""
    trace = tracing.trace()
    return {**log_context.fields(), **({"trace": trace} if trace else {})}


def _plain(value: object) -> object:
    """Return a field's value for JSON: a number or a text without secrets."""
    return value if isinstance(value, int | float) else without_secrets(str(value))


class Line(logging.Formatter):
    """Text for people: time, level, logger, message with its own fields, and the fields of the log context."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Return the first line; a traceback follows it."""
        about = " ".join(f"{name}={value}" for name, value in _fields().items())
        line = super().formatMessage(record) + (f" [{about}]" if about else "")
        # Text that a caller sent, such as a path, must not look like a line of the log.
        return _CONTROL.sub(lambda found: repr(found[0])[1:-1], line)

    def format(self, record: logging.LogRecord) -> str:
        """Return the whole record without secrets."""
        return without_secrets(visible(super().format(record)))


class Json(logging.Formatter):
    """JSON for programs: time, level, logger, message, process, the fields of the log context and of the call, error.

    With a traceback, `error` is the traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        said = record.msg if isinstance(record.msg, Message) else Message(record.getMessage(), {})
        content: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(said.text),
            "process": record.process,
            **_fields(),
            **{name: _plain(value) for name, value in said.fields.items()},
        }
        if record.exc_info:
            content["error"] = without_secrets(self.formatException(record.exc_info))
        known = finite(content)
        line = json.dumps(known, default=str, ensure_ascii=False)
        # JSON itself escapes the characters below U+0020 alone.
        return line if visible(line) == line else json.dumps(known, default=str)
