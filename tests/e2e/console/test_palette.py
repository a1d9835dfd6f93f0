"""The console's command palette."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.factories.browser import NEEDS_BROWSER
from tests.factories.console import Rest

pytestmark = NEEDS_BROWSER


def test_the_palette_goes_anywhere_by_keyboard(page: Page) -> None:
    page.keyboard.press("Control+k")
    find = page.get_by_placeholder("Search for a study, page or command")
    expect(find).to_be_focused()
    find.fill("path-li")
    expect(page.get_by_role("option", name=re.compile("^io-path-live"))).to_be_visible()
    # Found by its tag, having been there by its name.
    found = page.get_by_role("group", name="Studies").get_by_role("option")
    for text in ("path-2", "gcc 13"):
        find.fill(text)
        expect(found).to_have_text([re.compile("^io-path-2")])
    find.fill("path-li")
    expect(found).to_have_text([re.compile("^io-path-live")])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="io-path-live")).to_be_visible()
    page.keyboard.press("Control+k")
    find.fill("setup")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Study file")).to_contain_text("minimize: seconds")
    page.keyboard.press("Control+k")
    find.fill("agents")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


@pytest.mark.slow("the buttons of the study's page do the same")
def test_the_palette_pauses_resumes_and_stops_a_study(page: Page, api: Rest) -> None:
    name = api.study(f"palette-{uuid.uuid4().hex[:6]}")
    find = page.get_by_placeholder("Search for a study, page or command")

    def go(address: str) -> None:
        page.goto(address)
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    def tell(command: str) -> None:
        page.keyboard.press("Control+k")
        find.fill(command)
        expect(page.get_by_role("option", name=command, exact=False).first).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Enter")
        expect(find).to_be_hidden()

    def option(command: str) -> Any:
        return page.get_by_role("option", name=f"{command} {name}")

    def state() -> Any:
        return api("GET", f"/studies/{name}")["state"]

    go(f"/studies/{name}/report")
    tell(f"Pause {name}")
    assert state() == "PAUSED"
    tell("Resume")
    assert state() == "ACTIVE"
    page.keyboard.press("Control+k")
    find.fill("st")
    expect(option("Stop")).to_be_visible()
    # What is not shown of a command does not find it; a name alone opens the study.
    expect(option("Pause")).to_have_count(0)
    find.fill("palette-")
    expect(page.get_by_role("group", name="Studies").get_by_role("option", name=name)).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Escape")
    # From elsewhere it is named.
    go("/agents")
    tell(f"Pause {name}")
    assert state() == "PAUSED"
    # What was found for an earlier text is not what is meant now.
    page.keyboard.press("Control+k")
    find.fill(name)
    expect(option("Resume")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/v1/studies?*", lambda route: held.append(route))
    find.fill("resume")
    expect(option("Resume")).to_have_count(0)
    page.keyboard.press("Enter")
    for route in held:
        route.continue_()
    page.unroute("**/api/v1/studies?*")
    # Nobody has named one: the command is written out before it is run.
    option("Resume").click()
    expect(find).to_have_value(f"Resume {name}")
    expect(option("Resume")).to_have_attribute("aria-selected", "true")
    assert state() == "PAUSED"
    page.keyboard.press("Enter")
    expect(find).to_be_hidden()
    assert state() == "ACTIVE"
    # By its name alone it is found first.
    page.keyboard.press("Control+k")
    find.fill(name)
    option("Pause").click()
    expect(find).to_be_hidden()
    assert state() == "PAUSED"
    page.keyboard.press("Control+k")
    find.fill(name)
    expect(option("Resume")).to_be_visible()
    option("Stop").click()
    dialogue = page.get_by_role("dialog", name=f"Stop {name}?")
    # A trial may begin while one reads: it can be aborted.
    expect(dialogue.get_by_role("button", name="Abort")).to_be_visible()
    dialogue.get_by_role("button", name="Cancel").click()
    expect(dialogue).to_be_hidden()
    assert state() == "PAUSED"
    # Of a single objective there are no trade-offs.
    go(f"/studies/{name}?tab=trade-offs")
    parts = page.get_by_role("navigation", name="Study")
    expect(parts.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")
    page.keyboard.press("Control+k")
    expect(option("Stop")).to_be_visible()
    expect(page.get_by_role("option", name="Timeline")).to_be_visible()
    expect(page.get_by_role("option", name="Trade-offs")).to_have_count(0)
    page.keyboard.press("Escape")
    tell(f"Stop {name}")
    dialogue.get_by_role("button", name="Finish").click()
    expect(dialogue).to_be_hidden()
    assert state() == "COMPLETED"
    # An ended study cannot be paused, resumed or stopped.
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", name="Clone this study")).to_be_visible()
    expect(page.get_by_role("option", name=re.compile(f"(Pause|Resume|Stop) {name}"))).to_have_count(0)
