"""Read latencies, in microseconds, from the output of src/collective.c or of the OSU micro-benchmarks.

Both print a line that begins with `# Size` and names the columns, then a line of numbers for each message size. The OSU
suite prints only the average; with `-f` also the minimum and the maximum, with `-z`, from version 7.1 on, percentiles,
and with `-c` Pass or Fail.
"""

import re
from typing import Protocol

MEAN, MAX, MEDIAN = "Avg Latency(us)", "Max Latency(us)", "P50 Tail Lat(us)"


class Run(Protocol):
    """The argument that the agent passes: the run's output, and its configuration."""

    stdout: str
    params: dict[str, object]


def parse(text: str) -> dict[int, dict[str, float]]:
    """Return the columns of each message size in bytes, by their names, without lines that say Fail."""
    table: dict[int, dict[str, float]] = {}
    columns: list[str] = []
    for line in text.splitlines():
        if re.match(r"#\s*Size\b", line):
            # names contain single spaces; two or more spaces separate them
            columns = re.split(r"\s{2,}", line.lstrip("# ").strip())[1:]
        elif _is_row(cells := line.split(), columns):
            named = zip(columns, map(_number, cells[1:]), strict=True)
            table[int(cells[0])] = {name: number for name, number in named if number is not None}
    return table


def median_us(run: Run) -> float | None:
    """Return the median over iterations; the OSU suite has one only with percentiles."""
    return _column(run, MEDIAN)


def mean_us(run: Run) -> float | None:
    """Return the mean over iterations."""
    return _column(run, MEAN)


def max_us(run: Run) -> float | None:
    """Return the maximum: over iterations here, over the ranks' means in the OSU suite."""
    return _column(run, MAX)


def _column(run: Run, name: str) -> float | None:
    """Return the value for the message size of the configuration; if it has no size, the value of the only line."""
    table = parse(run.stdout)
    if "bytes" in run.params:
        return table.get(int(str(run.params["bytes"])), {}).get(name)
    return next(iter(table.values())).get(name) if len(table) == 1 else None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _is_row(cells: list[str], columns: list[str]) -> bool:
    complete = bool(columns) and len(cells) == len(columns) + 1
    return complete and re.fullmatch(r"\d+", cells[0]) is not None and "Fail" not in cells
