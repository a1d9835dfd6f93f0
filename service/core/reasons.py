"""Sentences that say why something waits, failed or ended, with a code and values for readers in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from service.core.errors import JsonValue


class Reason(str):
    """A sentence for people that also has a code and values, from which a client makes it in another language.

    It is a `str`, so that whatever takes a sentence takes it too. A sentence without a code is a plain `str`: a person
    or a program of the user has written it. A code is an interface, as the code of an error is.
    """

    code: str
    values: Mapping[str, JsonValue]

    def __new__(cls, text: str, code: str, /, **values: JsonValue) -> Self:
        found = super().__new__(cls, text)
        found.code, found.values = code, values
        return found

    @property
    def data(self) -> dict[str, JsonValue]:
        """Return code and values as clients get them."""
        return {"code": self.code, "values": dict(self.values)}


def joined(reasons: Sequence[str]) -> str:
    """Return several sentences as one text. It has a code if each of them has one."""
    text = " ".join(reasons)
    parts = [one.data for one in reasons if isinstance(one, Reason)]
    return Reason(text, "joined", parts=[*parts]) if len(parts) == len(reasons) else text


def stored(reason: str) -> dict[str, JsonValue] | None:
    """Return what is stored with the text of a reason; None for a sentence without a code.

    It contains the first line of the text, because a process of an earlier version changes the text alone.
    """
    return {**reason.data, "text": _first_line(reason)} if isinstance(reason, Reason) else None


def data_of(text: str, found: Mapping[str, Any] | None) -> dict[str, JsonValue] | None:
    """Return code and values of a stored reason; None if it has no code. They replace the first line of the text."""
    if found is None or found["text"] != _first_line(text):
        return None
    return {"code": found["code"], "values": found["values"]}


def restored(text: str, found: Mapping[str, Any] | None) -> str:
    """Return a stored reason with its code, if it has one."""
    data = data_of(text, found)
    return text if data is None or found is None else Reason(text, found["code"], **found["values"])


def first_line(reason: str) -> str:
    """Return the first line of a reason, without the output of a program that follows it, and with its code."""
    text = _first_line(reason)
    return Reason(text, reason.code, **reason.values) if isinstance(reason, Reason) else text


def quoted(reason: str) -> dict[str, JsonValue]:
    """Return a sentence that is part of another one, as the values of that one have it."""
    return {"reason": str(reason), "cause": reason.data if isinstance(reason, Reason) else None}


def _first_line(text: str) -> str:
    # `partition` gives a text without a line break back as it is, with its class.
    return str(text.partition("\n")[0])
