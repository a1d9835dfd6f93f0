"""Measure the gain of tuning PostgreSQL on this machine, with a service and an agent of its own.

For each load, a study with `auto` and one with `random` have the same number of trials. Then the built-in defaults,
PGTune's rules and both recommendations are measured in rounds on one cluster for each round, in random order, and the
recommendation is put to the crash test.
"""

import argparse
import json
import os
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

WORKLOAD = Path(__file__).resolve().parent
sys.path.append(str(WORKLOAD.parent))

import bench  # noqa: E402  # next to this file
import pgtune  # noqa: E402
from cluster import ClusterError, MachineError, temporary  # noqa: E402
from measuring import GOES_ON, INTERRUPTED, Bench, gain, write  # noqa: E402  # in the parent folder
from scripts import ScriptError, check_names, check_numbers, exit_status, parser_of, progress_bar  # noqa: E402

from trimtab.cli.submission import create, load  # noqa: E402

STUDY = yaml.safe_load((WORKLOAD / "study.yml").read_text())
COMPONENT = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
KINDS = {"tpcb": "oltp", "select": "oltp", "analytic": "dw", "dashboard": "dw"}
ALGORITHMS = ("auto", "random")
Settings = Mapping[str, object]
EXAMPLE = """\
examples:
  python agents/workloads/postgresql/measure.py
  python agents/workloads/postgresql/measure.py --loads tpcb --trials 40 --rounds 9

"""


def recommended(bench_: Bench, name: str, algorithm: str, trials: int) -> tuple[Settings, str]:
    """Run the study of a load; return the changed settings of its recommendation and its number of trials as text."""
    file = bench_.folder / f"{name}-{algorithm}.yml"
    whole = {**STUDY, "application": name, "algorithm": algorithm, "budget": {"max_trials": trials}}
    file.write_text(yaml.safe_dump({**whole, "final_check": False}))
    study = create(bench_.client, load(bench_.client, file, name), name=file.stem, load_if_exists=True)
    study.wait()
    if study.recommendation is None:
        raise ScriptError(f"study {study.name} has found nothing: {study.status.reason}")
    defaults = {one.name: one.default for one in bench_.client.component(COMPONENT["name"]).space}
    changed = {key: value for key, value in study.recommendation.params.items() if value != defaults[key]}
    states = [trial.state for trial in study.trials()]
    return changed, f"{len(states)} trials, {sum(state == 'INFEASIBLE' for state in states)} infeasible"


def rounds_of(
    bench_: Bench, name: str, contenders: Mapping[str, Settings], rounds: int
) -> dict[str, list[dict[str, float]]]:
    """Measure the contenders in rounds; the file NAME-rounds.json keeps them."""
    file = bench_.folder / f"{name}-rounds.json"
    known: list[dict[str, dict[str, float]]] = json.loads(file.read_text()) if file.exists() else []
    command = COMPONENT["applications"][name]["command"]
    clients = next((int(word.partition("=")[2]) for word in command if word.startswith("--clients=")), 4)
    archive = bench_.build() / "cluster.tar"
    with progress_bar() as bar:
        task = bar.add_task(f"{name}: {len(contenders)} configurations in turns", total=rounds, completed=len(known))
        while len(known) < rounds:
            order = list(contenders)
            random.Random(len(known)).shuffle(order)
            with temporary() as cluster:
                cluster.restore(archive)
                cluster.start({})
                measured = {}
                for label in order:
                    cluster.apply(contenders[label])
                    measured[label] = bench.measure(cluster, name, clients, seconds=3, warm_up=1)
            known.append(measured)
            file.write_text(json.dumps(known))
            bar.advance(task)
    found = defaultdict(list)
    for measured in known[:rounds]:
        for label, metrics in measured.items():
            found[label].append(metrics)
    return found


def crash(bench_: Bench, settings: Settings) -> str:
    """Return the outcome of the crash test as text."""
    with temporary() as cluster:
        cluster.restore(bench_.build() / "cluster.tar")
        cluster.start(settings)
        try:
            counts = bench.crash(cluster, settings, clients=4)
        except ClusterError as error:
            return str(error)
    return f"{counts['found']} transactions found, {counts['acknowledged']} acknowledged, balances agree"


def report(folder: Path, name: str, found: Mapping[str, Sequence[Mapping[str, float]]]) -> list[list[str]]:
    """Return the rows of a load's table. A gain in transactions is a gain in the mean time of one."""
    rows = []
    times = {label: [1 / metrics["tps"] for metrics in rounds] for label, rounds in found.items()}
    for label, rounds in found.items():
        medians = {metric: statistics.median(one[metric] for one in rounds) for metric in rounds[0]}
        cells = [f"{medians['tps']:.4g}", f"{medians['p95_ms']:.3g} ms", f"{medians['memory_mib']:.0f} MiB"]
        rows.append([name, label, *cells, "" if label == "default" else gain(times["default"], times[label])])
    return rows


def measure(options: argparse.Namespace) -> None:
    """Measure all loads and write loads.md and settings.md."""
    rows, settings = [], []
    with Bench(WORKLOAD, options.folder) as one:
        for name in options.loads.split(","):
            contenders: dict[str, Settings] = {"default": {}}
            contenders["PGTune"] = pgtune.settings(KINDS[name], options.memory_mib, len(os.sched_getaffinity(0)))
            for algorithm in ALGORITHMS:
                contenders[algorithm], words = recommended(one, name, algorithm, options.trials)
                changed = ", ".join(f"{key} {value}" for key, value in contenders[algorithm].items())
                settings.append([name, algorithm, words, changed, crash(one, contenders[algorithm])])
                write(options.folder / "settings.md", ["load", "algorithm", "study", "changed", "crash test"], settings)
            found = rounds_of(one, name, contenders, options.rounds)
            rows += report(options.folder, name, {label: found[label] for label in contenders})
            header = ["load", "settings", "transactions a second", "p95", "memory", "less time than default (95 %)"]
            write(options.folder / "loads.md", header, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a part fails."""
    parser = parser_of(__doc__, EXAMPLE + GOES_ON)
    parser.add_argument("--loads", default=",".join(KINDS), help="a list with commas (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=20, help="of each study (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--memory-mib", type=int, default=512, help="for PGTune's rules (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("postgresql-measured"), help="default: %(default)s")
    options = parser.parse_args(argv)

    def work() -> None:
        check_numbers(options, trials=1, rounds=2, memory_mib=256)
        check_names("--loads", options.loads, tuple(KINDS), ", ".join(KINDS))
        try:
            measure(options)
        except (ClusterError, MachineError) as error:
            raise ScriptError(str(error)) from None

    return exit_status(work, INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
