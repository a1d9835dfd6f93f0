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
from rich.table import Table

import trimtab
from demo.flags import added_flags
from demo.parts import ROOT, WORKLOADS, Addresses, PartError, Parts
from trimtab.cli.quantities import quantity
from trimtab.progress import Progress
from trimtab.study import Study

COMPONENT, APPLICATION, METRIC = "gcc-flags", "kernels", "seconds"

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
    except (PartError, trimtab.TrimtabError) as error:
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
    add("--seconds", type=float, default=120.0, help="time limit of the search in seconds (default: %(default)s)")
    add("--check", type=int, default=30, help="largest number of trials that measure the gain (default: %(default)s)")
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
        study = open_study(client, options)
        follow(study, parts)
        show_result(study, parts.agent_state)
    if not options.exit:
        serve(parts, addresses)


def open_study(client: trimtab.Client, options: argparse.Namespace) -> Study:
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
        max_trials=options.trials,
        max_time=options.seconds,
        final_check=trimtab.FinalCheck(width=0.02, max_trials=options.check, effects=0),
        seed=number,
    )
    screen.print(
        f"Study {study.name}: {len(study.spec.space)} flags of the installed GCC, {options.trials} trials of a C "
        f"program; the first trial is plain gcc -O2. Then the best and the default are measured alternately."
    )
    return study


def follow(study: Study, parts: Parts) -> None:
    """Show the progress until the study ends."""
    with Progress(study.name, study.spec) as progress:
        for change in study.watch():
            parts.check()
            for trial in change.trials:
                progress.update(trial)


def show_result(study: Study, agent_state: Path) -> None:
    """Show the verdict of the study, in the numbers of the console, and the flags."""
    verdict = study.verdict
    if verdict is None or verdict.default is None:
        raise PartError("no trial has worked; the reasons are in the console")
    table = Table.grid(padding=(0, 3))
    [objective] = study.objectives
    table.add_row("default (-O2)", quantity(verdict.default, objective), f"{verdict.default_runs} runs")
    table.add_row("recommended", quantity(verdict.value, objective), f"{verdict.runs} runs")
    table.add_row("verdict", f"[bold green]{verdict}[/]" if verdict.proven else str(verdict))
    screen.print(Panel(table, title=study.name, expand=False))
    params = study.best_trial.params
    flags = added_flags(WORKLOADS / COMPONENT / "component.yaml", APPLICATION, METRIC, agent_state, params)
    screen.print("Compile with:")
    print(f"  {shlex.join(['gcc', '-O2', *flags])} ...")


def serve(parts: Parts, addresses: Addresses) -> None:
    """Keep everything running until Ctrl-C."""
    screen.print(f"\nRunning. Console: {addresses.console}  gRPC: {addresses.grpc}  Press Ctrl-C to stop everything.")
    while True:
        parts.check()
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
