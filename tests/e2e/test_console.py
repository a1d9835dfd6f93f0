"""The console in a real browser, against a real service."""

from __future__ import annotations

import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from service._gen import agent_pb2, agent_pb2_grpc
from tests.factories.browser import NEEDS_BROWSER, build_console, choose_action, open_page
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService

SPEC: dict[str, Any] = {
    "space": {
        "parameters": [
            {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
            {"name": "n", "type": "int", "min": 1, "max": 16, "default": 4},
            {"name": "huge", "type": "bool", "default": False},
        ],
    },
    "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
    "algorithm": {"name": "random"},
    "budget": {"max_trials": 20},
    "noisy": False,
}

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    """A service of this module's own: it starts empty, and with the console built."""
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("console")) as service:
        yield service


class Api:
    """The calls that a script makes over REST while the console is open."""

    def __init__(self, service: EmbeddedService) -> None:
        self.address = service.http_url
        self._client = httpx.Client(
            base_url=f"{service.http_url}/api/v1",
            headers={"Authorization": f"Bearer {service.token}"},
            timeout=PATIENCE,
        )

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        answer = self._client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def study(self, **changes: object) -> str:
        name = f"s-{uuid.uuid4().hex[:8]}"
        self("POST", "/studies", {"name": name, "spec": {**SPEC, **changes}})
        return name

    def add(self, study: str, seconds: float, **params: object) -> None:
        body = {"params": {"x": 0.5, "n": 4, "huge": False, **params}, "metrics": {"seconds": seconds}}
        self("POST", f"/studies/{study}/trials", body)


@pytest.fixture
def api(service: EmbeddedService) -> Api:
    return Api(service)


@pytest.fixture
def stranger(browser: Browser, service: EmbeddedService) -> Iterator[Page]:
    """A page of a browser that is not signed in."""
    context = browser.new_context(base_url=service.http_url)
    yield open_page(context)
    context.close()


def sign_in(page: Page, service: EmbeddedService) -> None:
    page.get_by_label("Administrator token").fill(service.token)
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def page(stranger: Page, service: EmbeddedService) -> Page:
    """A page of a browser that is signed in."""
    stranger.goto("/sign-in")
    sign_in(stranger, service)
    expect(stranger.get_by_role("heading", name="Home")).to_be_visible()
    return stranger


def see(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible()


def sees_changes(page: Page) -> None:
    """Wait until the page is connected to the service. (The navigation also has the word Live.)"""
    expect(page.get_by_title("Changes are shown as they happen")).to_be_visible()


def row(page: Page, number: int) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=str(number), exact=True))


def test_the_printed_link_signs_in_once_and_an_empty_service_shows_instructions(
    stranger: Page, service: EmbeddedService
) -> None:
    stranger.goto(service.login_url)
    see(stranger, "No studies yet")
    see(stranger, "make demo")
    stranger.get_by_role("link", name="Agents").click()
    see(stranger, "No agents yet")
    see(stranger, "trimtab-agent run")
    stranger.get_by_role("button", name="Sign out").click()
    see(stranger, "Sign in to Trimtab")
    # The link is good once.
    stranger.goto(service.login_url)
    see(stranger, "This login link has been used")


def test_the_service_makes_sample_data_while_no_page_is_open(page: Page, api: Api) -> None:
    page.goto("/new")
    page.get_by_role("button", name="Create sample data").click()
    expect(page).to_have_url(re.compile("/studies/sample$"))
    see(page, "a simulated web server")
    page.goto("about:blank")
    wait_for(lambda: not api("GET", "/sample-data")["running"])
    page.goto("/studies/sample")
    see(page, "proven: faster by")
    page.goto("/studies/sample/trials/17")
    see(page, "exit code 137")
    page.goto("/new")
    page.get_by_role("button", name="Delete sample data").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Create sample data")).to_be_visible()
    assert api("GET", "/sample-data")["studies"] == []


def test_signing_in_by_token_leads_back_to_the_page_that_was_asked_for(
    stranger: Page, service: EmbeddedService, api: Api
) -> None:
    name = api.study()
    stranger.goto(f"/studies/{name}")
    field = stranger.get_by_label("Administrator token")
    field.fill("wrong")
    field.press("Enter")
    see(stranger, "The token is not valid for this service.")
    expect(field).to_have_attribute("aria-invalid", "true")
    sign_in(stranger, service)
    expect(stranger.get_by_role("heading", name=name)).to_be_visible()
    see(stranger, "Your own script measures this study")
    # The cookie is out of scripts' reach.
    assert stranger.evaluate("document.cookie") == ""


