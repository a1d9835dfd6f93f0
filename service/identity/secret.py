"""Secrets that the service gives out: a prefix that says what it is, 40 random characters, and a checksum.

A scanner for leaked secrets can tell `trm_` followed by 46 letters and digits from anything else without asking: the
last six are the CRC-32 of what stands before them. The service keeps only a hash. With 238 random bits a plain one
does: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from enum import StrEnum

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 40
_CHECKSUM = 6
_FORM = re.compile(rf"(tr[mae]_)[0-9A-Za-z]{{{_RANDOM + _CHECKSUM}}}")


class Kind(StrEnum):
    """What a secret is for."""

    API_TOKEN = "trm_"
    # An agent's own, which it renews.
    AGENT = "tra_"
    # Good once, to enrol an agent.
    ENROLMENT = "tre_"


def create(kind: Kind) -> str:
    """A new secret."""
    body = kind + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _checksum(body)


def kind_of(text: str) -> Kind | None:
    """What the text is a secret for; None for what is none, mistyped ones included."""
    found = _FORM.fullmatch(text)
    if found is None or _checksum(text[:-_CHECKSUM]) != text[-_CHECKSUM:]:
        return None
    return Kind(found[1])


def digest(text: str) -> str:
    """What is stored of a secret: SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def hint(text: str) -> str:
    """The beginning of a secret, by which its owner knows it again."""
    return text[:8]


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
