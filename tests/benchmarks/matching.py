"""Time and memory of a search for the record that a job resembles most, and agreement with brute force.

Run as `python -m tests.benchmarks.matching [--quick]`. All figures are of one core. Records and jobs follow the
scenario of [robert-2021, section 7.5] with more users. The hard cases have records that differ in one field alone.
"""

import random
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import psutil
from rapidfuzz.distance import JaroWinkler, Levenshtein

from service.matching.linkage.index import Index
from service.matching.linkage.job import Job
from service.matching.linkage.learning import Labelled, learn, precision_recall
from service.matching.linkage.score import USUAL
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.jobs import CLUSTER_NODES, Scenario
from tests.factories.linkage import Reference

THRESHOLD = 0.77
BUILD_SECONDS = 30.0
MEGABYTES = 1000.0
MANY = 1_000_000


@dataclass(frozen=True)
class Size:
    """A number of records with its targets in ms: the median and the 99th percentile of a search."""

    records: int
    users: int
    applications: int
    median: float
    slow: float


SIZES = (Size(150, 10, 40, 5, 20), Size(2_000, 50, 200, 5, 20), Size(MANY, 2_000, 700, 100, 250))


def build(jobs: Iterable[Job]) -> tuple[Index, float]:
    """Return an index of the jobs, and the seconds of CPU that it took."""
    index = Index()
    began = time.process_time()
    index.load((f"{place:032x}", job, place) for place, job in enumerate(jobs))
    return index, time.process_time() - began


def milliseconds(index: Index, jobs: Iterable[Job], at_least: float = THRESHOLD) -> list[float]:
    """Return the CPU time of each search."""
    found = []
    for job in jobs:
        began = time.process_time()
        index.nearest(job, CLUSTER_NODES, at_least)
        found.append(1e3 * (time.process_time() - began))
    return found


def resident() -> float:
    """Return the resident memory of this process in MB."""
    return float(psutil.Process().memory_info().rss / 1e6)


def differences(scenario: Scenario, records: int, queries: int) -> int:
    """Return in how many of the queries the index and brute force disagree, each with one of three least scores."""
    rows = [(f"{place:032x}", job, place) for place, job in enumerate(scenario.jobs(records))]
    index = Index()
    index.load(rows)
    reference = Reference(rows, names=Levenshtein.normalized_similarity, tokens=JaroWinkler.similarity)
    wrong = 0
    for place, job in enumerate(scenario.jobs(queries, draw=2)):
        at_least = (0.0, THRESHOLD, 0.9)[place % 3]
        found = index.nearest(job, CLUSTER_NODES, at_least)
        expected = reference.nearest(job, CLUSTER_NODES, at_least)
        if found is None or expected is None:
            wrong += (found is None) != (expected is None)
        else:
            wrong += found.record != expected[0] or abs(found.score - expected[1]) > 1e-9
    return wrong


def quality(scenario: Scenario, count: int) -> Iterator[Row]:
    """Search each record among the others, with the usual and with learned weights."""
    records = [Labelled(job, label) for job, label in scenario.labelled(count)]
    learned = learn(records, CLUSTER_NODES)
    others = [Labelled(job, label) for job, label in scenario.labelled(count, draw=1)]
    for name, weights, threshold in (("usual", USUAL, THRESHOLD), ("learned", learned.weights, learned.threshold)):
        (found,) = precision_recall(others, [threshold], CLUSTER_NODES, weights)
        yield Row(f"precision with {name} weights from {threshold:g}", found.precision, "")
        yield Row(f"recall with {name} weights from {threshold:g}", found.recall, "")


def hard_cases(count: int) -> Iterator[tuple[str, list[Job]]]:
    """Make sets of jobs of one user that differ in one field alone."""
    source = random.Random(1)
    first = next(Scenario(1, 1).jobs(1))

    def word(letters: int) -> str:
        return "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=letters))

    yield "different names", [replace(first, name=word(12)) for _ in range(count)]
    yield "different paths", [replace(first, command_line=f"/home/ann/{word(6)}/{word(4)}") for _ in range(count)]
    yield (
        "different options",
        [replace(first, command_line=f"/a/b --seed {source.random()} -{word(2)}") for _ in range(count)],
    )
    yield "all equal", [first] * count


def run(quick: bool) -> Result:
    """Measure and compare; the quick form has a tenth of the records, and needs a minute."""
    rows = []
    for size in SIZES:
        many = size.records == MANY
        records = size.records // 10 if many and quick else size.records
        scenario = Scenario(size.users, size.applications)
        jobs = list(scenario.jobs(records))
        before = resident()
        index, seconds = build(jobs)
        megabytes = resident() - before
        queries = list(scenario.jobs(220 if quick else 2_020, draw=1))
        milliseconds(index, queries[:20])
        taken = milliseconds(index, queries[20:])
        target, label = f"{size.median:g} and {size.slow:g} ms", f"{records:,} records"
        median, slow = statistics.median(taken), float(np.percentile(taken, 99))
        note = f"{len({job.name for job in jobs}):,} distinct names among {records:,} records." if many else ""
        rows.append(Row(f"{label}, median", median, "ms", target, median <= size.median, note=note))
        rows.append(Row(f"{label}, 99th percentile", slow, "ms", target, slow <= size.slow))
        lowest = statistics.median(milliseconds(index, islice(queries, 20, 120), 0.0))
        rows.append(Row(f"{label}, median without a least score", lowest, "ms"))
        puts = [replace(job, name=f"{job.name}{place}") for place, job in enumerate(queries)]
        began = time.process_time()
        for place, job in enumerate(puts):
            index.put(f"new {place}", job, records + place)
        rows.append(Row(f"{label}, one put", 1e3 * (time.process_time() - began) / len(puts), "ms"))
        if many:
            rows.append(Row(f"{label}, loading", seconds, "s", f"{BUILD_SECONDS:g} s", seconds <= BUILD_SECONDS))
            rows.append(Row(f"{label}, memory", megabytes, "MB", f"{MEGABYTES:g} MB", megabytes <= MEGABYTES))
        del index, jobs, queries, puts
    rows += quality(Scenario(30, 200), 2_000)
    for name, jobs in hard_cases(20_000 if quick else 200_000):
        index, _ = build(jobs)
        slowest = max(milliseconds(index, jobs[:: len(jobs) // 40], 0.0))
        rows.append(Row(f"{len(jobs):,} records, {name}, slowest of 40", slowest, "ms"))
    for known, searches in ((2_000, 500 if quick else 10_000), (20_000, 50 if quick else 500)):
        wrong = differences(Scenario(50, 200), known, searches)
        rows.append(Row(f"{searches:,} searches among {known:,} unlike brute force", wrong, "", "0", wrong == 0))
    return result(rows)


if __name__ == "__main__":
    main("Matching", run)
