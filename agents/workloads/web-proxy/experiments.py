"""Measure the experiments of the poster that the README names, with one proxy, in rounds; judge the published orders.

Part `table` has the poster's table: each form from each disk, an unbounded cache, and every answer converted. Part
`policies` measures each policy at several sizes of the cache, on each device, with and without other programs on the
server's processor. Part `hybrid` has twice the clients. `ssd` and `hdd` have an injected delay; `real` is the control
without one. The settings change while the proxy runs, through its control socket.
"""

import argparse
import csv
import itertools
import math
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml
from scipy.special import stdtrit

WORKLOAD = Path(__file__).resolve().parent
sys.path.append(str(WORKLOAD.parent))

import trial  # noqa: E402  # next to this file
from measuring import GOES_ON, INTERRUPTED, write  # noqa: E402  # in the parent folder
from scripts import ScriptError, check_names, check_numbers, exit_status, parser_of, progress_bar  # noqa: E402

PARTS = ("table", "policies", "hybrid")
POLICIES = ("disk", "decompress", "compress")
CACHES = (1_500_000, 3_000_000, 6_000_000)  # about 30, 60 and 90 % hits
DEVICES = ("hdd", "ssd", "real")
THREADS = 4
# Each of them takes as much of the processor as one thread of the server.
BACKGROUND = 4
CLIENTS = 10
UNBOUNDED = 1_000_000_000
KNEE = 0.82  # the hit ratio from which on the published order differs
EQUAL = 0.1  # "about the same": the interval of the ratio is within this of 1
METRICS = ("requests_per_second", "p50_ms", "p99_ms", "hit_ratio", "raw_hits", "gzip_hits", "cpu_us_per_request")
DEFAULTS: Mapping[str, object] = {
    "policy": "disk",
    "cache_bytes": UNBOUNDED,
    "cached_form": "both",
    "disk_form": "requested",
    "device": "ssd",
}
EXAMPLE = """\
examples:
  python agents/workloads/web-proxy/experiments.py
  python agents/workloads/web-proxy/experiments.py --parts table --rounds 7

"""


@dataclass(frozen=True)
class Cell:
    """One thing to measure: settings of the proxy, options of the clients, background processes."""

    part: str
    name: str
    settings: tuple[tuple[str, object], ...]
    clients: int = CLIENTS
    law: str = "uniform"
    gzip_share: float = 0.5
    background: int = 0


Item = TypeVar("Item")
Rounds = Mapping[str, Sequence[Mapping[str, float]]]
"""The metrics of each round, by the name of the cell."""


# --- the cells


def cells(parts: Sequence[str]) -> list[Cell]:
    """Return the cells of these parts."""
    found: list[Cell] = []
    if "table" in parts:
        for device, (form, share) in itertools.product(DEVICES, ((".html", 0.0), (".gz", 1.0))):
            settings = (("cache_bytes", 0), ("device", device))
            found.append(Cell("table", f"{device} {form}", settings, gzip_share=share))
        for name, share in (("unbounded", 0.5), ("unbounded .html", 0.0), ("unbounded .gz", 1.0)):
            found.append(Cell("table", name, (), gzip_share=share))
        for policy, source, share in (("compress", "raw", 1.0), ("decompress", "gzip", 0.0)):
            settings = (("policy", policy), ("cached_form", source), ("disk_form", source))
            found.append(Cell("table", policy, settings, gzip_share=share))
    if "policies" in parts:
        for device, background in (("hdd", 0), ("ssd", 0), ("ssd", BACKGROUND), ("real", 0), ("real", BACKGROUND)):
            found += sweep("policies", POLICIES, device, background, CLIENTS)
    if "hybrid" in parts:
        for device, background in (("ssd", 0), ("ssd", BACKGROUND), ("real", 0)):
            found += sweep("hybrid", ("disk", "decompress", "hybrid"), device, background, 2 * CLIENTS)
    return found


def sweep(part: str, policies: Sequence[str], device: str, background: int, clients: int) -> Iterator[Cell]:
    """Yield the cells of one panel of the figure: policies at each size of the cache."""
    for policy, size in itertools.product(policies, CACHES):
        settings = (("policy", policy), ("cache_bytes", size), ("device", device))
        name = cell_name(part, device, background, size, policy)
        yield Cell(part, name, settings, clients, "geometric", background=background)


def cell_name(part: str, device: str, background: int, size: int, policy: str) -> str:
    """Return the name of a cell of a sweep."""
    return f"{part} {device} {'loaded' if background else 'idle'} {size} {policy}"


# --- measuring


def build(folder: Path) -> Path:
    """Build as the component does, once; return the folder."""
    target, done = folder / "build", folder / "build.done"
    if not done.exists():
        target.mkdir(parents=True, exist_ok=True)
        component = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
        for command in component["build"]["commands"]:
            words = [word.format(build=target, component=WORKLOAD) for word in command]
            made = subprocess.run(words, capture_output=True, text=True, check=False)
            if made.returncode:
                raise ScriptError(f"{words[0]} ended with status {made.returncode}:\n{made.stderr}")
        done.touch()
    return target


