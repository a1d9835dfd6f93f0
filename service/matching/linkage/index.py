"""The index of records: the record that a job resembles most, by exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from service.matching.linkage import moments
from service.matching.linkage.codes import UNKNOWN, Codes
from service.matching.linkage.features import Features, features
from service.matching.linkage.job import Job
from service.matching.linkage.moments import Moments
from service.matching.linkage.names import Names
from service.matching.linkage.option_sets import OptionSets
from service.matching.linkage.paths import Paths
from service.matching.linkage.ragged import Floats, Ints, doubled
from service.matching.linkage.score import FIELDS, USUAL, Part, Weights

# Scores are rounded, so that records with equal similarities tie whatever the rounding errors of their sums are.
DECIMALS = 9
_SLACK = 2 * 10.0**-DECIMALS

# Paths and options of this many records are compared at first, and of eight times as many in each further step.
_FIRST_STEP = 256
_GROWTH = 8

# `load` lets other threads search after this many records.
_LOADED_AT_ONCE = 1000

# Values that no record has are kept up to this number, so that a small index is not compacted all the time.
_ALWAYS_KEPT = 1024

# The rows of the array of codes.
_USER, _NAME, _PROGRAM, _PATH, _OPTIONS, _WITHIN, _WEEK, _DAY, _NODES = range(9)
_REMOVED = -1


@dataclass(frozen=True, slots=True)
class Found:
    """The record that a job resembles most, its score from 0 to 1, and the part of each field in the score."""

    record: str
    score: float
    parts: tuple[Part, ...]


class _Best(NamedTuple):
    score: float
    order: int
    row: int
    path: float
    options: float


class Index:
    """Records by their id. All methods may be called by several threads at once.

    Each record is a column of codes: small integers in place of the distinct values of a field. A search computes the
    similarity of the job to each distinct value and adds up the values of each record by look-ups, for all fields but
    path and options, whose similarities cost more. These are computed for the records that can still win, the best
    ones first, until no other record can reach the best score found.
    """

    def __init__(self, weights: Weights = USUAL, night: tuple[int, int] = (22, 6)) -> None:
        self._weights = weights.normal()
        self._parts = astuple(self._weights)
        self._moments = Moments(night)
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[str, int] = {}
        self._records: list[str] = []
        self._free: list[int] = []
        self._users: Codes[str] = Codes()
        self._names = Names()
        self._programs = Names()
        self._paths = Paths()
        self._options = OptionSets()
        self._nodes: Codes[int] = Codes()
        self._codes: npt.NDArray[np.int32] = np.zeros((9, 64), np.int32)
        self._orders = np.zeros(64, np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, record: str, job: Job, order: int) -> None:
        """Add a record or replace it. Among equal scores the highest `order` wins.

        Raises:
            InvalidInput: the job's time has no time zone.
        """
        found = features(job)
        with self._lock:
            self._put({record: (found, order)})

    def load(self, items: Iterable[tuple[str, Job, int]]) -> None:
        """Put many records, each with its job and order. Searches may run meanwhile.

        Raises:
            InvalidInput: a job's time has no time zone.
        """
        iterator = iter(items)
        while chunk := {record: (features(job), order) for record, job, order in islice(iterator, _LOADED_AT_ONCE)}:
            with self._lock:
                self._put(chunk)

    def remove(self, record: str) -> None:
        """Remove a record; an unknown one has no effect."""
        with self._lock:
            self._remove(record)

    def nearest(self, job: Job, cluster_nodes: int, at_least: float = 0.0) -> Found | None:
        """Return the record with the highest score, or None if none scores `at_least`.

        `cluster_nodes` is the number of nodes of the cluster, the largest difference between two jobs.

        Raises:
            InvalidInput: the job's time has no time zone.
        """
        query = features(job)
        largest = max(cluster_nodes, 1)
        with self._lock:
            best = self._search(query, largest, at_least)
            if best is None:
                return None
            record = self._records[best.row]
            similarities = self._similarities(query, largest, best)
        return Found(record, best.score, tuple(map(Part, FIELDS, self._parts, similarities)))

    def _put(self, items: dict[str, tuple[Features, int]]) -> None:
        codes = np.array([self._encoded(job) for job, _ in items.values()], np.int32).T
        orders = np.array([order for _, order in items.values()], np.int64)
        rows = []
        for record in items:
            self._remove(record)
            if self._free:
                row = self._free.pop()
                self._records[row] = record
            else:
                row = len(self._records)
                self._records.append(record)
            self._rows[record] = row
            rows.append(row)
        if len(self._records) > len(self._orders):
            least = len(self._records)
            self._codes, self._orders = doubled(self._codes, least), doubled(self._orders, least)
        self._codes[:, rows] = codes
        self._orders[rows] = orders
        self._paths.count(codes[_PATH], 1)
        self._compact()

    def _encoded(self, job: Features) -> tuple[int, ...]:
        return (
            self._users.add(job.user),
            self._names.add(job.name),
            self._programs.add(job.program),
            self._paths.add(job.tokens),
            self._options.add(job.options),
            *moments.codes(job.moment),
            self._nodes.add(job.nodes),
        )

    def _remove(self, record: str) -> None:
        row = self._rows.pop(record, None)
        if row is not None:
            self._paths.count(self._codes[_PATH, [row]], -1)
            self._codes[_USER, row] = _REMOVED
            self._free.append(row)

    def _compact(self) -> None:
        """Forget the values that no record has, if at least half of the distinct values of a field are such.

        Replaced and removed records leave them. The cost is proportional to the number of records, and there have been
        more changes than records since the last time.
        """
        old = self._values()
        if max(map(len, old.values())) <= 2 * len(self._rows) + _ALWAYS_KEPT:
            return
        rows = np.array(list(self._rows.values()), np.int64)
        records, codes, orders = list(self._rows), self._codes[:, rows], self._orders[rows]
        self._clear()
        self._codes, self._orders, self._records = codes, orders, records
        self._rows = {record: row for row, record in enumerate(records)}
        for field, new in self._values().items():
            values = old[field].values
            distinct, places = np.unique(codes[field], return_inverse=True)
            codes[field] = np.array([new.add(values[code]) for code in distinct.tolist()], np.int32)[places]
        self._paths.count(codes[_PATH], 1)

    def _values(self) -> dict[int, Codes[Any]]:
        """Return the distinct values of the fields whose values are not known beforehand."""
        return {
            _USER: self._users,
            _NAME: self._names,
            _PROGRAM: self._programs,
            _PATH: self._paths,
            _OPTIONS: self._options,
            _NODES: self._nodes,
        }

    def _search(self, query: Features, largest: int, at_least: float) -> _Best | None:
        if not self._rows:
            return None
        weights = self._weights
        rest = weights.path + weights.options + _SLACK
        base = self._base(query, largest)
        bounds = base + (weights.name * self._names.bounds(query.name)).take(self._column(_NAME))
        bounds += (weights.program * self._programs.bounds(query.program)).take(self._column(_PROGRAM))
        rows = np.flatnonzero(bounds >= at_least - rest)
        best: _Best | None = None
        if len(rows) > _FIRST_STEP:
            # One record with a high bound has a score that most of the others cannot reach.
            leader = rows[[bounds[rows].argmax()]]
            best = self._better(query, leader, self._sums(query, leader, base), None)
            rows = rows[bounds[rows] >= max(best.score, at_least) - rest]
        sums = self._sums(query, rows, base)
        step = _FIRST_STEP
        while True:
            kept = np.flatnonzero(sums >= max(best.score if best else 0.0, at_least) - rest)
            rows, sums = rows[kept], sums[kept]
            if not len(rows):
                return best if best and best.score >= at_least else None
            split = max(len(rows) - step, 0)
            if split:
                order = sums.argpartition(split)
                rows, sums = rows[order], sums[order]
            best = self._better(query, rows[split:], sums[split:], best)
            rows, sums = rows[:split], sums[:split]
            step *= _GROWTH

    def _column(self, field: int) -> npt.NDArray[np.int32]:
        return self._codes[field, : len(self._records)]

    def _base(self, query: Features, largest: int) -> Floats:
        """Return the part of user, time and nodes in the score of each row; a removed row has minus infinity."""
        weights = self._weights
        users = np.zeros(len(self._users) + 1)
        users[_REMOVED] = -np.inf
        if (code := self._users.find(query.user)) != UNKNOWN:
            users[code] = weights.user
        within, week, day = self._moments.tables(query.moment, weights)
        base = users.take(self._column(_USER))
        base += within.take(self._column(_WITHIN))
        base += week.take(self._column(_WEEK))
        base += (weights.nodes * _near(query.nodes, self._nodes.values, largest)).take(self._column(_NODES))
        if weights.day:
            base += day.take(self._column(_DAY))
        return base

    def _sums(self, query: Features, rows: Ints, base: Floats) -> Floats:
        """Return the score of rows without path and options."""
        names = self._spread(_NAME, rows, partial(self._names.similarities, query.name))
        programs = self._spread(_PROGRAM, rows, partial(self._programs.similarities, query.program))
        sums: Floats = base[rows] + self._weights.name * names + self._weights.program * programs
        return sums

    def _better(self, query: Features, rows: Ints, sums: Floats, best: _Best | None) -> _Best:
        """Return the best of `rows`, whose scores without path and options are `sums`, or the best so far."""
        paths = self._spread(_PATH, rows, partial(self._paths.similarities, query.tokens, len(self._rows)))
        options = self._spread(_OPTIONS, rows, partial(self._options.similarities, query.options))
        scores = (sums + self._weights.path * paths + self._weights.options * options).round(DECIMALS)
        tied = np.flatnonzero(scores == scores.max())
        place = tied[self._orders[rows[tied]].argmax()]
        row = rows[place]
        found = _Best(
            float(scores[place]), int(self._orders[row]), int(row), float(paths[place]), float(options[place])
        )
        return found if best is None or found[:2] >= best[:2] else best

    def _spread(self, field: int, rows: Ints, similarities: Callable[[Ints], Floats]) -> Floats:
        """Return the similarity of each row's value of a field; it is computed once for each distinct value."""
        codes = self._codes[field, rows]
        needed = np.zeros(len(self._values()[field]), bool)
        needed[codes] = True
        distinct = np.flatnonzero(needed)
        table = np.zeros(len(needed))
        table[distinct] = similarities(distinct)
        found: Floats = table[codes]
        return found

    def _similarities(self, query: Features, largest: int, best: _Best) -> tuple[float, ...]:
        """Return the similarity of each field in the order of FIELDS."""
        codes = self._codes[:, best.row]
        user, *_, within, week, day, nodes = codes.tolist()
        return (
            float(self._users.values[user] == query.user),
            float(self._names.similarities(query.name, codes[[_NAME]])[0]),
            float(self._programs.similarities(query.program, codes[[_PROGRAM]])[0]),
            best.path,
            best.options,
            *self._moments.similarities(query.moment, (within, week, day)),
            float(_near(query.nodes, [self._nodes.values[nodes]], largest)[0]),
        )


def _near(nodes: int, others: list[int], largest: int) -> Floats:
    """Return 1 - difference / `largest` for each of the others, and 0 for differences beyond `largest`."""
    found: Floats = np.maximum(1 - np.abs(np.array(others) - nodes) / largest, 0.0)
    return found
