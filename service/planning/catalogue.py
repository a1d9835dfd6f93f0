"""The catalogue of algorithms, policies and rules that a study can name, and of the keys of study files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.algorithms import registry
from service.algorithms.entry import Entry as Algorithm
from service.core.options import Option
from service.planning import study_file
from service.policies import noise, pruning, resampling, stopping
from trimtab_components import quantities


@dataclass(frozen=True, slots=True)
class Entry:
    """One algorithm, policy or rule. `several` says whether it works with several objectives."""

    name: str
    doc: str
    options: Sequence[Option]
    several: bool


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All algorithms, policies and rules by their purpose, and the keys and units of study files."""

    algorithms: Sequence[Entry]
    resampling: Sequence[Entry]
    estimators: Sequence[Entry]
    pruning: Sequence[Entry]
    stopping: Sequence[Entry]
    file_keys: Sequence[study_file.FileKey]
    time_units: Mapping[str, float]


def catalogue() -> Catalogue:
    """Return the catalogue."""
    algorithms = [registry.describe(name) for name in registry.names()]
    again = [resampling.describe(name) for name in resampling.names()]
    estimators = [noise.describe(name) for name in noise.names()]
    prunings = [pruning.describe(name) for name in pruning.names()]
    rules = [stopping.describe(name) for name in stopping.names()]
    return Catalogue(
        algorithms=[Entry(one.name, _doc(one), one.options, one.most_objectives is None) for one in algorithms],
        resampling=[Entry(one.name, one.doc, one.options, one.most_objectives is None) for one in again],
        estimators=[Entry(one.name, one.doc, one.options, True) for one in estimators],
        pruning=[Entry(one.name, one.doc, one.options, True) for one in prunings],
        stopping=[Entry(one.name, one.doc, one.options, True) for one in rules],
        file_keys=study_file.KEYS,
        time_units=quantities.TIMES,
    )


def _doc(algorithm: Algorithm) -> str:
    return algorithm.doc if algorithm.is_installed else f"Not installed here ({algorithm.remedy}). {algorithm.doc}"
