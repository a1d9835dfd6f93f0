"""The optimisers: the service's own algorithms with its usual method, Optuna's samplers, Ax, and those of `peers`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.core import estimates
from service.core.lifecycle import TrialState
from service.core.pareto import non_dominated
from service.core.space import Configuration, Scalar, Space
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.recommendation import ParetoSet, Recommendation
from service.tuner.tuner import Tuner
from tests.benchmarks.quality.case import Case, Measure
from tests.benchmarks.quality.peers.peer import PEERS, Peer


@dataclass(frozen=True)
class Outcome:
    """The configuration that an optimiser recommends, and the one with the best single value.

    With several objectives, both are Pareto sets. `seconds`: the CPU time of another process that computed them.
    """

    recommended: Sequence[Configuration]
    luckiest: Sequence[Configuration]
    seconds: float = 0.0


def ours(case: Case, seed: int, measure: Measure, algorithm: str = "auto") -> Outcome:
    """Run a study of the service's tuner with the usual policies."""
    method = Method(algorithm=algorithm, seed=seed, budget=case.budget, parallelism=case.batch)
    tuner = Tuner(case.problem, method)
    number = cursor = 0
    while number < case.budget:
        asked = tuner.suggest(min(case.batch, case.budget - number), cursor=cursor)
        if not asked.items:
            break
        cursor = asked.cursor
        finished = []
        for item in asked.items:
            number += 1
            metrics = measure(item.configuration)
            finished.append(
                TrialRecord(
                    number, item.configuration, TrialState.COMPLETED, metrics, revision=number, origin=item.origin
                )
            )
        tuner.update(finished)
    luckiest = _luckiest(case, [(trial.metrics, trial.configuration) for trial in tuner.finished])
    found = tuner.found()
    if isinstance(found, Recommendation):
        return Outcome([found.configuration], luckiest)
    # Algorithms without a posterior recommend the Pareto set of the medians.
    front = [one.configuration for one in estimates.best(case.problem, tuner.finished)]
    return Outcome(found.configurations if isinstance(found, ParetoSet) else front, luckiest)


def optuna(problem: Case, seed: int, measure: Measure, sampler: str) -> Outcome:
    """Run a study of Optuna with a sampler of its own and its defaults."""
    warnings.simplefilter("ignore")
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    limits = problem.problem.outcome_constraints
    made: Any
    shared: dict[str, Any] = {"seed": seed}
    if limits:
        shared["constraints_func"] = lambda trial: trial.user_attrs["margins"]
    match sampler:
        case "tpe":
            made = library.samplers.TPESampler(constant_liar=problem.batch > 1, **shared)
        case "gp":
            made = library.samplers.GPSampler(deterministic_objective=not problem.problem.noisy, **shared)
        case "cmaes":
            made = library.samplers.CmaEsSampler(seed=seed)
        case "random":
            made = library.samplers.RandomSampler(seed=seed)
        case "nsga2":
            made = library.samplers.NSGAIISampler(seed=seed)
        case _:
            raise ValueError(f"There is no sampler {sampler!r}.")
    study = library.create_study(sampler=made, directions=["minimize" for _ in problem.problem.objectives])
    tried: list[tuple[Mapping[str, float], Configuration]] = []
    while len(tried) < problem.budget:
        asked = [study.ask() for _ in range(min(problem.batch, problem.budget - len(tried)))]
        chosen = [_suggested(trial, problem.space) for trial in asked]
        for trial, configuration in zip(asked, chosen, strict=True):
            metrics = measure(configuration)
            trial.set_user_attr("margins", [limit.margin(metrics) for limit in limits])
            study.tell(trial, [metrics[metric] for metric in problem.problem.metrics])
            tried.append((metrics, configuration))
    best = _luckiest(problem, tried)
    return Outcome(best, best)


