"""Measure how many trials the results of an earlier study save, on the measured tables.

    nice -n 19 .venv/bin/python -m tests.benchmarks.transfer --seeds 20

A search with `gp` on one table is the earlier study; its runs, or its best configurations alone, serve a search on
another table. The values of the four related pairs have rank correlations from 0.7 to 0.9. Unrelated are two patterns
of one workload whose values have the rank correlation 0.03, and a table whose source has its values shuffled.
Each search begins with the default, as a study does. Print a table in Markdown: README.md has it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from service.core.lesson import Lesson
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.replay.metrics import WITHIN
from service.replay.subject import Subject
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.tables import TABLES

# No setting was chosen on these seeds.
FIRST_SEED = 9000
SOURCE_TRIALS, TRIALS, LEADERS = 30, 20, 5
RELATED = (
    ("sro-3", "hotspots"),
    ("hotspots", "hotspots-fixed-noise"),
    ("sbb-2-random-noise", "sbb-2"),
    ("hotspots", "sro-1"),
)
UNRELATED = (("sro-1", "sro-2"), ("shuffled sbb-2", "sbb-2"))


@dataclass(frozen=True)
class Search:
    """A search: the distance of the best true value after each trial, and of the recommendation; as shares."""

    best: Sequence[float]
    final: float

    @property
    def trials(self) -> int:
        """The trials until within 5 % of the optimum; one more than there were if never."""
        return next((place for place, one in enumerate(self.best, 1) if one <= WITHIN), len(self.best) + 1)


@cache
def subject(name: str) -> Subject:
    """Return a table as a subject."""
    return TABLES[name].subject()


def measured(of: Subject, configuration: Configuration, number: int, seed: int, origin: str) -> TrialRecord:
    """Return a trial; INFEASIBLE if the table does not have the configuration."""
    row = of.row(configuration)
    if row is None:
        return TrialRecord(number, configuration, TrialState.INFEASIBLE, {}, number, None, origin)
    values = of.measure(row, clock=0.0, seed=seed, visit=number).values
    metrics = {of.problem.metrics[0]: float(values[0])}
    return TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, None, origin)


def search(
    name: str, trials: int, seed: int, first: Sequence[Configuration] = (), lessons: Sequence[Lesson] = ()
) -> tuple[list[TrialRecord], Search]:
    """Search a table, beginning with the default and the configurations `first`."""
    of = subject(name)
    tuner = Tuner(of.problem, Method(algorithm="gp", seed=seed, budget=trials, lessons=lessons))
    default = of.problem.space.validate(of.problem.space.prune(dict(TABLES[name].default)))
    waiting = [(default, "default"), *((one, "earlier") for one in first if one != default)]
    records: list[TrialRecord] = []
    cursor, best, distances = 0, np.inf, of.distances()
    reached: list[float] = []
    while len(records) < trials:
        if not waiting:
            answer = tuner.suggest(1, cursor=cursor)
            cursor = answer.cursor
            if not answer.items:
                break
            waiting = [(one.configuration, one.origin) for one in answer.items]
        configuration, origin = waiting.pop(0)
        records.append(measured(of, configuration, len(records) + 1, seed, origin))
        tuner.update(records[-1:])
        row = of.row(configuration)
        best = min(best, np.inf if row is None else float(distances[row]))
        reached.append(best)
    recommended = tuner.recommend()
    row = None if recommended is None else of.row(recommended.configuration)
    return records, Search(reached, np.inf if row is None else float(distances[row]))


@cache
def earlier(name: str, seed: int, trials: int) -> list[TrialRecord]:
    """Return the completed trials of the earlier study."""
    found, _ = search(name, trials, seed + 500_000)
    return [one for one in found if one.state == TrialState.COMPLETED]


def lesson(source: str, target: str, seed: int, trials: int = SOURCE_TRIALS) -> Lesson:
    """Return the earlier study's results in the target's space."""
    how, _, name = source.rpartition(" ")
    records, space = earlier(name, seed, trials), subject(target).problem.space
    values = np.array([one.metrics[subject(name).problem.metrics[0]] for one in records])
    if how == "shuffled":
        values = np.random.default_rng(seed).permutation(values)
    elif how == "reversed":
        values[np.argsort(values)] = np.sort(values)[::-1]
    adopted = [space.adopt(renamed(one.configuration, name, target)) for one in records]
    pairs = [(one, float(value)) for one, value in zip(adopted, values, strict=True) if one is not None]
    return Lesson(source, [one for one, _ in pairs], [value for _, value in pairs])


def renamed(configuration: Configuration, source: str, target: str) -> Configuration:
    """Return the configuration with the target's names of parameters: a collective's name begins its parameters'."""
    old, new = (f"{name.partition('-')[0]}_" for name in (source, target))
    return {new + name.removeprefix(old) if name.startswith(old) else name: one for name, one in configuration.items()}


def leaders(of: Lesson, target: str) -> list[Configuration]:
    """Return the configurations with the best medians."""
    key = subject(target).problem.space.key
    groups: dict[str, list[float]] = {}
    for one, value in zip(of.configurations, of.values, strict=True):
        groups.setdefault(key(one), []).append(value)
    by_key = {key(one): one for one in of.configurations}
    return [by_key[one] for one in sorted(groups, key=lambda one: float(np.median(groups[one])))[:LEADERS]]


def contestants(source: str, target: str, seed: int) -> Mapping[str, Search]:
    """Return the searches that are compared."""
    known = lesson(source, target, seed)
    first = leaders(known, target)
    return {
        "alone": alone(target, seed),
        "configurations": search(target, TRIALS, seed, first)[1],
        "learn": search(target, TRIALS, seed, first, [known])[1],
    }


@cache
def alone(target: str, seed: int) -> Search:
    """Return a search without an earlier study."""
    return search(target, TRIALS, seed)[1]


def report(title: str, pairs: Sequence[tuple[str, str]], seeds: Sequence[int]) -> None:
    """Print a row for each pair and one for all."""
    every: list[Mapping[str, Search]] = []
    for source, target in pairs:
        found = [contestants(source, target, seed) for seed in seeds]
        every += found
        print(row(f"{source} → {target}", found), flush=True)
    print(row(title, every), flush=True)


def row(name: str, found: Sequence[Mapping[str, Search]]) -> str:
    """Return a row: mean trials, the ratio with learning to alone, mean final distances in per cent."""
    trials = {one: np.array([each[one].trials for each in found], dtype=float) for one in found[0]}
    final = {one: 100 * np.array([each[one].final for each in found]) for one in found[0]}
    both = np.stack([trials["learn"], trials["alone"]], 1)
    ratio = bootstrap(both, lambda x, axis: x.mean(axis)[..., 0] / x.mean(axis)[..., 1])  # type: ignore[arg-type]
    lost = bootstrap((final["learn"] - final["alone"]).tolist())
    cells = [*(f"{one.mean():.1f}" for one in trials.values()), ratio.text(2)]
    cells += [*(f"{one.mean():.1f}" for one in final.values()), lost.text()]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--pairs", default="", help="only pairs that contain this text")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    print("| pair | alone | configurations | learn | learn / alone | alone | configurations | learn | learn - alone |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, pairs in (("all related", RELATED), ("all unrelated", UNRELATED)):
        if chosen := [one for one in pairs if options.pairs in " ".join(one)]:
            report(title, chosen, seeds)


if __name__ == "__main__":
    main()
