"""Weights and a threshold that are learned from records whose applications are known.

Fellegi and Sunter derive the weight of a field from how often it agrees in pairs that match and in pairs that do not
[fellegi-1969]. Logistic regression on the similarities of such pairs does this for similarities between 0 and 1, and
for fields that depend on one another.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from service.core.errors import InvalidInput
from service.matching.linkage.features import Features
from service.matching.linkage.index import Index
from service.matching.linkage.job import Job
from service.matching.linkage.ragged import Floats
from service.matching.linkage.score import FIELDS, USUAL, Weights

# The most records whose pairs are compared, or whose nearest record is searched: about a second of work.
MOST_RECORDS = 2_000
# Weights are learned from at least so many labels with at least so many records each.
LEAST_LABELS = 2
LEAST_RECORDS = 4
# Each of these records makes pairs with so many of its own label, and with the nearest among some of other labels. A
# search only has to distinguish near records; those that share nothing with the job would teach it little.
_PAIRS = 8
_OTHERS = 128
# The strength of the quadratic penalty for a pair, without which the weights of separable pairs have no bound.
_PENALTY = 1e-3
THRESHOLDS = tuple(round(0.5 + 0.01 * place, 2) for place in range(51))


class Labelled(NamedTuple):
    """A record's job or the features of it, and what a match has to agree in: its component and application."""

    job: Job | Features
    label: str


class Quality(NamedTuple):
    """The matches that a threshold accepts.

    `precision` is the share of right ones among them, and 1 if there are none. `recall` is the share of jobs with a
    right match among those that have one.
    """

    threshold: float
    precision: float
    recall: float


@dataclass(frozen=True, slots=True)
class Learned:
    """Weights, their threshold, and the quality of each threshold on records that the weights were not learned from."""

    weights: Weights
    threshold: float
    qualities: tuple[Quality, ...]


def learn(records: Sequence[Labelled], cluster_nodes: int, night: tuple[int, int] = (22, 6), seed: int = 0) -> Learned:
    """Return weights learned from one half of the records, and the threshold with the best F1 on the other half.

    Raises:
        InvalidInput: there are fewer than two labels with at least four records each.
    """
    groups = defaultdict(list)
    for place, record in enumerate(records):
        groups[record.label].append(place)
    if sum(len(group) >= LEAST_RECORDS for group in groups.values()) < LEAST_LABELS:
        raise InvalidInput("records", len(records), "at least two labels with four records each", problem="are too few")
    source = random.Random(seed)
    order = source.sample(range(len(records)), len(records))
    half = len(order) // 2
    weights = _fitted(*_pairs(records, order[:half], cluster_nodes, night, source))
    qualities = precision_recall(records, THRESHOLDS, cluster_nodes, weights, night, order[half:])
    best = max(qualities, key=lambda quality: (_f1(quality), quality.threshold))
    return Learned(weights, best.threshold, tuple(qualities))


def precision_recall(
    records: Sequence[Labelled],
    thresholds: Iterable[float],
    cluster_nodes: int,
    weights: Weights = USUAL,
    night: tuple[int, int] = (22, 6),
    queries: Sequence[int] | None = None,
) -> list[Quality]:
    """Return the quality of each threshold: each record is searched among all others, and right if the labels agree.

    `queries` are the places of the records that are searched; without it, they are spread evenly. At most MOST_RECORDS
    of them are searched.
    """
    places = range(0, len(records), -(-len(records) // MOST_RECORDS) or 1) if queries is None else queries
    index = _index(records, range(len(records)), weights, night)
    labels = Counter(record.label for record in records)
    scores, right, possible = [], [], 0
    for place in places[:MOST_RECORDS]:
        job, label = records[place]
        index.remove(str(place))
        found = index.nearest(job, cluster_nodes)
        index.put(str(place), job, place)
        possible += labels[label] > 1
        if found is not None:
            scores.append(found.score)
            right.append(records[int(found.record)].label == label)
    qualities = []
    for threshold in thresholds:
        accepted = [match for score, match in zip(scores, right, strict=True) if score >= threshold]
        precision = sum(accepted) / len(accepted) if accepted else 1.0
        qualities.append(Quality(threshold, precision, sum(accepted) / max(possible, 1)))
    return qualities


def _index(records: Sequence[Labelled], places: Iterable[int], weights: Weights, night: tuple[int, int]) -> Index:
    index = Index(weights, night)
    index.load((str(place), records[place].job, place) for place in places)
    return index


def _pairs(
    records: Sequence[Labelled],
    places: Sequence[int],
    cluster_nodes: int,
    night: tuple[int, int],
    source: random.Random,
) -> tuple[Floats, Floats]:
    """Return the similarities of pairs, with shape (pairs, fields), and 1 for the pairs of one label."""
    index = _index(records, places, USUAL, night)
    usual = np.array([getattr(USUAL, field) for field in FIELDS])
    groups = defaultdict(list)
    for place in places:
        groups[records[place].label].append(place)
    rows, same = [], []
    for place in places[:MOST_RECORDS]:
        job, label = records[place]
        group = [other for other in groups[label] if other != place]
        others = source.sample(places, min(_OTHERS, len(places)))
        others = [other for other in others if records[other].label != label]
        equal = index.compare(job, cluster_nodes, list(map(str, source.sample(group, min(_PAIRS, len(group))))))
        different = index.compare(job, cluster_nodes, list(map(str, others)))
        nearest = different[(-(different @ usual)).argsort(kind="stable")[: len(equal)]]
        rows += [equal, nearest]
        same += [np.ones(len(equal)), np.zeros(len(nearest))]
    return np.concatenate(rows), np.concatenate(same)


def _fitted(similarities: Floats, same: Floats) -> Weights:
    """Return the coefficients of a logistic regression.

    They are at least 0, since a larger similarity must not lower a score. scikit-learn's regression has no such bound.
    """
    signs = 2 * same - 1

    def loss(parameters: Floats) -> tuple[float, Floats]:
        margins = signs * (similarities @ parameters[1:] + parameters[0])
        slopes = -signs * expit(-margins) / len(signs)
        gradient = np.append(slopes.sum(), similarities.T @ slopes + _PENALTY * parameters[1:])
        value = np.logaddexp(0, -margins).mean() + _PENALTY / 2 * (parameters[1:] @ parameters[1:])
        return float(value), gradient

    bounds = [(None, None)] + [(0, None)] * len(FIELDS)
    found = minimize(loss, np.zeros(len(FIELDS) + 1), jac=True, bounds=bounds, method="L-BFGS-B").x[1:]
    return Weights(*found.tolist()).normal() if found.any() else USUAL


def _f1(quality: Quality) -> float:
    total = quality.precision + quality.recall
    return 2 * quality.precision * quality.recall / total if total else 0.0
