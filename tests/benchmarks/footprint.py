"""Memory of idle processes, and how long it takes to import the SDK.

Run as `python -m tests.benchmarks.footprint [--quick]`.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.benchmarks.agents import running_agent
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.service import EmbeddedService

AGENT_MEGABYTES = 60.0
IMPORT_SECONDS = 0.3
REPETITIONS = 5
# A process is idle when it has used this little of a core for so long.
IDLE_SHARE = 0.1
IDLE_SECONDS = 3.0
IMPORT = "import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"


def import_seconds(module: str) -> list[float]:
    """How long a new interpreter takes to import `module`, each time; the first, which fills caches, is left out."""
    command = [sys.executable, "-c", IMPORT.format(module=module)]
    return [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(REPETITIONS + 1)
    ][1:]


def megabytes(pid: int) -> dict[str, float]:
    """Resident memory of a process and its children, and their proportional share of it."""
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    found = [process.memory_full_info() for process in tree]
    return {"rss": sum(info.rss for info in found) / 1e6, "pss": sum(info.pss for info in found) / 1e6}


def wait_until_idle(pids: list[int], patience: float = 120.0) -> None:
    """Returns when none of the processes works any more: a worker imports torch for seconds after the start."""
    processes = [psutil.Process(pid) for pid in pids]
    end = time.monotonic() + patience
    while True:
        for process in processes:
            process.cpu_percent()
        time.sleep(IDLE_SECONDS)
        if all(process.cpu_percent() < 100 * IDLE_SHARE for process in processes):
            return
        if time.monotonic() > end:
            raise RuntimeError("the service does not come to rest")


def run(quick: bool) -> Result:
    """See the module's text; it takes no longer than a quick run."""
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as name:
        folder = Path(name)
        with EmbeddedService(folder / "service") as service, running_agent(service, folder) as agent:
            wait_until_idle([*service.processes().values(), agent.pid])
            memory = {name: megabytes(pid) for name, pid in sorted(service.processes().items())}
            memory["supervisor"] = {
                key: psutil.Process(service.pid).memory_full_info()._asdict()[key] / 1e6 for key in ("rss", "pss")
            }
            memory["agent"] = megabytes(agent.pid)
    imports = {module: import_seconds(module) for module in ("trimtab", "trimtab_agent.main")}
    rows = []
    for name, found in memory.items():
        target, reached = "", None
        if name == "agent":
            target, reached = f"under {AGENT_MEGABYTES:g} MB", found["rss"] < AGENT_MEGABYTES
        rows.append(Row(f"idle memory, {name}", found["rss"], "MB", target, reached, {"proportional": found["pss"]}))
    rows.append(
        Row(
            "all but the agent, proportional",
            sum(found["pss"] for name, found in memory.items() if name != "agent"),
            "MB",
            note="Resident memory counts a page that processes share once for each; proportional memory divides it.",
        )
    )
    for module, seconds in imports.items():
        median = statistics.median(seconds)
        target, reached = ("under 0.3 s", median < IMPORT_SECONDS) if module == "trimtab" else ("", None)
        rows.append(Row(f"import {module}", median, "s", target, reached))
    return result(rows, memory=memory, imports=imports)


if __name__ == "__main__":
    main("Footprint", run)
