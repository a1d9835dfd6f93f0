"""Each page of the console in Chromium: bytes, first paint, longest task and answer to a click; and the memory of the
page of a live study over many updates.

Run as `python -m tests.benchmarks.pages [--quick]` (quick: each page once, 1,000 updates). The sign-in has
fetched the shell; each page fetches the rest of itself once. All pages come from a service on this machine.
"""

import statistics
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, CDPSession, Page

from tests.benchmarks.console import CLIENTS, STUDY, fill, signed_in, tell
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.browser import build_console, started_browser
from tests.factories.console import furnished
from tests.factories.service import EmbeddedService
from tests.screens import PAGES

REPEATS = 3
UPDATES, QUICK_UPDATES = 20_000, 1_000
TRIALS = 1_000
MEMORY_POINTS = 5
# The events of one interaction have an id; its longest event is its time (INP, "Interaction to Next Paint").
PROBE = """
window.figures = { longest: 0, interaction: 0 };
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.figures.longest = Math.max(window.figures.longest, duration);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
  for (const { duration, interactionId } of list.getEntries())
    if (interactionId) window.figures.interaction = Math.max(window.figures.interaction, duration);
}).observe({ type: "event", buffered: true, durationThreshold: 16 });
"""
READ = """
() => ({
  ...window.figures,
  paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
  bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((sum, { transferSize }) => sum + transferSize, 0),
})
"""


def measured(context: BrowserContext, url: str) -> dict[str, float]:
    """Return the figures of one page: bytes over the network, and milliseconds."""
    page = context.new_page()
    page.goto(url)
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("load")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 500)))")
    # Each page has the help. A click opens it, a key closes it.
    page.get_by_role("button", name="Help").click()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    found: dict[str, float] = page.evaluate(READ)
    page.close()
    return found


def heap(page: Page, devtools: CDPSession) -> float:
    """Return the megabytes that the page's scripts hold after a collection of garbage."""
    devtools.send("HeapProfiler.collectGarbage")
    held: dict[str, Any] = devtools.send("Runtime.getHeapUsage")
    return float(held["usedSize"]) / 2**20


def remembered(service: EmbeddedService, context: BrowserContext, updates: int) -> list[float]:
    """Return the memory of a live study's page in megabytes: at the beginning, and after each part of the updates."""
    page = context.new_page()
    page.goto(f"{service.http_url}/studies/{STUDY}")
    page.get_by_role("heading", name="Gain over the default").wait_for()
    page.locator("[role=img] canvas").first.wait_for()
    devtools = context.new_cdp_session(page)
    found = [heap(page, devtools)]
    each = updates // MEMORY_POINTS // 2 // CLIENTS  # an ask and a tell are two updates
    for _ in range(MEMORY_POINTS):
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda _: tell(service, each, 0.0, threading.Event()), range(CLIENTS)))
        page.wait_for_timeout(2000)
        found.append(heap(page, devtools))
    page.close()
    return found


def run(quick: bool) -> Result:
    """See the module's text."""
    build_console()
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        folder = Path(scratch)
        with (
            EmbeddedService(folder / "data") as service,
            furnished(service, folder),
            started_browser() as browser,
        ):
            with signed_in(service, browser) as context:
                context.add_init_script(PROBE)
                found = {
                    name: [measured(context, f"{service.http_url}{path}") for _ in range(1 if quick else REPEATS)]
                    for name, path in PAGES.items()
                }
            fill(service, TRIALS)
            with signed_in(service, browser) as context:
                memory = remembered(service, context, QUICK_UPDATES if quick else UPDATES)
    rows = [
        Row(
            name,
            statistics.median(one["paint"] for one in each),
            "ms to the first paint",
            note=f"{name}: {each[0]['bytes'] / 1000:.0f} kB, longest task"
            f" {statistics.median(one['longest'] for one in each):.0f} ms,"
            f" click to paint {statistics.median(one['interaction'] for one in each):.0f} ms",
        )
        for name, each in found.items()
    ]
    grown = memory[-1] - memory[1]
    rows.append(
        Row(
            "live study: memory after all updates",
            memory[-1],
            "MB",
            note=f"{', '.join(f'{one:.1f}' for one in memory)}",
        )
    )
    rows.append(Row("… growth after the first fifth", grown, "MB", "under 20 MB", grown < 20))
    return result(rows, pages=found, memory=memory)


if __name__ == "__main__":
    main("The pages of the console", run)