def ax(case: Case, seed: int, measure: Measure) -> Outcome:
    """Run an experiment of Ax with its defaults. Conditional parameters are always active for it."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    from ax.api.client import Client

    client: Any = Client(random_seed=seed)
    client.configure_experiment(parameters=[_ax_parameter(one) for one in case.space.parameters])
    limits = [one.text for one in case.problem.outcome_constraints]
    objective = ", ".join(f"-{metric}" for metric in case.problem.metrics)
    client.configure_optimization(objective=objective, outcome_constraints=limits)
    tried: list[tuple[Mapping[str, float], Configuration]] = []

    def configuration(chosen: Mapping[str, Any]) -> Configuration:
        return case.space.prune({name: chosen[name] for name in case.space.names()})

    while len(tried) < case.budget:
        asked = client.get_next_trials(max_trials=min(case.batch, case.budget - len(tried)))
        for number, chosen in asked.items():
            metrics = measure(configuration(chosen))
            tried.append((metrics, configuration(chosen)))
            client.complete_trial(trial_index=number, raw_data=dict(metrics))
    if len(case.problem.objectives) > 1:
        found = [one[0] for one in client.get_pareto_frontier()]
    else:
        found = [client.get_best_parameterization()[0]]
    return Outcome([configuration(one) for one in found], _luckiest(case, tried))


def peer(name: str, case: Case, seed: int, measure: Measure) -> Outcome:
    """Run an optimiser of `peers`, which knows one objective and no outcome constraints."""
    assert not case.problem.outcome_constraints
    assert len(case.problem.objectives) == 1
    best: tuple[float, Configuration] | None = None
    done = 0
    with Peer(name, case.space, seed=seed, budget=case.budget, batch=case.batch, noisy=case.problem.noisy) as running:
        while done < case.budget:
            asked = running.ask(min(case.batch, case.budget - done))
            values = [measure(one)["seconds"] for one in asked]
            running.tell(values)
            best = min([*zip(values, asked, strict=True), *([best] if best else [])], key=lambda one: one[0])
            done += len(asked)
        recommended, seconds = running.recommend()
    assert best is not None
    return Outcome([recommended], [best[1]], seconds)


def _luckiest(case: Case, tried: Sequence[tuple[Mapping[str, float], Configuration]]) -> list[Configuration]:
    """Return what has the best single values among the acceptable runs, or among all if there are none."""
    runs = [one for one in tried if case.problem.acceptable(one[0])] or tried
    values = np.array([[metrics[metric] for metric in case.problem.metrics] for metrics, _ in runs])
    if values.shape[1] > 1:
        return [run[1] for run, is_best in zip(runs, non_dominated(values), strict=True) if is_best]
    return [runs[int(values.argmin())][1]]


def _ax_parameter(parameter: Any) -> Any:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    match type(parameter).__name__:
        case "FloatParameter" | "IntParameter" as kind:
            return RangeParameterConfig(
                name=parameter.name,
                bounds=(parameter.min, parameter.max),
                parameter_type="float" if kind == "FloatParameter" else "int",
                scaling="log" if parameter.log else "linear",
            )
        case "BoolParameter":
            return ChoiceParameterConfig(parameter.name, [False, True], "bool", is_ordered=False)
        case "OrdinalParameter":
            return ChoiceParameterConfig(parameter.name, list(parameter.values), "int", is_ordered=True)
    return ChoiceParameterConfig(parameter.name, list(parameter.values), "str", is_ordered=False)


def _suggested(trial: Any, space: Space) -> Configuration:
    found: dict[str, Scalar] = {}
    for parameter in space.parameters:
        condition, name = parameter.condition, parameter.name
        if condition is not None and found.get(condition.parent) not in condition.values:
            continue
        kind: Any = parameter
        match type(parameter).__name__:
            case "FloatParameter":
                found[name] = trial.suggest_float(name, kind.min, kind.max, log=kind.log)
            case "IntParameter":
                found[name] = trial.suggest_int(name, kind.min, kind.max, log=kind.log)
            case "OrdinalParameter":
                # Categories have no order, so the rank is the better form.
                found[name] = kind.values[trial.suggest_int(name, 0, len(kind.values) - 1)]
            case "CategoricalParameter":
                found[name] = trial.suggest_categorical(name, list(kind.values))
            case _:
                found[name] = trial.suggest_categorical(name, [False, True])
    return found


def run(optimiser: str, case: Case, seed: int, measure: Measure) -> Outcome:
    """Run the optimiser of a name such as "auto", "gp" or "optuna-tpe"."""
    if optimiser == "ax":
        return ax(case, seed, measure)
    if optimiser in PEERS:
        return peer(optimiser, case, seed, measure)
    if optimiser.startswith("optuna-"):
        return optuna(case, seed, measure, optimiser.removeprefix("optuna-"))
    return ours(case, seed, measure, optimiser)
