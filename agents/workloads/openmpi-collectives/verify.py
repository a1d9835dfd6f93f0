"""Run mpirun as any user would, with a rules file and without it, in turns; the order changes from pair to pair.

tune.py starts this script on this machine or in an allocation of a scheduler, so that it measures where the trials ran.
Each pair is a line of JSON on standard output: the case's number and the two medians in microseconds.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import latencies
import yaml

FOLDER = Path(__file__).parent
PROGRAMS = ("mpirun", "mpicc")


class VerifyError(Exception):
    """The rules cannot be verified here; `str()` says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a program is missing or fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", type=Path, help="the rules file, in a folder that the nodes share")
    parser.add_argument("--pairs", type=int, default=0, help="runs with the file and without it, for each case")
    parser.add_argument(
        "--case", action="append", default=[], metavar="COLLECTIVE,RANKS,BYTES", help="a case; may be repeated"
    )
    options = parser.parse_args(argv)
    try:
        check_programs()
        report(node=node())
        cases = [case.split(",") for case in options.case]
        if cases:
            verify(
                options.rules.absolute(), [(name, int(ranks), int(size)) for name, ranks, size in cases], options.pairs
            )
    except VerifyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def check_programs() -> None:
    """Raise VerifyError if a program is missing."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            packages = "Open MPI with its compiler (openmpi-bin, libopenmpi-dev)"
            raise VerifyError(
                f"{program} is not in the PATH of {node()}, and verifies the rules: install {packages}, or give"
                " --pairs 0 to go without"
            )


def node() -> str:
    """Return the nodes on which mpirun's processes run."""
    return os.environ.get("SLURM_JOB_NODELIST") or socket.gethostname()


def report(**values: object) -> None:
    """Print a line for tune.py."""
    print(json.dumps(values), flush=True)


def verify(rules: Path, cases: Sequence[tuple[str, int, int]], pairs: int) -> None:
    """Build the component's benchmark, and measure each case: a collective, its ranks and its bytes."""
    component = yaml.safe_load((FOLDER / "component.yaml").read_text())
    environment = {**os.environ, **component["env"]}
    # in the folder of the rules: other nodes would not find files on this machine's own disk
    with tempfile.TemporaryDirectory(dir=rules.parent, prefix=".verify-") as build:
        places = {"build": build, "component": str(FOLDER)}
        for command in component["build"]["commands"]:
            output_of([item.format(**places) for item in command], environment)
        for number, (collective, ranks, size) in enumerate(cases):
            command = [
                item.format(**places, ranks=ranks, bytes=size)
                for item in component["applications"][collective]["command"]
            ]
            for pair in range(pairs):
                found = {}
                for ruled in (False, True) if pair % 2 else (True, False):
                    found[ruled] = latency(command, rules if ruled else None, environment)
                report(case=number, without=found[False], ruled=found[True])


def latency(command: Sequence[str], rules: Path | None, environment: dict[str, str]) -> float:
    """Return the median of one run, in microseconds."""
    settings = {"coll_tuned_use_dynamic_rules": int(rules is not None)}
    given = [word for name, value in settings.items() for word in ("--mca", name, str(value))]
    if rules is not None:
        given += ["--mca", "coll_tuned_dynamic_rules_filename", str(rules)]
    text = output_of([command[0], *given, *command[1:]], environment)
    try:
        [row] = latencies.parse(text).values()
        return row[latencies.MEDIAN]
    except (ValueError, KeyError):
        raise VerifyError(f"{' '.join(command)} printed no median:\n{text[-1000:]}") from None


def output_of(command: list[str], environment: dict[str, str]) -> str:
    """Return the output of a program. Raise VerifyError with its first messages if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = "\n".join(done.stderr.splitlines()[:10])
        raise VerifyError(f"{' '.join(command)} ended with status {done.returncode}:\n{first}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
