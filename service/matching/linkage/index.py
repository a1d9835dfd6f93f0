"""The index of records: the record that a job resembles most, by exact search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache, partial
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np

from service.matching.linkage.codes import UNKNOWN
from service.matching.linkage.features import Features, features
from service.matching.linkage.job import Job
from service.matching.linkage.moments import Moments
from service.matching.linkage.ragged import Floats, Ints
from service.matching.linkage.score import FIELDS, USUAL, Part, Weights
from service.matching.linkage.store import DAY, NAME, NODES, OPTIONS, PATH, PROGRAM, REMOVED, USER, WEEK, WITHIN, Store

# Scores are rounded, so that records with equal similarities tie whatever the rounding errors of their sums are.
DECIMALS = 9
_SLACK = 2 * 10.0**-DECIMALS

# Paths and options of this many records are compared at first, and of eight times as many in each further step. Without
# steps, a search among 100,000 records without a least score takes 28 ms instead of 1.8 ms.
_FIRST_STEP = 256
_GROWTH = 8

# `load` lets other threads search after this many records.
_LOADED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """The record that a job resembles most, its score from 0 to 1, and the part of each field in the score."""

    record: str
    score: float
    parts: tuple[Part, ...]


class _Scale(NamedTuple):
    """Weights that add up to 1, also as parts in the order of FIELDS, and the similarities of times."""

    weights: Weights
    parts: tuple[float, ...]
    moments: Moments


@lru_cache(64)
def _scale(weights: Weights, night: tuple[int, int]) -> _Scale:
    normal = weights.normal()
    return _Scale(normal, astuple(normal), Moments(night))


class _Query(NamedTuple):
    """A job as it is compared, the nodes of its cluster, and how much each field counts."""

    job: Features
    largest: int
    scale: _Scale


class _Best(NamedTuple):
    score: float
    order: int
    row: int
    path: float
    options: float


class Index:
    """Records by their id. All methods may be called by several threads at once. They take a job, or its features.

    A search computes the similarity of the job to each distinct value and adds up the values of each record by
    look-ups, for all fields but path and options, whose similarities cost more. These are computed for the records that
    can still win, the best ones first, until no other record can reach the best score found.
    """

    def __init__(self, weights: Weights = USUAL, night: tuple[int, int] = (22, 6)) -> None:
        self._weights, self._night = weights, night
        self._lock = Lock()
        self._store = Store()

    def __len__(self) -> int:
        return len(self._store)

    def put(self, record: str, job: Job | Features, order: int) -> None:
        """Add a record or replace it. Among equal scores the highest `order` wins.

        Raises:
            InvalidInput: the job's time has no time zone.
        """
        found = _compared(job)
        with self._lock:
            self._store.put({record: (found, order)})
            self._store = self._store.compacted()

    def load(self, items: Iterable[tuple[str, Job | Features, int]]) -> None:
        """Put many records, each with its job and order. Searches may run meanwhile.

        Raises:
            InvalidInput: a job's time has no time zone.
        """
        iterator = iter(items)
        while chunk := {record: (_compared(job), order) for record, job, order in islice(iterator, _LOADED_AT_ONCE)}:
            with self._lock:
                self._store.put(chunk)
                self._store = self._store.compacted()

    def remove(self, record: str) -> None:
        """Remove a record; an unknown one has no effect."""
        with self._lock:
            self._store.remove(record)
            self._store = self._store.compacted()

    def nearest(
        self,
        job: Job | Features,
        cluster_nodes: int,
        at_least: float = 0.0,
        *,
        weights: Weights | None = None,
        night: tuple[int, int] | None = None,
    ) -> Found | None:
        """Return the record with the highest score, or None if none scores `at_least`.

        `cluster_nodes` is the number of nodes of the cluster, the largest difference between two jobs. `weights` and
        `night` replace the ones of the index, for a cluster with its own.

        Raises:
            InvalidInput: the job's time has no time zone.
        """
        query = self._query(job, cluster_nodes, weights, night)
        with self._lock:
            best = self._search(query, at_least)
            if best is None:
                return None
            record = self._store.records[best.row]
            path, options = np.array([best.path]), np.array([best.options])
            similarities = self._similarities(query, np.array([best.row]), path, options)[0]
        parts = tuple(map(Part, FIELDS, query.scale.parts, similarities.tolist()))
        return Found(record, best.score, parts)

    def compare(self, job: Job | Features, cluster_nodes: int, records: Sequence[str]) -> Floats:
        """Return the similarities of a job to records, with shape (records, fields); the fields are as in FIELDS.

        Raises:
            InvalidInput: the job's time has no time zone.
            KeyError: a record is unknown.
        """
        query = self._query(job, cluster_nodes)
        with self._lock:
            rows = np.array([self._store.rows[record] for record in records], np.int64)
            paths, options = self._path_and_options(query, rows)
            return self._similarities(query, rows, paths, options)

    def _query(
        self,
        job: Job | Features,
        cluster_nodes: int,
        weights: Weights | None = None,
        night: tuple[int, int] | None = None,
    ) -> _Query:
        return _Query(_compared(job), max(cluster_nodes, 1), _scale(weights or self._weights, night or self._night))

    def _search(self, query: _Query, at_least: float) -> _Best | None:
        if not len(self._store):
            return None
        weights = query.scale.weights
        rest = weights.path + weights.options + _SLACK
        base = self._base(query)
        bounds = base + (weights.name * self._store.names.bounds(query.job.name)).take(self._store.column(NAME))
        bounds += (weights.program * self._store.programs.bounds(query.job.program)).take(self._store.column(PROGRAM))
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

    def _base(self, query: _Query) -> Floats:
        """Return the part of user, time and nodes in the score of each row; a removed row has minus infinity."""
        weights = query.scale.weights
        users = np.zeros(len(self._store.users) + 1)
        users[REMOVED] = -np.inf
        if (code := self._store.users.find(query.job.user)) != UNKNOWN:
            users[code] = weights.user
        within, week, day = query.scale.moments.tables(query.job.moment, weights)
        base = users.take(self._store.column(USER))
        base += within.take(self._store.column(WITHIN))
        base += week.take(self._store.column(WEEK))
        base += (weights.nodes * _near(query.job.nodes, self._store.nodes.values, query.largest)).take(
            self._store.column(NODES)
        )
        if weights.day:
            base += day.take(self._store.column(DAY))
        return base

    def _sums(self, query: _Query, rows: Ints, base: Floats) -> Floats:
        """Return the score of rows without path and options."""
        names = self._spread(NAME, rows, partial(self._store.names.similarities, query.job.name))
        programs = self._spread(PROGRAM, rows, partial(self._store.programs.similarities, query.job.program))
        sums: Floats = base[rows] + query.scale.weights.name * names + query.scale.weights.program * programs
        return sums

    def _better(self, query: _Query, rows: Ints, sums: Floats, best: _Best | None) -> _Best:
        """Return the best of `rows`, whose scores without path and options are `sums`, or the best so far."""
        paths, options = self._path_and_options(query, rows)
        scores = (sums + query.scale.weights.path * paths + query.scale.weights.options * options).round(DECIMALS)
        tied = np.flatnonzero(scores == scores.max())
        place = tied[self._store.orders[rows[tied]].argmax()]
        row = rows[place]
        found = _Best(
            float(scores[place]), int(self._store.orders[row]), int(row), float(paths[place]), float(options[place])
        )
        return found if best is None or found[:2] >= best[:2] else best

    def _path_and_options(self, query: _Query, rows: Ints) -> tuple[Floats, Floats]:
        paths = self._spread(PATH, rows, partial(self._store.paths.similarities, query.job.tokens, len(self._store)))
        options = self._spread(OPTIONS, rows, partial(self._store.options.similarities, query.job.options))
        return paths, options

    def _spread(self, field: int, rows: Ints, similarities: Callable[[Ints], Floats]) -> Floats:
        """Return the similarity of each row's value of a field; it is computed once for each distinct value."""
        codes = self._store.codes[field, rows]
        needed = np.zeros(len(self._store.values()[field]), bool)
        needed[codes] = True
        distinct = np.flatnonzero(needed)
        table = np.zeros(len(needed))
        table[distinct] = similarities(distinct)
        found: Floats = table[codes]
        return found

    def _similarities(self, query: _Query, rows: Ints, paths: Floats, options: Floats) -> Floats:
        """Return the similarity of each row and field, the fields in the order of FIELDS."""
        codes = self._store.codes[:, rows]
        nodes = [self._store.nodes.values[code] for code in codes[NODES].tolist()]
        found: Floats = np.array(
            [
                np.equal(codes[USER], self._store.users.find(query.job.user)),
                self._spread(NAME, rows, partial(self._store.names.similarities, query.job.name)),
                self._spread(PROGRAM, rows, partial(self._store.programs.similarities, query.job.program)),
                paths,
                options,
                *query.scale.moments.similarities(query.job.moment, codes[WITHIN], codes[WEEK], codes[DAY]),
                _near(query.job.nodes, nodes, query.largest),
            ],
            np.float64,
        ).T
        return found


def _compared(job: Job | Features) -> Features:
    return job if isinstance(job, Features) else features(job)


def _near(nodes: int, others: list[int], largest: int) -> Floats:
    """Return 1 - difference / `largest` for each of the others, and 0 for differences beyond `largest`."""
    found: Floats = np.maximum(1 - np.abs(np.array(others) - nodes) / largest, 0.0)
    return found
