"""Home, the list of studies, and their comparison in the console."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.console.pages import names
from tests.factories.browser import NEEDS_BROWSER, accessibility_faults
from tests.factories.console import Rest

pytestmark = NEEDS_BROWSER


def test_home_shows_running_studies_gains_and_studies_that_need_attention(page: Page) -> None:
    attention = page.get_by_role("region", name="Needs attention")
    expect(attention).to_contain_text("No space left on device")
    expect(attention).to_contain_text("No agent is available for its trials")
    expect(attention).not_to_contain_text("bowl-2")
    expect(page.get_by_role("region", name="Running")).to_contain_text("bowl-2")
    finished = page.get_by_role("region", name="Finished").get_by_role("listitem").filter(has_text="io-path-2")
    expect(finished).to_contain_text("% better")
    expect(page.get_by_role("region", name="Agents")).to_contain_text("1 of 1 online")
    attention.get_by_role("link", name="Show all").click()
    # The newest first.
    expect(names(page)).to_have_text(["out-of-disk", "waits-for-an-agent"])


def test_the_service_finds_sorts_and_filters_and_the_address_keeps_it(page: Page) -> None:
    page.goto("/studies")
    page.get_by_label("Tag", exact=True).select_option("nightly")
    page.get_by_role("button", name="Best").click()
    expect(page.get_by_role("columnheader", name="Best")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="Study", exact=True).click()
    expect(names(page)).to_have_text(["io-path-1", "io-path-2", "io-path-live"])
    page.reload()
    expect(names(page)).to_have_text(["io-path-1", "io-path-2", "io-path-live"])
    page.get_by_label("Search studies").fill("LIVE")
    expect(names(page)).to_have_text(["io-path-live"])
    page.get_by_label("Search studies").fill("nothing is called this")
    page.get_by_role("button", name="Show all studies").click()
    expect(names(page).nth(7)).to_be_visible()


def test_studies_are_compared_and_tagged(page: Page, api: Rest) -> None:
    page.goto("/studies?tag=nightly&sort=name")
    for name in ("io-path-1", "io-path-2"):
        page.get_by_label(f"Select {name}").check()
    chosen = page.get_by_role("region", name="Selected studies")
    chosen.get_by_role("button", name="Tags").click()
    dialogue = page.get_by_role("dialog", name="Tags of 2 studies")
    expect(dialogue.get_by_label("Tags that all selected studies have")).to_have_value("nightly")
    dialogue.get_by_label("Tags that all selected studies have").fill("nightly, a,b;")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_contain_text("tags: 'b;' is not allowed")
    dialogue.get_by_label("Tags that all selected studies have").fill("nightly, paper")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_be_hidden()
    assert api("GET", "/studies/io-path-2")["tags"] == ["gcc 13", "nightly", "paper"]
    for name in ("io-path-1", "io-path-2"):
        page.get_by_label(f"Select {name}").check()
    page.get_by_role("link", name="Compare").click()
    chart = page.get_by_role(
        "img", name=re.compile("Best single run of seconds so far: io-path-1: .* s, io-path-2: .* s")
    )
    expect(chart.locator("canvas")).to_be_visible()
    results = page.get_by_role("region", name="Results")
    expect(results.get_by_role("row").filter(has_text="io-path-2").get_by_role("cell").last).to_have_text("24")
    answer = page.get_by_role("region", name="Which study is better?")
    expect(answer).to_contain_text("Is io-path-2 better than io-path-1 in seconds?")
    # Each recommended configuration was measured once.
    expect(answer).to_contain_text("This is not yet known.")
    settings = page.get_by_role("region", name="Settings that differ")
    expect(settings.get_by_role("row", name="budget.max_trials 30 24")).to_be_visible()
    configurations = page.get_by_role("region", name="Recommended configurations")
    analyses = [api("GET", f"/studies/{name}/analysis") for name in ("io-path-1", "io-path-2")]
    first, second = (one["best"][0]["params"]["threads"] for one in analyses)
    # Two random searches with one seed recommend the same configuration.
    expect(configurations).to_contain_text("The recommended configurations are equal.")
    configurations.get_by_role("button", name="Show 5 equal parameters").click()
    expect(configurations.get_by_role("row", name=f"threads {first} {second} 8")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG: io-path-1-io-path-2-seconds").click()
    assert "io-path-2" in Path(saved.value.path()).read_text()


@pytest.mark.slow("the comparison of tagged studies shows the page")
def test_compared_studies_are_chosen_on_the_page_and_kept_in_the_address(page: Page) -> None:
    compared = page.get_by_role("list", name="Compared studies")
    lines = page.get_by_role("region", name="Results").get_by_role("rowheader")
    # One that is not there hides none of the others.
    page.goto("/compare?study=io-path-1&study=never-was&study=io-path-2")
    expect(lines).to_have_text(["io-path-1", "io-path-2"])
    expect(compared.get_by_role("listitem").filter(has_text="never-was")).to_contain_text("This study does not exist.")
    compared.get_by_role("button", name="Remove never-was").click()
    expect(page.get_by_role("heading", name="Compare 2 studies")).to_be_visible()
    expect(compared.get_by_role("button", name="Remove io-path-2")).to_be_focused()
    # By keyboard alone.
    page.keyboard.press("Tab")
    expect(compared.get_by_role("button", name="Add a study")).to_be_focused()
    page.keyboard.press("Enter")
    find = page.get_by_role("combobox", name="Find a study")
    expect(find).to_be_focused()
    find.fill("io-path")
    options = page.get_by_role("listbox", name="Matching studies").get_by_role("option")
    # Those that are compared already are not offered.
    expect(options.filter(has_text="io-path")).to_have_count(2)
    assert accessibility_faults(page) == []
    find.fill("path-3")
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    expect(lines).to_have_text(["io-path-1", "io-path-2", "io-path-3"])
    page.reload()
    expect(lines).to_have_text(["io-path-1", "io-path-2", "io-path-3"])
    compared.get_by_role("button", name="Remove io-path-1").click()
    expect(lines).to_have_text(["io-path-2", "io-path-3"])
    page.go_back()
    expect(lines).to_have_text(["io-path-1", "io-path-2", "io-path-3"])
    # The page also names a study that does not exist when the others have no common objective.
    page.goto("/compare?study=io-path-1&study=bowl-1&study=never-was")
    expect(page.get_by_role("main")).to_contain_text("No common objective")
    expect(compared).to_contain_text("This study does not exist.")
    compared.get_by_role("button", name="Remove bowl-1").click()
    expect(lines).to_have_text(["io-path-1"])
    page.goto("/compare?study=io-path-1&metric=watts")
    page.get_by_role("link", name="Compare by another metric").click()
    expect(lines).to_have_text(["io-path-1"])
    page.goto("/compare?" + "&".join(f"study=s-{number}" for number in range(11)))
    expect(page.get_by_text("Remove 1 study.")).to_be_visible()
    expect(compared).to_contain_text("At most 10 studies can be compared.")
    compared.get_by_role("button", name="Remove s-10").click()
    expect(page.get_by_text("None of these studies exists")).to_be_visible()
    page.goto("/compare?study=never-was")
    expect(page.get_by_text("None of these studies exists")).to_be_visible()
    compared.get_by_role("button", name="Remove never-was").click()
    expect(page.get_by_text("No studies to compare")).to_be_visible()
