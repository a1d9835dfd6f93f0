"""Runs all benchmarks: `python -m tests.benchmarks [--quick] [--only NAME ...] [--out FILE]` (`make bench`)."""

import argparse
import importlib
import json
import os
import platform
import sys
import time
import traceback
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests.benchmarks.table import show

# module -> title
BENCHMARKS = {
    "footprint": "Footprint",
    "agent_latency": "Latency between an agent's trials",
    "slurm_cost": "Cost of a trial on Slurm",
    "matching_cost": "Cost of application matching",
    "apache_cost": "Cost of a trial of apache-gcc",
    "ask_tell": "Ask and tell",
    "scale": "The service at scale",
    "fairness": "Fairness between tenants",
    "console": "The console with a long study",
    "pages": "The pages of the console",
    "gp_cost": "Cost of a gp suggestion",
    "matching": "Search for the record that a job resembles",
    "matching_load": "Matching under load",
    "quality": "Quality of suggestions",
    "method": "Quality of the method",
    "replays": "Replays on measured tables",
}
PACKAGES = ("grpcio", "protobuf", "django", "psycopg", "torch", "botorch", "optuna", "ax-platform")


def machine() -> dict[str, Any]:
    """Return the machine and the versions with which the figures were measured."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": model,
        "cores": os.cpu_count(),
        "load_before": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def main() -> int:
    """Runs, prints, writes; 1 where a benchmark failed to run, 0 even where a target was missed: it is in the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs: a look, not a measurement")
    parser.add_argument("--only", nargs="+", choices=tuple(BENCHMARKS), default=list(BENCHMARKS), metavar="NAME")
    parser.add_argument(
        "--out", type=Path, default=Path("bench-results/bench.json"), help="JSON file for what was measured"
    )
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 140)
    found: dict[str, Any] = {"machine": machine(), "quick": arguments.quick, "benchmarks": {}}
    failed = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(arguments.only))
        for name in arguments.only:
            progress.update(task, description=BENCHMARKS[name])
            began = time.monotonic()
            try:
                answer = importlib.import_module(f"tests.benchmarks.{name}").run(arguments.quick)
            except Exception as error:  # the others are worth running all the same
                failed.append(name)
                answer = {"rows": [], "error": f"{type(error).__name__}: {error}"}
                progress.console.print(f"[red]{BENCHMARKS[name]} could not be run[/]\n{traceback.format_exc()}")
            answer["seconds"] = time.monotonic() - began
            found["benchmarks"][name] = answer
            show(BENCHMARKS[name], answer, progress.console)
            # after each, so that a run that is broken off leaves what it has
            arguments.out.write_text(json.dumps(found, indent=1) + "\n")
            progress.advance(task)
    rows = [row for answer in found["benchmarks"].values() for row in answer["rows"] if row["reached"] is not None]
    reached = sum(row["reached"] for row in rows)
    console.print(f"{reached} of {len(rows)} targets reached; everything is in {arguments.out}")
    if failed:
        console.print(f"[red]could not be run: {', '.join(failed)}[/]")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
