"""Components that are written in the console, the operators' pages and lists that follow a stream: in a real browser,
against a real service, with the agent's own commands."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agent.conftest import AgentProcess
from tests.factories.browser import (
    NEEDS_BROWSER,
    accessibility_faults,
    build_console,
    open_page,
)
from tests.factories.console import Rest
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    build_console()
    with EmbeddedService(tmp_path_factory.mktemp("operating")) as service:
        yield service


@pytest.fixture(scope="module")
def rest(service: EmbeddedService) -> Rest:
    return Rest(service)


@pytest.fixture
def page(browser: Browser, service: EmbeddedService) -> Iterator[Page]:
    """Signed in as the administrator, who operates an installation of this kind as well."""
    page = with_token(browser, service, service.token)
    yield page
    page.context.close()


def with_token(browser: Browser, service: EmbeddedService, token: str) -> Page:
    """A browser whose every call has this token, which the service limits as it does programs."""
    headers = {"Authorization": f"Bearer {token}"}
    return open_page(browser.new_context(base_url=service.http_url, extra_http_headers=headers))


@pytest.fixture
def member(browser: Browser, service: EmbeddedService, rest: Rest) -> Iterator[Page]:
    """Somebody who may look and nothing else."""
    made = rest("POST", "/tokens", {"name": "looks", "scopes": ["read"], "study": None, "days": 1})
    page = with_token(browser, service, made["secret"])
    yield page
    page.context.close()


@pytest.fixture
def agent(tmp_path: Path, service: EmbeddedService) -> Iterator[AgentProcess]:
    made = AgentProcess(tmp_path, int(service.grpc_address.rpartition(":")[2]), service.token)
    made.components.mkdir()
    (made.components / "other.yaml").write_text("name: other\napplications: {main: {command: ['true']}}\n")
    yield made
    made.clear_away()


def write(page: Page, text: str) -> Any:
    """Put a text in place of what the editor has, by the keyboard."""
    editor = page.get_by_role("textbox", name="Component file")
    editor.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)
    return editor


TEXT = """name: written
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  main: {command: [sh, -c, 'echo "value=$0"']}
metrics:
  value: {type: regex, pattern: 'value=(.+)'}
