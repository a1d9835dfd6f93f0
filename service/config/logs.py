"""How a line of the log looks: for programs (JSON, one object a line) where the service is hosted, else for eyes."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from service.core import logcontext

HIDDEN = "***"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# What nobody writes into a log on purpose, but a text of somebody else's (an error, an address) may have in it: the
# service's own secrets, an identity provider's tokens, what follows `Bearer`, passwords in addresses and settings, and
# the codes of login links.
_SECRETS = (
    re.compile(r"\btr[mae]_[0-9A-Za-z]{8,}"),
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),
    re.compile(r"(?<=[Bb]earer )\S+"),
    re.compile(r"(?<=://)([^\s:/@]*):[^\s/@]+(?=@)"),
    re.compile(r"(?<=[?&]code=)[\w.~-]+"),
    re.compile(r"(?i)(?<=password=)('[^']*'|\S+)"),
)


def without_secrets(text: str) -> str:
    """The text with its secrets hidden."""
    for pattern in _SECRETS:
        text = pattern.sub(rf"\1:{HIDDEN}" if pattern.pattern.startswith("(?<=://)") else HIDDEN, text)
    return text


class Line(logging.Formatter):
    """For eyes: when, how grave, who says it, what, and what it is about."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """The first line; a traceback follows it."""
        about = " ".join(f"{name}={value}" for name, value in logcontext.fields().items())
        line = super().formatMessage(record) + (f" [{about}]" if about else "")
        # What a caller sent, a path for example, must not look like lines of its own.
        return _CONTROL.sub(lambda found: repr(found[0])[1:-1], line)

    def format(self, record: logging.LogRecord) -> str:
        """All of it."""
        return without_secrets(super().format(record))


class Json(logging.Formatter):
    """For programs: time, level, logger, message, process, error (a traceback), and request, tenant, study, ..."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        content: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
            "process": record.process,
            **logcontext.fields(),
        }
        if record.exc_info:
            content["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(content, default=str, ensure_ascii=False)
