"""A real browser, and the built console that it is to show."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.factories.patience import PATIENCE

WEB = Path(__file__).resolve().parents[2] / "web"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The longest wait for a page, in the unit of Playwright.
PATIENCE_MS = 1000 * PATIENCE
expect.set_options(timeout=PATIENCE_MS)
# For a module's `pytestmark`. In CI what is missing is a failure.
_MAY_LACK = os.environ.get("CI") != "true"
NEEDS_BROWSER = [
    pytest.mark.skipif(_MAY_LACK and CHROMIUM is None, reason="Chromium is not installed: the console is not tested"),
    pytest.mark.skipif(_MAY_LACK and shutil.which("npm") is None, reason="Node.js is not installed"),
]


def build_console() -> None:
    """Build the console if it has not been built."""
    if not (WEB / "dist" / "index.html").exists():
        if not (WEB / "node_modules").exists():
            subprocess.run(["npm", "ci"], cwd=WEB, check=True)
        subprocess.run(["npm", "run", "build"], cwd=WEB, check=True)


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Chromium, without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE_MS)
        yield browser
        browser.close()


def open_page(context: BrowserContext) -> Page:
    """Open a page. An error in one of its scripts fails the test."""
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page raised {error}"))
    return page


def choose_action(page: Page, name: str) -> None:
    """Choose a rare action of a study's page, which is in its menu."""
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name=name, exact=True).click()


def accessibility_faults(page: Page) -> list[str]:
    """Return the violations of WCAG 2.2 AA that axe finds on the page: rule, element and fault."""
    axe = (WEB / "node_modules" / "axe-core" / "axe.min.js").read_text()
    # Not as a script of the page, which its content security policy would refuse.
    page.evaluate(axe)
    found = page.evaluate(
        "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return [
        f"{violation['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
