"""The console with a study of 50,000 trials, in Chromium: how soon its page is there, how it zooms, what it does while
200 updates come in each second.

Run as `python -m tests.benchmarks.console [--quick]` (quick: 5,000 trials).
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.benchmarks.table import Result, Row, main, result
from tests.factories.browser import PATIENCE_MS, build_console, started_browser
from tests.factories.service import EmbeddedService

TRIALS, QUICK_TRIALS = 50_000, 5_000
CLIENTS = 4
OPENINGS = 5
UPDATES_PER_SECOND = 200
LIVE_SECONDS = 15
ZOOM_STEPS = 40
STUDY = "long"
# Counts the messages that the page receives, and measures how long its scripts keep it busy.
PROBE = """
window.probe = { messages: 0, busy: 0, longest: 0 };
window.EventSource = class extends window.EventSource {
  constructor(...given) { super(...given); this.addEventListener("change", () => { window.probe.messages += 1; }); }
};
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) {
    window.probe.busy += duration;
    window.probe.longest = Math.max(window.probe.longest, duration);
  }
}).observe({ type: "longtask", buffered: true });
"""
FRAMES = """
(going) => {
  if (!going) { window.watching = false; return window.frames_; }
  window.frames_ = []; window.watching = true;
  let before = performance.now();
  const next = (now) => {
    window.frames_.push(now - before);
    before = now;
    if (window.watching) requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}
"""


def fill(service: EmbeddedService, trials: int) -> None:
    """The study, with so many trials that have ended."""
    import trimtab

    client = trimtab.Client(service.grpc_address, token=service.token)
    client.create_study(
        STUDY,
        space=[trimtab.Float(name, 0.0, 1.0) for name in ("x", "y", "z")],
        objectives=[trimtab.Minimize("seconds", unit="s")],
        algorithm="random",
    )
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda share: tell(service, share), [trials // CLIENTS] * CLIENTS))


def tell(service: EmbeddedService, trials: int, pause: float = 0.0, over: threading.Event | None = None) -> int:
    """Asks for a trial and tells its value, `trials` times or until `over`, one each `pause` seconds; how many."""
    import trimtab

    study = trimtab.Client(service.grpc_address, token=service.token).get_study(STUDY)
    due = time.monotonic()
    for number in range(trials):
        if over is not None and over.is_set():
            return number
        (trial,) = study.ask(1)
        x, y = float(trial.params["x"]), float(trial.params["y"])
        study.tell(trial, {"seconds": 1 + (x - 0.3) ** 2 + 0.5 * y + 0.1 * ((number * 7919) % 100) / 100})
        due += pause
        time.sleep(max(0.0, due - time.monotonic()))
    return trials


@contextmanager
def signed_in(service: EmbeddedService, browser: Browser) -> Iterator[BrowserContext]:
    """A browser's context with the administrator's session."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(service.login_url)
    page.get_by_role("heading").first.wait_for()
    page.close()
    context.add_init_script(PROBE)
    yield context
    context.close()


def opened(service: EmbeddedService, context: BrowserContext) -> tuple[Page, float]:
    """The study's page, and the seconds from its address to a plot that is drawn and a page that answers."""
    page = context.new_page()
    began = time.monotonic()
    page.goto(f"{service.http_url}/studies/{STUDY}", wait_until="commit")
    page.locator("[role=img] canvas").first.wait_for()
    page.get_by_role("heading", name="Gain over the default").wait_for()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return page, time.monotonic() - began


def zoomed(page: Page) -> list[float]:
    """Milliseconds between the frames drawn while a wheel zooms in and out and the plot is dragged."""
    plot = page.locator("[role=img] canvas").first.bounding_box()
    assert plot is not None
    x, y = plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2
    page.mouse.move(x, y)
    page.evaluate(FRAMES, True)
    for step in range(ZOOM_STEPS):
        page.mouse.wheel(0, -120 if step < ZOOM_STEPS / 2 else 120)
        page.wait_for_timeout(30)
    page.mouse.down()
    for step in range(ZOOM_STEPS):
        page.mouse.move(x - 5 * step, y)
        page.wait_for_timeout(15)
    page.mouse.up()
    frames: list[float] = page.evaluate(FRAMES, False)
    return frames


def live(service: EmbeddedService, page: Page) -> dict[str, Any]:
    """Measure the page for some seconds in which the study changes all the time."""
    over = threading.Event()
    pairs = UPDATES_PER_SECOND / 2  # an ask and a tell are two updates
    page.evaluate("window.probe = { messages: 0, busy: 0, longest: 0 }")
    with ThreadPoolExecutor(CLIENTS) as pool:
        reported = [pool.submit(tell, service, 10**6, CLIENTS / pairs, over) for _ in range(CLIENTS)]
        began = time.monotonic()
        page.wait_for_timeout(1000 * LIVE_SECONDS)
        seconds = time.monotonic() - began
        found: dict[str, Any] = page.evaluate("window.probe")
        over.set()
        count = sum(one.result() for one in reported)
    return {**found, "seconds": seconds, "updates": 2 * count}


def run(quick: bool) -> Result:
    """See the module's text."""
    trials = QUICK_TRIALS if quick else TRIALS
    build_console()
    with (
        tempfile.TemporaryDirectory(prefix="trimtab-bench-") as folder,
        started_browser() as browser,
        EmbeddedService(Path(folder) / "service") as service,
    ):
        fill(service, trials)
        with signed_in(service, browser) as context:
            openings = []
            for _ in range(OPENINGS):
                page, seconds = opened(service, context)
                openings.append(seconds)
                page.close()
            page, _ = opened(service, context)
            page.wait_for_timeout(2000)
            frames = zoomed(page)
            busy = live(service, page)
    share = busy["busy"] / 1000 / busy["seconds"]
    slowest = statistics.quantiles(frames, n=20)[-1]
    rate = busy["updates"] / busy["seconds"]
    note = f"{trials:,} trials; {rate:.0f} updates a second came in"
    rows = [
        Row("study's page: from its address to plots", statistics.median(openings), "s", "under 2 s",
            statistics.median(openings) < 2, note=note),
        Row("… the first time, nothing cached", openings[0], "s"),
        Row("zoom and pan: 19 of 20 frames take less than", slowest, "ms", "under 50 ms", slowest < 50),
        Row("live updates: messages to the page a second", busy["messages"] / busy["seconds"], "", "under 6",
            busy["messages"] / busy["seconds"] < 6),
        Row("… share of the time in which its scripts keep it from answering", 100 * share, "%", "under 25 %",
            share < 0.25),
        Row("… longest time for which they do", busy["longest"], "ms"),
    ]  # fmt: skip
    return result(rows, openings=openings, frames=frames, live=busy)


if __name__ == "__main__":
    main("The console with a long study", run)
