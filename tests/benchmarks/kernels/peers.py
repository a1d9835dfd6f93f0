"""Searches of other libraries in a measured table, in an environment of their own.

    python peers.py TABLE.json PEER SEED [SEED ...]

needs kernel_tuner, pyatf, optuna and opentuner. It prints a line of JSON for each seed: the values of the different
configurations that were measured, in their order. Only these count: a configuration that breaks a constraint, or that
was measured before, costs nothing. The file imports nothing of this repository.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

BUDGET = 60
# So many configurations are asked for before a library that knows no constraints is given up.
_MOST_ASKED = 2000


class Over(BaseException):
    """All measurements are made. It is no Exception, because some libraries go on after these."""


class Table:
    """The parameters with their values, and the times by rows of values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = json.loads(path.read_text())
        self.parameters: Mapping[str, Any] = content["parameters"]
        self.names = list(self.parameters)
        self.times: dict[tuple[int, ...], float] = {
            tuple(row): time for row, time in zip(content["rows"], content["times"], strict=True)
        }
        self.measured: dict[tuple[int, ...], float] = {}

    def measure(self, row: Sequence[int]) -> float | None:
        """Return the time of a row; None if it breaks a constraint. Raises Over after the last measurement."""
        key = tuple(int(value) for value in row)
        if key not in self.times:
            return None
        if key not in self.measured and len(self.measured) >= BUDGET:
            raise Over
        self.measured[key] = self.times[key]
        return self.times[key]

    @property
    def is_over(self) -> bool:
        """Return whether all measurements are made."""
        return len(self.measured) >= BUDGET


def kernel_tuner(table: Table, seed: int, strategy: str) -> None:
    """Search with a strategy of Kernel Tuner in its simulation mode."""
    from kernel_tuner import tune_kernel  # type: ignore[import-not-found]

    values = {name: one["values"] for name, one in table.parameters.items()}
    cache = {
        ",".join(map(str, row)): {
            **dict(zip(table.names, row, strict=True)),
            "time": time,
            "compile_time": 0,
            "verification_time": 0,
            "benchmark_time": 0,
            "strategy_time": 0,
            "framework_time": 0,
            "timestamp": "2026-11-28 00:00:00",
        }
        for row, time in table.times.items()
    }
    head = {"device_name": "table", "kernel_name": "kernel", "problem_size": "1", "tune_params_keys": table.names}

    def fits(given: Mapping[str, int]) -> bool:
        return tuple(given[name] for name in table.names) in table.times

    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cache.json"
        path.write_text(json.dumps({**head, "tune_params": values, "objective": "time", "cache": cache}))
        results, _ = tune_kernel(
            *("kernel", "void kernel() {}", "1", [], values),
            restrictions=fits,
            lang="C",
            cache=str(path),
            simulation_mode=True,
            strategy=strategy,
            strategy_options={"max_fevals": BUDGET},
            quiet=True,
            seed=seed,
        )
    for one in results:
        with suppress(Over):
            table.measure([one[name] for name in table.names])


def pyatf(table: Table, seed: int, technique: str) -> None:
    """Search with a technique of pyATF, whose constraints make a chain of trees."""
    import numpy as np
    import pyatf as library  # type: ignore[import-not-found]
    from pyatf import search_techniques

    random.seed(seed)
    np.random.seed(seed)
    parameters = []
    for place, name in enumerate(table.names):
        known = {row[: place + 1] for row in table.times}
        given = ", ".join(table.names[: place + 1])
        fits: Callable[..., bool] = eval(f"lambda {given}: ({given},) in known", {"known": known})
        parameters.append(library.TP(name, library.Set(*table.parameters[name]["values"]), fits))
    tuner = library.Tuner().tuning_parameters(*parameters).verbosity(0)
    tuner = tuner.search_technique(getattr(search_techniques, technique)())

    def cost(configuration: Mapping[str, int]) -> float:
        found = table.measure([configuration[name] for name in table.names])
        assert found is not None
        return found

    for _ in range(_MOST_ASKED):
        if table.is_over:
            return
        tuner.make_step(cost)