def measure(options: argparse.Namespace, wanted: Sequence[Cell]) -> Rounds:
    """Measure each cell once in each round, and keep what is measured in rounds.csv.

    The cells that are compared directly follow each other, in random order: on a machine with other users, the load
    changes within a minute.
    """
    place = build(options.folder)
    file = options.folder / "rounds.csv"
    known: dict[tuple[str, str], dict[str, float]] = {}
    if file.exists():
        with file.open(newline="") as lines:
            for row in csv.reader(lines):
                if len(row) == 2 + len(METRICS):  # the last one may be incomplete
                    known[row[0], row[1]] = dict(zip(METRICS, map(float, row[2:]), strict=True))
    found: dict[str, list[Mapping[str, float]]] = defaultdict(list)
    blocks: dict[str, list[Cell]] = defaultdict(list)
    for cell in wanted:
        blocks["table" if cell.part == "table" else cell.name.rpartition(" ")[0]].append(cell)
    proxy_options = [f"--threads={THREADS}", f"--threads-per-core={THREADS}"]
    with trial.running(place, proxy_options) as proxy, file.open("a", newline="") as to, progress_bar() as bar:
        task = bar.add_task("rounds", total=options.rounds * len(wanted))
        for number in range(options.rounds):
            draws = random.Random(number)
            for cell in [cell for block in shuffled(draws, blocks) for cell in shuffled(draws, blocks[block])]:
                turn = str(number), cell.name
                if turn not in known:
                    known[turn] = run(proxy, cell, number, options)
                    csv.writer(to).writerow([*turn, *(known[turn][metric] for metric in METRICS)])
                    to.flush()
                found[cell.name].append(known[turn])
                bar.advance(task)
    return found


def shuffled(draws: random.Random, items: Iterable[Item]) -> list[Item]:
    """Return the items in random order."""
    return draws.sample(found := list(items), len(found))


def run(proxy: trial.Proxy, cell: Cell, number: int, options: argparse.Namespace) -> dict[str, float]:
    """Measure one cell, with an empty cache at its start."""
    proxy.command("clear")
    proxy.set(**{**DEFAULTS, **dict(cell.settings)})
    load = [f"--clients={cell.clients}", f"--law={cell.law}", f"--gzip-share={cell.gzip_share}"]
    with trial.background(cell.background):
        times = [f"--seconds={options.seconds}", f"--warm-up={options.warm_up}"]
        return proxy.measure([*load, *times, f"--seed={number + 1}"])


