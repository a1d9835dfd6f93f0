"""The console's analysis of parameters, trade-offs and trials, in a real browser against a real service."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.test_console import Api, part, row, see, sign_in
from tests.factories.browser import (
    NEEDS_BROWSER,
    accessibility_faults,
    build_console,
    choose_action,
    open_page,
)
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER

SPACE: dict[str, Any] = {
    "parameters": [
        {"name": "block", "type": "int", "min": 1, "max": 1024, "log": True, "default": 16},
        {"name": "share", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
        {"name": "huge", "type": "bool", "default": False},
        {"name": "mode", "type": "categorical", "values": ["safe", "fast"], "default": "safe"},
    ],
}
OBJECTIVES = [
    {"metric": "seconds", "goal": "minimize", "unit": "s"},
    {"metric": "joules", "goal": "minimize", "unit": "J"},
    {"metric": "price", "goal": "minimize"},
]
SVG = "{http://www.w3.org/2000/svg}"


def measure(params: dict[str, Any]) -> dict[str, float]:
    """The block matters most, the share not at all; the price is linear in the others."""
    seconds = 2 + abs(math.log2(params["block"]) - 8) / 2 - 0.8 * params["huge"]
    joules = 40 - 3 * math.log2(params["block"]) + 5 * (params["mode"] == "fast")
    return {"seconds": seconds, "joules": joules, "price": 2 * seconds + 0.5 * joules + 3}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("analysis")) as service:
        yield service


@pytest.fixture(scope="module")
def page(browser: Browser, service: EmbeddedService) -> Iterator[Page]:
    page = signed_in(browser, service)
    yield page
    page.context.close()


def signed_in(browser: Browser, service: EmbeddedService) -> Page:
    page = open_page(browser.new_context(base_url=service.http_url))
    page.goto("/sign-in")
    sign_in(page, service)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    return page


@pytest.fixture(scope="module")
def api(service: EmbeddedService) -> Api:
    return Api(service)


@pytest.fixture(scope="module")
def study(api: Api) -> str:
    """Sixty configurations of three objectives, and one that cannot work."""
    name = api.study(space=SPACE, objectives=OBJECTIVES, budget={"max_trials": 100})
    rng = random.Random(1)
    for index in range(60):
        params = {
            "block": 16 if index == 0 else rng.choice([1, 4, 16, 64, 128, 256, 512, 1024]),
            "share": 0.5 if index == 0 else rng.random(),
            "huge": index > 0 and rng.random() < 0.5,
            "mode": "safe" if index == 0 else rng.choice(["safe", "fast"]),
        }
        api("POST", f"/studies/{name}/trials", {"params": params, "metrics": measure(params)})
    api("POST", f"/studies/{name}/suggestions", {"count": 2, "client_id": "laptop"})
    api("POST", f"/studies/{name}/trials/61/fail", {"infeasible": True, "reason": "does not link"})
    return name


def test_the_analysis_shows_the_importance_and_effects_of_parameters(page: Page, study: str) -> None:
    page.goto(f"/studies/{study}?tab=analysis")
    expect(page.get_by_text("On configurations held out from the fit, it explains").first).to_be_visible()
    importance = page.get_by_role("img", name="the most important is block")
    expect(importance.locator("canvas")).to_be_visible()
    # The forest and the Gaussian process both find that the block matters and the share does not.
    page.get_by_text("Show values").click()
    numbers = page.get_by_role("group", name="Importance in numbers")
    expect(numbers.get_by_role("columnheader", name="Gaussian process: total effect")).to_be_visible()
    alone = {
        name: float(numbers.get_by_role("row", name=name).get_by_role("cell").nth(1).inner_text().split("\u202f")[0])
        for name in ("block", "share")
    }
    assert alone["block"] > 60
    assert alone["share"] < 10
    effects = page.get_by_role("region", name="Effect of each option")
    huge = effects.get_by_role("row", name="huge")
    expect(huge).to_contain_text("(better)")
    # By each objective, of which the last is linear in the others.
    assert len(huge.get_by_role("cell").all()) == 2 + len(OBJECTIVES)
    page.get_by_role("radio", name="joules", exact=True).click()
    expect(page.get_by_role("img", name="parameters for joules; the most important is block")).to_be_visible()
    expect(page.get_by_role("img", name="Expected joules over").locator("canvas")).to_be_visible()
    expect(page.get_by_role("img", name="lines through 4 parameters and joules").locator("canvas")).to_be_visible()


def test_the_trade_offs_show_linear_dependence_between_objectives(page: Page, study: str) -> None:
    page.goto(f"/studies/{study}")
    part(page, "Trade-offs")
    see(page, "price = 2 · seconds + 0.5 · joules + 3")
    expect(page.get_by_role("img", name="on the Pareto front")).to_have_count(4)
    see(page, "no configuration is expected to be better in one objective")
    table = page.get_by_role("table", name="Correlations of objectives")
    expect(table.get_by_role("row").nth(1)).to_contain_text("1.00")


def swipe(page: Page, *places: tuple[float, float]) -> None:
    """A finger that goes from the first place to the last."""
    touch = page.context.new_cdp_session(page)
    for kind, (x, y) in zip(["touchStart", *["touchMove"] * len(places)], places, strict=False):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y, "id": 1}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    touch.detach()


@pytest.mark.slow("tests of the console turn it without a browser")
def test_the_cube_is_turned_by_mouse_finger_and_keyboard(page: Page, study: str) -> None:
    page.goto(f"/studies/{study}?tab=trade-offs")
    cube = page.get_by_role("region", name="Three objectives")
    turn, tilt = cube.get_by_label("Rotate"), cube.get_by_label("Tilt")
    plot = cube.locator("canvas")
    expect(plot).to_be_visible()
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 20
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 20, y)
    page.mouse.move(x - 40, y + 20)
    page.mouse.up()
    expect(turn).to_have_value("170")
    expect(tilt).to_have_value("30")
    # It is let go, also where that is outside and the pointer was not followed there yet.
    page.mouse.move(x + 100, y)
    page.mouse.move(box["x"] + 1, y)
    page.mouse.down()
    page.mouse.move(box["x"] - 30, y)
    page.mouse.up()
    page.mouse.move(x, y)
    page.mouse.move(x + 50, y)
    expect(turn).to_have_value("170")
    # By a finger that sets out to the side.
    swipe(page, (x, y), (x + 40, y), (x + 60, y - 20))
    expect(tilt).not_to_have_value("30")
    turned = turn.input_value()
    assert int(turned) < 170
    # Up and down it scrolls the page.
    before = page.evaluate("window.scrollY")
    swipe(page, (x, y), (x, y + 40), (x, y + 80))
    page.wait_for_function("before => window.scrollY < before", arg=before)
    expect(turn).to_have_value(turned)
    turn.fill("40")
    turn.press("ArrowRight")
    expect(turn).to_have_value("41")
    expect(page).to_have_url(re.compile("tab=trade-offs"))


def test_a_plot_is_saved_as_svg_and_trials_as_files(page: Page, study: str, api: Api) -> None:
    page.goto(f"/studies/{study}")
    with page.expect_download() as saved:
        page.get_by_role("button", name=f"Save as SVG: {study}-seconds").click()
    drawing = ET.parse(saved.value.path())
    assert saved.value.suggested_filename == f"{study}-seconds.svg"
    assert drawing.getroot().tag == f"{SVG}svg"
    assert len(list(drawing.iter(f"{SVG}path"))) > 60
    part(page, "Setup")
    expect(page.get_by_role("region", name="Study file")).to_contain_text("minimize: seconds")
    part(page, "Overview")
    with page.expect_download() as saved:
        choose_action(page, "Trials as CSV")
    with Path(saved.value.path()).open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 62
    assert rows[60]["reason"] == "does not link"
    with page.expect_download() as saved:
        choose_action(page, "Study and trials as JSON")
    assert len(json.loads(Path(saved.value.path()).read_text())["trials"]) == 62


@pytest.mark.slow("tests of the console draw it without a browser")
def test_a_plane_of_two_numbers_has_lines_with_their_levels(page: Page, study: str) -> None:
    page.goto(f"/studies/{study}?tab=analysis")
    plane = page.get_by_role("region", name="Interaction of two parameters")

    def levels(first: str, second: str) -> set[str]:
        plane.get_by_label("Parameters").select_option(f"{first} {second}")
        expect(plane.get_by_role("img", name=f"over {first} and {second}").locator("canvas")).to_be_visible()
        with page.expect_download() as saved:
            plane.get_by_role("button", name=f"Save as SVG: {study}-plane-{first}-{second}").click()
        texts = [text.text or "" for text in ET.parse(saved.value.path()).iter(f"{SVG}text")]
        return {text for text in texts if re.fullmatch(r"[\d.]+\u202fm?s", text)}

    assert len(levels("block", "share")) >= 3
    see(page, "lines: equal values")
    # Between two choices there is nothing.
    assert levels("block", "huge") == set()
    expect(plane).not_to_contain_text("lines: equal values")


@pytest.mark.slow("the plot that is saved as SVG shows the way")
def test_a_saved_plot_contains_only_the_zoomed_range(page: Page, api: Api) -> None:
    name = api.study(budget={"max_trials": 200})
    for number in range(100):
        api.add(name, 2.0, x=number / 100)
    page.goto(f"/studies/{name}")
    plot = page.locator("[role=img] canvas").first
    expect(plot).to_be_visible()

    def saved_numbers() -> list[int]:
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Save as SVG: {name}-seconds").click()
        return [int(text) for text in re.findall(r">(\d+)</text>", Path(saved.value.path()).read_text())]

    def is_near() -> bool:
        # A page that is busy takes several turns of the wheel for one.
        plot.hover(position={"x": 110, "y": 100})
        page.keyboard.down("Control")
        for _ in range(12):
            page.mouse.wheel(0, -240)
            page.wait_for_timeout(60)
        page.keyboard.up("Control")
        return max(saved_numbers()) < 80

    assert max(saved_numbers()) == 100
    wait_for(is_near, "the plot shows a part")


def test_the_report_has_it_all_and_prints_without_the_frame(page: Page, study: str) -> None:
    page.goto(f"/studies/{study}/report")
    for name in (
        "Gain over the default",
        "Parameter importance for seconds",
        "Effect of each option",
        "Failures",
        "Study file",
    ):
        expect(page.get_by_role("region", name=name)).to_be_visible()
    expect(page.locator("article svg").first).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    # Each objective has its curve, and nothing is left to scroll to on paper.
    for metric in ("seconds", "joules", "price"):
        expect(page.get_by_role("region", name=f"Trajectory of {metric}")).to_be_visible()
    page.set_viewport_size({"width": 720, "height": 1000})
    cut = page.evaluate(
        """[...document.querySelectorAll("article *")].filter((one) => getComputedStyle(one).overflowY !== "visible"
        && (one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
        && one.closest(".visually-hidden, svg, [role=img], button, select, legend") === null)
        .map((one) => one.className)"""
    )
    assert cut == []
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(media="screen")


def test_failures_lead_to_their_trials_and_columns_are_chosen(page: Page, study: str) -> None:
    page.goto(f"/studies/{study}?tab=trials")
    page.get_by_role("button", name="does not link").click()
    table = page.get_by_role("region", name="62 trials")
    expect(table.get_by_role("rowheader")).to_have_text(["61"])
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Reason").check()
    page.get_by_label("joules").uncheck()
    page.keyboard.press("Escape")
    expect(row(page, 61)).to_contain_text("does not link")
    page.reload()
    expect(table.get_by_role("columnheader", name="Reason")).to_be_visible()
    expect(table.get_by_role("columnheader", name="joules")).to_have_count(0)


@pytest.mark.slow("the failures with a reason show the page")
def test_failures_without_a_reason_lead_to_no_others(page: Page, api: Api) -> None:
    name = api.study()
    api("POST", f"/studies/{name}/suggestions", {"count": 3})
    for number, reason in ((1, ""), (2, "disk"), (3, "")):
        api("POST", f"/studies/{name}/trials/{number}/fail", {"infeasible": False, "reason": reason})
    page.goto(f"/studies/{name}?tab=trials")
    page.get_by_role("button", name="no reason given").click()
    numbers = page.get_by_role("region", name="3 trials").get_by_role("rowheader")
    expect(numbers).to_have_text(["3", "1"])
    page.get_by_role("button", name="Filtered by reason").click()
    expect(numbers).to_have_text(["3", "2", "1"])


def test_a_trial_has_a_page_that_is_live(page: Page, study: str, api: Api) -> None:
    page.goto(f"/studies/{study}?tab=trials")
    row(page, 62).get_by_role("link", name="62").click()
    expect(page).to_have_url(f"{api.address}/studies/{study}/trials/62")
    see(page, "The metrics appear when the trial ends.")
    parameters = page.get_by_role("region", name="Parameters")
    expect(parameters.get_by_role("row", name="block")).to_contain_text("16")
    for step in (1, 2):
        metrics = {"seconds": 3.0 / step, "joules": 50.0}
        api("POST", f"/studies/{study}/trials/62/measurements", {"step": step, "metrics": metrics})
    expect(page.get_by_role("img", name="Metrics of trial 62 over 2 steps.")).to_be_visible()
    page.get_by_role("link", name="Trial 61", exact=False).click()
    see(page, "does not link")
    page.goto(f"/studies/{study}/trials/9999")
    see(page, f"There is no trial 9999 of {study}")


@pytest.mark.slow("console/test_whole.py looks at every page")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_and_all_fits_a_phone(page: Page, study: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": 360, "height": 740})
    faults: list[str] = []
    for path in (
        "",
        *(f"?tab={one}" for one in ("trials", "analysis", "trade-offs", "timeline", "setup")),
        "/trials/61",
        "/report",
    ):
        page.goto(f"/studies/{study}{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        faults.extend(f"{path}: {fault}" for fault in accessibility_faults(page))
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    page.emulate_media(color_scheme="null", reduced_motion="null")
    page.set_viewport_size({"width": 1280, "height": 720})
    assert not faults, "\n".join(faults)


@pytest.mark.slow("tests/api shows the same calls")
def test_a_budget_is_extended_and_the_best_is_measured_again(page: Page, api: Api) -> None:
    name = api.study(budget={"max_trials": 3})
    api.add(name, 2.0)
    api("POST", f"/studies/{name}/suggestions", {"count": 2, "client_id": "a"})
    page.goto(f"/studies/{name}")
    choose_action(page, "Budget")
    dialogue = page.get_by_role("dialog", name=f"Budget of {name}")
    dialogue.get_by_label("Minutes").fill("0.000001")
    dialogue.get_by_role("button", name="Save").click()
    # The service speaks of seconds; the field does not.
    expect(dialogue).to_contain_text(re.compile(r"Minutes: more than [\d.]+, or empty"))
    dialogue.get_by_label("Minutes").fill("")
    # What cannot be read lifts no limit.
    dialogue.get_by_label("Trials").fill("1.5e")
    expect(dialogue.get_by_role("button", name="Save")).to_be_disabled()
    dialogue.get_by_label("Trials").fill("7")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_be_hidden()
    see(page, "0 of 7, 1 outside the budget")
    # What begins like it begins as it is now.
    choose_action(page, "Clone")
    expect(page.get_by_label("Study file (YAML)")).to_contain_text(re.compile("max_trials: 7"))
    page.go_back()
    # Twice before the page can show that it is at work.
    page.get_by_role("button", name="Measure again").evaluate("button => { button.click(); button.click(); }")
    see(page, "1 trial enqueued")
    waiting = api("GET", f"/studies/{name}/trials?state=REQUESTED")["trials"]
    assert [(trial["params"], trial["origin"]) for trial in waiting] == [
        ({"x": 0.5, "n": 4, "huge": False}, "enqueued")
    ]
    page.get_by_role("button", name="Cancel trial 2").click()
    see(page, "1 running, 1 waiting")
    assert api("GET", f"/studies/{name}/trials/2")["state"] == "PRUNED"
