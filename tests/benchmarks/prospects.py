"""How well the probabilities of gains are calibrated: replays on measured tables, with any configuration as default.

A drawn configuration plays the default (in three of ten cases it is the real one, if the table has it), and its two
runs come first. After 8 and 12 runs the probabilities are compared with the gain that the table really has.

Run as `python -m tests.benchmarks.prospects [--quick] [--json]`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from service.algorithms import registry
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.prospects import GAINS
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord
from service.replay.subject import Subject
from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.predictions import configurations, default_of
from tests.benchmarks.table import Result, Row, main, result
from tests.benchmarks.tables import QUIET

# Nothing was chosen on these seeds.
FIRST_SEED, SEEDS, QUICK_SEEDS = 52000, 24, 1
AT = (8, 12)
BINS = (0.0, 0.15, 0.4, 0.6, 0.85, 0.965, 1.0)


@dataclass(frozen=True)
class Case:
    """A probability, whether the gain exists, and after how many runs of which seed."""

    seed: int
    runs: int
    gain: float
    probability: float
    exists: bool


def run(quick: bool) -> Result:
    """Replay all tables without noise of others."""
    cases = [
        case
        for seed in range(FIRST_SEED, FIRST_SEED + (QUICK_SEEDS if quick else SEEDS))
        for table in QUIET
        for case in replayed(table.subject(), default_of(table, configurations(table.subject())), seed)
    ]
    rows: list[Row] = []
    for runs in AT:
        for gain in GAINS:
            own = [one for one in cases if (one.runs, one.gain) == (runs, gain)]
            rate = float(np.mean([one.exists for one in own]))
            score = bootstrap(by_seed(own, [(one.probability - one.exists) ** 2 for one in own]))
            base = bootstrap(by_seed(own, [(rate - one.exists) ** 2 for one in own]))
            note = f"base rate {rate:.2f}, whose score is {base.value:.3f} ({base.low:.3f} to {base.high:.3f})"
            peers = {"low": score.low, "high": score.high}
            rows.append(Row(f"Brier score, {runs} runs, {gain:.0%}", score.value, "", note=note, peers=peers))
        for low, high in pairwise(BINS):
            own = [one for one in cases if one.runs == runs and low <= one.probability < high]
            if own:
                said = float(np.mean([one.probability for one in own]))
                note = f"mean probability {said:.2f} in {len(own)} cases"
                rows.append(Row(f"share with a gain, {runs} runs, {low} to {high}", shares(own), "", note=note))
    return result(rows)


def by_seed(cases: Sequence[Case], values: Sequence[float]) -> list[float]:
    """Return the mean of the values of each seed's cases."""
    found: dict[int, list[float]] = {}
    for case, value in zip(cases, values, strict=True):
        found.setdefault(case.seed, []).append(value)
    return [float(np.mean(own)) for own in found.values()]


def shares(cases: Iterable[Case]) -> float:
    """Return the share of the cases in which the gain exists."""
    return float(np.mean([one.exists for one in cases]))


def replayed(subject: Subject, known: int | None, seed: int) -> Iterator[Case]:
    """Yield the cases of one search. `known`: the row of the real default."""
    places = configurations(subject)
    random = np.random.default_rng([seed, 7])
    default = int(random.integers(len(places)))
    if random.random() < 0.3 and known is not None:
        default = known
    subject = replace(subject, problem=with_default(subject.problem, places[default]))
    algorithm = registry.create("gp", subject.problem, seed=seed, options=registry.validate("gp", {}, subject.problem))
    gain = 1.0 - subject.optimum / float(subject.losses[default, 0])
    visits: Counter[int] = Counter()
    cursor = 0
    for number in range(1, max(AT) + 1):
        configuration = places[default]
        if number > 2:
            batch = algorithm.suggest(1, cursor=cursor)
            cursor, (configuration,) = batch.cursor, batch.configurations
        row = subject.row(configuration)
        if row is None:
            algorithm.update([TrialRecord(number, configuration, TrialState.INFEASIBLE, {}, number)])
        else:
            measured = subject.measure(row, clock=0.0, seed=seed, visit=visits[row])
            visits[row] += 1
            metrics = dict(zip(subject.problem.metrics, map(float, measured.values), strict=True))
            algorithm.update([TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number)])
        if number in AT:
            for one in algorithm.prospects():
                yield Case(seed, number, one.gain, one.probability, gain >= one.gain)


def with_default(problem: Problem, configuration: Configuration) -> Problem:
    """Return the problem with a configuration as its default."""
    parameters = [
        replace(one, default=configuration[one.name]) if one.name in configuration else one
        for one in problem.space.parameters
    ]
    return replace(problem, space=Space.build(parameters, [one.text for one in problem.space.constraints]))


if __name__ == "__main__":
    main("Calibration of prospects", run)
