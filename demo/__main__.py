"""`make demo`: starts the service and an agent, tunes GCC's flags for a C program, and shows what was gained.

python -m demo              # serves the console afterwards, until Ctrl-C
python -m demo --exit       # ends after the result
"""

import argparse
import re
import shlex
import signal
import socket
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import trimtab
from demo.gain import Gain, measure_gain
from demo.parts import ROOT, WORKLOADS, Addresses, PartError, Parts
from demo.rerun import Bench, RerunError
from trimtab.progress import Progress as StudyProgress
from trimtab.study import Study

COMPONENT, APPLICATION, METRIC = "gcc-flags", "kernels", "seconds"
# The pairs of runs that prove the gain take at most so long, but are no fewer than give an interval of 95 %.
PAIRS_SECONDS, PAIRS_LEAST = 60.0, 6

screen = Console(highlight=False)


def main() -> int:
    """Runs the demonstration; 1 when a part of it failed."""
    options = arguments()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what runs in its background without the first
        signal.signal(number, signal.default_int_handler)
    try:
        with Parts(options.data_dir.absolute(), free_or_any(8470), free_or_any(8471)) as parts:
            demonstrate(parts, options)
    except KeyboardInterrupt:
        screen.print("\nStopped. The data is kept: the next `make demo` goes on with it.")
    except (PartError, RerunError, trimtab.TrimtabError) as error:
        screen.print(f"[red]The demonstration failed:[/] {error}")
        return 1
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--exit", action="store_true", help="end after the result instead of serving the console")
    add("--data-dir", type=Path, default=ROOT / "data", help="where all data is kept (default: %(default)s)")
    add("--trials", type=int, default=30, help="trials of the study (default: %(default)s)")
    add("--seconds", type=float, default=120.0, help="time for the study (default: %(default)s)")
    add("--pairs", type=int, default=15, help="pairs of runs that prove the gain (default: %(default)s)")
    return parser.parse_args()


def free_or_any(port: int) -> int:
    """The port where nothing listens on it, else 0: any."""
    with socket.socket() as probe:
        return 0 if probe.connect_ex(("127.0.0.1", port)) == 0 else port


def demonstrate(parts: Parts, options: argparse.Namespace) -> None:
    """The whole story, from nothing to the proof."""
    with screen.status("Starting the service (PostgreSQL, web, gRPC, worker) ..."):
        addresses = parts.start_service()
    with screen.status("Starting an agent; it asks GCC for its flags ..."):
        parts.start_agent(addresses.grpc)
    screen.print(f"Service and agent run. Console (the link works once): {addresses.login_link}", soft_wrap=True)
    with trimtab.Client(addresses.grpc, token=parts.token) as client:
        study = open_study(client, options.trials)
        follow(study, parts, options.seconds)
        show_result(study, parts.agent_state, options.pairs)
    if not options.exit:
        serve(parts, addresses)


def open_study(client: trimtab.Client, trials: int) -> Study:
    """The last study where it was interrupted, else the next one."""
    numbered = re.compile(rf"{COMPONENT}-(\d+)")
    earlier = {
        int(match[1]): study
        for study in client.list_studies(component=COMPONENT)
        if (match := numbered.fullmatch(study.name))
    }
    for study in earlier.values():
        if not study.state.finished:
            screen.print(f"Going on with the study {study.name}, which was interrupted.")
            return study
    number = 1 + max(earlier, default=0)
    study = client.create_study(
        f"{COMPONENT}-{number}",
        objectives=[trimtab.Minimize(METRIC, unit="s")],
        component=COMPONENT,
        application=APPLICATION,
        max_trials=trials,
        seed=number,
    )
    screen.print(
        f"Study {study.name}: {len(study.spec.space)} flags of the installed GCC, {trials} trials of a C program; "
        f"the first is plain gcc -O2."
    )
    return study


def follow(study: Study, parts: Parts, seconds: float) -> None:
    """Shows the progress until the study ends or its time is over, which ends it."""
    try:
        with StudyProgress(study.name, study.spec) as progress:
            for change in study.watch(timeout=seconds):
                parts.check()
                for trial in change.trials:
                    progress.update(trial)
    except trimtab.Timeout:
        study.complete(f"{seconds:g} s are over")


def show_result(study: Study, agent_state: Path, count: int) -> None:
    """Runs the default and the best configuration in turn, and shows what the difference is."""
    best = study.best_trial
    bench = Bench(WORKLOADS / COMPONENT / "component.yaml", APPLICATION, METRIC, agent_state)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as bar:
        task = bar.add_task("Proving it: default and best in turn", total=count)
        pairs = bench.pairs(best.params, count, PAIRS_SECONDS, PAIRS_LEAST, lambda: bar.advance(task))
    gain = measure_gain(pairs)
    table = Table.grid(padding=(0, 3))
    table.add_row("default (-O2)", f"{gain.default_seconds:.4f} s")
    table.add_row(f"best (trial {best.number})", f"{gain.best_seconds:.4f} s")
    table.add_row("gain", verdict(gain))
    table.add_row("", f"medians and interval of {len(pairs)} interleaved pairs of runs")
    screen.print(Panel(table, title=study.name, expand=False))
    screen.print("Compile with:")
    print(f"  {shlex.join(['gcc', '-O2', *bench.flags(best.params)])} ...")


def verdict(gain: Gain) -> str:
    """The gain in words, or that there is none to speak of."""
    interval = f"({100 * gain.confidence:.0f} %: {100 * gain.low:.1f} to {100 * gain.high:.1f} %)"
    if gain.measurable:
        return f"[bold green]{100 * gain.estimate:.1f} % less time[/] {interval}"
    return f"no measurable gain {interval}"


def serve(parts: Parts, addresses: Addresses) -> None:
    """Keeps everything running until Ctrl-C."""
    screen.print(f"\nServing. Console: {addresses.console}  gRPC: {addresses.grpc}  Ctrl-C stops everything.")
    while True:
        parts.check()
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
