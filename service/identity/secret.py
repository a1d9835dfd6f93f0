"""Secrets that the service issues: a prefix for the kind, 40 random characters, and a checksum.

A scanner for leaked secrets recognises `trm_` followed by 46 letters and digits without a call to the service: the last
six characters are the CRC-32 of the characters before them. The service keeps only a hash. A plain hash is enough,
because 238 random bits cannot be guessed.
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
    """The use of a secret, and its prefix."""

    API_TOKEN = "trm_"
    # The credential of an agent, which the agent renews.
    AGENT = "tra_"
    # Valid once, to enrol an agent.
    ENROLMENT = "tre_"


def create(kind: Kind) -> str:
    """Return a new secret."""
    body = kind + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _checksum(body)


def kind_of(text: str) -> Kind | None:
    """Return the kind of a secret, or None if the text is no secret or has a typing error."""
    found = _FORM.fullmatch(text)
    if found is None or _checksum(text[:-_CHECKSUM]) != text[-_CHECKSUM:]:
        return None
    return Kind(found[1])


def digest(text: str) -> str:
    """Return the hash of a secret that is stored: SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def hint(text: str) -> str:
    """Return the first characters of a secret, by which its owner recognises it."""
    return text[:8]


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = ""
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