# --- judging


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of positive values with its 95 % interval (Student's t of the logarithms)."""
    logs = [math.log(value) for value in values]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    half = float(stdtrit(len(logs) - 1, 0.975)) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def column(rounds: Rounds, name: str, metric: str) -> list[float]:
    """Return one metric of a cell in all rounds."""
    return [row[metric] for row in rounds[name]]


def ratio(rounds: Rounds, more: str, less: str) -> tuple[float, float, float]:
    """Return how many times as many requests a second one cell has as another, round by round, with its interval."""
    pairs = zip(*(column(rounds, name, "requests_per_second") for name in (more, less)), strict=True)
    return interval([a / b for a, b in pairs])


def shown(figures: tuple[float, float, float], digits: int = 2) -> str:
    """Return a figure with its interval."""
    value, low, high = (f"{figure:.{digits}f}" for figure in figures)
    return f"{value} ({low} to {high})"


def verdict(figures: tuple[float, float, float], relation: str) -> str:
    """Return whether "more > less", or "about the same", holds by the interval of the ratio."""
    _, low, high = figures
    if relation == "about":
        if low >= 1 - EQUAL and high <= 1 + EQUAL:
            return "holds"
        return "does not hold" if high < 1 - EQUAL or low > 1 + EQUAL else "not known"
    if low > 1:
        return "holds"
    return "does not hold" if high < 1 else "not known"


def claims(parts: Sequence[str], rounds: Rounds) -> Iterator[tuple[str, str, str, str]]:
    """Yield the published orders: where, the cell that has more, the relation, the cell that has less."""
    if "table" in parts:
        fast = ["unbounded", "ssd .gz", "decompress", "compress"]
        slow = ["ssd .gz", "ssd .html", "hdd .gz", "hdd .html"]
        for more, less in itertools.pairwise(fast):
            yield "table", more, ">", less
        for more, less in itertools.pairwise(slow):
            yield "table (injected disks alone: by construction)", more, ">", less
        for form in (".html", ".gz"):
            yield "table, the same form", f"unbounded {form}", ">", f"ssd {form}"
            yield "table (control)", f"unbounded {form}", ">", f"real {form}"
        yield "table (control)", "real .gz", ">", "real .html"
    if "policies" in parts:
        for device, size in itertools.product(DEVICES, CACHES):
            disk, decompress, compress = (cell_name("policies", device, 0, size, policy) for policy in POLICIES)
            where = f"idle, {device}, {hits(rounds, disk):.0%} hits"
            yield where, decompress, ">", disk
            yield where, disk, ">", compress
        for device, size in itertools.product(("ssd", "real"), CACHES):
            names = [cell_name("policies", device, BACKGROUND, size, policy) for policy in POLICIES]
            disk, decompress, compress = names
            share = hits(rounds, disk)
            where = f"loaded, {device}, {share:.0%} hits"
            yield where, disk, ">" if share > KNEE else "about", decompress
            yield where, decompress, ">", compress
    if "hybrid" in parts:
        for (device, background), size in itertools.product((("ssd", 0), ("ssd", BACKGROUND), ("real", 0)), CACHES):
            hybrid, decompress = (
                cell_name("hybrid", device, background, size, policy) for policy in ("hybrid", "decompress")
            )
            state = "loaded" if background else "idle"
            where = f"twice the clients, {state}, {device}, {hits(rounds, decompress):.0%} hits"
            yield where, hybrid, ">", decompress


def hits(rounds: Rounds, name: str) -> float:
    """Return the mean hit ratio of a cell."""
    return statistics.fmean(column(rounds, name, "hit_ratio"))


def report(options: argparse.Namespace, parts: Sequence[str], rounds: Rounds) -> None:
    """Print and write the tables."""
    rows = []
    for name in rounds:
        rate = shown(interval(column(rounds, name, "requests_per_second")), 0)
        means = {metric: statistics.fmean(column(rounds, name, metric)) for metric in METRICS}
        counts = [f"{means['hit_ratio']:.0%}", f"{means['p50_ms']:.1f}", f"{means['p99_ms']:.1f}"]
        rows.append([name, rate, *counts, f"{means['cpu_us_per_request']:.0f}"])
    header = ["cell", "requests a second", "hits", "p50, ms", "p99, ms", "processor, us a request"]
    write(options.folder / "rates.md", header, sorted(rows))
    judged = []
    for where, more, relation, less in claims(parts, rounds):
        figures = ratio(rounds, more, less)
        words = [name.split()[-1] if name.split()[0] in PARTS else name for name in (more, less)]
        judged.append([where, f"{words[0]} {relation} {words[1]}", shown(figures), verdict(figures, relation)])
    write(options.folder / "orders.md", ["where", "published order", "ratio", "verdict"], judged)


# --- the figure


def draw(folder: Path, parts: Sequence[str], rounds: Rounds) -> None:
    """Write policies.svg: requests a second by the hit ratio, one panel for each device, load and part."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells([part for part in parts if part != "table"]):
        words = cell.name.split()
        panels[" ".join(words[:3])][words[-1]].append(cell.name)
    if not panels:
        return
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "web-proxy", "font.size": 8}):
        figure = Figure(figsize=(2.9 * across, 2.6 * down), layout="constrained")
        colours = {"disk": "tab:blue", "decompress": "tab:green", "compress": "tab:red", "hybrid": "tab:purple"}
        for place, (title, lines) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(down, across, place)
            part, device, state = title.split()
            note = " (control)" if device == "real" else " (injected delay)"
            axes.set_title(f"{device}{note}, {state}, {2 * CLIENTS if part == 'hybrid' else CLIENTS} clients")
            for policy, names in lines.items():
                figures = [interval(column(rounds, name, "requests_per_second")) for name in names]
                middle = [value for value, _, _ in figures]
                ends = [[value - low for value, low, _ in figures], [high - value for value, _, high in figures]]
                x = [100 * hits(rounds, name) for name in names]
                axes.errorbar(x, middle, yerr=ends, marker="o", markersize=3, label=policy, color=colours[policy])
            axes.set_ylim(bottom=0)
            axes.set_xlabel("hit ratio, %")
            axes.set_ylabel("requests a second")
        drawn = [axes.get_legend_handles_labels() for axes in figure.axes]
        by_policy = {label: handle for handles, labels in drawn for handle, label in zip(handles, labels, strict=True)}
        figure.legend(by_policy.values(), by_policy.keys(), loc="outside lower center", ncols=len(by_policy))
        figure.savefig(folder / "policies.svg", metadata={"Date": None})


# --- the command line


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a part fails."""
    parser = parser_of(__doc__, EXAMPLE + GOES_ON)
    parser.add_argument("--parts", default=",".join(PARTS), help="a list with commas (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each measurement (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=0.3, help="seconds before it (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("web-proxy-measured"), help="default: %(default)s")
    options = parser.parse_args(argv)

    def work() -> None:
        check_numbers(options, rounds=2)
        parts = check_names("--parts", options.parts, PARTS, ", ".join(PARTS))
        try:
            rounds = measure(options, cells(parts))
        except trial.TrialError as error:
            raise ScriptError(str(error)) from None
        report(options, parts, rounds)
        draw(options.folder, parts, rounds)

    return exit_status(work, INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
