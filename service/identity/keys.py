"""The public keys of the identity provider. They are fetched rarely; a call whose key is known never waits for them."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import jwt

from service.core.errors import Unauthenticated, Unavailable
from service.logger import Logger

logger = Logger(__name__)

# A background thread fetches the keys again after this time, so that a withdrawn key becomes invalid.
REFRESH_SECONDS = 300.0
# An unknown key causes a fetch at most this often, since any caller can name one.
RETRY_SECONDS = 5.0
TIMEOUT_SECONDS = 3.0
MAX_BYTES = 1024 * 1024


class Keys:
    """The keys by identifier (`kid`). Thread-safe.

    While the provider does not answer, the last known keys stay valid.
    """

    def __init__(self, fetch: Callable[[], Mapping[str, jwt.PyJWK]]) -> None:
        self._fetch = fetch
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._guard = threading.Lock()
        self._tried = self._fetched = -float("inf")

    def find(self, kid: str) -> jwt.PyJWK:
        """Return the key with this identifier.

        Raises Unauthenticated (`unknown_key`) if the provider does not have it, and Unavailable (`keys_unavailable`) if
        the provider does not answer.
        """
        key = self._keys.get(kid)
        if key is None:
            return self._ask_for(kid)
        now = time.monotonic()
        if now - self._fetched > REFRESH_SECONDS and now - self._tried > RETRY_SECONDS and not self._guard.locked():
            threading.Thread(target=self._refresh, name="keys", daemon=True).start()
        return key

    def _ask_for(self, kid: str) -> jwt.PyJWK:
        # A call waits for the fetch of another call only after a start, while there is no key at all.
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
                "The identity provider does not answer, so the key of the token cannot be checked. Try again.",
                retryable=True,
            )
        # A new key may be unknown for seconds, because a fetch for another key has just taken place.
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
        """Fetch all keys. If that fails, the present keys stay."""
        self._tried = time.monotonic()
        try:
            keys = self._fetch()
        except Exception as error:  # noqa: BLE001 - the last known keys stay in use whatever the error
            logger.warning("the identity provider's keys could not be fetched", error=error)
        else:
            # This order matters: a call that misses its key among the new ones reports `unknown_key`.
            self._fetched = time.monotonic()
            self._keys = keys


def fetch(issuer: str, url: str) -> Mapping[str, jwt.PyJWK]:
    """Fetch the signing keys that the issuer publishes at `url`, or at the address in its own description.

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
