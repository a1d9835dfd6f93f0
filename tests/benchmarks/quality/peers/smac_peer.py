# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["smac==2.4.1"]
# ///
"""SMAC's facade for the optimisation of hyper-parameters, with random forests and its intensification of noisy runs."""

import tempfile
from pathlib import Path
from typing import Any

from ConfigSpace import (
    CategoricalHyperparameter,
    ConfigurationSpace,
    InCondition,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from line import serve
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialValue


def space_of(parameters: list[dict[str, Any]], seed: int) -> ConfigurationSpace:
    space = ConfigurationSpace(seed=seed)
    for one in parameters:
        name = one["name"]
        match one["kind"]:
            case "float":
                space.add(UniformFloatHyperparameter(name, one["min"], one["max"], log=one["log"]))
            case "int":
                space.add(UniformIntegerHyperparameter(name, one["min"], one["max"], log=one["log"]))
            case "ordinal":
                space.add(OrdinalHyperparameter(name, one["values"]))
            case _:
                space.add(CategoricalHyperparameter(name, one["values"]))
    for one in parameters:
        if one["parent"]:
            space.add(InCondition(space[one["name"]], space[one["parent"]], one["active_for"]))
    return space


def _unused(configuration: Any, seed: int = 0) -> float:
    """SMAC asks for a function, which it does not call here."""
    raise NotImplementedError


class Smac:
    def __init__(self, problem: dict[str, Any]) -> None:
        scenario = Scenario(
            space_of(problem["parameters"], problem["seed"]),
            deterministic=not problem["noisy"],
            n_trials=problem["budget"],
            seed=problem["seed"],
            output_directory=Path(tempfile.mkdtemp()),
        )
        self._facade = HyperparameterOptimizationFacade(scenario, _unused, overwrite=True, logging_level=False)
        self._asked: list[Any] = []

    def ask(self, count: int) -> list[dict[str, Any]]:
        self._asked = [self._facade.ask() for _ in range(count)]
        return [dict(one.config) for one in self._asked]

    def tell(self, values: list[float]) -> None:
        for one, value in zip(self._asked, values, strict=True):
            self._facade.tell(one, TrialValue(cost=value))

    def recommend(self) -> dict[str, Any]:
        return dict(self._facade.intensifier.get_incumbent())


if __name__ == "__main__":
    serve(Smac)
