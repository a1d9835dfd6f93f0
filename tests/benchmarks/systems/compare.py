"""Compare tools on real systems: what each recommends and claims, and what an independent measurement finds.

    python -m tests.benchmarks.systems.compare run [--systems NAME,...] [--seeds 3] [--quick] [--folder FOLDER]
    python -m tests.benchmarks.systems.compare again [--earlier NAME,...] [--folder FOLDER]
    python -m tests.benchmarks.systems.compare pack [--folder FOLDER]
    python -m tests.benchmarks.systems.compare report

`run` goes on where it was interrupted. For each seed and system it runs the tools one after the other, with equal
numbers of trials. Then it measures all recommendations and the default in rounds, each round in a random order, which
no tool has seen. `again` measures recommendations that studies have found earlier in the same way, with the load of
the study and with other loads. `pack` puts all records of a folder into the repository's file, in place of those of
the same studies, and `report` prints the tables of that file.
"""

import argparse
import gzip
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from service.core.space import Configuration
from tests.benchmarks.systems import tools
from tests.benchmarks.systems.again import EARLIER, Earlier, again_table
from tests.benchmarks.systems.report import TOOLS, report
from tests.benchmarks.systems.systems import SYSTEMS, System
from tests.benchmarks.systems.tools import Found
from tests.benchmarks.systems.trial import Trials

JUDGE, AGAIN = "judge", "again"
ROUNDS = 6
# Trials of the quick form, and how many of them are for the final check.
QUICK = (20, 8)
DATA = Path(__file__).parents[1] / "data" / "systems.jsonl.gz"

Record = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "again", "pack", "report"])
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="names with commas between them")
    parser.add_argument("--tools", default=",".join(TOOLS), help="names with commas between them")
    parser.add_argument("--earlier", default=",".join(EARLIER), help="names with commas between them")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]} trials in place of 40")
    parser.add_argument("--folder", type=Path, default=Path("bench-results/systems"))
    options = parser.parse_args(argv)
    folder = options.folder.absolute()
    if options.task == "pack":
        pack(folder)
        return 0
    if options.task == "report":
        print(report(list(packed())), again_table(list(packed())), sep="\n\n")
        return 0
    if options.task == "again":
        for name in options.earlier.split(","):
            again(EARLIER[name], folder)
        return 0
    systems = [SYSTEMS[name] for name in options.systems.split(",")]
    if options.quick:
        systems = [replace(one, trials=QUICK[0], check=QUICK[1]) for one in systems]
    for seed in range(options.seeds):
        for system in systems:
            with Trials(system, folder / "state") as trials:
                for name in options.tools.split(","):
                    search(system, name, seed, trials, folder)
                judge(system, seed, trials, folder)
    return 0


# --- the searches and the measurement after them


def search(system: System, name: str, seed: int, trials: Trials, folder: Path) -> None:
    """Store what a tool finds, unless it is stored. An error of a tool is stored as its result."""
    file = folder / f"{system.name}-{seed}-{name}.json"
    if file.exists() or (name == "expert" and not system.expert):
        return
    began, load = time.time(), os.getloadavg()[0]
    work = folder / "mlos" / f"{system.name}-{seed}"
    try:
        found = asdict(
            {
                "auto": lambda: tools.auto(system, seed, trials),
                "random": lambda: tools.random_search(system, seed, trials),
                "optuna": lambda: tools.optuna_tpe(system, seed, trials),
                "mlos": lambda: tools.mlos(system, seed, trials, work),
                "expert": lambda: tools.expert(system),
            }[name]()
        )
    except (RuntimeError, AssertionError) as error:
        found = {"error": str(error)}
    found |= {"began": began, "seconds": time.time() - began, "load": [load, os.getloadavg()[0]]}
    part = file.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(file)
    print(f"{system.name} {seed} {name}: {found['seconds']:.0f} s, {found.get('gain', found.get('error'))}", flush=True)


def judge(system: System, seed: int, trials: Trials, folder: Path) -> None:
    """Measure the default and all recommendations in rounds, and store each run."""
    found = {tool: dict(one.params) for tool, one in stored(folder, system, seed).items()}
    measure(system, seed, trials, folder, list(found.values()), system.study["application"])
    if "auto" in found:
        for application in system.others:
            measure(system, seed, trials, folder, [found["auto"]], application)


def measure(
    system: System, seed: int, trials: Trials, folder: Path, sides: Sequence[Configuration], application: str
) -> None:
    """Measure the default and these configurations with an application, unless they are stored."""
    rounds(system, seed, trials, folder / f"{system.name}-{seed}-{JUDGE}.jsonl", sides, application)


def again(earlier: Earlier, folder: Path) -> None:
    """Measure a recommendation again: with the load of its study, and with another one."""
    system = earlier.system
    with Trials(system, folder / "state") as trials:
        for application in (system.study["application"], earlier.other):
            rounds(system, 0, trials, folder / f"{system.name}-0-{AGAIN}.jsonl", [earlier.params], application)


def rounds(
    system: System, seed: int, trials: Trials, file: Path, sides: Sequence[Configuration], application: str
) -> None:
    """Add the runs of all rounds to a file, unless it has them."""
    space = system.problem.space
    unlike = {space.key(one): one for one in map(space.validate, [space.default(), *sides])}
    stored = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(one["application"], one["round"], one["key"]) for one in stored}
    for number in range(ROUNDS):
        order = list(unlike)
        random.Random(1000 * seed + number).shuffle(order)
        for key in order:
            if (application, number, key) not in known:
                began, load = time.time(), os.getloadavg()[0]
                made = {"application": application, "round": number, "key": key, "began": began, "load": load}
                made["run"] = asdict(trials.run(unlike[key], application))
                with file.open("a") as to:
                    to.write(json.dumps(made) + "\n")
    print(f"{system.name} {seed} {application}: measured", flush=True)


# --- what is stored


def stored(folder: Path, system: System, seed: int) -> dict[str, Found]:
    """Return what the tools have found, without those that have failed."""
    return {
        one["tool"]: Found(**{name: one["found"][name] for name in Found.__dataclass_fields__})
        for one in records(folder)
        if (one["system"], one["seed"]) == (system.name, seed) and "error" not in one.get("found", {"error": ""})
    }


def records(folder: Path) -> Iterator[Record]:
    """Yield all that a folder has: what a tool has found (`tool`, `found`), and the runs of the measurement (`key`).

    Runs of a recommendation that is measured again have `again`.
    """
    for file in sorted(folder.glob("*.json*")):
        system, seed, tool = file.name.partition(".")[0].rsplit("-", 2)
        place = {"system": system, "seed": int(seed)}
        for content in map(json.loads, file.read_text().splitlines()):
            if tool == JUDGE:
                yield place | content
            elif tool == AGAIN:
                yield place | {"again": True} | content
            else:
                yield place | {"tool": tool, "found": content}


def pack(folder: Path) -> None:
    """Write the records of a folder into the file of the repository, in place of those of the same studies."""
    new = list(records(folder))
    replaced = set(map(_study, new))
    kept = [one for one in packed() if _study(one) not in replaced]
    with gzip.open(DATA, "wt") as to:
        to.writelines(json.dumps(one) + "\n" for one in [*kept, *new])


def _study(record: Record) -> tuple[str, int, bool]:
    return record["system"], record["seed"], record.get("again", False)


def packed() -> Iterator[Record]:
    """Yield the records of the repository's file, if it is there."""
    if not DATA.exists():
        return
    with gzip.open(DATA, "rt") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    sys.exit(main())
