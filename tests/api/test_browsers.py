"""Protection of browsers in a running service: headers, cookies, and requests of other sites."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.test import Client

from service.api.authentication import SAFE_METHODS
from tests.api.conftest import SPEC, Json
from tests.factories.browser import CHROMIUM, open_page, started_browser
from tests.factories.patience import PATIENCE
from tests.factories.service import PROXY, EmbeddedService

COOKIE = "trimtab_session"
CONSOLE = {"X-Trimtab-Console": "1"}
OTHER_SITE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
# Of every kind: page, file, API, error of each interface, stream, metrics, redirection.
PATHS = (
    "/", "/studies/x", "/favicon.svg", "/nowhere.js", "/healthz", "/readyz", "/metrics", "/login?code=wrong",
    "/api/v1/schema", "/api/v1/sign-in", "/api/v1/session", "/api/v1/studies", "/api/v1/studies/x/events",
    "/api/nowhere",
)  # fmt: skip
INJECTED = """() => {
    const script = document.createElement('script')
    script.text = 'window.owned = 1'
    document.body.append(script)
}"""


@pytest.fixture(scope="module")
def http(embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=embedded_service.http_url, timeout=PATIENCE) as client:
        yield client


@pytest.fixture(scope="module")
def proxied(embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    """A proxy that the service trusts."""
    transport = httpx.HTTPTransport(local_address=PROXY)
    with httpx.Client(base_url=embedded_service.http_url, transport=transport, timeout=PATIENCE) as client:
        yield client


@pytest.fixture(scope="module")
def session(http: httpx.Client, embedded_service: EmbeddedService) -> str:
    """The cookie of somebody who has signed in."""
    answer = http.post("/api/v1/session", json={"token": embedded_service.token}, headers=CONSOLE)
    return str(answer.cookies[COOKIE])


def operations() -> list[tuple[str, str]]:
    """Every method and path of the interface, with something in the place of names."""
    schema: Json = Client().get("/api/v1/schema").json()
    found = [(method.upper(), path) for path, methods in schema["paths"].items() for method in methods]
    assert len(found) > 25
    return [(method, re.sub(r"\{[^}]*\}", "1", path)) for method, path in found]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(http: httpx.Client, path: str) -> None:
    headers = http.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    # scripts from this service's files alone
    assert "script-src" not in policy
    assert "Server" not in headers
    # Said without TLS it would mean nothing, and over a connection to this machine it would lock people out.
    assert "Strict-Transport-Security" not in headers


def test_the_service_keeps_an_idle_connection_open(embedded_service: EmbeddedService) -> None:
    """Else the next request on it, by a proxy say, may come just as it is closed."""
    address = urlsplit(embedded_service.http_url)
    connection = HTTPConnection(address.netloc, timeout=PATIENCE)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read()
    connection.sock.settimeout(7)
    with pytest.raises(TimeoutError):
        connection.sock.recv(1)
    connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_responses_behind_tls_have_a_strict_transport_security_header(
    http: httpx.Client, proxied: httpx.Client, path: str
) -> None:
    headers = {"X-Forwarded-Proto": "https"}
    assert proxied.get(path, headers=headers).headers["Strict-Transport-Security"] == "max-age=31536000"
    # Not because a caller says so, on the same machine or on another one.
    assert "Strict-Transport-Security" not in http.get(path, headers=headers).headers


def test_only_a_named_proxy_states_the_address_of_a_caller(
    http: httpx.Client, proxied: httpx.Client, embedded_service: EmbeddedService
) -> None:
    token = {"Authorization": f"Bearer {embedded_service.token}"}
    for client, expected in ((http, "127.0.0.1"), (proxied, "203.0.113.9")):
        name = f"forwarded-{uuid.uuid4().hex[:8]}"
        # A client writes the first address, and the proxy the last one.
        headers = {**token, "X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
        client.post("/api/v1/studies", json={"name": name, "spec": SPEC}, headers=headers).raise_for_status()
        [entry] = http.get("/api/v1/audit", params={"target": f"study/{name}"}, headers=token).json()["entries"]
        assert entry["address"] == expected


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_other_sites_may_read_nothing(http: httpx.Client, session: str, method: str, path: str) -> None:
    headers = {
        **OTHER_SITE,
        "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "x-trimtab-console",
        "Cookie": f"{COOKIE}={session}",
    }
    answer = http.request(method, path, headers=headers)
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_no_write_is_done_for_another_site(http: httpx.Client, session: str) -> None:
    """By a form, a fetch, or a browser that sends no Sec-Fetch-Site, whatever the operation."""
    writes = [(method, path) for method, path in operations() if method not in SAFE_METHODS]
    assert len(writes) > 12
    for method, path in writes:
        for headers in (OTHER_SITE, {**OTHER_SITE, **CONSOLE}, {**CONSOLE, "Sec-Fetch-Site": "same-site"}, {}):
            answer = http.request(method, path, json={}, headers={**headers, "Cookie": f"{COOKIE}={session}"})
            assert (answer.status_code, answer.json()["code"]) == (403, "cross_site_request"), (method, path, headers)
            assert "Set-Cookie" not in answer.headers
    # The console's own are let through to what they ask for.
    own = {**CONSOLE, "Sec-Fetch-Site": "same-origin", "Cookie": f"{COOKIE}={session}"}
    assert http.request("DELETE", "/api/v1/studies/nobody-has-this", headers=own).status_code == 404


def test_a_read_changes_nothing_for_another_site(http: httpx.Client, session: str) -> None:
    """Browsers send safe methods across sites without asking, so no path may do something on one."""
    cookie = {"Cookie": f"{COOKIE}={session}"}
    own = {**CONSOLE, "Sec-Fetch-Site": "same-origin", **cookie}
    name = f"read-{uuid.uuid4().hex[:8]}"
    http.post("/api/v1/studies", json={"name": name, "spec": SPEC}, headers=own).raise_for_status()

    def there() -> tuple[list[str], Json]:
        """Which studies there are, and all of one that nobody else touches: others may be at work on theirs."""
        studies = http.get("/api/v1/studies?page_size=1000", headers=cookie).json()["studies"]
        return [study["name"] for study in studies], http.get(f"/api/v1/studies/{name}", headers=cookie).json()

    before = there()
    for method, path in operations():
        if method in SAFE_METHODS or path.endswith("/events"):
            continue
        assert http.get(path, headers={**cookie, **OTHER_SITE}).status_code < 500
    assert there() == before


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_cookies_flags(proxied: httpx.Client, embedded_service: EmbeddedService, encrypted: bool) -> None:
    http = proxied
    headers = {**CONSOLE, **({"X-Forwarded-Proto": "https"} if encrypted else {})}
    answer = http.post("/api/v1/session", json={"token": embedded_service.token}, headers=headers)
    cookie = SimpleCookie(answer.headers["Set-Cookie"])[COOKIE]
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["path"], cookie["domain"]) == ("Strict", "/", "")
    assert bool(cookie["secure"]) is encrypted
    assert int(cookie["max-age"]) == 30 * 24 * 3600
    # One cookie, and no other in any answer.
    assert answer.headers.get_list("Set-Cookie") == [answer.headers["Set-Cookie"]]
    ended = http.delete("/api/v1/session", headers={**headers, "Cookie": f"{COOKIE}={cookie.value}"})
    gone = SimpleCookie(ended.headers["Set-Cookie"])[COOKIE]
    assert (gone.value, gone["max-age"], gone["samesite"], gone["path"]) == ("", "0", "Strict", "/")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_console_works_under_its_policy_and_another_site_may_not_frame_it(
    embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    """In a real browser: nothing of the console's own is refused, and what a page tries that is not is."""
    with started_browser() as browser, browser.new_context() as context:
        page = open_page(context)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(f"{embedded_service.http_url}/sign-in")
        page.get_by_label("Administrator token").fill(embedded_service.token)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("heading", name="Home").wait_for()
        page.get_by_role("link", name="Agents", exact=True).click()
        page.wait_for_url("**/agents")
        refused: list[Any] = [text for text in said if "Content Security Policy" in text]
        assert refused == []
        # a script that somebody has put into the page
        page.evaluate(INJECTED)
        assert page.evaluate("() => window.owned") is None
        framing = tmp_path / "framing.html"
        framing.write_text(f"<iframe src='{embedded_service.http_url}/studies'></iframe>")
        page.goto(framing.as_uri())
        # Until it has come to an end the frame's address is empty, or the service's.
        end = time.monotonic() + PATIENCE
        while not page.frames[1].url.startswith("chrome-error:"):
            assert time.monotonic() < end, page.frames[1].url
            page.wait_for_timeout(100)
