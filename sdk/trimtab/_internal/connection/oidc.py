"""The identity provider (OpenID Connect): the device flow of `trimtab login` and the renewal of tokens.

It implements RFC 8628 (device flow), RFC 6749 (refresh) and RFC 7009 (revocation) with the standard library alone.
`ca` is a PEM file of authorities to trust in addition to the system's.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab._internal.connection import trust
from trimtab._internal.connection.login import Session
from trimtab.errors import Forbidden, InvalidInput, Timeout, Unauthenticated, Unavailable

TIMEOUT_SECONDS = 15.0
# offline_access makes a login last longer than the provider's session in the browser.
SCOPE = "openid offline_access"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Device:
    """The address and code for the user, and the device code that this program polls with."""

    url: str
    """It contains the code if the provider supports that."""
    code: str
    expires_in: float
    interval: float
    device_code: str


def begin(issuer: str, client_id: str, ca: str = "") -> Device:
    """Ask the provider for a code.

    Raises:
        Unavailable: the provider does not answer.
        Forbidden: the provider refuses the device flow.
    """
    endpoint = _endpoint(issuer, "device_authorization_endpoint", ca)
    answer = _post(endpoint, {"client_id": client_id, "scope": SCOPE}, ca)
    if "error" in answer:
        raise Forbidden("login_refused", f"{issuer} refuses the device flow: {_reason(answer)}")
    return Device(
        str(answer.get("verification_uri_complete") or answer["verification_uri"]),
        str(answer["user_code"]),
        float(answer["expires_in"]),
        float(answer.get("interval", 5)),
        str(answer["device_code"]),
    )


def wait(
    issuer: str, client_id: str, device: Device, ca: str = "", sleep: Callable[[float], None] = time.sleep
) -> Session:
    """Wait until the user has agreed in the browser, and return the session.

    Raises:
        Forbidden: the user has refused.
        Timeout: the code has expired.
    """
    endpoint = _endpoint(issuer, "token_endpoint", ca)
    interval, end = device.interval, time.monotonic() + device.expires_in
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    while True:
        sleep(interval)
        try:
            fields = {"grant_type": grant, "client_id": client_id, "device_code": device.device_code}
            answer = _post(endpoint, fields, ca)
        except Unavailable:
            answer = {"error": "authorization_pending"}
        error = answer.get("error")
        if error is None:
            return _session(issuer, client_id, answer)
        if error == "slow_down":
            interval += 5
        elif error == "access_denied":
            raise Forbidden("login_refused", "The login was refused in the browser.")
        elif error != "authorization_pending":
            raise Timeout("login_timeout", f"The login failed ({_reason(answer)}): run `trimtab login` again.")
        if time.monotonic() > end:
            raise Timeout("login_timeout", "Nobody confirmed the login in time: run `trimtab login` again.")


def renew(session: Session, ca: str = "") -> Session:
    """Renew a session with its refresh token, and return the new session.

    Raises:
        Unauthenticated: the provider has ended the session (`session_expired`).
        Unavailable: the provider does not answer.
    """
    answer = _post(
        _endpoint(session.issuer, "token_endpoint", ca),
        {"grant_type": "refresh_token", "client_id": session.client_id, "refresh_token": session.refresh_token},
        ca,
    )
    if "error" in answer:
        reason = _reason(answer)
        raise Unauthenticated("session_expired", f"Your login has ended ({reason}): run `trimtab login` again.")
    made = _session(session.issuer, session.client_id, answer)
    return made if made.refresh_token else replace(made, refresh_token=session.refresh_token)


def end(session: Session, ca: str = "") -> None:
    """Revoke the session at the provider. Raises Unavailable."""
    endpoint = _endpoint(session.issuer, "revocation_endpoint", ca)
    _post(
        endpoint,
        {"client_id": session.client_id, "token": session.refresh_token, "token_type_hint": "refresh_token"},
        ca,
    )


def _session(issuer: str, client_id: str, answer: Mapping[str, Any]) -> Session:
    expires_at = time.time() + float(answer.get("expires_in", 60))
    return Session(issuer, client_id, str(answer["access_token"]), str(answer.get("refresh_token", "")), expires_at)


def _endpoint(issuer: str, name: str, ca: str) -> str:
    description = _send(urllib.request.Request(f"{_checked(issuer)}/.well-known/openid-configuration"), ca)
    if description.get("issuer") != issuer or name not in description:
        raise Unavailable("bad_issuer", f"The OpenID configuration of {issuer} has another issuer or no {name}.")
    return _checked(str(description[name]))


def _checked(url: str) -> str:
    """Return the address if it is encrypted or on this machine, else raise InvalidInput."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise InvalidInput.of("issuer", url, "an https:// address")
    return url


def _post(url: str, fields: Mapping[str, str], ca: str) -> dict[str, Any]:
    data = urllib.parse.urlencode(fields).encode()
    return _send(urllib.request.Request(url, data, {"Accept": "application/json"}), ca)


def _send(request: urllib.request.Request, ca: str) -> dict[str, Any]:
    """Send the request and return the JSON of the answer, also of a refusal. Raises Unavailable."""
    where = urllib.parse.urlsplit(request.full_url).netloc.rpartition("@")[2]
    try:
        # _checked has verified the address.
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=trust.context(ca)) as answer:  # nosec B310
            text = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
        if error.code >= 500:
            raise _away(where, f"status {error.code}") from None
    except OSError as error:
        advice = ". To trust your own authority, use --tls-ca FILE" if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""
        raise _away(where, f"{error}{advice}") from None
    try:
        content = json.loads(text) if text.strip() else {}
    except ValueError:
        raise _away(where, "its answer is not JSON") from None
    if not isinstance(content, dict):
        raise _away(where, "its answer is not a JSON object")
    return content


def _away(where: str, why: str) -> Unavailable:
    return Unavailable(
        "provider_unavailable", f"The identity provider at {where} does not answer ({why}).", retryable=True
    )


def _reason(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error_description") or answer.get("error"))
