"""The measured interference of other processes with a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.core.errors import JsonValue

# A run is disturbed if other processes took a larger share of its CPUs. One threshold holds for all lengths.
MOST_SHARE = 0.10
# The share that counts for a run whose timing is doubtful although no share was measured: agents of earlier versions
# sent a sentence only, and only for shares above a tenth.
_ASSUMED_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Interference:
    """The interference of a run. Each number is None where the agent cannot measure it.

    `share`: the CPU time of other processes, divided by the seconds of the run and by the number of its CPUs. `wait`:
    the part of the run's seconds in which its own processes waited for a CPU. `steal`: the share of its CPUs that other
    virtual machines took. `swapped`: the pages that the machine swapped in or out. `memory`: the part of the machine's
    memory that was available before the run. `unaffected`: the metrics that contain no waiting, such as CPU time.
    """

    share: float | None = None
    wait: float | None = None
    steal: float | None = None
    swapped: float | None = None
    memory: float | None = None
    unaffected: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Interference:
        """Return the interference that `to_json` has made; a number that is not finite counts as unknown."""
        numbers = {name: _finite(data.get(name)) for name in _NUMBERS}
        return cls(**numbers, unaffected=tuple(map(str, data.get("unaffected", ()))))

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON without the unknown numbers."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        found: dict[str, JsonValue] = {name: value for name, value in numbers.items() if value is not None}
        return found | ({"unaffected": list(self.unaffected)} if self.unaffected else {})


_NUMBERS = ("share", "wait", "steal", "swapped", "memory")


def share_of(interference: Interference | None, *, doubtful: bool) -> float | None:
    """Return the share that others took of a run's CPUs; None if it is unknown and there is no doubt."""
    if interference is not None and interference.share is not None:
        return interference.share
    return _ASSUMED_SHARE if doubtful else None


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(float(value), 0.0)
