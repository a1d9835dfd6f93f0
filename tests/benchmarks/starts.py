"""How many trials earlier studies save: replays with the best configurations of the most similar ones first.

A study of each other pattern of reads is an earlier one, with the best configuration of its table. The default is
measured first, then the algorithm's first suggestion, since an agent does not wait for the comparison. As controls, the
same number of earlier studies is drawn, and there are none.

Run as `python -m tests.benchmarks.starts [--quick] [--json]`.
"""

import csv
import gzip
import random
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.core.space import Configuration
from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.predictions import configurations, default_of, trials
from tests.benchmarks.table import Result, Row, main, result
from tests.benchmarks.tables import DATA, TABLES
from trimtab.similar import NEAREST, distances

PATTERNS = DATA / "earlier" / "patterns.csv.gz"
PARAMETERS = ("SRO_SEQUENCE_LENGTH", "SRO_DSC_BINSIZE", "SRO_CLUSTER_THRESHOLD", "SRO_PREFETCH_SIZE")
COUNTERS = ("seconds", "reads", "triggers", "prefetches", "prefetched_bytes")
# The patterns whose tables have three passes. The rule was chosen by the others, but its ratios on these were printed
# at the same time, for one to five studies and three sets of metrics. Nothing was chosen by these seeds.
HELD_OUT = ("sro-1", "sro-2", "sro-3", "hotspots")
FIRST_SEED, SEEDS, QUICK_SEEDS = 61000, 24, 1

Point = tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """The mean metrics of the default, and the best configuration that was measured."""

    metrics: Mapping[str, float]
    best: Point


def run(quick: bool) -> Result:
    """Replay the held-out patterns."""
    known = patterns(PATTERNS)
    rows = []
    for name in HELD_OUT:
        table = TABLES[name]
        subject = table.subject()
        places = configurations(subject)
        row_of = {point(one): row for row, one in places.items()}
        default = default_of(table, places)
        assert default is not None
        seeds = range(FIRST_SEED, FIRST_SEED + (QUICK_SEEDS if quick else SEEDS))
        near = nearest(name, known)
        for label in ("plain", "similar", "drawn"):
            found = []
            for seed in seeds:
                others = sorted(set(known) - {name})
                names = {"plain": [], "similar": near, "drawn": random.Random(seed).sample(others, NEAREST)}[label]
                start = dict.fromkeys(row_of[known[other].best] for other in names)
                begin = [default, *(row for row in start if row != default)]
                found.append(float(trials(subject, places, begin, seed, True, gap=1)))
            shown = bootstrap(found)
            note = f"mean trials until a configuration within 5 % of the optimum is measured; {', '.join(near)}"
            peers = {"low": shown.low, "high": shown.high}
            rows.append(Row(f"{name}: {label}", shown.value, "", note=note, peers=peers))
    return result(rows)


def nearest(name: str, known: Mapping[str, Pattern]) -> list[str]:
    """Return the patterns whose default run was most like that of a pattern."""
    others = sorted(set(known) - {name})
    away = distances(known[name].metrics, [known[other].metrics for other in others])
    return [other for _, other in sorted(zip(away, others, strict=True))[:NEAREST]]


def patterns(file: Path) -> dict[str, Pattern]:
    """Return all patterns by name: those of the file, and the held-out ones with the best of their tables."""
    runs: dict[str, list[Sequence[float]]] = defaultdict(list)
    best: dict[str, tuple[float, Point]] = {}
    with gzip.open(file, "rt", newline="") as text:
        for row in csv.DictReader(text):
            values = [float(row[counter]) for counter in COUNTERS]
            if row["kind"] == "default":
                runs[row["pattern"]].append(values)
            else:
                one = (values[0], tuple(row[parameter] for parameter in PARAMETERS))
                best[row["pattern"]] = min(one, best.get(row["pattern"], one))
    for name in HELD_OUT:
        subject = TABLES[name].subject()
        losses = {row: float(subject.losses[row, 0]) for row in configurations(subject)}
        least = min(losses, key=lambda place: losses[place])
        best[name] = losses[least], point(configurations(subject)[least])
    return {
        name: Pattern(dict(zip(COUNTERS, map(statistics.fmean, zip(*values, strict=True)), strict=True)), best[name][1])
        for name, values in runs.items()
    }


def point(configuration: Configuration) -> Point:
    """Return the values of a configuration as texts."""
    return tuple(str(configuration[name]) for name in PARAMETERS)


if __name__ == "__main__":
    main("Trials that earlier studies save", run)
