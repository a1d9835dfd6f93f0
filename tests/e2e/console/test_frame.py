"""The frame of the console: notifications, help, language, and parts that cannot be loaded."""

from __future__ import annotations

import re
import uuid

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.console.pages import step
from tests.factories.browser import NEEDS_BROWSER, open_page
from tests.factories.console import Rest
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER


def test_a_study_that_ends_shows_an_unread_notification_at_once(page: Page, api: Rest) -> None:
    opener = page.get_by_role("button", name=re.compile("notification", re.IGNORECASE))
    listed = page.get_by_role("dialog", name="Notifications")
    # Earlier tests have ended studies too.
    opener.click()
    expect(listed).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Notifications", exact=True)).to_be_visible()
    name = api.study(f"noticed-{uuid.uuid4().hex[:6]}", budget={"max_trials": 1})
    api.measure(name, 1)
    page.get_by_role("button", name=re.compile(r"^\d+ unread notification")).click()
    listed.get_by_role("link", name=f"{name} has ended").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("button", name="Notifications", exact=True)).to_be_visible()


def test_a_part_that_cannot_be_loaded_is_loaded_when_the_service_answers(page: Page) -> None:
    for address in ("**/assets/AgentsPage*", "**/healthz*"):
        page.route(address, lambda route: route.abort())
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Agents").click()
    expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()


def test_an_unknown_address_keeps_the_navigation(page: Page) -> None:
    page.goto("/no/such-page")
    expect(page.get_by_role("heading", name="Page not found", level=1)).to_be_visible()
    expect(page.get_by_text("/no/such-page")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Agents").click()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()


def test_a_draft_and_its_step_survive_a_reload(page: Page) -> None:
    page.goto("/new?component=bowl")
    step(page, "Review")
    expect(page).to_have_url(re.compile("step=review"))
    name = page.get_by_label("Name", exact=True)
    name.fill("kept")
    expect(page.get_by_label("Study file (YAML)", exact=False).first).to_contain_text("kept")
    page.reload()
    expect(name).to_have_value("kept")
    page.get_by_role("button", name="Start over").click()
    expect(name).to_have_value("")
    page.go_back()
    expect(page).not_to_have_url(re.compile("step="))


def test_the_help_is_german_in_a_german_browser(browser: Browser, service: EmbeddedService, api: Rest) -> None:
    context = browser.new_context(base_url=service.http_url, locale="de-AT")
    page = open_page(context)
    page.goto("/sign-in")
    page.get_by_text("Wo ist das Token?").click()
    expect(page.get_by_text(f"cat {service.data_dir / 'admin-token'}")).to_be_visible()
    page.get_by_label("Administrator-Token").fill(service.token)
    page.get_by_role("button", name="Anmelden").click()
    expect(page.get_by_role("heading", name="Start")).to_be_visible()
    expect(page.get_by_role("button", name="Hilfe")).to_be_visible()
    page.keyboard.press("?")
    page.get_by_role("button", name="Rundgang beginnen").click()
    expect(page.get_by_role("complementary", name="Rundgang")).to_contain_text("Eine Komponente ist ein System")
    context.close()


@pytest.mark.parametrize("path", ["/", "/studies/io-path-1", "/studies/io-path-1/report", "/new?clone=bowl-1", "/live"])
def test_a_page_needs_fewer_than_thirty_requests(page: Page, path: str) -> None:
    # A set, because the study at work has lists fetched again.
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(request.url))
    page.goto(path)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("load")
    expect(page.get_by_role("button", name=re.compile("notification", re.IGNORECASE))).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Loading .* …$"))).to_have_count(0)
    assert len(asked) < 30, "\n".join(sorted(asked))


def test_the_list_of_studies_is_a_few_screens_high_on_a_phone(page: Page, api: Rest) -> None:
    prefix = f"phone-{uuid.uuid4().hex[:6]}"
    for number in range(17):
        name = api.study(f"{prefix}-{number}", [prefix, "of a phone"], budget={"max_trials": 2})
        if number % 4 == 0:
            api.measure(name, 2)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/studies?q={prefix}")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(15)
    assert max(row.bounding_box()["height"] for row in rows.all()) < 130  # type: ignore[index]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(17)