def test_an_address_of_another_site_is_not_followed_after_the_sign_in(stranger: Page, service: EmbeddedService) -> None:
    stranger.goto("/sign-in?next=//elsewhere.example/")
    sign_in(stranger, service)
    expect(stranger).to_have_url(f"{service.http_url}/")


def part(page: Page, name: str) -> None:
    """Goes to a part of the study's page."""
    page.get_by_role("navigation", name="Study").get_by_role("link", name=name).click()


def test_a_study_is_shown_live(page: Page, api: Api) -> None:
    name = api.study()
    page.goto(f"/studies/{name}")
    see(page, "Your own script measures this study")
    sees_changes(page)
    api("POST", f"/studies/{name}/suggestions", {"count": 3, "client_id": "script"})
    running = page.get_by_role("region", name="3 running")
    expect(running.get_by_role("listitem")).to_have_count(3)
    expect(running).to_contain_text("script")
    api("POST", f"/studies/{name}/trials/1/complete", {"metrics": {"seconds": 2}})
    see(page, "So far the default is recommended")
    see(page, "2 running")
    api("POST", f"/studies/{name}/trials/2/complete", {"metrics": {"seconds": 0.5}})
    api("POST", f"/studies/{name}/trials/3/fail", {"infeasible": True, "reason": "does not compile"})
    gain = page.get_by_role("region", name="Gain over the default")
    expect(gain).to_contain_text("75.0 % better")
    expect(gain).to_contain_text("500 ms")
    gain.get_by_text("How is this known?").click()
    see(page, "2 different configurations were measured in a continuous space.")
    chart = page.get_by_role("img", name="seconds of 2 completed trials; the best single run is 500 ms, trial 2")
    expect(chart).to_be_visible()
    expect(chart.locator("canvas")).to_be_visible()
    part(page, "Trials")
    expect(page).to_have_url(re.compile(r"\?tab=trials$"))
    expect(row(page, 1)).to_contain_text("2 s")
    expect(row(page, 2)).to_contain_text("best")
    expect(row(page, 3)).to_contain_text("infeasible")
    api("POST", f"/studies/{name}/suggestions", {"count": 1, "client_id": "script"})
    expect(row(page, 4)).to_contain_text("active")
    page.get_by_role("button", name="Details of trial 3").click()
    see(page, "does not compile")


@pytest.mark.slow("the live study shows that results follow")
def test_results_that_are_behind_are_asked_for_again(page: Page, api: Api) -> None:
    name = api.study()
    api.add(name, 2.0)
    before = api("GET", f"/studies/{name}/analysis")
    api.add(name, 1.0, n=8)
    behind = f"**/studies/{name}/analysis"
    page.route(behind, lambda route: route.fulfill(json={**before, "behind": True}))
    gain = page.get_by_role("region", name="Gain over the default")
    page.goto(f"/studies/{name}/report")
    said = page.get_by_text("still being analysed")
    expect(said).to_be_visible()
    page.goto(f"/studies/{name}")
    expect(gain).to_contain_text("So far the default is recommended")
    # There is nothing to use or to check yet.
    expect(gain.get_by_role("button")).to_have_count(0)
    page.unroute(behind)
    expect(gain).to_contain_text("50.0 % better")
    page.goto(f"/studies/{name}/report")
    expect(gain).to_contain_text("50.0 % better")
    expect(said).to_have_count(0)


