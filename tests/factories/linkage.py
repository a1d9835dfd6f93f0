"""Matching by brute force, from the formulas alone: what the index has to agree with."""

from __future__ import annotations

import calendar
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import UTC
from functools import lru_cache

from service.matching.linkage.features import command
from service.matching.linkage.job import Job
from service.matching.linkage.score import Weights

Comparison = Callable[[str, str], float]


@lru_cache(2**18)
def levenshtein(a: str, b: str) -> float:
    """Return 1 - the least number of edits / the longer length, by dynamic programming."""
    if not a and not b:
        return 1.0
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return 1 - row[-1] / max(len(a), len(b))


@lru_cache(2**18)
def jaro_winkler(a: str, b: str) -> float:
    """Return the similarity of Jaro and Winkler, with 0.1 for each of up to four equal letters at the beginning."""
    reach = max(len(a), len(b)) // 2 - 1
    taken: set[int] = set()
    matched = []
    for i, letter in enumerate(a):
        for j in range(max(0, i - reach), min(len(b), i + reach + 1)):
            if j not in taken and b[j] == letter:
                taken.add(j)
                matched.append(letter)
                break
    if not matched:
        return float(a == b)
    others = [b[j] for j in sorted(taken)]
    half_swaps = sum(letter != other for letter, other in zip(matched, others, strict=True)) // 2
    m = len(matched)
    jaro = (m / len(a) + m / len(b) + (m - half_swaps) / m) / 3
    prefix = 0
    while prefix < min(4, len(a), len(b)) and a[prefix] == b[prefix]:
        prefix += 1
    return jaro + 0.1 * prefix * (1 - jaro) if jaro > 0.7 else jaro


class Reference:
    """Records that are compared with a job one by one."""

    def __init__(
        self,
        records: Iterable[tuple[str, Job, int]],
        weights: Weights | None = None,
        night: tuple[int, int] = (22, 6),
        *,
        names: Comparison = levenshtein,
        tokens: Comparison = jaro_winkler,
    ) -> None:
        raw = asdict(weights or Weights())
        self.weights = {field: weight / sum(raw.values()) for field, weight in raw.items()}
        self.night = {hour % 24 for hour in range(night[0], night[1] + 24 * (night[1] < night[0]))}
        self.records = [(record, _Compared(job), order) for record, job, order in records]
        self.documents = Counter(token for _, job, _ in self.records for token in set(job.path))
        self.names, self.tokens = names, tokens
        self.vectors = {path: self._vector(path) for path in {job.path for _, job, _ in self.records}}

    def nearest(self, job: Job, cluster_nodes: int, at_least: float = 0.0) -> tuple[str, float] | None:
        if not self.records:
            return None
        query = _Compared(job)
        vector = self._vector(query.path)
        # each distinct value is compared once
        names: dict[str, float] = {}
        programs: dict[str, float] = {}
        paths: dict[tuple[str, ...], float] = {}
        best: tuple[float, int, str] | None = None
        for record, other, order in self.records:
            if other.name not in names:
                names[other.name] = self.names(query.name, other.name)
            if other.program not in programs:
                programs[other.program] = self.names(query.program, other.program)
            if other.path not in paths:
                paths[other.path] = self._soft_tf_idf(vector, self.vectors[other.path])
            similarities = {
                "user": query.job.user == other.job.user,
                "name": names[other.name],
                "program": programs[other.program],
                "path": paths[other.path],
                "options": _options(query.options, other.options),
                "nodes": max(0.0, 1 - abs(query.job.nodes - other.job.nodes) / cluster_nodes),
                "night": (query.hour in self.night) == (other.hour in self.night),
                **{field: 1 - math.dist(query.circle[field], place) / 2 for field, place in other.circle.items()},
            }
            score = round(math.fsum(self.weights[field] * similarity for field, similarity in similarities.items()), 9)
            if score >= at_least and (best is None or (score, order) > best[:2]):
                best = score, order, record
        return None if best is None else (best[2], best[0])

    def _vector(self, path: tuple[str, ...]) -> dict[str, float]:
        """Return the weight of each token of a path [cohen-2003]."""
        size = len(self.records) + 1
        raw = {
            token: math.log(path.count(token) + 1) * math.log(size / max(1, self.documents[token])) for token in path
        }
        norm = math.sqrt(sum(weight**2 for weight in raw.values()))
        return {token: weight / norm for token, weight in raw.items()}

    def _soft_tf_idf(self, a: dict[str, float], b: dict[str, float]) -> float:
        if not a or not b:
            return float(a == b)
        total = 0.0
        for token, weight in a.items():
            closeness, other_weight = max((self.tokens(token, other), size) for other, size in b.items())
            if round(closeness, 9) >= 0.9:
                total += weight * other_weight * closeness
        return min(total, 1.0)


class _Compared:
    """A job with its cleaned fields."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.name, self.program = _cleaned(job.name), _cleaned(job.program)
        path, options = command(job.command_line, job.program)
        self.path = tuple(re.findall(r"[^/_\-.0-9]+", path))
        self.options = dict(options)
        time = job.submitted_at.astimezone(UTC)
        self.hour = time.hour
        places = {
            "second": time.second / 60,
            "minute": time.minute / 60,
            "hour": time.hour / 24,
            "day": (time.day - 1) / calendar.monthrange(time.year, time.month)[1],
            "weekday": time.weekday() / 7,
        }
        self.circle = {
            field: (math.cos(2 * math.pi * share), math.sin(2 * math.pi * share)) for field, share in places.items()
        }


def _cleaned(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _options(a: dict[str, tuple[str, ...]], b: dict[str, tuple[str, ...]]) -> float:
    keys = a.keys() | b.keys()
    if not keys:
        return 1.0
    total = 0.0
    for key in a.keys() & b.keys():
        if a[key] or b[key]:
            common = sum(min(a[key].count(value), b[key].count(value)) for value in set(a[key]))
            total += common / max(len(a[key]), len(b[key]))
        else:
            total += 1
    return total / len(keys)
