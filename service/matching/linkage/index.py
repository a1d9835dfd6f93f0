"""The index of records: the record that a job resembles most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from threading import Lock

from rapidfuzz.distance import JaroWinkler, Levenshtein

from service.matching.linkage.features import Features, Options, features
from service.matching.linkage.job import Job
from service.matching.linkage.score import FIELDS, Part, Weights

CLOSE = 0.9
DECIMALS = 9


@dataclass(frozen=True, slots=True)
class Found:
    """The record that a job resembles most, its score from 0 to 1, and the part of each field in the score."""

    record: str
    score: float
    parts: tuple[Part, ...]


class Index:
    """Records by their id. All methods may be called by several threads at once."""

    def __init__(self, weights: Weights = Weights(), night: tuple[int, int] = (22, 6)) -> None:  # noqa: B008
        self._weights = weights.normal()
        self._night = night
        self._rows: dict[str, tuple[Features, int]] = {}
        self._documents: Counter[str] = Counter()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, record: str, job: Job, order: int) -> None:
        """Add a record or replace it. Among equal scores the highest `order` wins."""
        found = features(job)
        with self._lock:
            self._remove(record)
            self._rows[record] = found, order
            self._documents.update(set(found.tokens))

    def load(self, items: Iterable[tuple[str, Job, int]]) -> None:
        """Put many records."""
        for item in items:
            self.put(*item)

    def remove(self, record: str) -> None:
        """Remove a record; an unknown one has no effect."""
        with self._lock:
            self._remove(record)

    def _remove(self, record: str) -> None:
        if record in self._rows:
            self._documents.subtract(set(self._rows.pop(record)[0].tokens))

    def nearest(self, job: Job, cluster_nodes: int, at_least: float = 0.0) -> Found | None:
        """Return the record with the highest score of at least `at_least`, or None.

        `cluster_nodes` is the number of nodes of the cluster.
        """
        query = features(job)
        with self._lock:
            best: tuple[float, int, str, tuple[Part, ...]] | None = None
            for record, (other, order) in self._rows.items():
                parts = tuple(
                    map(Part, FIELDS, astuple(self._weights), self._similarities(query, other, cluster_nodes))
                )
                score = round(math.fsum(part.weight * part.similarity for part in parts), DECIMALS)
                if score >= at_least and (best is None or (score, order) > best[:2]):
                    best = score, order, record, parts
        return Found(best[2], best[0], best[3]) if best else None

    def _similarities(self, a: Features, b: Features, cluster_nodes: int) -> tuple[float, ...]:
        one, other = a.moment, b.moment
        distance = abs(a.nodes - b.nodes) / max(cluster_nodes, 1)
        return (
            float(a.user == b.user),
            Levenshtein.normalized_similarity(a.name, b.name),
            Levenshtein.normalized_similarity(a.program, b.program),
            self._path(a.tokens, b.tokens),
            _options(a.options, b.options),
            _circle(one.second / 60 - other.second / 60),
            _circle(one.minute / 60 - other.minute / 60),
            _circle(one.hour / 24 - other.hour / 24),
            _circle(one.day / one.days - other.day / other.days),
            _circle(one.weekday / 7 - other.weekday / 7),
            float(self._is_night(one.hour) == self._is_night(other.hour)),
            max(0.0, 1 - distance),
        )

    def _is_night(self, hour: int) -> bool:
        begin, end = self._night
        return (hour - begin) % 24 < (end - begin) % 24

    def _path(self, a: tuple[str, ...], b: tuple[str, ...]) -> float:
        if not a or not b:
            return float(a == b)
        vector, other = self._vector(a), self._vector(b)
        total = 0.0
        for word, weight in vector.items():
            near, size = max((JaroWinkler.similarity(word, candidate), size) for candidate, size in other.items())
            if near >= CLOSE:
                total += weight * size * near
        return min(1.0, total)

    def _vector(self, tokens: tuple[str, ...]) -> dict[str, float]:
        size = len(self._rows) + 1
        raw = {
            word: math.log(count + 1) * math.log(size / max(self._documents[word], 1))
            for word, count in Counter(tokens).items()
        }
        length = math.hypot(*raw.values())
        return {word: value / length for word, value in raw.items()}


def _circle(share: float) -> float:
    return 1 - abs(math.sin(math.pi * share))


def _options(a: Options, b: Options) -> float:
    one, other = dict(a), dict(b)
    keys = one.keys() | other.keys()
    if not keys:
        return 1.0
    return math.fsum(_share(one[key], other[key]) for key in one.keys() & other.keys()) / len(keys)


def _share(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    if not a and not b:
        return 1.0
    return (Counter(a) & Counter(b)).total() / max(len(a), len(b))