def test_the_best_configuration_is_taken_away(page: Page, api: Api) -> None:
    name = api.study()
    api.add(name, 2.0)
    api.add(name, 1.0, n=8, huge=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/studies/{name}")
    best = page.get_by_role("region", name="Best configuration")
    expect(best.get_by_role("row", name="n 8 (differs from the default) 4")).to_be_visible()
    expect(best.get_by_role("row", name="x 0.5 0.5")).to_be_visible()
    see(page, "2 of 3 parameters differ")
    best.get_by_role("button", name="Copy as JSON").click()
    expect(best.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText().then(JSON.parse)") == {"x": 0.5, "n": 8, "huge": True}
    page.get_by_role("button", name="Use this configuration").click()
    dialogue = page.get_by_role("dialog", name="Use this configuration")
    for form, text in (
        ("Command line", "--x=0.5 --n=8 --huge=true"),
        ("Environment", "x=0.5\nn=8\nhuge=true\n"),
        ("YAML", 'x: 0.5\n"n": 8\nhuge: true\n'),
        ("Difference", "n: 4 → 8\nhuge: false → true\n"),
    ):
        dialogue.get_by_role("radio", name=form).click()
        dialogue.get_by_role("button", name="Copy").click()
        page.wait_for_function("text => navigator.clipboard.readText().then(copied => copied === text)", arg=text)


def test_a_study_is_paused_resumed_and_stopped(page: Page, api: Api) -> None:
    name = api.study()
    api("POST", f"/studies/{name}/suggestions", {"count": 1})
    page.goto(f"/studies/{name}")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for()
    assert api("GET", f"/studies/{name}")["state"] == "PAUSED"
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Stop", exact=True).click()
    dialogue = page.get_by_role("dialog", name=f"Stop {name}?")
    expect(dialogue).to_contain_text("Finish lets running trials end")
    page.keyboard.press("Escape")
    expect(dialogue).to_be_hidden()
    assert api("GET", f"/studies/{name}")["state"] == "ACTIVE"
    page.get_by_role("button", name="Stop", exact=True).click()
    dialogue.get_by_role("button", name="Abort").click()
    expect(dialogue).to_be_hidden()
    part(page, "Trials")
    expect(row(page, 1)).to_contain_text("failed")
    assert api("GET", f"/studies/{name}")["state"] == "ABORTED"
    choose_action(page, "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    assert api("GET", f"/studies?name_prefix={name}")["total_count"] == 0


def test_trials_are_sorted_filtered_and_paged(page: Page, api: Api) -> None:
    name = api.study()
    for index in range(1, 56):
        api.add(name, 100 - index, x=index / 100)
    api("POST", f"/studies/{name}/suggestions", {"count": 1})
    page.goto(f"/studies/{name}?tab=trials")
    numbers = page.get_by_role("rowheader").filter(has_text="")
    table = page.get_by_role("region", name="56 trials")
    numbers = table.get_by_role("rowheader")
    expect(numbers.first).to_have_text("56")
    expect(numbers).to_have_count(50)
    table.get_by_role("button", name="Next").click()
    expect(numbers).to_have_text(["6", "5", "4", "3", "2", "1"])
    table.get_by_role("button", name="seconds").click()
    expect(table.get_by_role("columnheader", name="seconds")).to_have_attribute("aria-sort", "ascending")
    expect(numbers.first).to_have_text("55")
    table.get_by_role("button", name="seconds").click()
    expect(numbers.first).to_have_text("1")
    table.get_by_label("Condition on a column").fill("x>0.52")
    table.get_by_role("button", name="Filter", exact=True).click()
    table.get_by_label("Condition on a column").fill("seconds <= 46")
    page.keyboard.press("Enter")
    expect(numbers).to_have_text(["54", "55"])
    expect(table).to_contain_text("2 rows meet the filter.")
    # The address holds filter and order, and a view keeps them under a name.
    page.reload()
    expect(numbers).to_have_text(["54", "55"])
    table.get_by_role("button", name="Views").click()
    page.get_by_label("Name of the present view").fill("fast")
    page.get_by_role("button", name="Save view").click()
    page.keyboard.press("Escape")
    table.get_by_role("button", name="Remove the condition seconds <= 46").click()
    expect(table).to_contain_text("3 rows meet the filter.")
    table.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="fast", exact=True).click()
    expect(numbers).to_have_text(["54", "55"])
    table.get_by_label("Select all trials of this page").check()
    with page.expect_download() as saved:
        table.get_by_role("button", name="Export as CSV").click()
    assert [row.split(",")[0] for row in Path(saved.value.path()).read_text().split()] == ["number", "54", "55"]
    table.get_by_role("button", name="Clear selection").click()
    table.get_by_label("Condition on a column").fill("speed > 1")
    page.keyboard.press("Enter")
    # What cannot be read stays in the field, and the filter as it is.
    expect(table.get_by_role("alert")).to_contain_text("There is no column “speed”.")
    expect(table.get_by_label("Condition on a column")).to_have_value("speed > 1")
    expect(numbers).to_have_text(["54", "55"])
    for name in ("x > 0.52", "seconds <= 46"):
        table.get_by_role("button", name=f"Remove the condition {name}").click()
    table.get_by_label("Filter by state").select_option("ACTIVE")
    expect(numbers).to_have_text(["56"])
    table.get_by_label("Select trial 56").check()
    table.get_by_role("button", name="Stop 1 trial").click()
    expect(table).to_contain_text("No trial meets the filter.")


def test_the_list_shows_state_progress_best_value_and_gain(page: Page, api: Api) -> None:
    name = api.study()
    api.add(name, 4.0)
    api.add(name, 1.0, n=1)
    page.goto("/studies")
    page.get_by_label("Search studies").fill(name)
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name=name))
    for text in ("active", "random", "0 of 20, 2 outside the budget", "1 s", "75.0 %", "just now", "administrator"):
        expect(line).to_contain_text(text)
    page.get_by_role("radio", name="Ended").click()
    see(page, "No matching studies")
    page.get_by_role("radio", name="Open").click()
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_a_page_survives_the_death_of_the_web_process(page: Page, api: Api, service: EmbeddedService) -> None:
    name = api.study()
    api.add(name, 2.0)
    page.goto(f"/studies/{name}?tab=trials")
    sees_changes(page)
    os.kill(service.processes()["web"], signal.SIGKILL)
    see(page, "Reconnecting …")
    sees_changes(page)
    api.add(name, 1.0, n=1)
    expect(row(page, 2)).to_contain_text("1 s")


