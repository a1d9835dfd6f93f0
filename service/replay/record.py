"""What one replay leaves behind."""

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
    """One search from beginning to end. Rows are those of the subject.

    By trial: `rows` (-1: no such configuration, the trial was INFEASIBLE), `values` in the metrics' own units (empty
    where it was infeasible), `seconds` of the trial. `recommended`: the row it would have recommended after each trial,
    -1 where it was not asked. `final`: what it recommended at last: one row, or those of a front. `reason`: why it
    ended before its budget, or nothing. `computing`: CPU seconds of all suggestions.
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
        """Plain JSON, from which `from_json` makes an equal run."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Run:
        """The run that `to_json` described. Raises TypeError or ValueError for anything else."""
        given = dict(data)
        contestant = given.pop("contestant")
        if not isinstance(contestant, Mapping):
            raise TypeError("a run without a contestant")
        return cls(contestant=Contestant(**contestant), **given)  # type: ignore[arg-type]
