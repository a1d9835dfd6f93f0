"""The cost of a trial of the workload apache-gcc and the share of its build, with an empty build cache and a full one.

Local runner, application `static-2k`. The sources are prepared before and are not timed.

Run as `python -m tests.benchmarks.apache_cost [--quick]`.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.table import Result, Row, main, result
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import Outcome
from trimtab_agent.runners.local import LocalRunner
from trimtab_components.schema import Component

WORKLOAD = Path(__file__).parents[2] / "agents" / "workloads" / "apache-gcc"
LEVELS = ("O2", "O3", "Os")


async def trial(runner: LocalRunner, component: Component, level: str, place: Path) -> tuple[float, float]:
    """Seconds of the whole trial, and of its build."""
    folder = Path(tempfile.mkdtemp(dir=place))
    (folder / "work").mkdir()
    spec = prepare(
        component,
        "static-2k",
        {"opt-level": level},
        title=level,
        required=["requests_per_second"],
        timeout=0,
        work=folder / "work",
        cache=place / "builds",
        cache_limit=1 << 30,
    )
    began = time.monotonic()
    await runner.submit(folder, spec)
    done = await runner.wait(folder)
    if done.outcome is not Outcome.COMPLETED:
        raise RuntimeError(done.reason)
    return time.monotonic() - began, done.build_seconds or 0.0


async def measure(component: Component, place: Path, levels: Sequence[str]) -> Result:
    """All of it."""
    runner = LocalRunner()
    fresh, cached = [], []
    for level in levels:
        fresh.append(await trial(runner, component, level, place))
        cached.append(await trial(runner, component, level, place))
    runner.close()
    rows = []
    for name, found in (("without the cache", fresh), ("with the cache", cached)):
        rows.append(Row(f"a trial {name}, median", statistics.median(whole for whole, _ in found), "s"))
        share = statistics.median(build / whole for whole, build in found)
        rows.append(Row(f"share spent building {name}", 100 * share, "%"))
    return result(rows, fresh=fresh, cached=cached)


def run(quick: bool) -> Result:
    """See the module's text."""
    subprocess.run([sys.executable, str(WORKLOAD / "prepare.py")], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name:
        place = Path(name)
        component = load(WORKLOAD / "component.yaml", Generator(place / "generated"))
        return asyncio.run(measure(component, place, LEVELS[:1] if quick else LEVELS))


if __name__ == "__main__":
    main("Cost of a trial of apache-gcc", run)
