"""Measure the gain of tuning the burst buffer on this machine, with a service and an agent of its own.

For each pattern it measures the exhaustive grid of the pattern's file in studies/, and runs a study with its final
check. Then it measures the default, the best that the study has found and the best of the grid in turns.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

WORKLOAD = Path(__file__).resolve().parent
sys.path.append(str(WORKLOAD.parent))

from measuring import (  # noqa: E402  # in the parent folder
    GOES_ON,
    INTERRUPTED,
    Bench,
    Values,
    add_comparison,
    best_of,
    program,
    write,
)
from scripts import ScriptError, check_names, check_numbers, exit_status, parser_of  # noqa: E402

COMPONENT = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
PATTERNS = tuple(COMPONENT["applications"])
HEADER = (
    "pattern",
    "default",
    "best found",
    "best of the grid",
    "less than default",
    "final check",
    "found",
    "of the grid",
)
EXAMPLE = """\
examples:
  python agents/workloads/burst-buffer/measure.py
  python agents/workloads/burst-buffer/measure.py --patterns checkpoint --trials 30 --replicates 2

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a part fails."""
    options = arguments(argv)

    def work() -> None:
        check_numbers(options, replicates=1, trials=1, check=8, rounds=1)
        patterns = check_names("--patterns", options.patterns, PATTERNS, ", ".join(PATTERNS))
        with Bench(WORKLOAD, options.folder) as bench:
            rows = []
            for pattern in patterns:
                rows.append(measured(bench, pattern, options))
                write(bench.folder / "patterns.md", HEADER, rows)

    return exit_status(work, INTERRUPTED)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = parser_of(__doc__, EXAMPLE + GOES_ON)
    add_comparison(parser, PATTERNS, replicates=1, trials=30, check=16, rounds=7)
    parser.add_argument("--folder", type=Path, default=Path("burst-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def measured(bench: Bench, pattern: str, options: argparse.Namespace) -> list[str]:
    """Return the row of a pattern in the table."""
    described = yaml.safe_load((WORKLOAD / "studies" / f"{pattern}.yml").read_text())
    names = described["only"]
    study, grid = bench.explore(pattern, described, options)
    default = tuple(COMPONENT["parameters"][name]["default"] for name in names)
    best = best_of(grid, names)

    def run(values: Values | None) -> float:
        assert values is not None  # the burst buffer cannot be switched off
        return tried(bench, pattern, dict(zip(names, values, strict=True)))

    cells, found = bench.compare(study, names, [default], best, options.rounds, run)
    return [*cells, changed(names, found), changed(names, best)]


def tried(bench: Bench, pattern: str, params: Mapping[str, Any]) -> float:
    """Run the application once, as the agent runs it, and return its running time in seconds."""
    command = [program("trimtab-agent"), "try", "burst-buffer", "--components", str(WORKLOAD)]
    command += ["--state-dir", str(bench.folder / "tries"), "--application", pattern]
    for name, value in params.items():
        command += ["--set", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^metric seconds = (\S+)", done.stdout, re.MULTILINE)
    if not found:
        raise ScriptError(f"a run of {pattern} failed:\n{done.stdout}{done.stderr}")
    return float(found[1])


def changed(names: Sequence[str], values: Values) -> str:
    """Return the values of a configuration that differ from the default, as text."""
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {value}" for name, value in pairs if value != COMPONENT["parameters"][name]["default"])


if __name__ == "__main__":
    sys.exit(main())
