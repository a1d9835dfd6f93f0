"""Another package's optimiser, as the benchmark uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.core.space import (
    CategoricalParameter,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Space,
)
from tests.benchmarks.quality.peers.program import Program

PEERS = ("smac", "hebo", "openbox", "turbo")


class Peer(Program):
    """A process of a peer that optimises one problem."""

    def __init__(self, name: str, space: Space, *, seed: int, budget: int, batch: int, noisy: bool) -> None:
        super().__init__(f"{name}_peer")
        self._space = space
        problem = {"parameters": [_described(one) for one in space.parameters], "seed": seed}
        self.answer(problem | {"budget": budget, "batch": batch, "noisy": noisy})

    def ask(self, count: int) -> list[Configuration]:
        """Return configurations of the space."""
        return [self._configuration(one) for one in self.answer({"ask": count})]

    def tell(self, values: Sequence[float]) -> None:
        """Report the values of the configurations that the last `ask` returned."""
        self.answer({"tell": list(values)})

    def recommend(self) -> tuple[Configuration, float]:
        """Return the configuration that the peer recommends, and the seconds of CPU that it has used."""
        found = self.answer({"recommend": True})
        return self._configuration(found["configuration"]), found["seconds"]

    def _configuration(self, found: Mapping[str, Any]) -> Configuration:
        """Return the configuration without parameters that are inactive."""
        return self._space.prune({name: found[name] for name in self._space.names() if name in found})


def _described(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind, "parent": None}
    match parameter:
        case FloatParameter() | IntParameter():
            found |= {"min": parameter.min, "max": parameter.max, "log": parameter.log}
        case OrdinalParameter() | CategoricalParameter():
            found["values"] = parameter.values
        case _:
            found["values"] = [False, True]
    if parameter.condition is not None:
        found |= {"parent": parameter.condition.parent, "active_for": parameter.condition.values}
    return found
