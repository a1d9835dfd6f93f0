# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["xopt==3.2.2"]
# ///
"""TuRBO [eriksson-2019] as Xopt has it: expected improvement in one trust region, with Xopt's defaults.

It knows numbers alone, so choices are ranks that are rounded, and conditional parameters are always active for it. Xopt
leaves the start to its users: a Sobol design of two points for each parameter, but at most a third of the budget.
"""

from typing import Any

import torch
from line import serve
from torch.quasirandom import SobolEngine
from xopt import VOCS
from xopt.generators.bayesian import ExpectedImprovementGenerator


class Turbo:
    def __init__(self, problem: dict[str, Any]) -> None:
        torch.manual_seed(problem["seed"])
        torch.set_num_threads(1)
        self._parameters = {one["name"]: one for one in problem["parameters"]}
        vocs = VOCS(variables={name: [0.0, 1.0] for name in self._parameters}, objectives={"value": "MINIMIZE"})
        self._optimiser: Any = ExpectedImprovementGenerator(vocs=vocs, turbo_controller="optimize")
        count = max(min(2 * len(self._parameters), problem["budget"] // 3), problem["batch"])
        design = SobolEngine(len(self._parameters), scramble=True, seed=problem["seed"]).draw(count)
        self._start = [dict(zip(self._parameters, row, strict=True)) for row in design.tolist()]
        self._asked: list[dict[str, float]] = []
        self._tried: list[tuple[float, dict[str, float]]] = []

    def ask(self, count: int) -> list[dict[str, Any]]:
        self._asked, self._start = self._start[:count], self._start[count:]
        if missing := count - len(self._asked):
            self._asked += self._optimiser.generate(missing)
        return [self._values(one) for one in self._asked]

    def tell(self, values: list[float]) -> None:
        self._tried += zip(values, self._asked, strict=True)
        self._optimiser.ingest([{**one, "value": value} for value, one in zip(values, self._asked, strict=True)])

    def recommend(self) -> dict[str, Any]:
        return self._values(min(self._tried, key=lambda one: one[0])[1])

    def _values(self, point: dict[str, float]) -> dict[str, Any]:
        return {name: _value(one, float(point[name])) for name, one in self._parameters.items()}


def _value(one: dict[str, Any], share: float) -> Any:
    """Return the parameter's value at a share of its range."""
    if one["kind"] in ("float", "int"):
        low, high = one["min"], one["max"]
        found = low * (high / low) ** share if one["log"] else low + (high - low) * share
        return round(found) if one["kind"] == "int" else min(max(found, low), high)
    return one["values"][round(share * (len(one["values"]) - 1))]


if __name__ == "__main__":
    serve(Turbo)
