"""Replays on the measured tables: a run of a configuration is one of its measured runs, noise included.

Three questions: how far from the table's optimum is what the algorithms recommend; what do the resampling policies
gain while other applications disturb the measured one; and how much of the possible gain for a collective is found in
5 % of the time of the exhaustive search. `data/README.md` describes the tables and the machine.

Run as `python -m tests.benchmarks.replays [--quick] [--json]`. The runs are stored in bench-results/replays, and a run
that was interrupted continues. A table that is not there is left out.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from service.core.errors import JsonValue
from service.replay import bench, scores
from service.replay.measured_table import Replicates
from service.replay.replay_record import Contestant, Run
from service.replay.run import Terms
from service.replay.subject import Subject
from tests.benchmarks.intervals import Interval, bootstrap
from tests.benchmarks.table import Result, Row, main, result
from tests.benchmarks.tables import COLLECTIVES, NOISY, QUIET, TABLES, Table

FOLDER = Path("bench-results/replays")
# No setting was chosen on these seeds.
FIRST_SEED, SEEDS, QUICK_SEEDS = 7000, 24, 2
TRIALS, START = 40, 6
EXHAUSTIVE_SHARE = 0.05
# [robert-2021, section 5.5]: the search ends when the best improves by less than 5 % in 15 trials.
STOP: JsonValue = {"rule": "best_improvement", "threshold": 0.05, "trials": 15}
OPTIONS: Mapping[str, Mapping[str, JsonValue]] = {"static": {"n": 3}, "sedr": {"threshold": 0.1}}

ALGORITHMS = (
    Contestant("auto", "adaptive"),
    Contestant("smbo", "none"),
    Contestant("ga", "none"),
    Contestant("random", "none"),
    Contestant("optuna-tpe", "none"),
)
POLICIES = tuple(Contestant("auto", policy) for policy in ("none", "static", "sedr", "thesis", "adaptive"))


@dataclass(frozen=True)
class Part:
    """Replays of some tables under the same terms."""

    name: str
    tables: Sequence[Table]
    contestants: Sequence[Contestant]
    trials: int = TRIALS
    start: int = START
    stop: bool = False

    def terms(self) -> Terms:
        """Return the terms of the replays."""
        used = {one.resampling for one in self.contestants}
        options = {name: given for name, given in OPTIONS.items() if name in used}
        stopping = STOP if self.stop else None
        return Terms(budget=self.trials, start=self.start, stopping=stopping, options=options)


def parts() -> list[Part]:
    """Return all replays."""
    large = [one for one in QUIET if one not in COLLECTIVES]
    chained = [one for one in COLLECTIVES if len(one.grid) > 2]
    return [
        Part("algorithms", large, ALGORITHMS),
        Part("algorithms", chained, ALGORITHMS, trials=20),
        Part("noise", NOISY, POLICIES),
        Part("noise-stopped", NOISY, POLICIES, trials=80, stop=True),
        *(
            Part("exhaustive", [one], ALGORITHMS[:1], trials=trials, start=max(2, trials // 2))
            for one in COLLECTIVES
            if one.path.exists()
            for trials in [few(one.subject())]
        ),
    ]


def few(subject: Subject) -> int:
    """Return the number of trials that is 5 % of all measured runs."""
    return math.ceil(EXHAUSTIVE_SHARE * sum(map(len, measured(subject).values)))


def measured(subject: Subject) -> Replicates:
    """Return the measured runs of a table."""
    assert isinstance(subject.answers, Replicates)
    return subject.answers


def replay(part: Part, subject: Subject, seeds: int, jobs: int) -> list[Run]:
    """Return the runs on one subject, made or found in the folder."""
    plan = bench.Plan(
        subject=subject,
        terms=part.terms(),
        contestants=part.contestants,
        seeds=range(FIRST_SEED, FIRST_SEED + seeds),
    )
    store = bench.Store.open(FOLDER / part.name / subject.name, plan)
    bench.make(plan, store, jobs)
    return store.of(plan)


def run(quick: bool, jobs: int | None = None) -> Result:
    """Replay everything that is measured."""
    seeds, jobs = QUICK_SEEDS if quick else SEEDS, jobs or os.cpu_count() or 1
    rows: list[Row] = []
    for part in parts():
        for one in part.tables:
            if one.path.exists():
                subject = one.subject()
                runs = replay(part, subject, seeds, jobs)
                rows += {
                    "algorithms": algorithms,
                    "noise": policies,
                    "noise-stopped": policies,
                    "exhaustive": exhaustive,
                }[part.name](part.name, one, subject, runs)
    return result(rows)


def algorithms(name: str, one: Table, subject: Subject, runs: Sequence[Run]) -> list[Row]:
    """Return the distances to the table's optimum, and the trials until within 5 % of it."""
    rows = []
    for contestant, own in grouped(runs).items():
        found = [scores.measure(subject, run) for run in own]
        near = [figures["5%Opt"] for figures in found]
        within = sum(map(math.isfinite, near))
        note = f"median of trials to 5 %: {scores.quantile(near, 0.5):.3g} ({within} of {len(near)} searches)"
        rows.append(row(f"{one.name}: {contestant}", bootstrap([figures["AvgDistOpt"] for figures in found]), note))
    return rows


