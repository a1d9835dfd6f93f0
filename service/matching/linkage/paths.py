"""Similarities of paths: Soft TF-IDF [cohen-2003] with Jaro-Winkler [winkler-1990].

A path is its tokens. The weight of a token in a path is log(n + 1) * log((N + 1) / d) for n occurrences in the path and
d among N records, divided by the Euclidean norm of the path's weights. The 1 of N + 1 keeps the weight of a token
that all records have above 0; a token that no record has counts as one of one record. The similarity is the sum, over
the tokens of one path, of the weight times the weight of the closest token of the other times their Jaro-Winkler
similarity, where this is at least 0.9. Among equally close tokens the one with the largest weight counts. The sum can
exceed 1, since two tokens may be closest to the same one; it is then 1.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import JaroWinkler
from rapidfuzz.process import cdist

from service.matching.linkage.codes import UNKNOWN, Codes
from service.matching.linkage.ragged import Floats, Ints, Ragged, doubled

# A similarity of exactly 0.9 comes out as 0.8999999999999999.
CLOSE = 0.9 - 1e-9
# Most tokens of a job are known from earlier ones, such as "home" or the user's name. Without the cache each is
# compared with all tokens of the index again: 0.45 instead of 0.37 ms for a search among 2,000 records, and 0.5 ms more
# for each token of the job if the index has 10,000 tokens.
_CACHED_TOKENS = 4096
# A word is compared with so many tokens, the earliest of the index, and with any other one for equality. A tenant's
# records have a few thousand; a million would take seconds of each search.
MOST_COMPARED = 100_000


class _Close(NamedTuple):
    """The tokens close to a word among the first `seen` tokens of the index, and their similarity to it."""

    seen: int
    tokens: Ints
    near: Floats


_NOTHING = _Close(0, np.zeros(0, np.int64), np.zeros(0))


class _Pairs(NamedTuple):
    """Close pairs of a token and a word of the query, sorted by the token."""

    tokens: Ints
    words: Ints
    near: Floats


class Paths(Codes[tuple[str, ...]]):
    """Distinct paths by their codes, and in how many records each token is."""

    def __init__(self) -> None:
        super().__init__()
        self._tokens: Codes[str] = Codes()
        self._lists = Ragged(2)  # tokens and how often they are in the path
        self._records = np.zeros(64, np.int64)  # in how many records a token is, by the token's code
        self._close: OrderedDict[str, _Close] = OrderedDict()

    def _added(self, value: tuple[str, ...]) -> None:
        self._lists.append([(self._tokens.add(token), count) for token, count in Counter(value).items()])
        if len(self._tokens) > len(self._records):
            self._records = doubled(self._records, len(self._tokens))

    def count(self, codes: Ints, change: int) -> None:
        """Add `change`, 1 or -1, to the number of records that have each of the paths with `codes`."""
        _, (tokens, _) = self._lists.gather(codes)
        np.add.at(self._records, tokens, change)

    def similarities(self, path: tuple[str, ...], records: int, codes: Ints) -> Floats:
        """Return the similarity of a path to each of those with `codes`, with `records` records in the index."""
        if not path:
            return np.equal(self._lists.lengths(codes), 0).astype(np.float64)
        words = Counter(path)
        pairs = self._pairs(list(words))
        owners, (tokens, counts) = self._lists.gather(codes)
        weights = np.log(counts + 1) * np.log((records + 1) / self._records[tokens])
        norms = np.sqrt(np.bincount(owners, weights * weights, minlength=len(codes)))
        # each occurrence of a token that is close to one of the words, with that word
        first, last = np.searchsorted(pairs.tokens, tokens), np.searchsorted(pairs.tokens, tokens, "right")
        repeats = last - first
        elements = np.arange(len(tokens)).repeat(repeats)
        chosen = first[elements] + np.arange(len(elements)) - (repeats.cumsum() - repeats)[elements]
        word, near, owner, weight = pairs.words[chosen], pairs.near[chosen], owners[elements], weights[elements]
        groups = owner * len(words) + word
        order = np.lexsort((weight, near, groups))
        closest = order[np.append(groups[order][1:] != groups[order][:-1], np.ones(min(len(order), 1), bool))]
        products = self._weights(words, records)[word] * weight * near
        sums = np.bincount(owner[closest], products[closest], minlength=len(codes))
        found: Floats = np.minimum(sums / np.where(norms > 0, norms, 1.0), 1.0)
        return found

    def _weights(self, words: Counter[str], records: int) -> Floats:
        raw = [
            math.log(count + 1) * math.log((records + 1) / max(self._used(word), 1)) for word, count in words.items()
        ]
        return np.array(raw) / math.hypot(*raw)

    def _used(self, token: str) -> int:
        code = self._tokens.find(token)
        return 0 if code == UNKNOWN else int(self._records[code])

    def _pairs(self, words: list[str]) -> _Pairs:
        found = [self._close_to(word) for word in words]
        tokens = np.concatenate([close.tokens for close in found])
        order = tokens.argsort(kind="stable")
        places = np.arange(len(words)).repeat([len(close.tokens) for close in found])
        return _Pairs(tokens[order], places[order], np.concatenate([close.near for close in found])[order])

    def _close_to(self, word: str) -> _Close:
        known = self._close.pop(word, _NOTHING)
        compared = min(len(self._tokens), MOST_COMPARED)
        if known.seen < compared:
            near = cdist(
                [word],
                self._tokens.values[known.seen : compared],
                scorer=JaroWinkler.similarity,
                score_cutoff=CLOSE,
                dtype=np.float64,
            )[0]
            new = near.nonzero()[0]
            known = _Close(
                compared,
                np.concatenate([known.tokens, new + known.seen]),
                np.concatenate([known.near, near[new]]),
            )
        self._close[word] = known
        if len(self._close) > _CACHED_TOKENS:
            self._close.popitem(last=False)
        code = self._tokens.find(word)
        return known if code < compared else _Close(compared, np.append(known.tokens, code), np.append(known.near, 1.0))
