"""The identity provider (OpenID Connect): the device flow of `trimtab login`, and the renewal of what it gave.

RFC 8628 (device flow), RFC 6749 (refresh), RFC 7009 (revocation). Uses the standard library alone.
`ca` is a PEM file of authorities to believe besides the system's.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab import trust
from trimtab.errors import Forbidden, InvalidInput, Timeout, Unauthenticated, Unavailable
from trimtab.login import Session

TIMEOUT_SECONDS = 15.0
# So that a login lasts beyond the provider's session in the browser.
SCOPE = "openid offline_access"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Device:
    """What a person is to open and to compare, and what this program asks with meanwhile."""

    url: str
    """With the code in it, where the provider does that."""
    code: str
    expires_in: float
    interval: float
    device_code: str


def begin(issuer: str, client_id: str, ca: str = "") -> Device:
    """Asks the provider for a code.

    Raises:
        Unavailable: the provider does not answer.
        Forbidden: it does not allow this.
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
    """Waits until the person has agreed.

    Raises:
        Forbidden: the person has refused.
        Timeout: the code is too old.
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
            raise Timeout(
                "login_timeout", f"The login did not come about ({_reason(answer)}): run `trimtab login` again."
            )
        if time.monotonic() > end:
            raise Timeout("login_timeout", "Nobody agreed to the login in time: run `trimtab login` again.")


def renew(session: Session, ca: str = "") -> Session:
    """The next session.

    Raises:
        Unauthenticated: the provider has ended it: `session_expired`.
        Unavailable: the provider does not answer.
    """
    answer = _post(
        _endpoint(session.issuer, "token_endpoint", ca),
        {"grant_type": "refresh_token", "client_id": session.client_id, "refresh_token": session.refresh_token},
        ca,
    )
    if "error" in answer:
        raise Unauthenticated("session_expired", f"Your login is over ({_reason(answer)}): run `trimtab login` again.")
    made = _session(session.issuer, session.client_id, answer)
    return made if made.refresh_token else replace(made, refresh_token=session.refresh_token)


def end(session: Session, ca: str = "") -> None:
    """Tells the provider that the session is over. Raises Unavailable."""
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
        raise Unavailable("bad_issuer", f"{issuer} does not describe itself as an identity provider with {name}.")
    return _checked(str(description[name]))


def _checked(url: str) -> str:
    """Secrets travel encrypted, unless they do not leave this machine. Raises InvalidInput."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise InvalidInput.of("issuer", url, "an https:// address")
    return url


def _post(url: str, fields: Mapping[str, str], ca: str) -> dict[str, Any]:
    data = urllib.parse.urlencode(fields).encode()
    return _send(urllib.request.Request(url, data, {"Accept": "application/json"}), ca)


def _send(request: urllib.request.Request, ca: str) -> dict[str, Any]:
    """The answer's JSON, also that of a refusal. Raises Unavailable."""
    where = urllib.parse.urlsplit(request.full_url).netloc
    try:
        # _checked has seen the address
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=trust.context(ca)) as answer:  # nosec B310
            text = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
        if error.code >= 500:
            raise _away(where, f"status {error.code}") from None
    except OSError as error:
        advice = ": --tls-ca FILE names an authority of your own" if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""
        raise _away(where, f"{error}{advice}") from None
    try:
        content = json.loads(text) if text.strip() else {}
    except ValueError:
        raise _away(where, "its answer is no JSON") from None
    if not isinstance(content, dict):
        raise _away(where, "its answer is no JSON object")
    return content


def _away(where: str, why: str) -> Unavailable:
    return Unavailable(
        "provider_unavailable", f"The identity provider at {where} does not answer ({why}).", retryable=True
    )


def _reason(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error_description") or answer.get("error"))
