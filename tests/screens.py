"""Pictures of every page of the console, light and dark, wide and narrow, from a real service with an agent at work.

make screens                    # into screens/, which git ignores
python -m tests.screens FOLDER
"""

from __future__ import annotations

import re
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.factories.browser import build_console, started_browser
from tests.factories.console import furnished
from tests.factories.live_states import JOBS, ROLLOUT, WAITING, live_states
from tests.factories.matched import match_jobs
from tests.factories.measured import measured
from tests.factories.service import EmbeddedService
from tests.factories.verdict_studies import make_studies

PAGES = {
    "home": "/",
    "studies": "/studies",
    "attention": "/studies?show=attention",
    "compare": "/compare?study=io-path-1&study=io-path-2&study=io-path-3",
    "study": "/studies/bowl-2",
    "study-ended": "/studies/io-path-1",
    "study-trials": "/studies/io-path-1?tab=trials",
    "study-analysis": "/studies/io-path-1?tab=analysis",
    "study-timeline": "/studies/bowl-1?tab=timeline",
    "study-setup": "/studies/bowl-1?tab=setup",
    "study-report": "/studies/io-path-1/report",
    "study-trial": "/studies/bowl-1/trials/2",
    "new": "/new?component=bowl",
    "clone": "/new?clone=bowl-1",
    "batch-script": "/batch-script",
    "components": "/components",
    "component": "/components/bowl",
    "gallery": "/gallery",
    "gallery-study": "/new?gallery=redis/cache.yml&step=review",
    "write-component": "/write-component",
    "agents": "/agents",
    "live": "/live",
    "not-found": "/no/such-page",
    "matching": "/matching",
    "matching-explain": "/matching?tab=explain",
    "matching-jobs": "/matching?tab=jobs",
    "matching-quality": "/matching?tab=quality",
    "matching-settings": "/matching?tab=settings",
    "matching-record": "/matching/records/1",
    "administration": "/administration",
    "members": "/administration?section=members",
    "quota": "/administration?section=quota",
    "channels": "/administration?section=channels",
    "audit": "/administration?section=audit",
    "tenants": "/administration?section=tenants",
    "queue": "/administration?section=queue",
}
# Studies whose true functions are known (factories/measured.py).
KINDS = {
    "kind-limits": "/studies/limits",
    "kind-limits-trials": "/studies/limits?tab=trials",
    "kind-several": "/studies/several",
    "kind-contexts": "/studies/contexts",
    "kind-progress": "/studies/progress",
    "kind-disturbed": "/studies/verdict-of-disturbed",
    "kind-proven": "/studies/verdict-of-proven",
    "kind-none": "/studies/verdict-of-none",
}
# Live studies at work (factories/live_states.py).
LIVE = {
    "live-rollout": f"/live?study={ROLLOUT}",
    "live-jobs": f"/live?study={JOBS}",
    "live-waiting": f"/live?study={WAITING}",
    "study-live": f"/studies/{ROLLOUT}?tab=live",
}
# A job that is explained on the page for it.
JOB = "{user: grace, name: allreduce_2, program: allreduce, command: /opt/mpi/bin/allreduce --size 4M, nodes: 4}"
LOADING = re.compile(r"^Loading .* …$")
STEPS = ("Parameters", "Objectives", "Method", "Budget", "Review")
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def shoot(browser: Browser, service: EmbeddedService, out: Path) -> None:
    """Take a picture of each page for each size and scheme."""
    for size, (width, height) in SIZES.items():
        for scheme in SCHEMES:
            context = browser.new_context(
                base_url=service.http_url, color_scheme=scheme, viewport={"width": width, "height": height}
            )
            page = context.new_page()

            picture = partial(_picture, page, out, f"{size}-{scheme}")
            page.goto("/sign-in")
            page.get_by_label("Administrator token").wait_for()
            picture("sign-in")
            page.get_by_label("Administrator token").fill(service.token)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="Home").wait_for()
            for name, path in {**PAGES, **KINDS, **LIVE}.items():
                page.goto(path)
                page.get_by_role("heading", level=1).wait_for()
                expect(page.get_by_text(LOADING)).to_have_count(0)
                # The first frame of a chart.
                page.wait_for_timeout(1200)
                picture(name)
                if name == "new":
                    for step in STEPS:
                        page.get_by_role("navigation", name="Steps").get_by_role("button", name=step).click()
                        page.wait_for_timeout(700)
                        picture(f"{name}-{step.lower()}")
                if name == "matching-explain":
                    page.get_by_label("Command, batch script").fill(JOB)
                    page.get_by_role("button", name="Explain match").click()
                    page.get_by_role("region", name="Candidates").wait_for()
                    page.wait_for_timeout(1200)
                    picture(f"{name}ed")
            page.keyboard.press("Control+k")
            page.get_by_placeholder("Search for a study, page or command").wait_for()
            page.wait_for_timeout(500)
            picture("palette", full=False)
            context.close()


def _picture(page: Page, out: Path, where: str, name: str, *, full: bool = True) -> None:
    if full:
        # As high as the page, so that the bar at the bottom of a phone hides nothing.
        size = page.viewport_size
        assert size is not None
        page.set_viewport_size({**size, "height": page.evaluate("document.documentElement.scrollHeight")})
        page.wait_for_timeout(300)
        page.screenshot(path=out / f"{name}-{where}.png")
        page.set_viewport_size(size)
    else:
        page.screenshot(path=out / f"{name}-{where}.png")


def main() -> None:
    """Into the folder that is named, or screens/."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "screens")
    out.mkdir(parents=True, exist_ok=True)
    build_console()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with (
            EmbeddedService(folder / "data") as service,
            furnished(service, folder) as rest,
            started_browser() as browser,
        ):
            records = match_jobs(service, rest)
            measured(service)
            make_studies(service, ["disturbed", "proven", "none"])
            with live_states(service, rest, records["bcast-2"], folder / "live"):
                shoot(browser, service, out)
    print(f"{len(list(out.glob('*.png')))} pictures in {out}")


if __name__ == "__main__":
    main()
