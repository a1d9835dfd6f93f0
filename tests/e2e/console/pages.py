"""Signing in and finding things on the console's pages."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.factories.browser import open_page
from tests.factories.service import EmbeddedService


def signed_in(browser: Browser, service: EmbeddedService, token: str, **options: Any) -> Page:
    context = browser.new_context(base_url=service.http_url, **options)
    page = open_page(context)
    page.goto("/sign-in")
    page.get_by_label("Administrator token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    return page


def step(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Steps").get_by_role("button", name=name).click()


def names(page: Page) -> Any:
    return page.locator("tbody").get_by_role("rowheader").get_by_role("link")
