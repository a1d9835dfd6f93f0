"""Similarities of options: the share of equal values, averaged over the options of both jobs.

The thesis leaves the details open [robert-2021, section 7.4.2]. Here an option that both jobs have counts as the number
of values in common, repeated ones included, divided by the number of values of the job that has more; an option without
a value has the value "none". The similarity is the sum of these shares divided by the number of options that either
job has, and 1 if neither has any.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from service.matching.linkage.codes import Codes
from service.matching.linkage.features import Options
from service.matching.linkage.ragged import Floats, Ints, Ragged

# An option, one of its values (None if it has none), and how often the value came before it among the option's values.
_Atom: TypeAlias = tuple[str, str | None, int]


def _atoms(key: str, values: tuple[str, ...]) -> list[_Atom]:
    """Return the values of an option in a form whose intersection of sets is that of the values with repetitions."""
    if not values:
        return [(key, None, 0)]
    seen: Counter[str] = Counter()
    atoms: list[_Atom] = []
    for value in values:
        atoms.append((key, value, seen[value]))
        seen[value] += 1
    return atoms


class OptionSets(Codes[Options]):
    """Distinct sets of options by their codes."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: Codes[str] = Codes()
        self._atoms: Codes[_Atom] = Codes()
        self._lists = Ragged(4)  # for each value: its atom, its option, the option's number of values, 1 if it is first

    def _added(self, value: Options) -> None:
        self._lists.append(
            [
                (self._atoms.add(atom), self._keys.add(key), max(len(values), 1), int(place == 0))
                for key, values in value
                for place, atom in enumerate(_atoms(key, values))
            ]
        )

    def similarities(self, options: Options, codes: Ints) -> Floats:
        """Return the similarity of options to each of the sets with `codes`."""
        if not options:
            return np.equal(self._lists.lengths(codes), 0).astype(np.float64)
        owners, (atoms, keys, counts, firsts) = self._lists.gather(codes)
        longest = np.zeros(
            len(self._keys) + 1
        )  # the query's number of values of each option; the last is for unknown ones
        wanted = np.zeros(len(self._atoms) + 1, bool)
        for key, values in options:
            longest[self._keys.find(key)] = max(len(values), 1)
            wanted[[self._atoms.find(atom) for atom in _atoms(key, values)]] = True
        shares = np.bincount(owners, wanted[atoms] / np.maximum(longest[keys], counts), minlength=len(codes))
        only_theirs = np.bincount(owners, firsts * (longest[keys] == 0), minlength=len(codes))
        found: Floats = shares / (len(options) + only_theirs)
        return found
