"""Live repetitions of the replays in noise: studies on the real workloads while other applications disturb them.

A study has the grid, the noise, the policies and the number of trials of a replayed table. The table's medians judge
what it recommends, as in the replays: by the runs without noise, and by the runs in noise. Repetitions are the
outermost loop and policies the innermost one, so that slow changes of the machine disturb all policies alike.

The same command goes on where it was interrupted.
"""

import argparse
import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import trimtab
from service.replay.subject import Subject
from tests.benchmarks.measure_tables import WORKLOADS, noise_of, quiet
from tests.benchmarks.replays import FIRST_SEED, OPTIONS, POLICIES, TRIALS, by_truth_of
from tests.benchmarks.tables import NOISY, TABLES, Table
from trimtab.study import Study

# Both are in the folder of the workloads, which is no package; measure_tables has added it to the path.
from measuring import Bench, write  # type: ignore[import-not-found]  # isort: skip
from scripts import check_names, check_numbers, exit_status, parser_of  # type: ignore[import-untyped]  # isort: skip

NAMES = [one.name for one in NOISY]
HEADER = ("table", "policy", "studies", "from the best, without noise", "from the best, in noise", "configurations")
EXAMPLE = """\
examples:
  python -m tests.benchmarks.live
  python -m tests.benchmarks.live hotspots-random-noise,sbb-2-random-noise --repetitions 3
"""


class Outcome(NamedTuple):
    """The result of a study: distances of its recommendation from the optimum in per cent, and how many it measured."""

    table: str
    policy: str
    repetition: int
    without_noise: float
    in_noise: float
    configurations: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a study recommends nothing."""
    options = arguments(argv)

    def work() -> None:
        check_numbers(options, repetitions=1, trials=1)
        names = check_names("TABLES", options.tables, NAMES, ", ".join(NAMES))
        options.folder.mkdir(parents=True, exist_ok=True)
        for repetition in range(options.repetitions):
            for name in names:
                measure(TABLES[name], repetition, options.trials, options.folder)
            write(options.folder / "live.md", HEADER, summary(stored(options.folder)))

    return int(exit_status(work, "Stopped; the same command goes on."))


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser: argparse.ArgumentParser = parser_of(__doc__, EXAMPLE)
    parser.add_argument("tables", nargs="?", default=",".join(NAMES), help="a list with commas (default: all)")
    parser.add_argument("--repetitions", type=int, default=3, help="studies of each policy (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of each study (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("live-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def measure(one: Table, repetition: int, trials: int, folder: Path) -> None:
    """Run a study with each policy in the noise of a table, unless it is known, and store how good its result is."""
    known = {(found.table, found.policy, found.repetition) for found in stored(folder)}
    left = [each.resampling for each in POLICIES if (one.name, each.resampling, repetition) not in known]
    if not left:
        return
    own = (folder / one.component).absolute()
    in_noise = one.subject()
    judges = by_truth_of(in_noise, TABLES[one.application].subject()), in_noise
    with Bench(quiet(WORKLOADS / one.component, own / "workload"), own) as bench, noise_of(bench, one):
        for policy in left:
            described = {**one.study(), **terms(policy, FIRST_SEED + repetition, trials)}
            study = finished(bench.client, f"{one.name}-{policy}-{repetition}", described)
            assert study.recommendation is not None
            unlike = len({json.dumps(trial.params, sort_keys=True) for trial in study.trials()})
            distances = [distance(judge, study.recommendation.params) for judge in judges]
            with (folder / "live.csv").open("a", newline="") as to:
                csv.writer(to).writerow([one.name, policy, repetition, *distances, unlike])


def terms(policy: str, seed: int, trials: int) -> dict[str, object]:
    """Return the part of a study file that the replays have as their terms."""
    return {
        "algorithm": "auto",
        "seed": seed,
        "resampling": {"name": policy, "options": dict(OPTIONS.get(policy, {}))},
        "budget": {"max_trials": trials},
        "final_check": False,
    }


def finished(client: trimtab.Client, name: str, described: Mapping[str, object]) -> Study:
    """Return the study of this name at its end. Raise TrimtabError if it recommends nothing."""
    _, spec = client.parse_study_file(json.dumps(described), name=name)
    study = client.create_from_spec(name, spec, load_if_exists=True)
    study.wait()
    if study.recommendation is None:
        raise trimtab.TrimtabError("nothing_found", f"Study {name} recommends nothing: {study.status.reason}")
    return study


def distance(judge: Subject, params: Mapping[str, object]) -> float:
    """Return by how many per cent the true value of a configuration is above the table's optimum."""
    row = judge.row(judge.problem.space.validate(params))
    assert row is not None, "the study has the grid of the table"
    return 100 * float(judge.distances()[row])


def stored(folder: Path) -> list[Outcome]:
    """Return the results of earlier studies."""
    file = folder / "live.csv"
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return [
            Outcome(name, policy, int(repetition), float(without), float(within), int(unlike))
            for name, policy, repetition, without, within, unlike in csv.reader(lines)
        ]


def summary(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """Return the rows of the printed table: the means of the studies of a policy, and the single studies."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        groups.setdefault((one.table, one.policy), []).append(one)
    return [
        [
            *names,
            str(len(own)),
            shown([one.without_noise for one in own]),
            shown([one.in_noise for one in own]),
            shown([one.configurations for one in own]),
        ]
        for names, own in groups.items()
    ]


def shown(values: Sequence[float]) -> str:
    """Return the mean of a few values, and the values, as text."""
    return f"{sum(values) / len(values):.1f} ({', '.join(f'{value:.1f}' for value in values)})"


if __name__ == "__main__":
    sys.exit(main())
