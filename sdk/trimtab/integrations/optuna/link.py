"""An Optuna study and the Trimtab study that holds its trials."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from trimtab._internal.logger import Logger
from trimtab.client import Client
from trimtab.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from trimtab.integrations.foreign_names import parameter_name
from trimtab.integrations.optuna import values as values_of
from trimtab.space import Float, Int, Parameter, Params, Scalar
from trimtab.study import Study
from trimtab.trial import Trial

logger = Logger("trimtab")

# The attribute of an Optuna trial that holds the number of its trial in the Trimtab study.
TRIAL = "trimtab:trial"
# A trial with more intermediate values reports so many of them, evenly spread and with the last one.
MOST_STEPS = 100


class Link:
    """An Optuna study with its Trimtab study. Thread-safe."""

    def __init__(self, study: optuna.Study, client: Client, name: str, settings: Mapping[str, Any]) -> None:
        self._optuna = study
        self._client = client
        self._name = name
        self._settings = settings
        self._study: Study | None = None
        self._guard = threading.RLock()
        self._objectives = values_of.objectives(study)

    def load(self) -> Study | None:
        """Return the Trimtab study; None if it does not exist yet. Add the results that it lacks, at the first call.

        Raises:
            Conflict: the study of this name does not belong to the Optuna study.
        """
        with self._guard:
            if self._study is None and self.mark():
                completed = [trial for trial in self._optuna.get_trials(deepcopy=False) if _has_values(trial)]
                try:
                    self._begin(self._client.get_study(self._name))
                except NotFound:
                    if completed:  # with another sampler
                        self._create(completed[0])
            return self._study

    def distributions(self) -> dict[str, BaseDistribution]:
        """Return the distributions of the parameters in the Trimtab study, by Optuna's names."""
        study = self.load()
        if study is None:
            return {}
        study.refresh()
        known = {parameter.name for parameter in study.spec.space}
        return {
            name: distribution
            for name, distribution in self._seen().items()
            if parameter_name(name) in known and not distribution.single()
        }

    def ask(self, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """Return the suggested values of a trial; none if the space is exhausted."""
        study = self._study
        assert study is not None
        found = study.ask()
        if not found:
            logger.warning("the space is exhausted, the next trials are sampled at random", study=study.name)
            return {}
        self._optuna._storage.set_trial_system_attr(trial._trial_id, TRIAL, found[0].number)
        params = found[0].params
        return {
            name: values_of.decode(distribution, params[own])
            for name, distribution in search_space.items()
            if (own := parameter_name(name)) in params
        }

    def tell(self, trial: FrozenTrial) -> None:
        """Report a trial that has ended."""
        with self._guard:
            study = self.load()
            if study is None:
                if not _has_values(trial):
                    return  # it is added once there is a study
                study = self._create(trial)
            self.report(study, trial, None)

    # --- the study

    def _create(self, trial: FrozenTrial) -> Study:
        """Create the study with the space of a completed trial. The trial's values are the default configuration."""
        space = self._parameters(trial)
        if not space:
            raise InvalidInput.of("search space", list(trial.params), "at least one parameter with several values")
        try:
            study = self._client.create_study(
                self._name,
                space=space,
                objectives=self._objectives,
                outcome_constraints=values_of.conditions(values_of.constraints(trial)),
                description=self.mark(),
                **self._settings,
            )
        except AlreadyExists:  # another process was faster, with the space of another trial
            study = self._client.get_study(self._name)
        self._begin(study)
        return study

    def _begin(self, study: Study) -> None:
        if study.spec.description != self.mark():
            raise Conflict(
                "study_of_others",
                f"Study {study.name} exists, but not for the Optuna study {self._optuna.study_name!r} of this storage."
                " Give the sampler another name: TrimtabSampler(name=...).",
            )
        self._study = study
        self._catch_up(study)

    def mark(self) -> str:
        """Return the description of the Trimtab study, by which it is known again; "" before the first trial.

        Two storages can have Optuna studies of one name, so it contains the time when the first trial began.
        """
        first = next((trial for trial in self._optuna.get_trials(deepcopy=False) if trial.datetime_start), None)
        if first is None or first.datetime_start is None:
            return ""
        return f"Optuna study {self._optuna.study_name!r}, begun at {first.datetime_start.isoformat()}"

    def _catch_up(self, study: Study) -> None:
        """Report the ended trials of the storage that the study lacks."""
        ended = [trial for trial in self._optuna.get_trials(deepcopy=False) if trial.state.is_finished()]
        known = {trial.number: trial for trial in study.trials()}
        added = sum(trial.origin == "added" for trial in known.values())
        foreign = [trial for trial in ended if TRIAL not in trial.system_attrs and _can_be_added(trial)]
        own = [trial for trial in ended if TRIAL in trial.system_attrs]
        for trial in [*own, *(foreign if added < len(foreign) else [])]:
            number = trial.system_attrs.get(TRIAL)
            if number is None or (number in known and not known[number].state.finished):
                self.report(study, trial, None if number is None else known.get(number))

    def _seen(self) -> dict[str, BaseDistribution]:
        """Return the latest distribution of each parameter that a trial has had."""
        found: dict[str, BaseDistribution] = {}
        for trial in self._optuna.get_trials(deepcopy=False):
            found.update(trial.distributions)
        return found

    def _parameters(self, trial: FrozenTrial) -> list[Parameter]:
        made = (
            values_of.to_parameter(name, distribution, trial.params[name])
            for name, distribution in trial.distributions.items()
        )
        return [parameter for parameter in made if parameter is not None]

    def _cover(self, study: Study, trial: FrozenTrial) -> None:
        """Add the trial's new parameters to the space, and widen the ranges of others to the trial's."""
        for attempt in (1, 2):
            study.refresh()
            known = {parameter.name: parameter for parameter in study.spec.space}
            wanted = self._parameters(trial)
            new = [parameter for parameter in wanted if parameter.name not in known]
            wider = {
                parameter.name: hull
                for parameter in wanted
                if parameter.name in known and (hull := _hull(known[parameter.name], parameter)) is not None
            }
            try:
                if new:
                    study.edit_space(add=new)
                if wider:
                    study.change_space(wider)
                return
            except InvalidInput:
                if attempt == 2:  # at the first time another process may have made the same change
                    raise

    # --- results

    def report(self, study: Study, trial: FrozenTrial, asked: Trial | None) -> None:
        number = trial.system_attrs.get(TRIAL)
        if number is None and not _can_be_added(trial):
            return
        try:
            self._cover(study, trial)
            if number is not None:
                asked = asked or study.trial(number)
                if self._is_as_suggested(study, asked, trial):
                    self.end(study, asked, trial)
                    return
                study.stop_trial(number, "The objective used other values than suggested; its result is added.")
            if _can_be_added(trial):
                study.add_trial(
                    self.configuration(study, trial), request_id=self.request_id(trial), **self.result(study, trial)
                )
        except InvalidInput as error:
            logger.warning(
                "the study cannot use a trial of Optuna", study=study.name, optuna_trial=trial.number, error=error
            )

    def end(self, study: Study, asked: Trial, trial: FrozenTrial) -> None:
        """Tell the result of a trial that was suggested."""
        metric = self._objectives[0].metric
        try:
            for step in _some(sorted(trial.intermediate_values)):
                value = {metric: trial.intermediate_values[step]}
                if step >= 0 and values_of.finite(value):
                    study.report(asked, step=step, metrics=value)
            if trial.state is TrialState.PRUNED:
                study.stop_trial(asked, "Optuna's pruner stopped the trial.")
            else:
                study.tell(asked, **self.result(study, trial))
        except Conflict as error:
            if error.code not in ("trial_already_finished", "trial_not_active") or not _can_be_added(trial):
                raise
            # This process had lost its lease, and another client has measured the configuration.
            result = self.result(study, trial)
            study.add_trial(self.configuration(study, trial), request_id=self.request_id(trial), **result)

    def result(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        """Return the result of a trial that is COMPLETE or FAIL, as arguments of `Study.tell`."""
        if trial.state is TrialState.FAIL or trial.values is None:
            return {"failed": "The objective raised an exception or returned no number."}
        metrics = {objective.metric: value for objective, value in zip(self._objectives, trial.values, strict=True)}
        if not values_of.finite(metrics):
            return {"infeasible": f"The objective returned {trial.values}."}
        found = values_of.constraints(trial)
        stated = values_of.constrained(study.spec.outcome_constraints)
        for name in stated:
            if name not in found:
                return {"infeasible": f"The trial has no value of {name}."}
        for name, value in found.items():
            if value > 0 and name not in stated:
                return {"infeasible": f"{name} is {value:g}, above 0."}
        return {"metrics": metrics | found}

    def request_id(self, trial: FrozenTrial) -> str:
        """Return the id of the request that adds a trial: unique in the tenant, and the same in all processes."""
        return f"optuna-{hashlib.sha256(self._name.encode()).hexdigest()[:16]}-{trial.number}"

    def configuration(self, study: Study, trial: FrozenTrial) -> dict[str, Scalar]:
        """Return the trial's values, with defaults where the trial lacks a parameter."""
        own = {
            parameter_name(name): values_of.encode(distribution, trial.params[name])
            for name, distribution in trial.distributions.items()
        }
        return {
            parameter.name: own.get(parameter.name, parameter.default)
            for parameter in study.spec.space
            if parameter.default is not None
        }

    def _is_as_suggested(self, study: Study, asked: Trial, trial: FrozenTrial) -> bool:
        """Return whether the trial has the values that the study has for it."""
        suggested: Params = {parameter.name: parameter.default for parameter in study.spec.space} | asked.params
        for name, distribution in trial.distributions.items():
            own = parameter_name(name)
            if own in suggested and suggested[own] != values_of.encode(distribution, trial.params[name]):
                return False
        return True


def _has_values(trial: FrozenTrial) -> bool:
    """Return whether a trial can define the first space of the study: it has parameters and all its constraints."""
    return trial.state is TrialState.COMPLETE and bool(trial.params)


def _can_be_added(trial: FrozenTrial) -> bool:
    """Return whether a trial can be added with its result. A pruned trial has a bound only."""
    return trial.state in (TrialState.COMPLETE, TrialState.FAIL) and bool(trial.params)


def _hull(known: Parameter, wanted: Parameter) -> dict[str, float] | None:
    """Return the range that contains both; None if `known` contains `wanted`."""
    if not isinstance(known, Float | Int) or not isinstance(wanted, Float | Int):
        return None
    if known.min <= wanted.min and wanted.max <= known.max:
        return None
    return {"min": min(known.min, wanted.min), "max": max(known.max, wanted.max)}


def _some(steps: Sequence[int]) -> list[int]:
    """Return at most MOST_STEPS of the steps, with the last one."""
    every = -(-len(steps) // MOST_STEPS)
    return [step for i, step in enumerate(steps) if (len(steps) - 1 - i) % max(1, every) == 0]
