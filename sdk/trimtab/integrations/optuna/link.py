"""An Optuna study and the Trimtab study that holds its trials."""

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from trimtab._internal.connection.forks import Guard
from trimtab._internal.logger import Logger
from trimtab.client import Client
from trimtab.errors import AlreadyExists, Conflict, InvalidInput, NotFound, TrimtabError
from trimtab.integrations.foreign_names import metric_name, parameter_name
from trimtab.integrations.optuna import values as values_of
from trimtab.integrations.optuna.search_space import SearchSpace
from trimtab.space import Params
from trimtab.study import Study
from trimtab.trial import Measurement, Trial

logger = Logger("trimtab")

# The attributes of an Optuna trial that hold the number of its trial in the Trimtab study, and the study's identity.
TRIAL = "trimtab:trial"
STUDY = "trimtab:study"
# A trial with more intermediate values reports so many of them, evenly spread and with the last one.
MOST_STEPS = 100
# Other processes may change the space between the change of this process and its result.
ATTEMPTS = 4
# The service's limits for the attributes of a note.
MOST_ATTRIBUTES = 100
LONGEST_ATTRIBUTE = 2_000
_ATTRIBUTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/ -]{0,99}")


class Link:
    """An Optuna study with its Trimtab study. Thread-safe."""

    def __init__(self, study: optuna.Study, client: Client, name: str, settings: Mapping[str, Any]) -> None:
        self._optuna = study
        self._client = client
        self._name = name
        self._settings = settings
        self._study: Study | None = None
        self._guard = Guard()
        self._space = SearchSpace()
        # The trials that this process has asked for, by their numbers.
        self._asked: dict[int, Trial] = {}
        self._objectives = values_of.objectives(study)

    def load(self) -> Study | None:
        """Return the Trimtab study; None if it does not exist yet. Add the results that it lacks, at the first call.

        Raises:
            Conflict: the study of this name does not belong to the Optuna study.
        """
        with self._guard:
            if self._study is None and self.mark():
                first = next(filter(_defines_space, self._optuna.get_trials(deepcopy=False)), None)
                try:
                    self._begin(self._client.get_study(self._name))
                except NotFound:
                    if first is not None:  # with another sampler
                        self._create(first)
            return self._study

    def distributions(self) -> dict[str, BaseDistribution]:
        """Return the distributions of the parameters in the Trimtab study, by Optuna's names."""
        with self._guard:
            study = self.load()
            if study is None:
                return {}
            study.refresh()
            self._space.see(self._optuna.get_trials(deepcopy=False))
            known = {parameter.name for parameter in study.spec.space}
            return {
                name: distribution
                for name, distribution in self._space.latest.items()
                if parameter_name(name) in known and not distribution.single()
            }

    def ask(self, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
        """Return the suggested values of a trial; none if the space is exhausted."""
        study = self.load()
        if study is None:
            return {}
        found = study.ask()
        if not found:
            logger.warning("the space is exhausted, the next trials are sampled at random", study=study.name)
            return {}
        asked = found[0]
        self._asked[asked.number] = asked
        self._mark_trial(trial, asked)
        return {
            name: values_of.decode(distribution, asked.params[own])
            for name, distribution in search_space.items()
            if (own := parameter_name(name)) in asked.params
        }

    def tell(self, trial: FrozenTrial, failure: str = "") -> None:
        """Report a trial that has ended. `failure`: why it has failed."""
        with self._guard:
            study = self.load()
            if study is None:
                if not _defines_space(trial):
                    return  # it is added once there is a study
                study = self._create(trial)
            number = _number(study, trial)
            if number is None:
                added = self.add(study, trial, failure)
                if added is not None:
                    self._mark_trial(trial, added)
            else:
                self._end(study, number, trial, failure)

    # --- the study

    def create(self, first: FrozenTrial, trials: Sequence[FrozenTrial], **settings: Any) -> Study:
        """Create the study with the space of the trials. The values of `first` are the default configuration."""
        self._space.see(trials)
        constraints = dict.fromkeys(name for trial in trials for name in values_of.constraints(trial))
        return self._client.create_study(
            self._name,
            space=self._space.parameters({}, first.params),
            objectives=self._objectives,
            outcome_constraints=values_of.conditions(constraints),
            **settings,
        )

    def mark(self) -> str:
        """Return the description of the Trimtab study, by which it is known again; "" before the first trial.

        Two storages can have Optuna studies of one name, so it contains the time when the first trial began.
        """
        first = next((trial for trial in self._optuna.get_trials(deepcopy=False) if trial.datetime_start), None)
        if first is None or first.datetime_start is None:
            return ""
        return f"Optuna study {self._optuna.study_name!r}, begun at {first.datetime_start.isoformat()}"

    def _create(self, first: FrozenTrial) -> Study:
        earlier = [trial for trial in self._optuna.get_trials(deepcopy=False) if trial.number < first.number]
        self._space.see(earlier)
        try:
            study = self.create(first, [first], description=self.mark(), **self._settings)
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

    def _catch_up(self, study: Study) -> None:
        """Report the ended trials of the storage that the study lacks."""
        ended = [trial for trial in self._optuna.get_trials(deepcopy=False) if trial.state.is_finished()]
        known = {trial.number: trial for trial in study.trials()}
        own = {number: trial for trial in ended if (number := _number(study, trial)) is not None}
        foreign = [trial for trial in ended if _number(study, trial) is None]
        for number, trial in own.items():
            if number in known and not known[number].state.finished:
                self._end(study, number, trial, "")
        if sum(trial.origin == "added" and trial.number not in own for trial in known.values()) < len(foreign):
            for trial in foreign:
                self.add(study, trial)

    def cover(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        """Change the space so that it contains the configurations of these trials."""
        self._space.see(trials)
        known = {parameter.name: parameter for parameter in study.spec.space}
        wanted = self._space.parameters(known, {})
        if changed := [one for one in wanted if known.get(one.name) != one]:
            study.edit_space(add=changed)

    def _mark_trial(self, trial: FrozenTrial, own: Trial) -> None:
        """Note on an Optuna trial that has not ended yet which trial of the study it is."""
        storage = self._optuna._storage
        storage.set_trial_system_attr(trial._trial_id, STUDY, own.study_uid)
        storage.set_trial_system_attr(trial._trial_id, TRIAL, own.number)

    # --- results

    def add(self, study: Study, trial: FrozenTrial, failure: str = "") -> Trial | None:
        """Add a trial that the study has not suggested. Return None, and say why, if the study cannot hold it."""
        try:
            return self.add_or_raise(study, trial, failure)
        except InvalidInput as error:
            self._warn(study, trial, error)
            return None

    def add_or_raise(self, study: Study, trial: FrozenTrial, failure: str = "") -> Trial:
        """Add a trial that the study has not suggested.

        Raises:
            InvalidInput: the study cannot hold it.
        """
        steps = self._measurements(trial, most=MOST_STEPS * 10)
        for attempt in range(ATTEMPTS):
            try:
                self._cover_with(study, trial)
                added = study.add_trial(
                    configuration_of(trial),
                    measurements=steps,
                    request_id=self._request_id(trial),
                    **self._result(study, trial, failure),
                )
            except InvalidInput:
                if attempt == ATTEMPTS - 1:
                    raise
                study.refresh()
            else:
                self._keep_attributes(study, added, trial)
                return added
        raise AssertionError

    def _end(self, study: Study, number: int, trial: FrozenTrial, failure: str) -> None:
        """Tell the result of a trial that the study has suggested."""
        asked = self._asked.pop(number, None)
        try:
            asked = self._as_measured(study, asked or study.trial(number), trial)
            for one in self._measurements(trial, most=MOST_STEPS):
                study.report(asked, step=one.step, metrics=one.metrics)
            result = self._result(study, trial, failure)
            if "pruned" in result:
                study.stop_trial(asked, result["pruned"])
            else:
                study.tell(asked, **result)
            self._keep_attributes(study, asked, trial)
        except InvalidInput as error:
            # The service would otherwise give the trial to another client.
            self._warn(study, trial, error)
            study.stop_trial(number, f"The study cannot use the result: {error}"[:1000])
        except Conflict as error:
            if error.code not in ("trial_already_finished", "trial_not_active"):
                raise
            # This process had lost its lease, and another client has measured the configuration.
            self.add(study, trial, failure)

    def _as_measured(self, study: Study, asked: Trial, trial: FrozenTrial) -> Trial:
        """Give the study's trial the values that the objective has really used, and return it."""
        used = configuration_of(trial)
        for attempt in range(ATTEMPTS):
            try:
                self._cover_with(study, trial)
                return asked if _same(used, asked.params) else study.replace_params(asked, used)
            except InvalidInput:
                if attempt == ATTEMPTS - 1:
                    raise
                study.refresh()
        raise AssertionError

    def _cover_with(self, study: Study, trial: FrozenTrial) -> None:
        """Change the space so that it contains the trial, and all that other processes have measured."""
        others = [one for one in self._optuna.get_trials(deepcopy=False) if one.number != trial.number]
        self.cover(study, [*others, trial])

    def _measurements(self, trial: FrozenTrial, most: int) -> list[Measurement]:
        """Return the intermediate values that are measurements, at most so many."""
        metric = self._objectives[0].metric
        values = {step: value for step, value in sorted(trial.intermediate_values.items()) if step >= 0}
        found = [
            Measurement(step, {metric: values[step]})
            for step in _some([*values], most)
            if values_of.measured({metric: values[step]})
        ]
        if found and trial.state is TrialState.PRUNED:
            # The last measurement is all that stays of a result.
            found[-1] = Measurement(found[-1].step, {**found[-1].metrics, **numbers_of(trial)})
        return found

    def _result(self, study: Study, trial: FrozenTrial, failure: str) -> dict[str, Any]:
        """Return the result of a trial as arguments of `Study.add_trial`."""
        if trial.state is TrialState.PRUNED:
            return {"pruned": "Optuna's pruner stopped the trial."}
        if trial.state is TrialState.FAIL or trial.values is None:
            return {"failed": failure or "The objective raised an exception or returned no number."}
        metrics = {objective.metric: value for objective, value in zip(self._objectives, trial.values, strict=True)}
        if not values_of.measured(metrics):
            return {"infeasible": f"The objective returned {trial.values}."}
        found = values_of.constraints(trial)
        stated = values_of.constrained(study.spec.outcome_constraints)
        for name in stated:
            if name not in found:
                return {"infeasible": f"The trial has no value of {name}."}
        for name, value in found.items():
            if value > 0 and name not in stated:
                return {"infeasible": f"{name} is {value:g}, above 0."}
        return {"metrics": numbers_of(trial) | found | metrics}

    def _keep_attributes(self, study: Study, own: Trial, trial: FrozenTrial) -> None:
        """Keep the user attributes of a trial in the note of the study's trial."""
        if attributes := attributes_of(trial):
            try:
                study.note(own, attributes=attributes)
            except TrimtabError as error:
                logger.warning(
                    "user attributes of a trial are not kept",
                    study=study.name,
                    optuna_trial=trial.number,
                    error=error,
                )

    def _request_id(self, trial: FrozenTrial) -> str:
        """Return the id of the request that adds a trial: unique in the tenant, and the same in all processes."""
        return f"optuna-{hashlib.sha256(self._name.encode()).hexdigest()[:16]}-{trial.number}"

    def _warn(self, study: Study, trial: FrozenTrial, error: TrimtabError) -> None:
        logger.warning(
            "the study cannot use a trial of Optuna", study=study.name, optuna_trial=trial.number, error=error
        )


def configuration_of(trial: FrozenTrial) -> Params:
    """Return the values that a trial has, as the study has them."""
    return {
        parameter_name(name): values_of.encode(distribution, trial.params[name])
        for name, distribution in trial.distributions.items()
    }


def numbers_of(trial: FrozenTrial) -> dict[str, float]:
    """Return the numbers among a trial's user attributes as metrics."""
    return {
        metric_name(f"attr.{name}"): float(value)
        for name, value in trial.user_attrs.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and values_of.measured({name: value})
    }


def attributes_of(trial: FrozenTrial) -> dict[str, float | int | str | bool]:
    """Return the user attributes of a trial as attributes of a note: lists and the like as JSON, long texts cut."""
    found: dict[str, float | int | str | bool] = {}
    for name, value in list(trial.user_attrs.items())[:MOST_ATTRIBUTES]:
        own = name if _ATTRIBUTE.fullmatch(name) else metric_name(f"attr.{name}")
        plain = isinstance(value, str | bool) or (isinstance(value, int | float) and values_of.measured({name: value}))
        found[own] = value if plain else json.dumps(value)
        if isinstance(found[own], str):
            found[own] = str(found[own]).replace("\0", "\N{REPLACEMENT CHARACTER}")[:LONGEST_ATTRIBUTE]
    return found


def failure_of() -> str:
    """Return why the trial failed that Optuna is about to end in this thread; "" if that is not known.

    Optuna gives a sampler the state of a trial, but not the exception that the objective has raised. It is a variable
    of the calls below this one.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module, variables = frame.f_globals.get("__name__", ""), frame.f_locals
        raised, said = variables.get("func_err"), variables.get("values_conversion_failure_message")
        if module == "optuna.study._optimize" and isinstance(raised, BaseException):
            return f"{type(raised).__name__}: {raised}".removesuffix(": ")[:2000]
        if module == "optuna.study._tell" and isinstance(said, str):
            return said[:2000]
        frame = frame.f_back
    return ""


def _number(study: Study, trial: FrozenTrial) -> int | None:
    """Return the number of the trial in the study; None if no process has noted it.

    Trials of earlier versions do not have the identity of the study.
    """
    if trial.system_attrs.get(STUDY, study.uid) != study.uid:
        return None
    number: int | None = trial.system_attrs.get(TRIAL)
    return number


def _defines_space(trial: FrozenTrial) -> bool:
    """Return whether a trial can define the first space of the study: it has parameters and all its constraints."""
    return trial.state is TrialState.COMPLETE and bool(trial.params)


def _same(first: Params, second: Params) -> bool:
    """Return whether two configurations have the same values of the same types, because 1 is not True."""
    return {name: repr(value) for name, value in first.items()} == {name: repr(value) for name, value in second.items()}


def _some(steps: Sequence[int], most: int) -> list[int]:
    """Return at most `most` of the steps, with the last one."""
    every = -(-len(steps) // most)
    return [step for i, step in enumerate(steps) if (len(steps) - 1 - i) % max(1, every) == 0]
