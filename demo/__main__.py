"""`make demo`: start the service and an agent, tune GCC's flags for a C program, and show the gain.

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
# Time limit in seconds for the pairs of runs, and the minimum number of pairs for a 95 % interval.
PAIRS_SECONDS, PAIRS_LEAST = 60.0, 6

screen = Console(highlight=False)


def main() -> int:
    """Run the demonstration; return 1 if a part of it failed."""
    options = arguments()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with Parts(options.data_dir.absolute(), free_or_any(8470), free_or_any(8471)) as parts:
            demonstrate(parts, options)
    except KeyboardInterrupt:
        screen.print("\nStopped. The data is kept: the next `make demo` continues with it.")
    except (PartError, RerunError, trimtab.TrimtabError) as error:
        screen.print(f"[red]The demonstration failed:[/] {error}")
        return 1
    return 0


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--exit", action="store_true", help="end after the result instead of serving the console")
    add("--data-dir", type=Path, default=ROOT / "data", help="folder for all data (default: %(default)s)")
    add("--trials", type=int, default=30, help="number of trials of the study (default: %(default)s)")
    add("--seconds", type=float, default=120.0, help="time limit of the study in seconds (default: %(default)s)")
    add("--pairs", type=int, default=15, help="number of pairs of runs that measure the gain (default: %(default)s)")
    return parser.parse_args()


def free_or_any(port: int) -> int:
    """Return the port if nothing listens on it, else 0 (any port)."""
    with socket.socket() as probe:
        return 0 if probe.connect_ex(("127.0.0.1", port)) == 0 else port


def demonstrate(parts: Parts, options: argparse.Namespace) -> None:
    """Run all steps, from the start to the measured gain."""
    with screen.status("Starting the service (PostgreSQL, web, gRPC, worker) ..."):
        addresses = parts.start_service()
    with screen.status("Starting an agent; it asks GCC for its flags ..."):
        parts.start_agent(addresses.grpc)
    link = addresses.login_link
    screen.print(f"The service and the agent are running. Console (the link works once): {link}", soft_wrap=True)
    with trimtab.Client(addresses.grpc, token=parts.token) as client:
        study = open_study(client, options.trials)
        follow(study, parts, options.seconds)
        show_result(study, parts.agent_state, options.pairs)
    if not options.exit:
        serve(parts, addresses)


def open_study(client: trimtab.Client, trials: int) -> Study:
    """Return the last study if it was interrupted, else a new one."""
    numbered = re.compile(rf"{COMPONENT}-(\d+)")
    earlier = {
        int(match[1]): study
        for study in client.list_studies(component=COMPONENT)
        if (match := numbered.fullmatch(study.name))
    }
    for study in earlier.values():
        if not study.state.finished:
            screen.print(f"Continuing the interrupted study {study.name}.")
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
        f"the first trial is plain gcc -O2."
    )
    return study


def follow(study: Study, parts: Parts, seconds: float) -> None:
    """Show the progress until the study ends, or end it after its time limit."""
    try:
        with StudyProgress(study.name, study.spec) as progress:
            for change in study.watch(timeout=seconds):
                parts.check()
                for trial in change.trials:
                    progress.update(trial)
    except trimtab.Timeout:
        study.complete(f"the time limit of {seconds:g} s is over")


def show_result(study: Study, agent_state: Path, count: int) -> None:
    """Run the default and the best configuration in turns, and show the difference."""
    best = study.best_trial
    bench = Bench(WORKLOADS / COMPONENT / "component.yaml", APPLICATION, METRIC, agent_state)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=screen, disable=not screen.is_terminal) as bar:
        task = bar.add_task("Measuring the gain: default and best in turns", total=count)
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
    """Return the gain as text."""
    interval = f"({100 * gain.confidence:.0f} %: {100 * gain.low:.1f} to {100 * gain.high:.1f} %)"
    if gain.measurable:
        return f"[bold green]{100 * gain.estimate:.1f} % less time[/] {interval}"
    return f"no measurable gain {interval}"


def serve(parts: Parts, addresses: Addresses) -> None:
    """Keep everything running until Ctrl-C."""
    screen.print(f"\nRunning. Console: {addresses.console}  gRPC: {addresses.grpc}  Press Ctrl-C to stop everything.")
    while True:
        parts.check()
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
