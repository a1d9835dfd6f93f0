"""The memory of a live study's page that stays open for an hour, while one trial ends every few seconds.

Run as `python -m tests.benchmarks.page_hour [--quick]` (quick: two minutes). A page that holds its trials grows with
them; handlers and elements that are never released show as counts that grow with the time.
"""

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import CDPSession, Page

from tests.benchmarks.console import STUDY, fill, signed_in, tell
from tests.benchmarks.pages import heap
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.browser import build_console, started_browser
from tests.factories.service import EmbeddedService

MINUTES, QUICK_MINUTES = 60, 2
READINGS = 12
SECONDS_FOR_EACH_TRIAL = 3.0
FIRST_TRIALS = 100


class Reading(NamedTuple):
    """The state of the page at one time: megabytes of its scripts after a collection of garbage, and counts."""

    minute: float
    trials: int
    megabytes: float
    elements: int
    handlers: int


def read(page: Page, devtools: CDPSession, began: float, trials: int) -> Reading:
    """Return what the page holds now."""
    megabytes = heap(page, devtools)
    counts: dict[str, Any] = devtools.send("Memory.getDOMCounters")
    return Reading((time.monotonic() - began) / 60, trials, megabytes, counts["nodes"], counts["jsEventListeners"])


def watched(service: EmbeddedService, page: Page, minutes: int) -> list[Reading]:
    """Return the readings of a study's page over the given minutes, in which trials end."""
    import trimtab

    page.goto(f"{service.http_url}/studies/{STUDY}")
    page.get_by_role("heading", name="Gain over the default").wait_for()
    page.locator("[role=img] canvas").first.wait_for()
    devtools = page.context.new_cdp_session(page)
    study = trimtab.Client(service.grpc_address, token=service.token).get_study(STUDY)
    began, over = time.monotonic(), threading.Event()
    found = [read(page, devtools, began, study.status.trial_count)]
    with ThreadPoolExecutor(1) as pool:
        reported = pool.submit(tell, service, 10**6, SECONDS_FOR_EACH_TRIAL, over)
        for _ in range(READINGS):
            page.wait_for_timeout(60_000 * minutes / READINGS)
            found.append(read(page, devtools, began, study.refresh().trial_count))
        over.set()
        reported.result()
    return found


def run(quick: bool) -> Result:
    """See the module's text."""
    build_console()
    with (
        tempfile.TemporaryDirectory(prefix="trimtab-bench-") as folder,
        EmbeddedService(Path(folder) / "service") as service,
        started_browser() as browser,
    ):
        fill(service, FIRST_TRIALS)
        with signed_in(service, browser) as context:
            readings = watched(service, context.new_page(), QUICK_MINUTES if quick else MINUTES)
    first, last = readings[0], readings[-1]
    grown = last.megabytes - first.megabytes
    rows = [
        Row(f"minute {one.minute:.0f}, {one.trials:,} trials", one.megabytes, "MB",
            note=f"minute {one.minute:.0f}: {one.elements:,} nodes, {one.handlers:,} handlers")
        for one in readings
    ]  # fmt: skip
    rows.append(Row("growth for each trial", 1024 * grown / max(last.trials - first.trials, 1), "kB"))
    rows.append(Row("growth in all", grown, "MB", "under 20 MB", grown < 20))
    return result(rows, readings=[one._asdict() for one in readings])


if __name__ == "__main__":
    main("The memory of a live study's page", run)
