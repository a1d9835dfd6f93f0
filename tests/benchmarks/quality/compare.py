"""Searches of several optimisers on the problems of one half, stored on disk, and the figures that follow."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.quality.search import FIRST_SEED, cases, search
from tests.benchmarks.table import Result, Row, result

FOLDER = Path("bench-results/quality")
OPTIMISERS = ("auto", "optuna-tpe", "optuna-gp", "optuna-random")
SEEDS, QUICK_SEEDS = 20, 2
# The seeds of optimisers that take seconds for a suggestion.
SLOW: Mapping[str, int] = {"ax": 5, "smac": 5, "hebo": 5, "openbox": 5, "turbo": 5}
Records = Sequence[Mapping[str, Any]]


def searches(
    half: str,
    optimisers: Sequence[str],
    seeds: int,
    *,
    part: str = "",
    label: str = "now",
    jobs: int | None = None,
    folder: Path = FOLDER,
) -> list[dict[str, Any]]:
    """Return the searches on the problems whose name contains `part`; run those that the folder does not have yet.

    `label` separates versions of the code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{half}-{label}.jsonl"
    known = {(one["case"], one["optimiser"], one["seed"]): one for one in _read(file)}
    names = [case.name for case in cases(half) if part in case.name]
    first = FIRST_SEED[half]
    wanted = [
        (name, optimiser, first + seed)
        for seed in range(seeds)
        for optimiser in optimisers
        for name in names
        if seed < SLOW.get(optimiser, seeds)
    ]
    # Spawned, because torch's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=context) as pool, file.open("a") as out:
        futures = [pool.submit(search, half, *one) for one in wanted if one not in known]
        for future in as_completed(futures):
            found = future.result()
            known[found["case"], found["optimiser"], found["seed"]] = found
            out.write(json.dumps(found) + "\n")
            out.flush()
    return [known[one] for one in wanted]


def distances(records: Records, what: str = "recommended") -> dict[tuple[str, str], list[float]]:
    """Return the distances in per cent, in the order of the seeds, by problem and optimiser."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in records:
        found.setdefault((one["case"], one["optimiser"]), []).append(100 * one[what])
    return found


def mean_ranks(found: Mapping[tuple[str, str], Sequence[float]]) -> dict[str, list[float]]:
    """Return each optimiser's mean rank on each problem, over the seeds that all of them have."""
    optimisers = list(dict.fromkeys(optimiser for _, optimiser in found))
    ranks: dict[str, list[float]] = {optimiser: [] for optimiser in optimisers}
    for case in dict.fromkeys(case for case, _ in found):
        least = min(len(found[case, optimiser]) for optimiser in optimisers)
        by_seed = np.array([found[case, optimiser][:least] for optimiser in optimisers])
        for optimiser, row in zip(optimisers, rankdata(by_seed, axis=0).mean(1), strict=True):
            ranks[optimiser].append(float(row))
    return ranks


def shares_won(records: Records) -> dict[str, list[float]]:
    """Return on each problem the share of seeds, in per cent, on which the first optimiser was better than each other.

    The seeds are those that both have. Equal distances count half.
    """
    found = {(one["optimiser"], one["case"], one["seed"]): one["recommended"] for one in records}
    first, *others = dict.fromkeys(one["optimiser"] for one in records)
    won: dict[str, dict[str, list[float]]] = {other: {} for other in others}
    for (optimiser, case, seed), distance in found.items():
        if optimiser != first and (first, case, seed) in found:
            own = found[first, case, seed]
            won[optimiser].setdefault(case, []).append(100 * ((own < distance) + (own == distance) / 2))
    return {other: [float(np.mean(one)) for one in by_case.values()] for other, by_case in won.items()}


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of distances in per cent, of which less than 0.1 counts as 0.1."""
    return math.exp(float(np.mean(np.log(np.maximum(values, 0.1)))))


def run(quick: bool) -> Result:
    """Compare the optimisers on the problems for reports."""
    records = searches("reported", OPTIMISERS, QUICK_SEEDS if quick else SEEDS, label="quick" if quick else "bench")
    found = distances(records)
    ranks = mean_ranks(found)
    names = list(dict.fromkeys(case for case, _ in found))
    quiet = {case.name for case in cases("reported") if not case.problem.noisy}
    rows = []
    for title, kept in (
        ("all", names),
        ("noisy", [one for one in names if one not in quiet]),
        ("quiet", sorted(quiet)),
    ):
        means = {one: bootstrap([ranks[one][names.index(name)] for name in kept]) for one in ranks}
        first, *peers = means
        note = ", ".join(f"{one} {interval.text(2)}" for one, interval in means.items())
        reached = means[first].high < min(means[one].value for one in peers)
        values = {one: means[one].value for one in peers}
        rows.append(
            Row(f"mean rank, {title} problems", means[first].value, "", "first, clearly", reached, values, note)
        )
    for name in names:
        medians = {one: float(np.median(found[name, one])) for one in ranks}
        first, *peers = medians
        worse = np.quantile(found[name, first], 0.9) > np.quantile(found[name, "optuna-random"], 0.75)
        values = {one: medians[one] for one in peers}
        target = "90th percentile not above random's 75th"
        rows.append(Row(name, medians[first], "%", target, not worse, values, "medians of the distance to the optimum"))
    return result(rows, searches=records)


def _read(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        yield from map(json.loads, file.read_text().splitlines())
