"""The results of an earlier study, from which an algorithm may learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.core.space import Configuration


@dataclass(frozen=True)
class Lesson:
    """Completed runs of an earlier study of the same metric.

    `study`: its name. `configurations`: one for each run, in the space of the new study. `values`: the first
    objective's metric, in its own unit; as many, and finite.
    """

    study: str
    configurations: Sequence[Configuration]
    values: Sequence[float]
