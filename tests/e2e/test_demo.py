"""The demonstration from end to end: real service, agent and compiler, interrupted in the middle and gone on with."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import psutil
import pytest
from playwright.sync_api import Browser, expect

from tests.factories.browser import NEEDS_BROWSER, build_console, open_page
from tests.factories.patience import PATIENCE, wait_for

NEEDS_CHROMIUM = NEEDS_BROWSER[0]
ROOT = Path(__file__).parents[2]


@contextmanager
def running(data: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Start the demonstration; afterwards it is killed if it still runs, and its parts end with it."""
    with subprocess.Popen(
        [sys.executable, "-m", "demo", "--data-dir", str(data), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "COLUMNS": "200"},
    ) as demo:
        try:
            yield demo
        finally:
            demo.kill()


def left_over(data: Path) -> list[str]:
    """Command lines of processes that still have something to do with the data folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(data) in line:
            found.append(line)
    return found


@NEEDS_CHROMIUM
def test_an_interrupted_demo_is_finished_and_prints_the_result_of_the_console(tmp_path: Path, browser: Browser) -> None:
    build_console()
    data = tmp_path / "data"
    # The time limit is beyond what a busy machine needs, since a search that measures only the default has no gain.
    arguments = ("--trials", "6", "--check", "8", "--seconds", "3600")
    shown = ""
    with running(data, *arguments) as first:
        assert first.stdout is not None
        for line in first.stdout:
            shown += line
            if re.match(r"trial \d+: seconds", line):  # a trial has been measured
                break
        os.kill(first.pid, signal.SIGINT)
        shown += first.stdout.read()
        assert first.wait(PATIENCE) == 0, shown
    assert "the next `make demo` continues with it" in shown
    wait_for(lambda: left_over(data) == [], "nothing is left")

    output = ""
    with running(data, *arguments) as second:
        assert second.stdout is not None
        for line in second.stdout:
            output += line
            if line.startswith("Running. Console:"):
                break
        assert "Continuing the interrupted study gcc-flags-1" in output
        assert re.search(r"gcc -O2( -\S+)* \.\.\.", output)
        shows_the_same(browser, output)
        os.kill(second.pid, signal.SIGINT)
        assert second.wait(PATIENCE) == 0
    wait_for(lambda: left_over(data) == [], "nothing is left")


def shows_the_same(browser: Browser, output: str) -> None:
    """Check that the console has the numbers and the verdict of the output."""
    link = re.search(r"the link works once\): (\S+)", output)
    assert link, output
    page = open_page(browser.new_context())
    page.goto(link[1])
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    page.goto(urljoin(link[1], "/studies/gcc-flags-1"))
    gain = page.get_by_role("region", name="Gain over the default")
    for label, printed in (("Default", r"default \(-O2\)"), ("Best", "recommended")):
        value = re.search(rf"{printed} +([\d.]+ (?:s|ms)) +\d+ runs", output)
        assert value, output
        expect(gain).to_contain_text(f"{label}{value[1]}")
    interval = r"\(95 %: -?[\d.]+ to -?[\d.]+\)"
    verdict = re.search(rf"verdict +((faster by [\d.]+ %|no measurable gain|the default is better) {interval})", output)
    assert verdict, output
    expect(gain).to_contain_text(verdict[1])
    page.context.close()


@pytest.mark.slow("starts a second demo; tests/unit/test_run.py kills runs of tests in the same way")
def test_killed_leaves_no_process(tmp_path: Path, programs_start: None) -> None:
    data = tmp_path / "data"
    with running(data) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("The service and the agent are running."):
                break
    wait_for(lambda: left_over(data) == [], "nothing is left")
