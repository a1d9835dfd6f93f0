"""The documentation site as the web process serves it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client
from playwright.sync_api import expect

from docs._ext.pages import ROOT, SITE
from tests.factories.browser import NEEDS_BROWSER, open_page, started_browser
from tests.factories.service import EmbeddedService


@pytest.fixture(scope="module", autouse=True)
def site() -> Path:
    """The built site; `make setup` has built it before."""
    subprocess.run([sys.executable, "-m", "docs._ext.build", "--changed"], cwd=ROOT, check=True)
    return SITE


@pytest.fixture(scope="module")
def http(site: Path, embedded_service: EmbeddedService) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=embedded_service.http_url, timeout=120) as client:
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
