"""Measures what tuning the burst buffer is worth, on this machine, with a service and an agent of its own.

For each pattern: the exhaustive grid of its file in studies/, a study with its final check, and then the default, the
best that the study has found and the best of the grid in turns.
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

from measuring import (  # noqa: E402  # lies beside the workloads
    Bench,
    BenchError,
    Values,
    best_of,
    check_numbers,
    check_patterns,
    ends,
    program,
    values_of,
    write,
)

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

The same command again goes on where it was interrupted, with what is in --folder. The table is written there, too.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; 1 where something is wrong with it or with what it needs."""
    options = arguments(argv)

    def work() -> None:
        check_numbers(options, replicates=1, trials=1, check=8, rounds=1)
        check_patterns(options.patterns, PATTERNS)
        with Bench(WORKLOAD, options.folder) as bench:
            rows = []
            for pattern in options.patterns.split(","):
                rows.append(measured(bench, pattern, options))
                write(bench.folder / "patterns.md", HEADER, rows)

    return ends(work)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--patterns", default=",".join(PATTERNS), help="a list with commas (default: %(default)s)")
    parser.add_argument("--replicates", type=int, default=1, help="of each point of the grid (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=30, help="of each study (default: %(default)s)")
    parser.add_argument(
        "--check", type=int, default=16, help="trials of its final check, at most (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="of the last comparison (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("burst-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def measured(bench: Bench, pattern: str, options: argparse.Namespace) -> list[str]:
    """A pattern's row of the table."""
    described = yaml.safe_load((WORKLOAD / "studies" / f"{pattern}.yml").read_text())
    names = described["only"]
    study, grid = bench.explore(pattern, described, options)
    assert study.recommendation is not None
    default = tuple(COMPONENT["parameters"][name]["default"] for name in names)
    found, best = values_of(study.recommendation.params, names), best_of(grid, names)

    def run(values: Values | None) -> float:
        assert values is not None  # nothing can be switched off
        return tried(bench, pattern, dict(zip(names, values, strict=True)))

    seconds = bench.in_turns(pattern, [default, found, best], options.rounds, run)
    gain = 1 - seconds[found] / seconds[default]
    times = [f"{seconds[values]:.2f} s" for values in (default, found, best)]
    verdict = study.verdict.text if study.verdict else "none"
    return [pattern, *times, f"{100 * gain:.0f} %", verdict, changed(names, found), changed(names, best)]


def tried(bench: Bench, pattern: str, params: Mapping[str, Any]) -> float:
    """The seconds of one run, now, as the agent runs it."""
    command = [program("trimtab-agent"), "try", "burst-buffer", "--components", str(WORKLOAD)]
    command += ["--state-dir", str(bench.folder / "tries"), "--application", pattern]
    for name, value in params.items():
        command += ["--set", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^metric seconds = (\S+)", done.stdout, re.MULTILINE)
    if not found:
        raise BenchError(f"a run of {pattern} went wrong:\n{done.stdout}{done.stderr}")
    return float(found[1])


def changed(names: Sequence[str], values: Values) -> str:
    """What a configuration has other than the default."""
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {value}" for name, value in pairs if value != COMPONENT["parameters"][name]["default"])


if __name__ == "__main__":
    sys.exit(main())