def tpe(table: Table, seed: int, _: str) -> None:
    """Search with Optuna's TPE. What breaks a constraint counts as pruned, from which it learns."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for _number in range(_MOST_ASKED):
        if table.is_over:
            return
        trial = study.ask()
        row: dict[str, int] = {}
        for name, one in table.parameters.items():
            values, condition = one["values"], one["condition"]
            if condition is not None and row[condition[0]] not in condition[1]:
                row[name] = values[0]
            elif one["ordered"]:
                row[name] = values[trial.suggest_int(name, 0, len(values) - 1)]
            else:
                row[name] = trial.suggest_categorical(name, values)
        found = table.measure([row[name] for name in table.names])
        if found is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, found)


def opentuner(table: Table, seed: int, _: str) -> None:
    """Search with OpenTuner's ensemble. What breaks a constraint is reported as an error."""
    import argparse

    import numpy as np
    import opentuner as library  # type: ignore[import-not-found]
    from opentuner.api import TuningRunManager  # type: ignore[import-not-found]
    from opentuner.measurement.interface import DefaultMeasurementInterface  # type: ignore[import-not-found]
    from opentuner.resultsdb.models import Result  # type: ignore[import-not-found]
    from opentuner.search.manipulator import (  # type: ignore[import-not-found]
        ConfigurationManipulator,
        EnumParameter,
        IntegerParameter,
    )

    random.seed(seed)
    np.random.seed(seed)
    manipulator = ConfigurationManipulator()
    for name, one in table.parameters.items():
        count = len(one["values"])
        manipulator.add_parameter(
            IntegerParameter(name, 0, count - 1) if one["ordered"] else EnumParameter(name, list(range(count)))
        )
    with tempfile.TemporaryDirectory() as folder:
        parser = argparse.ArgumentParser(parents=library.argparsers())
        arguments = parser.parse_args(["--no-dups", "--database", f"sqlite:///{folder}/results.db"])
        interface = DefaultMeasurementInterface(
            args=arguments, manipulator=manipulator, project_name="kernels", program_name=table.path.stem
        )
        manager = TuningRunManager(interface, arguments)
        for _number in range(_MOST_ASKED):
            if table.is_over:
                break
            desired = manager.get_next_desired_result()
            if desired is None:
                continue
            given = desired.configuration.data
            row = [table.parameters[name]["values"][given[name]] for name in table.names]
            for place, one in enumerate(table.parameters.values()):
                parent = one["condition"]
                if parent is not None and row[table.names.index(parent[0])] not in parent[1]:
                    row[place] = one["values"][0]
            found = table.measure(row)
            result = Result(time=float("inf"), state="ERROR") if found is None else Result(time=found)
            manager.report_result(desired, result)
        manager.finish()


PEERS: Mapping[str, tuple[Callable[[Table, int, str], None], str]] = {
    "optuna-tpe": (tpe, ""),
    "opentuner": (opentuner, ""),
    **{
        f"kernel-tuner-{name}": (kernel_tuner, name)
        for name in ("genetic_algorithm", "greedy_ils", "simulated_annealing", "diff_evo", "bayes_opt")
    },
    "pyatf-auc-bandit": (pyatf, "AUCBandit"),
    "pyatf-differential-evolution": (pyatf, "DifferentialEvolution"),
    "pyatf-simulated-annealing": (pyatf, "SimulatedAnnealing"),
}


def main(argv: Sequence[str]) -> int:
    """Search with each seed."""
    path, name, *seeds = argv
    search, option = PEERS[name]
    for seed in map(int, seeds):
        table = Table(Path(path))
        with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), suppress(Over):
            search(table, seed, option)
        print(json.dumps({"seed": seed, "values": list(table.measured.values())}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
