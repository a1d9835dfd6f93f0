"""The local administrator's token: what embedded mode has in place of an identity provider."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from service.core.errors import Unauthenticated


def matches(token: str) -> bool:
    """Whether this is the administrator's token, compared in constant time."""
    expected = _token()
    return bool(expected) and hmac.compare_digest(token.encode(), expected.encode())


def fingerprint() -> str:
    """Names the token in force without giving it away: a session ends when the token is changed.

    Raises Unauthenticated where the service has no token at all.
    """
    token = _token()
    if not token:
        raise Unauthenticated("no_token_configured", "This service has no administrator token: nobody can sign in.")
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
    # `changed` is part of the key so that a new token counts without a restart.
    return path.read_text().strip()
