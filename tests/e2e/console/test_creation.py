"""Creation of studies and changes of their ranges in the console."""

from __future__ import annotations

import re
import uuid
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.console.pages import step
from tests.factories.browser import NEEDS_BROWSER, accessibility_faults, choose_action
from tests.factories.console import Rest
from tests.factories.patience import wait_for

pytestmark = NEEDS_BROWSER


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


def content(editor: Locator) -> str:
    """Return the text of an editor that shows all its lines."""
    return "\n".join(editor.locator(".cm-line").all_text_contents())


def test_a_study_is_made_step_by_step_and_runs(page: Page, api: Rest) -> None:
    name = f"made-{uuid.uuid4().hex[:6]}"
    file = page.get_by_label("Study file (YAML)")
    page.goto("/components/bowl")
    page.get_by_role("link", name="Tune this component").click()
    expect(file).to_contain_text(re.compile("component: bowl"))
    expect(file).to_contain_text(re.compile("minimize: value"))
    expect(page.get_by_text("1 agent can run this study.")).to_be_visible()
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
    expect(file).to_contain_text(re.compile(rf"start_from: \[bowl-1, {earlier}\]"))
    # As somebody has written it, it stays.
    written = f"start_from:\n  - bowl-1\n  # of last week\n  - {earlier}\n"
    file.fill(content(file).replace(f"start_from: [bowl-1, {earlier}]\n", written))
    starts.get_by_role("button", name="Remove bowl-1").press("Enter")
    expect(file).to_contain_text(re.compile(rf"start_from:\s*# of last week\s*- {earlier}"))
    remove = starts.get_by_role("button", name=f"Remove {earlier}")
    expect(remove).to_be_focused()
    remove.press("Enter")
    expect(file).not_to_contain_text("start_from")
    expect(add).to_be_focused()
    # A name in place of a list is shown, and stays when another joins it.
    file.fill(content(file) + "start_from: bowl-1\n")
    start_from(earlier)
    expect(file).to_contain_text(re.compile(rf"start_from: \[bowl-1, {earlier}\]"))
    # The plan comes back, and with it the agents above.
    expect(page.get_by_text("1 agent can run this study.")).to_be_visible()
    starts.get_by_role("button", name="Remove bowl-1").click()
    expect(file).to_contain_text(re.compile(rf"start_from: \[{earlier}\]"))
    expect(starts.get_by_role("listitem").first).to_contain_text("3 configurations")
    file.fill(content(file).replace(earlier, "never-was"))
    expect(starts).to_contain_text("start_from[0]: 'never-was'")
    file.fill(content(file).replace("never-was", earlier))
    expect(starts).not_to_contain_text("never-was")
    assert accessibility_faults(page) == []
    step(page, "Parameters")
    row = page.get_by_role("group", name="n", exact=True)
    # A number that is typed in part stays as it is, and the service's error appears next to the field.
    row.get_by_label("Max").fill("0.")
    expect(row.get_by_label("Max")).to_have_value("0.")
    expect(row).to_contain_text("4 is above the maximum 0")
    # A default out of the range is refused as well.
    row.get_by_label("Max").fill("3")
    expect(row).to_contain_text("default")
    row.get_by_label("Default").fill("3")
    expect(file).to_contain_text(re.compile(r"n:\s+max: 3"))
    page.get_by_role("group", name="x", exact=True).get_by_role("checkbox").first.uncheck()
    expect(file).to_contain_text(re.compile("only: \\[n\\]"))
    expect(page.get_by_text("4 configurations")).to_be_visible()
    step(page, "Method")
    expect(page.get_by_text("auto chooses")).to_be_visible()
    page.get_by_label("Algorithm").select_option("grid")
    # The file is followed too.
    file.fill(content(file).replace("max_trials: 50", "max_trials: four"))
    step(page, "Budget")
    expect(page.get_by_label("Trials", exact=True)).to_have_value("four")
    expect(page.get_by_text("budget.max_trials: ")).to_be_visible()
    page.get_by_label("Trials", exact=True).fill("4")
    # The service's error is in seconds. The page shows it in the field's unit.
    page.get_by_label("Total time", exact=True).fill("0m")
    expect(page.get_by_text("budget.max_time: 0m is not allowed. Use more than 0m, at most 5,270,400m")).to_be_visible()
    page.get_by_label("Total time", exact=True).fill("")
    expect(page.get_by_text("The study takes about")).to_be_visible()
    file.fill("objectives: [")
    expect(file).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Trials", exact=True)).to_be_disabled()
    file.fill(
        "component: bowl\nparameters: {n: {max: 3, default: 3}}\nonly: [n]\nobjectives: [{minimize: value}]\n"
        "algorithm: grid\nnoisy: false\nbudget: {max_trials: 4}\nplacement: {exclusive: false}\n"
        f"start_from: [{earlier}]\n"
    )
    step(page, "Component")
    # Six is too many here.
    expect(starts.get_by_role("listitem").first).to_contain_text("2 configurations, 1 outside of this space")
    step(page, "Review")
    expect(page.get_by_text("2 configurations are measured first")).to_be_visible()
    expect(page.get_by_text("Still required: a name")).to_be_visible()
    # The console checks a name while it is typed, and shows the error next to its field.
    named = page.get_by_role("textbox", name="Name")
    start = page.get_by_role("button", name="Start the study")
    named.fill("bowl-1")
    expect(page.get_by_text("A study 'bowl-1' exists already.")).to_be_visible()
    expect(named).to_have_attribute("aria-invalid", "true")
    expect(start).to_be_disabled()
    named.fill("no spaces")
    expect(page.get_by_text("name: 'no spaces'")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(start).to_be_disabled()
    # What the agent would run, as it says itself.
    would = page.get_by_role("region", name="The first 3 trials")
    expect(would).to_contain_text("Agent node-17 would run these commands")
    shown = would.get_by_role("group", name="Command line").first
    expect(shown).to_contain_text(re.compile(r"bowl\.py 0(\.0)? 3 0\.3"))
    expect(shown).to_contain_text("RUNS")
    assert accessibility_faults(page) == []
    file.fill(content(file).replace("name: no spaces", f"name: {name}"))
    expect(page.get_by_text("name: 'no spaces'")).to_have_count(0)
    # It is taken by somebody else after it was judged: the start tells.
    taken = f"taken-{uuid.uuid4().hex[:6]}"
    with page.expect_response("**/study-name-checks") as judged:
        named.fill(taken)
    assert judged.value.status == 204
    api.study(taken)
    start.click()
    expect(page.get_by_text(f"A study '{taken}' exists already.")).to_be_visible()
    named.fill(name)
    page.get_by_label("Tags").fill("made, by hand")
    page.get_by_role("textbox", name="Description").fill("# Why\n\nIt is **slow** <b>here</b>.")
    expect(file).to_contain_text(re.compile(r"description: \|-\s*# Why\s*It is"))
    start.click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    study = api("GET", f"/studies/{name}")
    assert study["tags"] == ["by hand", "made"]
    assert study["spec"]["space"]["parameters"] == [{"name": "n", "type": "int", "min": 0, "max": 3, "default": 3}]
    assert study["started_from"] == [{"study": earlier, "taken": 2, "passed_over": 1}]
    expect(page.get_by_text("completed").first).to_be_visible()
    expect(page.get_by_role("link", name=earlier)).to_be_visible()
    note = page.get_by_role("group").filter(has_text="Description")
    expect(note.get_by_role("heading", name="Why")).to_be_visible()
    expect(note.get_by_role("strong")).to_have_text("slow")
    expect(note).to_contain_text("<b>here</b>")
    page.goto(f"/studies/{name}?tab=trials")
    expect(page.get_by_text("earlier study", exact=True)).to_have_count(2)
    page.goto(f"/studies?q={name}")
    page.get_by_label(f"Select {name}").check()
    page.get_by_role("link", name="Clone").click()
    expect(file).to_contain_text(re.compile("name: made-"))
    expect(file).to_contain_text(re.compile("algorithm: {name: grid"))
    expect(file).to_contain_text(re.compile(r"description: \|-\s*# Why"))
    expect(file).to_contain_text(re.compile(rf"start_from: \[{earlier}\]"))
    step(page, "Review")
    expect(page.get_by_label("Tags")).to_have_value("by hand, made")


@pytest.mark.slow("the study that is made step by step shows the form")
def test_policies_and_rules_are_joined_in_the_form(page: Page) -> None:
    file = page.get_by_label("Study file (YAML)")
    page.goto("/components/bowl")
    page.get_by_role("link", name="Tune this component").click()
    expect(file).to_contain_text(re.compile("component: bowl"))
    step(page, "Method")
    page.get_by_label("Pruning policy", exact=True).select_option("median")
    page.get_by_role("button", name="Add a pruning policy").click()
    page.get_by_label("Pruning policy 2", exact=True).select_option("default")
    expect(page.get_by_text("as soon as any of these policies decides so")).to_be_visible()
    page.get_by_label("Stopping rule", exact=True).select_option("trials")
    page.get_by_label("trials", exact=True).fill("many")
    page.get_by_role("button", name="Add a stopping rule").click()
    rules = page.get_by_role("group", name="Stopping rules")
    expect(rules.get_by_label("Rule 2", exact=True)).to_be_visible()
    # The error appears next to the field of the rule that is wrong.
    expect(rules.get_by_text(re.compile(r"stopping\.any\[0\]\.trials: 'many'"))).to_be_visible()
    rules.get_by_label("trials", exact=True).fill("30")
    rules.get_by_label("Rule 2", exact=True).select_option("seconds")
    rules.get_by_label("seconds", exact=True).fill("60")
    rules.get_by_label("Stop the search when").select_option("all")
    rules.get_by_role("button", name="Combine rule 2 with another").click()
    inner = rules.get_by_role("group", name="Rules 2")
    inner.get_by_label("Rule 2", exact=True).select_option("reference")
    inner.get_by_label("value", exact=True).fill("0.5")
    expect(file).to_contain_text(re.compile(r"pruning: \[median, default\]"))
    expect(file).to_contain_text(
        re.compile(
            r"all:\s+- rule: trials\s+trials: 30\s+"
            r"- any:\s+- rule: seconds\s+seconds: 60\s+- rule: reference\s+value: 0.5"
        )
    )
    inner.get_by_role("button", name="Remove rule 1").click()
    rules.get_by_role("button", name="Remove rule 1").click()
    expect(file).to_contain_text(re.compile(r"stopping: \{rule: reference, value: 0.5\}"))
    page.get_by_role("button", name="Remove pruning policy 1").click()
    expect(file).to_contain_text(re.compile(r"pruning: (default|\[default\])(?!,)"))


@pytest.mark.slow("the page of edits of a space shows the same in a third of the time")
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
    wait_for(lambda: bool(api("GET", f"/studies/{name}")["finished_count"] >= 8), "eight trials have run")
    page.goto(f"/studies/{name}")
    choose_action(page, "Ranges")
    dialogue = page.get_by_role("dialog", name=f"Ranges of {name}")
    x, n = (dialogue.get_by_role("group", name=one, exact=True) for one in ("x", "n"))
    expect(x.get_by_label("Min of x")).to_have_value("-10")
    expect(dialogue.get_by_role("button", name="Save")).to_be_disabled()
    x.get_by_label("Min of x").fill("5")
    # The default is what gains are judged against: it has to stay inside.
    expect(x).to_contain_text("a range that contains the default 4.0")
    x.get_by_label("Min of x").fill("2")
    n.get_by_label("Max of n").fill("many")
    expect(n).to_contain_text("ranges.n.max: 'many'")
    n.get_by_label("Max of n").fill("6")
    expect(dialogue.get_by_role("status")).to_contain_text("finished trials would lie outside")
    assert not accessibility_faults(page)
    dialogue.get_by_role("button", name="Save").click()
    expect(dialogue).to_be_hidden()
    changed = api("GET", f"/studies/{name}")
    assert (changed["space_version"], changed["state"]) == (2, "ACTIVE")
    last = changed["trial_count"]

    def new() -> list[dict[str, Any]]:
        trials = api("GET", f"/studies/{name}/trials?page_size=1000")["trials"]
        return [trial for trial in trials if trial["number"] > last and trial["state"] == "COMPLETED"]

    # By processes that knew the study before: gRPC gives out trials, a worker has its algorithm.
    wait_for(lambda: len(new()) >= 6, "six more trials have run")
    assert all(2 <= trial["params"]["x"] <= 10 and 0 <= trial["params"]["n"] <= 6 for trial in new())
    (best,) = api("GET", f"/studies/{name}/analysis")["best"]
    assert 2 <= best["params"]["x"] <= 10
    api("PATCH", f"/studies/{name}", {"state": "ABORTED"})


def test_a_draft_shows_its_faults_and_is_kept_when_its_page_is_left(page: Page, api: Rest) -> None:
    file = page.get_by_label("Study file (YAML)")
    # It is called what none is called yet.
    taken = {one["name"] for one in api("GET", "/studies?name_prefix=io-path-")["studies"]}
    free = next(name for name in (f"io-path-{number}" for number in count(2)) if name not in taken)
    page.goto("/new?clone=io-path-1")
    expect(file).to_contain_text(f"name: {free}")
    page.goto("/new?component=bowl")
    file.fill("component: bowl\nobjectives: [{minimize: value}]\nparameters: {gone: {min: 1}}\n")
    step(page, "Parameters")
    expect(page.get_by_role("alert")).to_contain_text("parameters.gone: the component has no such parameter")
    file.fill("component: bowl\nobjectives: [{minimize: value}]\nparameters: {x: {min: 3, max: 1}}\n")
    expect(page.get_by_role("group", name="x")).to_contain_text("parameters.x.min: 3.0")
    page.get_by_role("navigation").get_by_role("link", name="Agents").click()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    page.goto("/new?component=bowl")
    expect(page.get_by_text("This is your draft from before.")).to_be_visible()
    expect(file).to_contain_text(re.compile("min: 3"))
