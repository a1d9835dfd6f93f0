"""The console's pages around a study, in a real browser, against a real service with an agent at work."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.factories.browser import (
    NEEDS_BROWSER,
    accessibility_faults,
    build_console,
    open_page,
)
from tests.factories.console import Rest, furnished
from tests.factories.service import EmbeddedService, wait_for
from tests.factories.wrapped import foreign, names_and_values, unwrapped, wrap_texts
from tests.screens import PAGES, STEPS

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("pages")) as service:
        yield service


@pytest.fixture(scope="module")
def api(service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with furnished(service, tmp_path_factory.mktemp("agent")) as rest:
        yield rest


def signed_in(browser: Browser, service: EmbeddedService, token: str, **options: Any) -> Page:
    context = browser.new_context(base_url=service.http_url, **options)
    page = open_page(context)
    page.goto("/sign-in")
    page.get_by_label("Administrator token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
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
    expect(finished).to_contain_text("% better")
    expect(page.get_by_role("region", name="Agents")).to_contain_text("1 of 1 online")
    attention.get_by_role("link", name="To the list").click()
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
        page.get_by_label(f"Choose {name}").check()
    chosen = page.get_by_role("region", name="Chosen studies")
    chosen.get_by_role("button", name="Tags").click()
    dialogue = page.get_by_role("dialog", name="Tags of 2 studies")
    expect(dialogue.get_by_label("Tags that all of them have")).to_have_value("nightly")
    dialogue.get_by_label("Tags that all of them have").fill("nightly, a,b;")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_contain_text("tags is")
    dialogue.get_by_label("Tags that all of them have").fill("nightly, paper")
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_be_hidden()
    assert api("GET", "/studies/io-path-2")["tags"] == ["gcc 13", "nightly", "paper"]
    for name in ("io-path-1", "io-path-2"):
        page.get_by_label(f"Choose {name}").check()
    page.get_by_role("link", name="Compare").click()
    chart = page.get_by_role("img", name=re.compile("Best seconds so far of io-path-1: .* s, io-path-2: .* s"))
    expect(chart.locator("canvas")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="io-path-2")).to_contain_text("24 trials")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as SVG: io-path-1-io-path-2-seconds").click()
    assert "io-path-2" in Path(saved.value.path()).read_text()


def test_what_is_compared_is_chosen_on_the_page_and_kept_in_the_address(page: Page) -> None:
    compared = page.get_by_role("list", name="Compared studies")
    lines = page.get_by_role("table").get_by_role("rowheader")
    # One that is not there hides none of the others.
    page.goto("/compare?study=io-path-1&study=never-was&study=io-path-2")
    expect(lines).to_have_text(["io-path-1", "io-path-2"])
    expect(compared.get_by_role("listitem").filter(has_text="never-was")).to_contain_text("There is no such study.")
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
    options = page.get_by_role("listbox", name="Studies that were found").get_by_role("option")
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
    # Of what has nothing in common, what is not there is told too.
    page.goto("/compare?study=io-path-1&study=bowl-1&study=never-was")
    expect(page.get_by_role("main")).to_contain_text("Nothing that all of them measure")
    expect(compared).to_contain_text("There is no such study.")
    compared.get_by_role("button", name="Remove bowl-1").click()
    expect(lines).to_have_text(["io-path-1"])
    page.goto("/compare?study=io-path-1&metric=watts")
    page.get_by_role("link", name="Compare them by another metric").click()
    expect(lines).to_have_text(["io-path-1"])
    page.goto("/compare?" + "&".join(f"study=s-{number}" for number in range(11)))
    expect(page.get_by_text("Remove 1 of them.")).to_be_visible()
    expect(compared).to_contain_text("At most 10 are compared.")
    compared.get_by_role("button", name="Remove s-10").click()
    expect(page.get_by_text("None of them is there")).to_be_visible()
    page.goto("/compare?study=never-was")
    expect(page.get_by_text("None of them is there")).to_be_visible()
    compared.get_by_role("button", name="Remove never-was").click()
    expect(page.get_by_text("Nothing to compare")).to_be_visible()


def earlier_study(api: Rest) -> str:
    """A study of the bowl whose best n are 1, 6 and 0, of a version that no agent has."""
    name = api.study(
        f"earlier-{uuid.uuid4().hex[:6]}",
        space={"parameters": [{"name": "n", "type": "int", "min": 0, "max": 8, "default": 4}]},
        objectives=[{"metric": "value", "goal": "minimize"}],
        execution={"component": "bowl", "digest": "gone", "application": "only"},
    )
    for value, n in enumerate((1, 6, 0)):
        api("POST", f"/studies/{name}/trials", {"params": {"n": n}, "metrics": {"value": value}})
    api("PATCH", f"/studies/{name}", {"state": "ABORTED"})
    return name


def test_a_study_is_made_step_by_step_and_runs(page: Page, api: Rest) -> None:
    name = f"made-{uuid.uuid4().hex[:6]}"
    file = page.get_by_label("The same as a file")
    page.goto("/components/bowl")
    page.get_by_role("link", name="Tune it").click()
    expect(file).to_have_value(re.compile("component: bowl"))
    expect(file).to_have_value(re.compile("minimize: value"))
    expect(page.get_by_text("1 agent can run it.")).to_be_visible()
    # Earlier studies of this component alone are offered.
    starts = page.get_by_role("region", name="Start from earlier studies")
    add = starts.get_by_role("button", name="Add an earlier study")
    offered = page.get_by_role("listbox", name="Earlier studies").get_by_role("option")

    def start_from(study: str) -> None:
        add.press("Enter")
        expect(offered.filter(has_text="bowl-2")).to_be_visible()
        expect(offered.filter(has_text="io-path-1")).to_have_count(0)
        page.get_by_role("combobox", name="Find an earlier study").fill(study)
        expect(offered).to_have_count(1)
        page.keyboard.press("Enter")
        expect(add).to_be_focused()

    start_from("bowl-1")
    # One that gets a result while one chooses is offered as well.
    add.press("Enter")
    expect(offered.filter(has_text="bowl-2")).to_be_visible()
    earlier = earlier_study(api)
    expect(offered.filter(has_text=earlier)).to_be_visible()
    page.keyboard.press("Escape")
    start_from(earlier)
    expect(file).to_have_value(re.compile(rf"start_from: \[bowl-1, {earlier}\]"))
    # As somebody has written it, it stays.
    written = f"start_from:\n  - bowl-1\n  # of last week\n  - {earlier}\n"
    file.fill(file.input_value().replace(f"start_from: [bowl-1, {earlier}]\n", written))
    starts.get_by_role("button", name="Remove bowl-1").press("Enter")
    expect(file).to_have_value(re.compile(rf"start_from:\n  # of last week\n  - {earlier}\n"))
    remove = starts.get_by_role("button", name=f"Remove {earlier}")
    expect(remove).to_be_focused()
    remove.press("Enter")
    expect(file).not_to_have_value(re.compile("start_from"))
    expect(add).to_be_focused()
    # A name in place of a list is shown, and stays when another joins it.
    file.fill(file.input_value() + "start_from: bowl-1\n")
    start_from(earlier)
    expect(file).to_have_value(re.compile(rf"start_from: \[bowl-1, {earlier}\]"))
    # The plan comes back, and with it the agents above.
    expect(page.get_by_text("1 agent can run it.")).to_be_visible()
    starts.get_by_role("button", name="Remove bowl-1").click()
    expect(file).to_have_value(re.compile(rf"start_from: \[{earlier}\]"))
    expect(starts.get_by_role("listitem").first).to_contain_text("3 configurations")
    file.fill(file.input_value().replace(earlier, "never-was"))
    expect(starts).to_contain_text("start_from[0]: 'never-was'")
    file.fill(file.input_value().replace("never-was", earlier))
    expect(starts).not_to_contain_text("never-was")
    assert accessibility_faults(page) == []
    step(page, "Parameters")
    row = page.get_by_role("group", name="n", exact=True)
    # What is half typed stays as it is typed; the service's refusal stands beside the field.
    row.get_by_label("Max").fill("0.")
    expect(row.get_by_label("Max")).to_have_value("0.")
    expect(row).to_contain_text("allowed:")
    # A default out of the range is refused as well.
    row.get_by_label("Max").fill("3")
    expect(row).to_contain_text("default")
    row.get_by_label("Default").fill("3")
    expect(file).to_have_value(re.compile(r"n:\s+max: 3"))
    page.get_by_role("group", name="x", exact=True).get_by_role("checkbox").first.uncheck()
    expect(file).to_have_value(re.compile("only: \\[n\\]"))
    expect(page.get_by_text("4 configurations")).to_be_visible()
    step(page, "Method")
    expect(page.get_by_text("auto chooses")).to_be_visible()
    page.get_by_label("Algorithm").select_option("grid")
    # The file is followed too.
    file.fill(file.input_value().replace("max_trials: 50", "max_trials: four"))
    step(page, "Budget")
    expect(page.get_by_label("Trials", exact=True)).to_have_value("four")
    expect(page.get_by_text("budget.max_trials is")).to_be_visible()
    page.get_by_label("Trials", exact=True).fill("4")
    # What the service says in seconds is told in the unit that stands in the field.
    page.get_by_label("Time", exact=True).fill("0m")
    expect(page.get_by_text("budget.max_time: 0m is not allowed. Use more than 0m, at most 5,270,400m")).to_be_visible()
    page.get_by_label("Time", exact=True).fill("")
    expect(page.get_by_text("It takes about")).to_be_visible()
    file.fill("objectives: [")
    expect(file).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Trials", exact=True)).to_be_disabled()
    file.fill(
        "component: bowl\nparameters: {n: {max: 3, default: 3}}\nonly: [n]\nobjectives: [{minimize: value}]\n"
        "algorithm: grid\nnoisy: false\nbudget: {max_trials: 4}\nplacement: {exclusive: false}\n"
        f"start_from: [{earlier}]\n"
    )
    step(page, "What")
    # Six is too many here.
    expect(starts.get_by_role("listitem").first).to_contain_text("2 configurations, 1 outside of this space")
    step(page, "Review")
    expect(page.get_by_text("2 configurations are tried first")).to_be_visible()
    expect(page.get_by_text("It still needs a name")).to_be_visible()
    # A name is judged while it is typed, beside its field.
    named = page.get_by_role("textbox", name="Name")
    start = page.get_by_role("button", name="Start the study")
    named.fill("bowl-1")
    expect(page.get_by_text("There is a study 'bowl-1' already.")).to_be_visible()
    expect(named).to_have_attribute("aria-invalid", "true")
    expect(start).to_be_disabled()
    named.fill("no spaces")
    expect(page.get_by_text("name: 'no spaces'")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(start).to_be_disabled()
    # What the agent would run, as it says itself.
    would = page.get_by_role("region", name="The first 3 trials")
    expect(would).to_contain_text("As agent node-17 would run them")
    shown = would.get_by_role("group", name="Command line").first
    expect(shown).to_contain_text(re.compile(r"bowl\.py 0(\.0)? 3 0\.3"))
    expect(shown).to_contain_text("RUNS")
    assert accessibility_faults(page) == []
    file.fill(file.input_value().replace("name: no spaces", f"name: {name}"))
    expect(page.get_by_text("name: 'no spaces'")).to_have_count(0)
    # It is taken by somebody else after it was judged: the start tells.
    taken = f"taken-{uuid.uuid4().hex[:6]}"
    with page.expect_response("**/study-name-checks") as judged:
        named.fill(taken)
    assert judged.value.status == 204
    api.study(taken)
    start.click()
    expect(page.get_by_text(f"There is a study '{taken}' already.")).to_be_visible()
    named.fill(name)
    page.get_by_label("Tags").fill("made, by hand")
    start.click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    study = api("GET", f"/studies/{name}")
    assert study["tags"] == ["by hand", "made"]
    assert study["spec"]["space"]["parameters"] == [{"name": "n", "type": "int", "min": 0, "max": 3, "default": 3}]
    assert study["started_from"] == [{"study": earlier, "taken": 2, "passed_over": 1}]
    expect(page.get_by_text("completed").first).to_be_visible()
    expect(page.get_by_role("link", name=earlier)).to_be_visible()
    page.goto(f"/studies/{name}?tab=trials")
    expect(page.get_by_text("earlier study", exact=True)).to_have_count(2)
    page.goto(f"/studies?q={name}")
    page.get_by_label(f"Choose {name}").check()
    page.get_by_role("link", name="New one like it").click()
    expect(file).to_have_value(re.compile("name: made-"))
    expect(file).to_have_value(re.compile("algorithm: {name: grid"))
    expect(file).to_have_value(re.compile(rf"start_from: \[{earlier}\]"))
    step(page, "Review")
    expect(page.get_by_label("Tags")).to_have_value("by hand, made")


def test_policies_and_rules_are_joined_in_the_form(page: Page) -> None:
    file = page.get_by_label("The same as a file")
    page.goto("/components/bowl")
    page.get_by_role("link", name="Tune it").click()
    expect(file).to_have_value(re.compile("component: bowl"))
    step(page, "Method")
    page.get_by_label("Pruning: which").select_option("median")
    page.get_by_role("button", name="Add a pruning policy").click()
    page.get_by_label("Pruning policy 2", exact=True).select_option("default")
    expect(page.get_by_text("as soon as one of them says so")).to_be_visible()
    page.get_by_label("Stopping: when").select_option("trials")
    page.get_by_label("trials", exact=True).fill("many")
    page.get_by_role("button", name="Add a stopping rule").click()
    rules = page.get_by_role("group", name="Stopping: when")
    expect(rules.get_by_label("Rule 2", exact=True)).to_be_visible()
    # What is wrong stands beside the field of the rule that it is about.
    expect(rules.get_by_text(re.compile(r"stopping\.any\[0\]\.trials: 'many'"))).to_be_visible()
    rules.get_by_label("trials", exact=True).fill("30")
    rules.get_by_label("Rule 2", exact=True).select_option("seconds")
    rules.get_by_label("seconds", exact=True).fill("60")
    rules.get_by_label("The search ends as soon as").select_option("all")
    rules.get_by_role("button", name="Join rule 2 with another").click()
    inner = rules.get_by_role("group", name="Rules 2")
    inner.get_by_label("Rule 2", exact=True).select_option("reference")
    inner.get_by_label("value", exact=True).fill("0.5")
    expect(file).to_have_value(re.compile(r"pruning: \[median, default\]"))
    expect(file).to_have_value(
        re.compile(
            r"all:\s+- rule: trials\s+trials: 30\s+"
            r"- any:\s+- rule: seconds\s+seconds: 60\s+- rule: reference\s+value: 0.5"
        )
    )
    inner.get_by_role("button", name="Remove rule 1").click()
    rules.get_by_role("button", name="Remove rule 1").click()
    expect(file).to_have_value(re.compile(r"stopping: \{rule: reference, value: 0.5\}"))
    page.get_by_role("button", name="Remove pruning policy 1").click()
    expect(file).to_have_value(re.compile(r"pruning: (default|\[default\])\s"))


def test_the_ranges_of_a_running_study_are_changed(page: Page, api: Rest) -> None:
    name = f"narrowed-{uuid.uuid4().hex[:6]}"
    space = [
        {"name": "x", "type": "float", "min": -10.0, "max": 10.0, "default": 4.0},
        {"name": "n", "type": "int", "min": 0, "max": 8, "default": 4},
    ]
    api.study(
        name,
        space={"parameters": space},
        objectives=[{"metric": "value", "goal": "minimize"}],
        algorithm={"name": "gp"},
        execution={
            "component": "bowl", "application": "only", "parallelism": 2, "placement": {"exclusive": False},
        },
    )  # fmt: skip
    wait_for(lambda: bool(api("GET", f"/studies/{name}")["finished_count"] >= 8), 240, "eight trials have run")
    page.goto(f"/studies/{name}")
    page.get_by_role("button", name="Ranges").click()
    dialogue = page.get_by_role("dialog", name=f"Ranges of {name}")
    x, n = (dialogue.get_by_role("group", name=one, exact=True) for one in ("x", "n"))
    expect(x.get_by_label("Min of x")).to_have_value("-10")
    expect(dialogue.get_by_role("button", name="Change")).to_be_disabled()
    x.get_by_label("Min of x").fill("5")
    # The default is what gains are judged against: it has to stay inside.
    expect(x).to_contain_text("what has the default, 4.0")
    x.get_by_label("Min of x").fill("2")
    n.get_by_label("Max of n").fill("many")
    expect(n).to_contain_text("ranges.n.max: 'many'")
    n.get_by_label("Max of n").fill("6")
    expect(dialogue.get_by_role("status")).to_contain_text("finished trials would lie outside")
    assert not accessibility_faults(page)
    dialogue.get_by_role("button", name="Change").click()
    expect(dialogue).to_be_hidden()
    changed = api("GET", f"/studies/{name}")
    assert (changed["space_version"], changed["state"]) == (2, "ACTIVE")
    last = changed["trial_count"]

    def new() -> list[dict[str, Any]]:
        trials = api("GET", f"/studies/{name}/trials?page_size=1000")["trials"]
        return [trial for trial in trials if trial["number"] > last and trial["state"] == "COMPLETED"]

    # By processes that knew the study before: gRPC gives out trials, a worker has its algorithm.
    wait_for(lambda: len(new()) >= 6, 240, "six more trials have run")
    assert all(2 <= trial["params"]["x"] <= 10 and 0 <= trial["params"]["n"] <= 6 for trial in new())
    (best,) = api("GET", f"/studies/{name}/analysis")["best"]
    assert 2 <= best["params"]["x"] <= 10
    api("PATCH", f"/studies/{name}", {"state": "ABORTED"})


def test_a_trial_tells_what_was_run_and_what_it_left(page: Page, api: Rest, service: EmbeddedService) -> None:
    page.goto("/studies/bowl-1/trials/2")
    ran = page.get_by_role("region", name="How it was run")
    line = ran.get_by_role("group", name="Command line")
    (lease,) = api("GET", "/studies/bowl-1/trials/2")["leases"]
    (command,) = lease["invocation"]["commands"]
    for argument in command["argv"]:
        expect(line).to_contain_text(argument)
    expect(line).to_contain_text("RUNS")
    expect(ran).to_contain_text(lease["invocation"]["folder"])
    left = page.get_by_role("region", name="Files that it left")
    with page.expect_download() as download:
        left.get_by_role("link", name="point.json").click()
    params = api("GET", "/studies/bowl-1/trials/2")["params"]
    assert json.loads(download.value.path().read_text()) == params
    runs = page.get_by_role("region", name="Runs on agents")
    row = runs.get_by_role("row").filter(has_text="node-17")
    expect(row).to_contain_text("completed")
    expect(row.get_by_role("cell").nth(1)).to_have_text(lease["node"])
    assert accessibility_faults(page) == []


def test_agents_are_enrolled_drained_and_shown_at_work(page: Page, api: Rest, service: EmbeddedService) -> None:
    page.goto("/agents")
    agent = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="node-17"))
    for text in ("online", "of 2 slots in use", "bowl", "all that it offers"):
        expect(agent).to_contain_text(text)
    expect(agent.get_by_role("link", name=re.compile(r"bowl-2 #\d+")).first).to_be_visible()
    agent.get_by_role("button", name="Drain").click()
    expect(agent).to_contain_text("drained")
    (told,) = api("GET", "/agents")["agents"]
    assert (told["draining"], told["busy"]) == (True, 0)
    agent.get_by_role("button", name="Take trials again").click()
    expect(agent).to_contain_text("online")
    page.get_by_role("button", name="Enrol an agent").click()
    dialogue = page.get_by_role("dialog", name="Enrol an agent")
    expect(dialogue.get_by_label("Address of the service")).to_have_value(service.grpc_address)
    dialogue.get_by_role("button", name="Make the command").click()
    expect(dialogue).to_contain_text(re.compile(r"trimtab-agent run .*--enrol tre_", re.DOTALL))


def test_a_component_tells_its_best_settings(page: Page) -> None:
    page.goto("/components")
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name="bowl"))
    expect(line).to_contain_text("node-17")
    line.get_by_role("link").click()
    best = page.get_by_role("region", name="Best settings known")
    expect(best).to_contain_text("% better")
    expect(best.get_by_role("row").filter(has=page.get_by_role("rowheader", name="x"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("x .10 to 10"))).to_be_visible()
    page.goto("/components/never")
    expect(page.get_by_text("Nobody knows a component never")).to_be_visible()


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
    expect(dialogue).to_contain_text("There is no study 'never-was'")
    dialogue.get_by_label("Only in the study").fill("")
    # Twice at once makes one.
    dialogue.get_by_role("button", name="Make the token").dblclick()
    secret = dialogue.locator("pre").inner_text()
    dialogue.get_by_role("button", name="Done").click()
    line = page.get_by_role("row").filter(has_text="dashboard")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("read")
    assert secret not in page.content()
    line.get_by_role("button", name="Revoke dashboard").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(line).to_be_hidden()


def test_an_administrator_sees_quota_audit_and_tenants(page: Page) -> None:
    page.goto("/administration?section=audit")
    entries = page.locator("tbody").get_by_role("row")
    expect(entries.nth(10)).to_be_visible()
    page.get_by_label("What", exact=True).fill("study.update_state")
    expect(entries.filter(has_not_text="study.update_state")).to_have_count(0)
    expect(entries.filter(has_text="study/out-of-disk")).to_have_count(1)
    page.get_by_label("To the day").fill("2020-01-01")
    expect(page.get_by_text("No entry matches")).to_be_visible()
    page.get_by_label("To the day").fill("")
    page.get_by_label("From the day").fill("2020-01-01")
    expect(entries.filter(has_text="study/out-of-disk")).to_have_count(1)
    page.get_by_role("radio", name="Quota").click()
    expect(page.get_by_text("Stored trials")).to_be_visible()
    page.get_by_role("radio", name="Members").click()
    expect(page.get_by_text("Nobody has been seen yet")).to_be_visible()
    page.get_by_role("radio", name="Tenants").click()
    page.get_by_label("Short name of a new tenant").fill("no spaces")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("slug: 'no spaces'")).to_be_visible()
    page.get_by_label("Short name of a new tenant").fill("acme")
    # Twice before the page can show that it is at work.
    page.get_by_role("button", name="Add").evaluate("button => { button.click(); button.click(); }")
    expect(page.get_by_label("Short name of a new tenant")).to_have_value("")
    expect(page.get_by_text("There is a tenant")).to_have_count(0)
    line = page.get_by_role("row").filter(has_text="acme")
    line.get_by_role("button", name="Disable acme").click()
    expect(line).to_contain_text("disabled")


def test_the_palette_goes_anywhere_by_keyboard(page: Page) -> None:
    page.keyboard.press("Control+k")
    find = page.get_by_placeholder("Study, page, command")
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
    find.fill("set-up")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Study file")).to_contain_text("minimize: seconds")
    page.keyboard.press("Control+k")
    find.fill("agents")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


def test_the_palette_pauses_resumes_and_stops_a_study(page: Page, api: Rest) -> None:
    name = api.study(f"told-{uuid.uuid4().hex[:6]}")
    find = page.get_by_placeholder("Study, page, command")

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
    find.fill("told-")
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
    # What has ended can be told nothing more.
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option", name="Clone this study")).to_be_visible()
    expect(page.get_by_role("option", name=re.compile(f"(Pause|Resume|Stop) {name}"))).to_have_count(0)


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
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("status")).to_have_count(0)
        look(name)
        if name == "new":
            for one in STEPS:
                step(page, one)
                look(f"{name} {one}")
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("Study, page, command")).to_be_focused()
    look("palette")
    page.context.close()
    assert not faults, "\n".join(faults)


def test_every_text_comes_from_the_catalogue(browser: Browser, service: EmbeddedService, api: Rest) -> None:
    context = browser.new_context(base_url=service.http_url)
    told = wrap_texts(context)
    page = open_page(context)
    found: dict[str, list[tuple[str, str]]] = {}

    def look(name: str) -> None:
        # What comes after the first answer, and the first frame of a chart.
        page.wait_for_timeout(800)
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
    page.get_by_placeholder("⟦Study, page, command …⟧").wait_for()
    look("palette")

    studies = [one["name"] for one in api("GET", "/studies")["studies"]]
    told += [api("GET", f"/studies/{name}") for name in studies] + [api("GET", "/studies/bowl-1/trials")]
    known = names_and_values(told)
    context.close()
    leftovers = {
        name: texts
        for name, outside in found.items()
        if (texts := [(where, text, foreign(text, known)) for where, text in outside if foreign(text, known)])
    }
    assert leftovers == {}


def test_a_draft_tells_its_faults_and_is_not_left_without_a_question(page: Page) -> None:
    file = page.get_by_label("The same as a file")
    # It is called what none is called yet.
    page.goto("/new?clone=io-path-1")
    expect(file).to_have_value(re.compile("^name: io-path-4$", re.MULTILINE))
    page.goto("/new?component=bowl")
    file.fill("component: bowl\nobjectives: [{minimize: value}]\nparameters: {gone: {min: 1}}\n")
    step(page, "Parameters")
    expect(page.get_by_role("alert")).to_contain_text("parameters.gone: the component has no such parameter")
    file.fill("component: bowl\nobjectives: [{minimize: value}]\nparameters: {x: {min: 3, max: 1}}\n")
    expect(page.get_by_role("group", name="x")).to_contain_text("parameters.x.min is 3.0")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("navigation").get_by_role("link", name="Agents").click()
    expect(file).to_contain_text("min: 3")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("navigation").get_by_role("link", name="Agents").click()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
