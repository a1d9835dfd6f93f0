"""Trials, agents and components in the console."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.factories.browser import NEEDS_BROWSER, accessibility_faults
from tests.factories.console import Rest
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER


def test_a_trial_shows_its_command_line_its_files_and_its_agent(
    page: Page, api: Rest, service: EmbeddedService
) -> None:
    page.goto("/studies/bowl-1/trials/2")
    ran = page.get_by_role("region", name="Execution")
    line = ran.get_by_role("group", name="Command line")
    (lease,) = api("GET", "/studies/bowl-1/trials/2")["leases"]
    (command,) = lease["invocation"]["commands"]
    for argument in command["argv"]:
        expect(line).to_contain_text(argument)
    expect(line).to_contain_text("RUNS")
    expect(ran).to_contain_text(lease["invocation"]["folder"])
    left = page.get_by_role("region", name="Output files")
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
    for text in ("online", "of 2 slots in use", "bowl", "everything that it offers"):
        expect(agent).to_contain_text(text)
    expect(agent.get_by_role("link", name=re.compile(r"bowl-2 #\d+")).first).to_be_visible()
    agent.get_by_role("button", name="Drain").click()
    expect(agent).to_contain_text("drained")
    (reported,) = api("GET", "/agents")["agents"]
    assert (reported["draining"], reported["busy"]) == (True, 0)
    agent.get_by_role("button", name="Accept trials").click()
    expect(agent).to_contain_text("online")
    page.get_by_role("button", name="Enrol an agent").click()
    dialogue = page.get_by_role("dialog", name="Enrol an agent")
    expect(dialogue.get_by_label("Service address")).to_have_value(service.grpc_address)
    dialogue.get_by_role("button", name="Create command").click()
    expect(dialogue).to_contain_text(re.compile(r"TRIMTAB_ENROL_TOKEN=tre_.* trimtab-agent run", re.DOTALL))


def test_a_component_shows_its_best_known_settings(page: Page) -> None:
    page.goto("/components")
    line = page.get_by_role("row").filter(has=page.get_by_role("link", name="bowl"))
    expect(line).to_contain_text("node-17")
    line.get_by_role("link").click()
    best = page.get_by_role("region", name="Best known settings")
    expect(best).to_contain_text("% better")
    expect(best.get_by_role("row").filter(has=page.get_by_role("rowheader", name="x"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("x .10 to 10"))).to_be_visible()
    page.goto("/components/never")
    expect(page.get_by_text("There is no component never")).to_be_visible()
