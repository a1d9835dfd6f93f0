"""Accessibility and catalogued texts of all the console's pages."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.console.pages import signed_in, step
from tests.factories.browser import NEEDS_BROWSER, accessibility_faults, open_page
from tests.factories.console import Rest
from tests.factories.service import EmbeddedService
from tests.factories.wrapped import foreign, names_and_values, unwrapped, wrap_texts
from tests.marks import slow_cases
from tests.screens import PAGES, STEPS

pytestmark = NEEDS_BROWSER


@pytest.mark.parametrize("scheme", ["light", *slow_cases("the light theme has the same elements", "dark")])
def test_no_page_has_a_fault_that_axe_finds_and_all_fit_a_phone(
    browser: Browser, service: EmbeddedService, api: Rest, scheme: Any
) -> None:
    size = {"width": 360, "height": 740}
    page = signed_in(browser, service, service.token, color_scheme=scheme, viewport=size, reduced_motion="reduce")
    faults: list[str] = []

    def look(where: str) -> None:
        faults.extend(f"{where}: {fault}" for fault in accessibility_faults(page))
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{where} is {width} wide"

    for name, path in PAGES.items():
        if name.startswith("study"):
            continue
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("status")).to_have_count(0)
        look(name)
        if name == "new":
            for one in STEPS:
                step(page, one)
                look(f"{name} {one}")
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("Search for a study, page or command")).to_be_focused()
    look("palette")
    page.context.close()
    assert not faults, "\n".join(faults)


@pytest.mark.slow("visits every page once more, which takes a minute")
def test_every_text_comes_from_the_catalogue(browser: Browser, service: EmbeddedService, api: Rest) -> None:
    context = browser.new_context(base_url=service.http_url)
    reported = wrap_texts(context)
    page = open_page(context)
    found: dict[str, list[tuple[str, str]]] = {}

    def look(name: str) -> None:
        expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        # A chart draws its first frame after its data has arrived.
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found[name] = unwrapped(page)

    page.goto("/sign-in")
    page.get_by_label("⟦Administrator token⟧").fill(service.token)
    look("sign-in")
    page.get_by_role("button", name="⟦Sign in⟧").click()
    page.get_by_role("heading", name="⟦Home⟧").wait_for()
    of_a_study = {f"bowl-1 {tab}": f"/studies/bowl-1?tab={tab}" for tab in ("trials", "analysis", "timeline")}
    single = {"trial": "/studies/bowl-1/trials/1", "report": "/studies/bowl-1/report", "nowhere": "/nowhere"}
    for name, path in {**PAGES, **of_a_study, **single}.items():
        page.goto(path)
        page.get_by_text("⟦").first.wait_for()
        look(name)
        if name == "new":
            for one in STEPS:
                page.get_by_role("navigation", name="⟦Steps⟧").get_by_role("button", name=one).click()
                look(f"{name} {one}")
    page.goto("/")
    page.get_by_role("heading", name="⟦Home⟧").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_placeholder("⟦Search for a study, page or command⟧").wait_for()
    look("palette")

    studies = [one["name"] for one in api("GET", "/studies")["studies"]]
    reported.append(api("GET", "/gallery"))
    reported += [api("GET", f"/studies/{name}") for name in studies] + [api("GET", "/studies/bowl-1/trials")]
    # Languages are named in their own words, whatever the language of the console.
    known = names_and_values(reported) | {"English", "Deutsch"}
    context.close()
    leftovers = {
        name: texts
        for name, outside in found.items()
        if (texts := [(where, text, foreign(text, known)) for where, text in outside if foreign(text, known)])
    }
    assert leftovers == {}
