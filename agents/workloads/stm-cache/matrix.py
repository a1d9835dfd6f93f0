"""Measure all servers on all numbers of processors and all exponents of Zipf's law, in turns, and print the tables.

The servers are httpd without a cache, with the lock, and with transactions by the method --method. siege uses the last
processor; the server uses the first ones, so that with all processors both share one. The results are in --folder: the
same command goes on where it was interrupted, and `--rounds 0` only prints the tables.
"""

import argparse
import csv
import os
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path += [str(FOLDER), str(FOLDER.parent)]

from build import main as build  # noqa: E402
from intervals import Ratio, ratio_of  # noqa: E402
from load import METHODS, Options, measure  # noqa: E402
from serving import MachineError, ServerError  # noqa: E402

EXAMPLE = """\
examples:
  python3 matrix.py
  python3 matrix.py --exponents 1,2,3 --rounds 8 --seconds 3 --method ml_wt --bytes 262144
"""
CASES = ("none", "lock", "tm")
LEAST_ROUNDS = 6  # with fewer rounds no interval of a bootstrap is honest
# server, cores, exponent: by round, requests/s and ms
Measured = dict[tuple[str, int, float], dict[int, tuple[float, float]]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something is missing or fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    everything = len(os.sched_getaffinity(0))
    parser.add_argument("--cores", type=int, default=everything, help="largest number (default: %(default)s)")
    parser.add_argument("--exponents", default="1,2,3", help="a list with commas (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--seconds", type=int, default=3, help="of each load (default: %(default)s)")
    parser.add_argument("--method", choices=METHODS, default="ml_wt", help="of transactions (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=Options.bytes, help="bound of the caches (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("stm-measured"), help="default: %(default)s")
    options = parser.parse_args(argv)
    if not 1 <= options.cores <= everything:
        parser.error(f"--cores: {options.cores} is not allowed. Use 1 to {everything}, the processors of this process")
    exponents = [float(text) for text in options.exponents.split(",")]
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "measured.csv"
    try:
        if (status := build([str(options.folder / "build")])) != 0:
            return status
        points = [(server, cores + 1, s) for server in CASES for cores in range(options.cores) for s in exponents]
        measured = known(file)
        for number in range(options.rounds):
            random.Random(number).shuffle(points)
            for point in points:
                if number not in measured.get(point, {}):
                    values = one(point, options)
                    measured.setdefault(point, {})[number] = values
                    with file.open("a", newline="") as to:
                        csv.writer(to).writerow([number, *point, *values])
            print(f"round {number}", file=sys.stderr, flush=True)
    except (MachineError, ServerError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(measured))
    return 0


def one(point: tuple[str, int, float], options: argparse.Namespace) -> tuple[float, float]:
    """Return requests per second and milliseconds per request of one load."""
    server, cores, exponent = point
    usable = sorted(os.sched_getaffinity(0))
    settings = Options(
        server, bytes=options.bytes, method=options.method if server == "tm" else None, cores=tuple(usable[:cores])
    )
    found = measure((options.folder / "build").resolve(), settings, exponent, options.seconds)
    return found["requests_per_second"], found["ms_per_request"]


def known(file: Path) -> Measured:
    """Return the results of earlier runs."""
    measured: Measured = {}
    if file.exists():
        with file.open(newline="") as lines:
            for row in csv.reader(lines):
                point = (row[1], int(row[2]), float(row[3]))
                measured.setdefault(point, {})[int(row[0])] = (float(row[4]), float(row[5]))
    return measured


def table(measured: Measured) -> str:
    """Return the matrix as Markdown: medians, and ratios of the throughput with intervals and verdicts."""
    lines = [
        "| cores | s | none | lock | tm | lock / none | tm / lock | verdict for tm |",
        f"|{' --- |' * 8}",
    ]
    for cores, exponent in sorted({point[1:] for point in measured}):
        rounds = set.intersection(*(set(measured.get((server, cores, exponent), {})) for server in CASES))
        if not rounds:
            continue
        values = {server: [measured[server, cores, exponent][at] for at in sorted(rounds)] for server in CASES}
        rates = {server: [rate for rate, _ in own] for server, own in values.items()}
        cells = [
            f"{statistics.median(rates[server]):,.0f}/s, {statistics.median(ms for _, ms in values[server]):.2f} ms"
            for server in CASES
        ]
        tm = ratio_of(rates["tm"], rates["lock"])
        cells += [str(ratio_of(rates["lock"], rates["none"])), str(tm), verdict(tm, len(rounds))]
        lines.append(f"| {cores} | {exponent:g} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", "Medians of the rounds; ratios with 95 % intervals.", ""])


def verdict(ratio: Ratio, rounds: int) -> str:
    """Return in words what is known of the throughput with transactions against the lock."""
    if rounds < LEAST_ROUNDS:
        return f"not known: {rounds} rounds only"
    if not ratio.proven:
        return "no measurable difference"
    return "slower" if ratio.high < 1 else "faster"


if __name__ == "__main__":
    sys.exit(main())
