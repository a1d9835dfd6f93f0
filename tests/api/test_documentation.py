"""The documentation site as the web process serves it, and the links that lead to it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client
from playwright.sync_api import expect

import trimtab
from docs._ext.generated import programs
from docs._ext.generated.errors import codes
from docs._ext.pages import ROOT, SITE
from service.platform import error_pages
from tests.factories.browser import NEEDS_BROWSER, build_console, open_page, started_browser
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from trimtab.errors import InvalidInput


@pytest.fixture(scope="module", autouse=True)
def site(programs_start: None) -> Path:
    """The built site; `make setup` has built it before."""
    subprocess.run([sys.executable, "-m", "docs._ext.build", "--changed"], cwd=ROOT, check=True)
    return SITE


@pytest.fixture(scope="module")
def http(site: Path, embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=embedded_service.http_url, timeout=PATIENCE) as client:
        yield client


def test_the_service_shows_the_site(http: httpx.Client) -> None:
    page = http.get("/docs", follow_redirects=True)
    assert page.status_code == 200
    assert page.url.path == "/docs/"
    assert page.headers["Content-Type"] == 'text/html; charset="utf-8"'
    assert page.headers["Cache-Control"] == "max-age=60, public"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert "How-to" in page.text
    again = http.get("/docs/", headers={"If-None-Match": page.headers["ETag"]})
    assert again.status_code == 304


def test_a_page_that_does_not_exist_is_not_the_console(http: httpx.Client) -> None:
    answer = http.get("/docs/nowhere.html")
    assert answer.status_code == 404
    assert "no such page" in answer.text


def test_a_site_that_is_not_built_says_how_to_build_it(settings: Any, tmp_path: Path, db: None) -> None:
    settings.DOCS_DIR = tmp_path
    answer = Client().get("/docs/index.html")
    assert answer.status_code == 404
    assert "make docs" in answer.content.decode()


def test_nothing_in_the_site_comes_from_elsewhere() -> None:
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text()
        for mark in (
            '<script src="http',
            "<script>",
            '<link rel="stylesheet" href="http',
            '<img src="http',
            "onclick=",
        ):
            assert mark not in text, f"{page}: {mark}"


def missing(addresses: list[str]) -> list[str]:
    """Return the addresses, as /docs/PAGE#PLACE, that the built site does not have."""
    absent = []
    for address in addresses:
        page, _, place = address.removeprefix("/docs/").partition("#")
        file = SITE / (page or "index.html")
        if not file.is_file() or (place and f'id="{place}"' not in file.read_text()):
            absent.append(address)
    return absent


def test_every_page_of_an_error_exists() -> None:
    assert missing([error_pages.page(code) for code in error_pages.PAGES]) == []
    assert set(error_pages.PAGES) <= set(codes())


def test_every_link_of_the_console_leads_to_a_page() -> None:
    routes = re.findall(r'path: "(/[^"]*)"', (ROOT / "web/src/app/router.tsx").read_text())
    pages = dict(re.findall(r'"(/[^"]*)": "(/docs/[^"]*)"', (ROOT / "web/src/app/Help.tsx").read_text()))
    assert set(pages) == set(routes) - {"/sign-in"}
    assert missing(list(pages.values())) == []


def test_every_help_text_names_its_page() -> None:
    count = 0
    for text in (programs.trimtab(), programs.agent(), programs.service()):
        for name, section in re.findall(r"^### (.+?)\n\n```text\n(.*?)\n```", text, re.MULTILINE | re.DOTALL):
            found = re.search(r"CONSOLE(/docs/[\w./#-]+)", section)
            assert found, f"{name} --help names no page"
            assert missing([found[1]]) == [], name
            assert name.count(" ") == 0 or found[1].endswith(f"#{name.replace(' ', '-')}")
            count += 1
    assert count > 50


def test_an_error_names_its_page_in_rest_and_grpc(http: httpx.Client, embedded_service: EmbeddedService) -> None:
    token = {"Authorization": f"Bearer {embedded_service.token}"}
    file = "component: nobody-has-it\nobjectives: [{minimize: seconds}]\n"
    answer = http.post("/api/v1/studies", json={"name": "no-component", "file": file}, headers=token)
    assert (answer.json()["code"], answer.json()["docs"]) == (
        "component_not_found",
        "/docs/how-to/write-component.html",
    )
    assert http.get(answer.json()["docs"]).status_code == 200
    assert "docs" not in http.get("/api/v1/studies/no-such-study", headers=token).json()
    with trimtab.Client(embedded_service.grpc_address, token=embedded_service.token) as client:
        study = client.create_study(
            "documented-error",
            space=[trimtab.Int("x", 1, 9), trimtab.Int("y", 1, 9)],
            objectives=[trimtab.Minimize("seconds")],
            constraints=["x * y <= 9"],
        )
        with pytest.raises(InvalidInput) as raised:
            study.enqueue({"x": 9, "y": 9})
    assert (raised.value.code, raised.value.docs) == ("constraint_broken", "/docs/how-to/constraints.html")


@NEEDS_BROWSER[0]
def test_the_console_links_to_the_documentation(embedded_service: EmbeddedService) -> None:
    build_console()
    with started_browser() as browser:
        page = open_page(browser.new_context())
        page.goto(f"{embedded_service.http_url}/sign-in?next=/agents")
        page.get_by_label("Token").fill(embedded_service.token)
        page.keyboard.press("Enter")
        link = page.get_by_role("link", name="Documentation", exact=True)
        page.get_by_role("button", name="Help").click()
        expect(link).to_have_attribute("href", "/docs/how-to/many-machines.html")
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Components").click()
        page.get_by_role("button", name="Help").click()
        expect(link).to_have_attribute("href", "/docs/how-to/write-component.html")
        with page.expect_popup() as opened:
            link.click()
        expect(opened.value.get_by_role("heading", name="Write a component", level=1)).to_be_visible()


@NEEDS_BROWSER[0]
def test_the_search_finds_a_page_under_the_content_security_policy(embedded_service: EmbeddedService) -> None:
    with started_browser() as browser:
        page = open_page(browser.new_context(color_scheme="dark"))
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(f"{embedded_service.http_url}/docs/")
        # dark as the system is, without a choice
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"
        page.get_by_placeholder("Search").fill("pooler")
        page.keyboard.press("Enter")
        results = page.locator("#search-results a")
        expect(results.filter(has_text="Hosting the service").first).to_be_visible()
        results.filter(has_text="Hosting the service").first.click()
        expect(page.get_by_role("heading", name="Hosting the service", level=1)).to_be_visible()
        # a choice of the reader lasts
        page.locator("button.theme-toggle:visible").click()
        chosen = page.evaluate("document.body.dataset.theme")
        page.reload()
        assert chosen in ("light", "dark")
        assert page.evaluate("document.body.dataset.theme") == chosen
        assert faults == []
