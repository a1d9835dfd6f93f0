"""The identity provider's public keys: fetched seldom, and never on the way of a call whose key is known."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from service.core.errors import Unauthenticated, Unavailable

logger = logging.getLogger(__name__)

# Keys are fetched anew this often, beside the calls, so that one that was withdrawn counts no longer.
REFRESH_SECONDS = 300.0
# An unknown key is asked for this often at most: anybody can name one.
RETRY_SECONDS = 5.0
TIMEOUT_SECONDS = 3.0
MAX_BYTES = 1024 * 1024


class Keys:
    """The keys by their identifiers (`kid`). Thread-safe.

    While the provider is away the keys last seen go on to count.
    """

    def __init__(self, fetch: Callable[[], Mapping[str, jwt.PyJWK]]) -> None:
        self._fetch = fetch
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._guard = threading.Lock()
        self._tried = self._fetched = -float("inf")

    def find(self, kid: str) -> jwt.PyJWK:
        """The key of this name.

        Raises Unauthenticated (`unknown_key`): the provider does not have it; Unavailable (`keys_unavailable`): it
        could not be asked.
        """
        key = self._keys.get(kid)
        if key is None:
            return self._ask_for(kid)
        now = time.monotonic()
        if now - self._fetched > REFRESH_SECONDS and now - self._tried > RETRY_SECONDS and not self._guard.locked():
            threading.Thread(target=self._refresh, name="keys", daemon=True).start()
        return key

    def _ask_for(self, kid: str) -> jwt.PyJWK:
        # Who comes while another fetches waits only as long as there is no key at all, after a start.
        if self._guard.acquire(blocking=not self._keys):
            try:
                if kid not in self._keys and time.monotonic() - self._tried > RETRY_SECONDS:
                    self._load()
            finally:
                self._guard.release()
        key = self._keys.get(kid)
        if key is not None:
            return key
        if self._fetched < self._tried or not self._keys:
            raise Unavailable(
                "keys_unavailable",
                "The identity provider does not answer, so the token's key cannot be checked; try again.",
                retryable=True,
            )
        # A key that is seconds old may be unknown because another was asked for a moment ago.
        raise Unauthenticated(
            "unknown_key", "The token is signed with a key that the identity provider does not have.", retryable=True
        )

    def _refresh(self) -> None:
        if self._guard.acquire(blocking=False):
            try:
                self._load()
            finally:
                self._guard.release()

    def _load(self) -> None:
        """Fetch all keys; those that are there stay where that fails."""
        self._tried = time.monotonic()
        try:
            keys = self._fetch()
        except Exception as error:  # noqa: BLE001 - whatever it is, the keys of before are the best there is
            logger.warning("the identity provider's keys could not be fetched: %s", error)
        else:
            # In this order: who does not find a key among the new ones is told so, not that nobody could be asked.
            self._fetched = time.monotonic()
            self._keys = keys


def fetch(issuer: str, url: str) -> Mapping[str, jwt.PyJWK]:
    """The signing keys that the issuer publishes at `url`, or where its own description says they are.

    Raises OSError, ValueError.
    """
    if not url:
        description = _get(f"{issuer}/.well-known/openid-configuration")
        if description.get("issuer") != issuer:
            raise ValueError(f"{issuer} calls itself {description.get('issuer')!r}")
        url = str(description["jwks_uri"])
    keys = {}
    for item in _get(url).get("keys", []):
        if item.get("use", "sig") != "sig" or item.get("kty") not in ("RSA", "EC") or "kid" not in item:
            continue
        keys[str(item["kid"])] = jwt.PyJWK(item)
    if not keys:
        raise ValueError(f"{url} has no signing keys")
    return keys


def _get(url: str) -> dict[str, Any]:
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url} is not a web address")
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # checked above  # nosec B310
        content = json.loads(answer.read(MAX_BYTES))
    if not isinstance(content, dict):
        raise ValueError(f"{url} has no JSON object")
    return content