"""


def test_a_component_is_written_pulled_and_offered(page: Page, agent: AgentProcess, tmp_path: Path) -> None:
    agent.start("--name", "cluster")
    agent.wait_until_ready()
    page.goto("/components")
    page.get_by_role("link", name="Write a component").press("Enter")
    # What it begins with has no fault.
    expect(page.get_by_text("No problems")).to_be_visible()
    keep = page.get_by_role("button", name="Save version")
    editor = write(page, TEXT.replace("max: 10", "max: -10").replace("float", "flaot"))
    wrong = page.get_by_role("list", name="Problems")
    expect(wrong).to_contain_text("parameters.x.type")
    expect(wrong).to_contain_text("Did you mean 'float'?")
    expect(page.locator(".cm-lintRange-error").first).to_have_text("flaot")
    expect(keep).to_be_disabled()
    assert accessibility_faults(page) == []
    # From the message to the place, by the keyboard; completion knows what is allowed there.
    wrong.get_by_role("button").first.focus()
    page.keyboard.press("Enter")
    expect(editor).to_be_focused()
    page.keyboard.type("flo")
    page.get_by_role("option", name="float").wait_for()
    # An Enter that comes sooner than anyone can have read the offer is a new line.
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    expect(wrong).to_contain_text("parameters.x.min")
    expect(wrong).to_contain_text("0 is not below max, -10")
    write(page, TEXT)
    expect(page.get_by_text("No problems")).to_be_visible()
    # Tab leaves the editor, as any field.
    editor.focus()
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
    keep.press("Enter")
    expect(page.get_by_role("heading", name="written", exact=True)).to_be_visible()
    files = page.get_by_role("region", name="Versions written in the console")
    expect(files).to_contain_text("waiting to be installed")
    assert accessibility_faults(page) == []
    # What the page shows to copy is run as it stands, but for where the service and the agent are.
    page.get_by_label("Service address, as seen from the cluster").fill(f"127.0.0.1:{agent.port}")
    command = shlex.split(files.locator("pre").inner_text().replace("\\\n", " "))
    assert command[:3] == ["trimtab-agent", "pull", "written"]
    token = ["--token-file", str(agent.folder / "token"), "--state-dir", str(tmp_path / "none")]
    done = subprocess.run(
        [sys.executable, "-m", "trimtab_agent.main", *command[1:], *token, "--yes"],
        cwd=agent.folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (agent.components / "written/component.yaml").read_text() == TEXT
    # The running agent notices the change, and the page shows it.
    expect(files).to_contain_text("offered by cluster")
    # A new version begins with the old one's text.
    files.get_by_role("link", name="Edit version 1").click()
    expect(page.get_by_role("textbox", name="Component file")).to_contain_text("name: written")
    write(page, TEXT.replace("default: 5", "default: 6"))
    expect(page.get_by_text("No problems")).to_be_visible()
    page.get_by_role("button", name="Save version").click()
    rows = files.locator("tbody").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("waiting to be installed")
    expect(rows.nth(1)).to_contain_text("offered by cluster")
    agent.stop()


def test_a_viewer_sees_no_controls_that_write(member: Page, rest: Rest) -> None:
    rest("POST", "/components", {"text": TEXT.replace("written", "shown")})
    member.goto("/components/shown")
    expect(member.get_by_role("region", name="Versions written in the console")).to_be_visible()
    expect(member.get_by_role("link", name=re.compile("^Edit"))).to_have_count(0)
    expect(member.get_by_role("button", name="Delete …")).to_have_count(0)
    member.goto("/components")
    expect(member.get_by_role("link", name="shown")).to_be_visible()
    expect(member.get_by_role("link", name="Write a component")).to_have_count(0)
    member.goto("/administration?section=queue")
    expect(member.get_by_role("heading", name="Administration")).to_be_visible()
    expect(member.get_by_role("region", name="Queue")).to_have_count(0)
    expect(member.get_by_text("Tenants")).to_have_count(0)
    rest.study("looked-at")
    member.goto("/studies/looked-at")
    expect(member.get_by_role("heading", name="looked-at")).to_be_visible()
    member.keyboard.press("Control+k")
    member.get_by_placeholder("Search for a study, page or command").fill("looked-at")
    # By now the study that is open and what was found are there.
    expect(member.get_by_role("group", name="Studies").get_by_role("option", name="looked-at")).to_be_visible()
    expect(member.get_by_role("option", name=re.compile("(Pause|Resume|Stop) looked-at"))).to_have_count(0)
    for method, path in (("GET", "queue"), ("PATCH", "tenants/default"), ("POST", "components")):
        answer = member.request.fetch(f"/api/v1/{path}", method=method, data={})
        assert (answer.status, answer.json()["code"]) == (403, "not_permitted")


def test_an_operator_sees_the_queue_and_sets_limits(page: Page, rest: Rest, service: EmbeddedService) -> None:
    page.goto("/administration?section=queue")
    queue = page.get_by_role("region", name="Queue")
    workers = queue.locator("dl > div").filter(has_text="Active workers")
    expect(workers).to_contain_text("2")
    expect(queue).to_contain_text("The queue is empty")
    # Trials that no agent takes wait, and the page tells without being loaded again.
    rest.study("waits", execution={"component": "nobody-has-it", "application": "", "parallelism": 2})
    expect(queue.get_by_role("row", name=re.compile("^default"))).to_contain_text("3")
    assert accessibility_faults(page) == []
    rest("PATCH", "/studies/waits", {"state": "ABORTED", "reason": ""})
    expect(queue).to_contain_text("The queue is empty")
    rest("POST", "/tenants", {"slug": "acme", "name": ""})
    page.goto("/administration?section=tenants")
    page.get_by_role("button", name="Limits of acme").press("Enter")
    dialogue = page.get_by_role("dialog")
    dialogue.get_by_label("Studies").fill("many")
    expect(dialogue).to_contain_text("Enter a whole number")
    expect(dialogue.get_by_role("button", name="Save limits")).to_be_disabled()
    dialogue.get_by_label("Studies").fill("7")
    dialogue.get_by_label("Suggestions per minute").fill("0")
    assert accessibility_faults(page) == []
    page.keyboard.press("Enter")
    expect(dialogue).to_have_count(0)
    line = page.get_by_role("row", name=re.compile("^acme"))
    expect(line).to_contain_text("Studies: 7, Suggestions per minute: 0")
    limits = rest("GET", "/tenants/acme")["limits"]
    assert (limits["studies"], limits["suggestions_per_minute"], limits["log_bytes"]) == (7, 0, None)
    page.get_by_role("button", name="Limits of acme").click()
    dialogue.get_by_label("Studies").fill("")
    dialogue.get_by_role("button", name="Save limits").click()
    expect(line).not_to_contain_text("Studies: 7")
    assert rest("GET", "/tenants/acme")["limits"]["studies"] is None


@pytest.mark.slow("test_console.py kills the web process under a page")
def test_lists_follow_changes_and_a_restart_of_the_service(page: Page, rest: Rest, service: EmbeddedService) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response("**/api/v1/events"):
        page.goto("/studies")
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    rest.study("appears")
    expect(page.get_by_role("link", name="appears")).to_be_visible()
    os.kill(service.processes()["web"], signal.SIGKILL)
    wait_for(partial(_made, rest, "later"))
    expect(page.get_by_role("link", name="later")).to_be_visible()
    # The lists were asked for by the stream's word: their own pace is a minute.
    streams = [url for url in asked if url.endswith("/api/v1/events")]
    assert len(streams) >= 2


def _made(rest: Rest, name: str) -> bool:
    """Return whether the service answers again and has created this study."""
    try:
        rest.study(name)
    except httpx.TransportError:
        return False
    return True