def test_agents_are_listed(page: Page, service: EmbeddedService) -> None:
    with grpc.insecure_channel(service.grpc_address) as channel:
        agent_pb2_grpc.AgentServiceStub(channel).Register(
            agent_pb2.RegisterRequest(
                agent_id="console-test",
                name="node-17",
                version="0.1",
                slots=3,
                labels={"cpu": "zen4"},
                components=[agent_pb2.Component(name="gcc-flags", digest="d", applications=["small"])],
                session_id="one",
            ),
            metadata=(("authorization", f"Bearer {service.token}"),),
        )
    page.goto("/agents")
    agent = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="node-17"))
    for text in ("online", "0 of 3 slots in use", "gcc-flags", "zen4"):
        expect(agent).to_contain_text(text)


def test_unknown_studies_and_pages(page: Page) -> None:
    page.goto("/studies/never-was")
    see(page, "There is no study never-was")
    page.goto("/nowhere")
    see(page, "Page not found")


def test_the_name_of_a_study_is_shown_as_plain_text(page: Page, api: Api) -> None:
    hostile = "<img src=x onerror=document.title='taken'>"
    name = api.study(
        space={"parameters": [{"name": "c", "type": "categorical", "values": [hostile, "b"], "default": hostile}]},
        objectives=[{"metric": "seconds", "goal": "minimize", "unit": "<b>s</b>"}],
    )
    api("POST", f"/studies/{name}/suggestions", {"count": 2})
    api("POST", f"/studies/{name}/trials/1/complete", {"metrics": {"seconds": 1}})
    api("POST", f"/studies/{name}/trials/2/fail", {"infeasible": True, "reason": hostile})
    page.goto(f"/studies/{name}")
    see(page, "No gain yet")
    part(page, "Trials")
    page.get_by_role("button", name="Details of trial 2").click()
    expect(page.get_by_text(hostile).first).to_be_visible()
    assert page.title() == f"{name} · Trimtab"
    assert page.locator("img[src=x]").count() == 0


def is_dark(page: Page) -> bool:
    lightness = page.evaluate("parseInt(getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0])")
    return int(lightness) < 128


@pytest.mark.slow("tests/e2e/console/test_whole.py looks at every page")
def test_every_page_fits_a_narrow_screen_in_both_themes(browser: Browser, service: EmbeddedService, api: Api) -> None:
    name = api.study()
    api.add(name, 2.0)
    api.add(name, 1.0, n=8)
    context = browser.new_context(base_url=service.http_url, viewport={"width": 360, "height": 740})
    page = open_page(context)
    page.goto("/studies")
    sign_in(page, service)
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    for path, text in (
        ("/studies", name),
        (f"/studies/{name}", "50.0 %"),
        (f"/studies/{name}?tab=trials", "2 trials"),
        (f"/studies/{name}?tab=analysis", "Not enough results yet"),
        (f"/studies/{name}?tab=timeline", "No trial has started yet"),
        (f"/studies/{name}/trials/2", "1 s"),
        (f"/studies/{name}/report", "50.0 %"),
        ("/agents", "Agents"),
    ):
        page.goto(path)
        see(page, text)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        assert not is_dark(page)
        page.emulate_media(color_scheme="dark")
        assert is_dark(page)
        page.emulate_media(color_scheme="light")
    context.close()


def test_a_chosen_theme_overrides_the_system_and_is_stored(page: Page) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    page.get_by_role("button", name="Theme: dark").wait_for()
    assert page.evaluate(background) == dark


def test_the_keyboard_alone_is_enough(page: Page, api: Api) -> None:
    name = api.study()
    page.goto("/studies")
    see(page, name)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    for _ in range(60):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid", page.evaluate("document.activeElement.outerHTML")
        if page.evaluate("document.activeElement.textContent") == name:
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
