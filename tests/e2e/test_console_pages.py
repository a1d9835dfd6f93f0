"""The console's pages around a study, in a real browser, against a real service with an agent at work."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.factories.browser import (
    NEEDS_BROWSER,
    PATIENCE,
    accessibility_faults,
    build_console,
    open_page,
    started_browser,
)
from tests.factories.console import Rest, furnished
from tests.factories.service import EmbeddedService
from tests.screens import PAGES, STEPS

pytestmark = [pytest.mark.timeout(300), *NEEDS_BROWSER]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("pages")) as service:
        yield service


@pytest.fixture(scope="module")
def api(service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with furnished(service, tmp_path_factory.mktemp("agent")) as rest:
        yield rest


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started_browser() as browser:
        yield browser


def signed_in(browser: Browser, service: EmbeddedService, token: str, **options: Any) -> Page:
    context = browser.new_context(base_url=service.http_url, **options)
    page = open_page(context)
    page.goto("/sign-in")
    page.get_by_label("Administrator token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible(timeout=PATIENCE)
    return page


@pytest.fixture
def page(browser: Browser, service: EmbeddedService, api: Rest) -> Iterator[Page]:
    page = signed_in(browser, service, service.token)
    yield page
    page.context.close()


def step(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Steps").get_by_role("button", name=name).click()


def names(page: Page) -> Any:
    return page.locator("tbody").get_by_role("rowheader").get_by_role("link")


def test_home_tells_what_runs_what_was_gained_and_what_waits_for_somebody(page: Page) -> None:
    attention = page.get_by_role("region", name="Needs attention")
    expect(attention).to_contain_text("No space left on device")
    expect(attention).to_contain_text("No agent takes its trials")
    expect(page.get_by_role("region", name="Running")).to_contain_text("bowl-2")
    finished = page.get_by_role("region", name="Finished").get_by_role("listitem").filter(has_text="io-path-2")
    expect(finished).to_contain_text("% better", timeout=PATIENCE)
    expect(page.get_by_role("region", name="Agents")).to_contain_text("1 of 1 online")
    attention.get_by_role("link", name="To the list").click()
    # The newest first.
    expect(names(page)).to_have_text(["out-of-disk", "waits-for-an-agent"], timeout=PATIENCE)


def test_the_service_finds_sorts_and_filters_and_the_address_keeps_it(page: Page) -> None:
    page.goto("/studies")
    page.get_by_label("Tag", exact=True).select_option("nightly")
    page.get_by_role("button", name="Best").click()
    expect(page.get_by_role("columnheader", name="Best")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("button", name="Study", exact=True).click()
    expect(names(page)).to_have_text(["io-path-1", "io-path-2", "io-path-live"], timeout=PATIENCE)
    page.reload()
    expect(names(page)).to_have_text(["io-path-1", "io-path-2", "io-path-live"], timeout=PATIENCE)
    page.get_by_label("Search studies").fill("LIVE")
    expect(names(page)).to_have_text(["io-path-live"], timeout=PATIENCE)
    page.get_by_label("Search studies").fill("nothing is called this")
    page.get_by_role("button", name="Show all studies").click()
    expect(names(page).nth(7)).to_be_visible(timeout=PATIENCE)


def test_studies_are_compared_and_tagged(page: Page, api: Rest) -> None:
    page.goto("/studies?tag=nightly&sort=name")
    for name in ("io-path-1", "io-path-2"):
        page.get_by_label(f"Choose {name}").check()
    chosen = page.get_by_role("region", name="Chosen studies")
    chosen.get_by_role("button", name="Tags").click()
    dialogue = page.get_by_role("dialog", name="Tags of 2 studies")
    expect(dialogue.get_by_label("Tags that all of them have")).to_have_value("nightly")
    dialogue.get_by_label("Tags that all of them have").fill("nightly, a,b;")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_contain_text("tags is", timeout=PATIENCE)
    dialogue.get_by_label("Tags that all of them have").fill("nightly, paper")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_be_hidden(timeout=PATIENCE)
    assert api("GET", "/studies/io-path-2")["tags"] == ["gcc 13", "nightly", "paper"]
    for name in ("io-path-1", "io-path-2"):
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("link", name="Compare").click()
    chart = page.get_by_role("img", name=re.compile("Best seconds so far of io-path-1: .* s, io-path-2: .* s"))
    expect(chart.locator("canvas")).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_role("row").filter(has_text="io-path-2")).to_contain_text("24 trials")
    page.goto("/compare?study=io-path-1&study=bowl-1")
    expect(page.get_by_role("alert")).to_contain_text("an objective in common", timeout=PATIENCE)


def test_a_study_is_made_step_by_step_and_runs(page: Page, api: Rest) -> None:
    name = f"made-{uuid.uuid4().hex[:6]}"
    file = page.get_by_label("The same as a file")
    page.goto("/components/bowl")
    page.get_by_role("link", name="Tune it").click()
    expect(file).to_have_value(re.compile("component: bowl"), timeout=PATIENCE)
    expect(file).to_have_value(re.compile("minimize: value"))
    expect(page.get_by_text("1 agent can run it.")).to_be_visible(timeout=PATIENCE)
    step(page, "Parameters")
    row = page.get_by_role("group", name="n", exact=True)
    # What is half typed stays as it is typed; the service's refusal stands beside the field.
    row.get_by_label("Max").fill("0.")
    expect(row.get_by_label("Max")).to_have_value("0.")
    expect(row).to_contain_text("allowed:", timeout=PATIENCE)
    # A default out of the range is refused as well.
    row.get_by_label("Max").fill("3")
    expect(row).to_contain_text("default", timeout=PATIENCE)
    row.get_by_label("Default").fill("3")
    expect(file).to_have_value(re.compile(r"n:\s+max: 3"))
    page.get_by_role("group", name="x", exact=True).get_by_role("checkbox").first.uncheck()
    expect(file).to_have_value(re.compile("only: \\[n\\]"))
    expect(page.get_by_text("4 configurations")).to_be_visible(timeout=PATIENCE)
    step(page, "Method")
    expect(page.get_by_text("auto chooses")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("Designer").select_option("grid")
    # The file is followed too.
    file.fill(file.input_value().replace("max_trials: 50", "max_trials: four"))
    step(page, "Budget")
    expect(page.get_by_label("Trials", exact=True)).to_have_value("four")
    expect(page.get_by_text("budget.max_trials is")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("Trials", exact=True).fill("4")
    expect(page.get_by_text("It takes about")).to_be_visible(timeout=PATIENCE)
    file.fill("objectives: [")
    expect(file).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Trials", exact=True)).to_be_disabled()
    file.fill(
        "component: bowl\nparameters: {n: {max: 3, default: 3}}\nonly: [n]\nobjectives: [{minimize: value}]\n"
        "algorithm: grid\nnoisy: false\nbudget: {max_trials: 4}\nplacement: {exclusive: false}\n"
    )
    step(page, "Review")
    expect(page.get_by_text("It still needs a name")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("textbox", name="Name").fill("no spaces")
    expect(page.get_by_text("trimtab-agent try bowl --dry-run").first).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_text("name is 'no spaces'").first).to_be_visible(timeout=PATIENCE)
    file.fill(file.input_value().replace("name: no spaces", f"name: {name}"))
    expect(page.get_by_text("name is 'no spaces'")).to_have_count(0)
    page.get_by_label("Tags").fill("made")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible(timeout=PATIENCE)
    study = api("GET", f"/studies/{name}")
    assert study["tags"] == ["made"]
    assert study["spec"]["space"]["parameters"] == [{"name": "n", "type": "int", "min": 0, "max": 3, "default": 3}]
    expect(page.get_by_text("completed").first).to_be_visible(timeout=PATIENCE)
    page.goto(f"/studies?q={name}")
    page.get_by_label(f"Choose {name}").check()
    page.get_by_role("link", name="New one like it").click()
    expect(file).to_have_value(re.compile("name: made-"), timeout=PATIENCE)
    expect(file).to_have_value(re.compile("algorithm: {name: grid"))


def test_agents_are_enrolled_drained_and_shown_at_work(page: Page, api: Rest, service: EmbeddedService) -> None:
    page.goto("/agents")
    agent = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="node-17"))
    for text in ("online", "of 2 slots in use", "bowl", "all that it offers"):
        expect(agent).to_contain_text(text, timeout=PATIENCE)
    expect(agent.get_by_role("link", name=re.compile(r"bowl-2 #\d+")).first).to_be_visible(timeout=PATIENCE)
    agent.get_by_role("button", name="Drain").click()
    expect(agent).to_contain_text("drained", timeout=PATIENCE)
    (told,) = api("GET", "/agents")["agents"]
    assert (told["draining"], told["busy"]) == (True, 0)
    agent.get_by_role("button", name="Take trials again").click()
    expect(agent).to_contain_text("online", timeout=PATIENCE)
    page.get_by_role("button", name="Enrol an agent").click()
    dialogue = page.get_by_role("dialog", name="Enrol an agent")
    dialogue.get_by_role("button", name="Make the command").click()
    expect(dialogue).to_contain_text(re.compile(r"trimtab-agent run .*--enrol tre_", re.DOTALL), timeout=PATIENCE)


def test_a_component_tells_its_best_settings(page: Page) -> None:
    page.goto("/components")
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name="bowl"))
    expect(line).to_contain_text("node-17", timeout=PATIENCE)
    line.get_by_role("link").click()
    best = page.get_by_role("region", name="Best settings known")
    expect(best).to_contain_text("% better", timeout=PATIENCE)
    expect(best.get_by_role("row").filter(has=page.get_by_role("rowheader", name="x"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("x .10 to 10"))).to_be_visible()
    page.goto("/components/never")
    expect(page.get_by_text("Nobody knows a component never")).to_be_visible(timeout=PATIENCE)


def test_a_token_is_shown_once_and_what_it_may_not_do_has_no_button(
    page: Page, browser: Browser, service: EmbeddedService
) -> None:
    page.goto("/administration")
    page.get_by_role("button", name="New token").click()
    dialogue = page.get_by_role("dialog", name="New API token")
    dialogue.get_by_label("Name").fill("dashboard")
    dialogue.get_by_label("tune").uncheck()
    dialogue.get_by_label("Only in the study").fill("never-was")
    dialogue.get_by_role("button", name="Make the token").click()
    expect(dialogue).to_contain_text("There is no study 'never-was'", timeout=PATIENCE)
    dialogue.get_by_label("Only in the study").fill("")
    dialogue.get_by_role("button", name="Make the token").click()
    secret = dialogue.locator("pre").inner_text(timeout=PATIENCE)
    dialogue.get_by_role("button", name="Done").click()
    line = page.get_by_role("row").filter(has_text="dashboard")
    expect(line).to_contain_text("read", timeout=PATIENCE)
    assert secret not in page.content()
    line.get_by_role("button", name="Revoke dashboard").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(line).to_be_hidden(timeout=PATIENCE)


def test_an_administrator_sees_quota_audit_and_tenants(page: Page) -> None:
    page.goto("/administration?section=audit")
    entries = page.locator("tbody").get_by_role("row")
    expect(entries.nth(10)).to_be_visible(timeout=PATIENCE)
    page.get_by_label("What", exact=True).fill("study.update_state")
    expect(entries).to_have_count(1, timeout=PATIENCE)
    expect(entries.first).to_contain_text("study/out-of-disk")
    page.get_by_role("radio", name="Quota").click()
    expect(page.get_by_text("Stored trials")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("radio", name="Members").click()
    expect(page.get_by_text("Nobody has been seen yet")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("radio", name="Tenants").click()
    page.get_by_label("Short name of a new tenant").fill("no spaces")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("slug is 'no spaces'")).to_be_visible(timeout=PATIENCE)
    page.get_by_label("Short name of a new tenant").fill("acme")
    page.get_by_role("button", name="Add").click()
    line = page.get_by_role("row").filter(has_text="acme")
    line.get_by_role("button", name="Disable acme").click()
    expect(line).to_contain_text("disabled", timeout=PATIENCE)


def test_the_palette_goes_anywhere_by_keyboard(page: Page) -> None:
    page.keyboard.press("Control+k")
    find = page.get_by_placeholder("Study, page, command")
    expect(find).to_be_focused(timeout=PATIENCE)
    find.fill("path-li")
    expect(page.get_by_role("option", name=re.compile("io-path-live"))).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="io-path-live")).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("Control+k")
    find.fill("agents")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible(timeout=PATIENCE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
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
        expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=PATIENCE)
        expect(page.get_by_role("status")).to_have_count(0)
        look(name)
        if name == "new":
            for one in STEPS:
                step(page, one)
                look(f"{name} {one}")
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("Study, page, command")).to_be_focused(timeout=PATIENCE)
    look("palette")
    page.context.close()
    assert not faults, "\n".join(faults)