def policies(name: str, one: Table, subject: Subject, runs: Sequence[Run]) -> list[Row]:
    """Return the distances by the medians without noise and with it, and those of adaptive less the best other."""
    rows = []
    quiet = TABLES[one.application]
    truths = {"in noise": subject}
    if quiet.path.exists():
        truths["without noise"] = by_truth_of(subject, quiet.subject())
    for truth, judge in truths.items():
        distances = {
            contestant: [scores.measure(judge, run)["AvgDistOpt"] for run in own]
            for contestant, own in grouped(runs).items()
        }
        for contestant, values in distances.items():
            own = grouped(runs)[contestant]
            spent, unlike = (
                bootstrap([float(len(run.rows)) for run in own]),
                np.mean([len({*run.rows}) for run in own]),
            )
            note = f"trials {spent.text()}, configurations {unlike:.1f}"
            rows.append(row(f"{name}, {one.name}, {truth}: {contestant}", bootstrap(values), note))
        adaptive = distances.pop("auto + adaptive")
        best = min(distances, key=lambda other: float(np.mean(distances[other])))
        less = bootstrap(np.subtract(adaptive, distances[best]).tolist())
        rows.append(
            row(f"{name}, {one.name}, {truth}: adaptive less {best}", less, "percentage points, pairs of seeds")
        )
    return rows


def exhaustive(name: str, one: Table, subject: Subject, runs: Sequence[Run]) -> list[Row]:
    """Return the share of the possible gain that was found in 5 % of the exhaustive search."""
    assert subject.default is not None
    default, best = float(subject.default[0]), subject.optimum
    seconds = sum(float(each.sum()) for each in measured(subject).seconds or ())
    spent = np.mean([sum(each or 0.0 for each in run.seconds) for run in runs]) / seconds
    note = (
        f"default {default:.1f}, best {best:.1f} us; {len(runs[0].rows)} trials, {100 * spent:.1f} % of {seconds:.0f} s"
    )
    distance = bootstrap([scores.measure(subject, run)["AvgDistOpt"] for run in runs])
    if default <= best:
        return [row(f"exhaustive, {one.name}: distance", distance, note)]
    shares = [100 * (default - float(subject.truth[run.final[0], 0])) / (default - best) for run in runs]
    return [
        row(f"exhaustive, {one.name}: share of the possible gain", bootstrap(shares), note),
        row(f"exhaustive, {one.name}: distance", distance, note),
    ]


def grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each contestant."""
    found: dict[str, list[Run]] = {}
    for one in runs:
        found.setdefault(str(one.contestant), []).append(one)
    return found


def by_truth_of(subject: Subject, quiet: Subject) -> Subject:
    """Return the subject with the true values of another one, which has all its configurations."""
    truth = np.empty_like(subject.truth)
    for configuration in subject.problem.space.enumerate(1 << 20) or ():
        if (row := subject.row(configuration)) is not None:
            where = quiet.row(quiet.problem.space.validate(configuration))
            assert where is not None
            truth[row] = quiet.truth[where]
    return replace(subject, truth=truth)


def row(name: str, found: Interval, note: str) -> Row:
    """Return a row of the result."""
    return Row(name, found.value, "%", note=note, peers={"low": found.low, "high": found.high})


if __name__ == "__main__":
    main("Replays on measured tables", run)
