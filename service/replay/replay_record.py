"""The record of one replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from service.core.errors import JsonValue


@dataclass(frozen=True, slots=True)
class Contestant:
    """An algorithm with a resampling policy."""

    algorithm: str
    resampling: str

    def __str__(self) -> str:
        return self.algorithm if self.resampling == "none" else f"{self.algorithm} + {self.resampling}"


@dataclass(frozen=True, slots=True)
class Run:
    """One search from beginning to end, with the subject's rows.

    There is an entry for each trial in `rows` (-1: no such configuration, the trial was INFEASIBLE), in `values` in the
    metrics' own units (empty if infeasible) and in `seconds`. `recommended`: the row that the search would have
    recommended after each trial; -1 if it was not evaluated. `final`: the final recommendation: one row, or the rows of
    a front. `reason`: the reason for an end before the budget, or empty. `computing`: CPU seconds of all suggestions.
    """

    contestant: Contestant
    seed: int
    rows: Sequence[int]
    values: Sequence[Sequence[float]]
    seconds: Sequence[float | None]
    recommended: Sequence[int]
    final: Sequence[int]
    reason: str
    computing: float

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `from_json` makes an equal run."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Run:
        """Return the run that `to_json` described. Raises TypeError or ValueError for anything else."""
        given = dict(data)
        contestant = given.pop("contestant")
        if not isinstance(contestant, Mapping):
            raise TypeError("a run without a contestant")
        return cls(contestant=Contestant(**contestant), **given)  # type: ignore[arg-type]
