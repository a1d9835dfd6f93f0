"""The token of the local administrator. Embedded mode uses it instead of an identity provider."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from service.core.errors import Unauthenticated


def matches(token: str) -> bool:
    """Return whether this is the administrator's token, compared in constant time."""
    expected = _token()
    return bool(expected) and hmac.compare_digest(token.encode(), expected.encode())


def fingerprint() -> str:
    """Return a hash that identifies the current token. A session ends when the token changes.

    Raises Unauthenticated if the service has no token.
    """
    token = _token()
    if not token:
        raise Unauthenticated(
            "no_token_configured", "This service has no administrator token, so it cannot open a session."
        )
    return hashlib.sha256(b"trimtab-session:" + token.encode()).hexdigest()[:16]


def _token() -> str:
    if settings.TRIMTAB_ADMIN_TOKEN:
        return str(settings.TRIMTAB_ADMIN_TOKEN)
    if settings.TRIMTAB_ADMIN_TOKEN_FILE:
        path = Path(settings.TRIMTAB_ADMIN_TOKEN_FILE)
        try:
            return _read(path, path.stat().st_mtime_ns)
        except OSError:
            return ""
    return ""


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> str:
    # `changed` is part of the key, so that a new token takes effect without a restart.
    return path.read_text().strip()
