"""Run the slow cases of the parts of the project that recent commits touch.

`make test` leaves out the cases with the marker `slow`. This program runs those of the touched parts, the part with
most touched files first, so that a change is tested whole. `PARTS` says which files make a part; its tests are among
them. When the minutes of a run are over, no further part begins. Those that are left are named; `make test-all` runs
them.

    python -m tests.parts [--since "24 hours ago"] [--minutes 20] [--list]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.leftovers import without_leftovers
from tests.run import main as run

ROOT = Path(__file__).resolve().parents[1]
SLOW = re.compile(r"(mark\.slow|slow_cases)\(\s*\"")


@dataclass(frozen=True)
class Part:
    """A part of the project. A file belongs to the part with the longest of `paths` that its own path begins with."""

    name: str
    paths: tuple[str, ...]


PARTS = (
    Part(
        "method",
        (
            "service/algorithms/",
            "service/core/",
            "service/policies/",
            "service/replay/",
            "service/tuner/",
            "tests/contract/",
            "tests/unit/algorithms/",
            "tests/unit/core/",
            "tests/unit/policies/",
            "tests/unit/replay/",
            "tests/unit/tuner/",
        ),
    ),
    Part("service", ("service/", "migrations/", "proto/", "tests/api/", "tests/rpc/", "tests/fuzz/", "tests/unit/")),
    Part("recovery", ("service/embedded/", "service/workers/", "service/config/", "tests/e2e/", "tests/chaos/")),
    Part("identity", ("service/identity/", "service/keycloak/", "deploy/keycloak/", "tests/e2e/keycloak/")),
    Part(
        "matching",
        (
            "service/matching/",
            "agents/trimtab_agent/matching/",
            "deploy/slurm/",
            "tests/agent/matching/",
            "tests/e2e/test_matching.py",
            "tests/unit/matching/",
        ),
    ),
    Part("sdk", ("sdk/", "tests/sdk/")),
    Part("agent", ("agents/", "tests/agent/", "tests/contract/runners/", "tests/e2e/test_runner_faults.py")),
    Part("workloads", ("agents/workloads/", "tests/agent/workloads/")),
    Part("console", ("web/", "tests/e2e/console/", "tests/e2e/test_console", "tests/screens.py")),
    Part(
        "deployment",
        (
            "deploy/",
            ".dockerignore",
            ".github/",
            "hatch_build.py",
            "tests/e2e/test_backup.py",
            "tests/e2e/test_collector.py",
            "tests/e2e/test_compose.py",
            "tests/e2e/test_helm.py",
            "tests/e2e/test_monitoring.py",
            "tests/e2e/test_wheels.py",
            "tests/unit/deploy/",
        ),
    ),
    Part(
        "documents",
        (
            "docs/",
            "demo/",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "LICENSE",
            "README.md",
            "SECURITY.md",
            "tests/e2e/test_demo.py",
            "tests/e2e/test_snippets.py",
            "tests/unit/docs/",
        ),
    ),
    Part("benchmarks", ("tests/benchmarks/", "tests/unit/benchmarks/")),
    Part(
        "tools",
        (
            ".ci/",
            ".editorconfig",
            ".gitignore",
            ".pre-commit-config.yaml",
            ".python-version",
            "Makefile",
            "deploy/checkout/",
            "pyproject.toml",
            "uv.lock",
            "tests/",
            "tests/unit/test_",
        ),
    ),
)


def part_of(path: str) -> Part | None:
    """Return the part of a file."""
    found = [(len(prefix), part) for part in PARTS for prefix in part.paths if path.startswith(prefix)]
    return max(found, key=lambda one: one[0])[1] if found else None


def tracked() -> list[str]:
    """Return the paths of all files in the repository."""
    return _git("ls-files")


def touched(since: str) -> set[str]:
    """Return the paths of all files that commits touch since a time, written as `git log` understands it."""
    return set(_git("log", f"--since={since}", "--name-only", "--format=", "--no-renames"))


def slow_files(part: Part) -> list[str]:
    """Return the test files of a part that have slow cases."""
    files = [path for path in tracked() if part_of(path) == part and Path(path).name.startswith("test_")]
    return [path for path in files if SLOW.search((ROOT / path).read_text())]


def order(paths: Iterable[str]) -> list[Part]:
    """Return the parts of these files, the one with most files first."""
    return [part for part, _ in Counter(part for part in map(part_of, paths) if part).most_common()]


def main(arguments: Sequence[str]) -> int:
    """Run the slow cases of the touched parts and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--since", default="24 hours ago", help="take commits since this time (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no part after these (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the parts and run nothing")
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.minutes * 60
    parts = [part for part in order(touched(options.since)) if slow_files(part)]
    print(f"Slow cases of the parts that commits touch since {options.since}: {_names(parts)}.", flush=True)
    if options.list:
        return 0
    codes = []
    while parts and time.monotonic() < end:
        part = parts.pop(0)
        print(f"Running the slow cases of {part.name}.", flush=True)
        codes.append(run(["--all", "-m", "slow", *slow_files(part)]))
    print(f"Slow cases of touched parts that did not run, because the time was over: {_names(parts)}.", flush=True)
    return max(codes, default=0)


def _names(parts: Iterable[Part]) -> str:
    return ", ".join(part.name for part in parts) or "none"


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line]


if __name__ == "__main__":
    sys.exit(without_leftovers(lambda: main(sys.argv[1:])))
