"""Recommendations that studies have found earlier, and what is left of their gains later and with other loads."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.core.space import Configuration
from tests.benchmarks.systems.report import POINT, Record, percent, table
from tests.benchmarks.systems.systems import SYSTEMS, System


@dataclass(frozen=True)
class Earlier:
    """A recommendation from the page of a component: the day and the gain of its final check, and another load."""

    name: str
    day: str
    chosen: Mapping[str, Any]
    gain: float
    other: str

    @property
    def system(self) -> System:
        """The study."""
        return SYSTEMS[self.name]

    @property
    def params(self) -> Configuration:
        """All its settings."""
        space = self.system.problem.space
        return space.prune({**space.default_values(), **self.chosen})


EARLIER = {
    one.name: one
    for one in [
        Earlier(
            "sqlite-read",
            "28 November 2026",
            {"locking_mode": "exclusive", "mmap_size": 16777216},
            0.746,
            "read-ranges",
        ),
        Earlier(
            "sqlite-durable",
            "28 November 2026",
            {"journal_mode": "wal", "wal_autocheckpoint": 10000},
            0.208,
            "write-more",
        ),
        Earlier(
            "redis",
            "28 November 2026",
            {"hash-max-listpack-entries": 4096, "zset-max-listpack-entries": 4096},
            0.763,
            "structures-long",
        ),
        Earlier(
            "redis-cache",
            "28 November 2026",
            {"maxmemory-policy": "allkeys-lfu", "maxmemory-samples": 64, "lfu-log-factor": 75},
            0.048,
            "cache-large",
        ),
    ]
}


def again_table(records: Sequence[Record]) -> str:
    """Return what was measured again, as a table."""
    return table(
        ["study", "found", "gain then", "measured again", "load", "default", "gain", "share", "limits kept"],
        [
            _row(earlier, application, own)
            for earlier in EARLIER.values()
            for application in (earlier.system.study["application"], earlier.other)
            if (own := [one for one in records if _is_of(one, earlier, application)])
        ],
    )


def _is_of(record: Record, earlier: Earlier, application: str) -> bool:
    return record.get("again", False) and (record["system"], record["application"]) == (earlier.name, application)


def _row(earlier: Earlier, application: str, records: Sequence[Record]) -> list[str]:
    problem = earlier.system.problem
    metric, unit = problem.metrics[0], earlier.system.study["objectives"][0].get("unit", "")
    keys = [problem.space.key(problem.space.validate(one)) for one in (problem.space.default(), earlier.params)]
    sides = [{one["round"]: one["run"]["metrics"] for one in records if one["key"] == key} for key in keys]
    pairs = [(sides[0][number], sides[1][number]) for number in sides[0] if sides[0][number] and sides[1].get(number)]
    gains = [1 - ours[metric] / default[metric] for default, ours in pairs]
    gain = statistics.median(gains)
    kept = sum(problem.acceptable(ours) for _, ours in pairs)
    return [
        earlier.name,
        earlier.day,
        f"{percent(earlier.gain)} %",
        time.strftime("%d %B %Y", time.gmtime(records[0]["began"])),
        application,
        f"{statistics.median(default[metric] for default, _ in pairs):.4g} {unit}".strip(),
        f"{percent(gain)} % ({percent(min(gains))} to {percent(max(gains))})",
        f"{gain / earlier.gain:.2f}" if abs(gain) > POINT else "none",
        f"{kept} of {len(pairs)}",
    ]
