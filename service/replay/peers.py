"""Samplers of Optuna and Ax as contestants, with their libraries' defaults (extra `compare`).

They receive the same facts as our algorithms: the length of the start design, and whether measurements are noisy. They
measure a configuration again only if they suggest it again, and they recommend their library's best: Optuna the best
single run, Ax the best of its model.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.parameters import BoolParameter, CategoricalParameter, Parameter
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord
from service.replay.searcher import Searcher

# The modules that each sampler needs.
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "optuna-tpe": ("optuna",),
    "optuna-gp": ("optuna", "scipy", "torch"),
    "optuna-cmaes": ("optuna", "cmaes"),
    "ax": ("ax",),
}
NAMES = tuple(_NEEDS)
_ONE_OBJECTIVE = ("optuna-cmaes",)


def check(name: str, problem: Problem) -> None:
    """Raise InvalidInput (field `algorithms`) if a sampler is not installed or cannot handle that many objectives."""
    for module in _NEEDS[name]:
        if find_spec(module) is None:
            allowed = "pip install 'trimtab-service[compare]' to install it"
            raise InvalidInput("algorithms", name, allowed, problem=f"needs {module}, which is not installed")
    if name in _ONE_OBJECTIVE and len(problem.objectives) > 1:
        allowed = f"an algorithm for {len(problem.objectives)} objectives"
        raise InvalidInput("algorithms", name, allowed, problem="handles a single objective only")


def create(name: str, problem: Problem, *, seed: int, start: int) -> Searcher:
    """Return a sampler that was checked."""
    return _Ax(problem, seed, start) if name == "ax" else _Optuna(name, problem, seed, start)


class _Optuna(Searcher):
    """A sampler of Optuna. It sees an ordinal parameter as an integer, its rank, because a choice has no order."""

    def __init__(self, name: str, problem: Problem, seed: int, start: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", module=r"optuna\.")
        self._problem = problem
        self._states = optuna.trial.TrialState
        sampler: Any
        match name:
            case "optuna-tpe":
                sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=start)
            case "optuna-gp":
                sampler = optuna.samplers.GPSampler(
                    seed=seed, n_startup_trials=start, deterministic_objective=not problem.noisy
                )
            case _:
                sampler = optuna.samplers.CmaEsSampler(
                    seed=seed, n_startup_trials=start, warn_independent_sampling=False
                )
        self._study = optuna.create_study(sampler=sampler, directions=["minimize"] * len(problem.objectives))
        self._trial: Any = None

    def suggest(self) -> tuple[Configuration, str] | None:
        self._trial = self._study.ask()
        values = {one.name: self._value(one) for one in self._problem.space.parameters}
        return self._problem.space.prune(values), "suggested"

    def update(self, trial: TrialRecord) -> None:
        if trial.state == TrialState.COMPLETED:
            self._trial.set_user_attr("configuration", dict(trial.configuration))
            self._study.tell(self._trial, [float(loss) for loss in _losses(self._problem, trial)])
        else:
            self._study.tell(self._trial, state=self._states.FAIL)

    def recommend(self) -> Configuration | None:
        complete: list[Any] = self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE,))
        if not complete:
            return None
        found: Configuration = min(complete, key=lambda trial: trial.value).user_attrs["configuration"]
        return found

    def _value(self, parameter: Parameter) -> Scalar:
        size = parameter.size()
        assert size is not None
        if isinstance(parameter, CategoricalParameter | BoolParameter):
            rank = self._trial.suggest_categorical(parameter.name, list(range(size)))
        else:
            rank = self._trial.suggest_int(parameter.name, 0, size - 1)
        return parameter.value_at(int(rank))


class _Ax(Searcher):
    def __init__(self, problem: Problem, seed: int, start: int) -> None:
        from ax.api.client import Client
        from ax.exceptions.core import AxError

        # Each module of Ax has a logger with its own level.
        for logger in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "ax"]:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        warnings.simplefilter("ignore")
        self._problem, self._errors = problem, AxError
        self._client: Any = Client(random_seed=seed)
        self._client.configure_experiment(parameters=[_ax_parameter(one) for one in problem.space.parameters])
        self._metrics = [f"loss{place}" for place in range(len(problem.objectives))]
        self._client.configure_optimization(objective=", ".join(f"-{metric}" for metric in self._metrics))
        self._client.configure_generation_strategy(initialization_budget=start, initialization_random_seed=seed)
        self._number = -1
        self._found = False

    def suggest(self) -> tuple[Configuration, str] | None:
        try:
            ((self._number, given),) = self._client.get_next_trials(max_trials=1).items()
        except (self._errors, ValueError):  # Ax has suggested all configurations that its rules allow.
            return None
        return self._configuration(given), "suggested"

    def update(self, trial: TrialRecord) -> None:
        if trial.state == TrialState.COMPLETED:
            data = dict(zip(self._metrics, map(float, _losses(self._problem, trial)), strict=True))
            self._client.complete_trial(trial_index=self._number, raw_data=data)
            self._found = True
        else:
            self._client.mark_trial_failed(self._number)

    def recommend(self) -> Configuration | None:
        if not self._found:
            return None
        best, *_ = self._client.get_best_parameterization(use_model_predictions=self._problem.noisy)
        return self._configuration(best)

    def _configuration(self, given: Mapping[str, Any]) -> Configuration:
        space = self._problem.space
        return space.prune({one.name: one.cast(given[one.name]) for one in space.parameters})


def _ax_parameter(parameter: Parameter) -> Any:
    from ax.api.configs import ChoiceParameterConfig

    values = parameter.grid()
    assert values is not None
    ordered = not isinstance(parameter, CategoricalParameter | BoolParameter)
    return ChoiceParameterConfig(parameter.name, [*values], _kind(values), is_ordered=ordered)


def _kind(values: tuple[Scalar, ...]) -> str:
    kinds = {type(value) for value in values}
    for kind in (str, bool, float):
        if kind in kinds:
            return kind.__name__
    return "int"


def _losses(problem: Problem, trial: TrialRecord) -> list[float]:
    signs = problem.signs()
    return [float(sign * trial.metrics[metric]) for sign, metric in zip(signs, problem.metrics, strict=True)]
