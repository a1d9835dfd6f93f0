"""Measure the gain of tuning the burst buffer on this machine, with a service and an agent of its own.

For each pattern it measures the exhaustive grid of the pattern's file in studies/, and runs a study with its final
check. Then it measures the default, the best that the study has found and the best of the grid in turns. Two controls
measure the default and the best found in turns where the directory has less injected delays, or none.
"""

import argparse
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
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
    rows_of,
    write,
)
from scripts import ScriptError, check_names, check_numbers, exit_status, parser_of  # noqa: E402

COMPONENT = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
PATTERNS = ("sbb-1", "sbb-2", "checkpoint")
CONTROLS = ("-slow", "-real")
"""The ends of the names of a pattern's applications without contention, and without injected delays."""
CHOICES = (*PATTERNS, *(pattern + control for pattern in PATTERNS for control in CONTROLS), "checkpoint-node")
HEADER = (
    "pattern",
    "default",
    "best found",
    "best of the grid",
    "less than default",
    "final check",
    "the same without contention",
    "the same without injected delays",
    "found",
    "of the grid",
)
EXAMPLE = """\
examples:
  python agents/workloads/burst-buffer/measure.py
  python agents/workloads/burst-buffer/measure.py --patterns checkpoint --trials 30 --replicates 2
  python agents/workloads/burst-buffer/measure.py --patterns sbb-1-real,checkpoint-node --no-grid

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a part fails."""
    options = arguments(argv)

    def work() -> None:
        check_numbers(options, replicates=1, trials=1, check=8, rounds=1)
        patterns = check_names("--patterns", options.patterns, CHOICES, ", ".join(CHOICES))
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
    parser.add_argument(
        "--grid", action=argparse.BooleanOptionalAction, default=True, help="measure the grid (default: yes)"
    )
    parser.add_argument("--folder", type=Path, default=Path("burst-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def measured(bench: Bench, pattern: str, options: argparse.Namespace) -> list[str]:
    """Return the row of a pattern in the table."""
    base = next(one for one in PATTERNS if pattern.startswith(one))
    described = yaml.safe_load((WORKLOAD / "studies" / f"{base}.yml").read_text())
    names = described["only"]
    default = tuple(COMPONENT["parameters"][name]["default"] for name in names)
    best = None
    if options.grid:
        study, grid = bench.explore(pattern, described, options)
        best = best_of(grid, names)
    else:
        study = bench.search(pattern, described, options)

    def run(values: Values | None, application: str = pattern) -> float:
        assert values is not None  # the burst buffer cannot be switched off
        return tried(bench, application, dict(zip(names, values, strict=True)))

    cells, found = bench.compare(study, names, [default], best or default, options.rounds, run)
    cells[3] = cells[3] if best else "-"
    controls = ["-", "-"]
    if pattern == base:
        controls = [control(bench, pattern + end, default, found, options.rounds, run) for end in CONTROLS]
    return [*cells, *controls, changed(names, found), changed(names, best) if best else "-"]


def control(
    bench: Bench, application: str, default: Values, found: Values, rounds: int, run: Callable[[Values, str], float]
) -> str:
    """Return as text what the configuration that was found saves where the directory has less injected delays."""
    bench.in_turns(application, [default, found], rounds, lambda values: run(values or default, application))
    seconds = {(int(row[0]), row[1]): float(row[2]) for row in rows_of(bench.folder / f"{application}-turns.csv")}
    before, after = (" ".join(map(str, values)) for values in (default, found))
    return saving([(seconds[number, before], seconds[number, after]) for number in range(rounds)])


def saving(pairs: Sequence[tuple[float, float]]) -> str:
    """Return the median saving of pairs (default, found) of seconds as text, with an interval of at least 95 %.

    The interval encloses the median whatever the distribution: the number of savings below it is binomial(n, 1/2)
    (sign test). It takes six pairs.
    """
    savings = sorted(1 - after / before for before, after in pairs)
    text, count, rank = f"{100 * statistics.median(savings):.0f} %", len(savings), 0
    if 2 / 2**count > 0.05:
        return f"{text} (too few rounds for an interval)"
    while 2 * sum(math.comb(count, below) for below in range(rank + 2)) / 2**count <= 0.05:
        rank += 1
    return f"{text} ({100 * savings[rank]:.0f} to {100 * savings[-1 - rank]:.0f})"


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
