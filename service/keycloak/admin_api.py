"""Calls of Keycloak's administration interface.

A few calls need no library; python-keycloak would bring six packages into every installation.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlencode

TIMEOUT_SECONDS = 30.0

Json = Any


class KeycloakError(Exception):
    """Keycloak refused a call or did not answer; the message says what to do."""


class Server:
    """A Keycloak at `url`, with the rights of an administrator of its realm `master`."""

    def __init__(self, url: str, administrator: str, password: str) -> None:
        """Sign in. Raises KeycloakError."""
        if not url.startswith(("http://", "https://")):
            raise KeycloakError(
                f"--url: {url!r} is not the address of a Keycloak. Use https://HOST or http://HOST:PORT."
            )
        self.url = url.rstrip("/")
        self._administrator, self._password = administrator, password
        self._token = ""
        self._sign_in()

    def _sign_in(self) -> None:
        form = {
            "grant_type": "password",
            "client_id": "admin-cli",
            "username": self._administrator,
            "password": self._password,
        }
        address = f"{self.url}/realms/master/protocol/openid-connect/token"
        request = urllib.request.Request(address, urlencode(form).encode())  # nosec B310
        try:
            self._token = _answer(request)["access_token"]
        except urllib.error.HTTPError as error:
            if error.code in (400, 401):
                raise KeycloakError(
                    f"Keycloak does not accept the password of the administrator {self._administrator!r}."
                    " Check --admin and the password."
                ) from None
            raise KeycloakError(
                f"{address} answers {error.code}. Check --url: it includes the path of Keycloak, such as /sso."
            ) from None

    def get(self, path: str, **query: str) -> Json:
        """Return the answer of GET below /admin/realms/, or None if there is no such object. Raises KeycloakError."""
        return self._call("GET", path + (f"?{urlencode(query)}" if query else ""))

    def post(self, path: str, body: Json) -> None:
        """Create an object. Raises KeycloakError."""
        self._call("POST", path, body)

    def put(self, path: str, body: Json) -> None:
        """Change an object. Raises KeycloakError."""
        self._call("PUT", path, body)

    def _call(self, method: str, path: str, body: Json = None) -> Json:
        for attempt in (1, 2):
            request = urllib.request.Request(  # the constructor has checked the scheme
                f"{self.url}/admin/realms{quote(path, safe='/?&=%')}",
                None if body is None else json.dumps(body).encode(),
                {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
                method=method,
            )
            try:
                return _answer(request)
            except urllib.error.HTTPError as error:
                if error.code == 404 and method == "GET":
                    return None
                if error.code == 401 and attempt == 1:  # the token lives for a minute
                    self._sign_in()
                    continue
                reason = error.read().decode(errors="replace")[:300]
                raise KeycloakError(f"Keycloak answers {error.code} to {method} {path}: {reason}") from None
        raise AssertionError("unreachable")


def _answer(request: urllib.request.Request) -> Json:
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # nosec B310
            content = answer.read()
    except urllib.error.HTTPError:
        raise
    except OSError as error:
        raise KeycloakError(
            f"{request.full_url} does not answer: {error}. Check --url, and that Keycloak runs."
        ) from None
    return json.loads(content) if content else None
