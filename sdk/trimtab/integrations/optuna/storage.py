"""Import the studies of an Optuna storage as ended studies."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from trimtab.client import Client
from trimtab.errors import Conflict, InvalidInput, NotFound
from trimtab.integrations.foreign_names import metric_name, study_name
from trimtab.integrations.optuna import values as values_of
from trimtab.integrations.optuna.link import Link
from trimtab.space import Parameter
from trimtab.study import Study

# The service's limit for a description.
DESCRIPTION_LIMIT = 10_000


@dataclass(frozen=True)
class Imported:
    """The result for one Optuna study."""

    optuna_name: str
    study: str
    """The name of the study on the service."""
    trials: dict[str, int]
    """How many trials the study has now, by state."""
    added: int
    """How many of them this import has added."""
    remarks: tuple[str, ...]
    """The parts that could not be mapped."""


def import_storage(
    client: Client, url: str, names: Sequence[str] = (), *, prefix: str = "", keep_active: bool = False
) -> Iterator[Imported]:
    """Import studies of the storage and yield a result for each. A second import adds new trials, and nothing twice.

    Args:
        client: the connection to the service.
        url: the storage, such as "sqlite:///study.db" or "postgresql://USER@HOST/DATABASE".
        names: the studies to import; empty: all.
        prefix: a text that the names on the service begin with.
        keep_active: whether the imported studies stay ACTIVE, so that they can be continued.

    Raises:
        InvalidInput: the storage cannot be read, or has no such study.
        Conflict: a study of this name exists that is not from this Optuna study.
    """
    try:
        storage = optuna.storages.get_storage(url)
        known = optuna.study.get_all_study_names(storage)
    except Exception as error:  # of SQLAlchemy, of a database driver, or of Optuna
        allowed = "a readable Optuna storage, such as sqlite:///study.db or postgresql+psycopg://USER@HOST/DATABASE"
        lines = str(error).strip().splitlines()
        raise InvalidInput.of("storage", url, f"{allowed} ({lines[0] if lines else type(error).__name__})") from error
    for name in names:
        if name not in known:
            raise InvalidInput.of("study", name, f"one of the storage's studies: {', '.join(known) or 'it has none'}")
    for name in names or known:
        study = optuna.load_study(study_name=name, storage=storage)
        yield _Import(client, study, study_name(prefix + name)).run(keep_active)


class _Import:
    def __init__(self, client: Client, study: optuna.Study, name: str) -> None:
        self._client = client
        self._optuna = study
        self._name = name
        self._link = Link(study, client, name, {})
        self._trials = study.get_trials(deepcopy=False)
        self._ended = [trial for trial in self._trials if trial.state.is_finished() and trial.params]
        self._remarks: list[str] = []

    def run(self, keep_active: bool) -> Imported:
        space = self._space()
        if not space:
            remark = "no ended trial has a parameter with several values, so nothing was imported"
            return Imported(self._optuna.study_name, "", {}, 0, (remark,))
        study = self._find() or self._create(space)
        before = len(study.trials())
        self._add_all(study)
        if study.refresh().state == "ACTIVE" and not keep_active:
            study.complete("Imported from Optuna.")
        self._remark_on_trials()
        found = Counter(str(trial.state) for trial in study.trials())
        return Imported(
            self._optuna.study_name, self._name, dict(found), sum(found.values()) - before, tuple(self._remarks)
        )

    def _find(self) -> Study | None:
        try:
            study = self._client.get_study(self._name)
        except NotFound:
            return None
        if self._mark() not in study.spec.description:
            raise Conflict(
                "study_of_others",
                f"Study {self._name} exists, but not from this Optuna study. Import it under other names: --prefix.",
            )
        return study

    def _create(self, space: Sequence[Parameter]) -> Study:
        constraints = dict.fromkeys(name for trial in self._ended for name in values_of.constraints(trial))
        return self._client.create_study(
            self._name,
            space=space,
            objectives=values_of.objectives(self._optuna),
            outcome_constraints=values_of.conditions(constraints),
            algorithm="random",  # the study only keeps results
            description=self._description(),
        )

    def _mark(self) -> str:
        return f"Imported from {self._link.mark()}."

    def _description(self) -> str:
        attributes = self._optuna.user_attrs
        if not attributes:
            return self._mark()
        text = f"{self._mark()}\n\nUser attributes:\n\n    " + json.dumps(attributes, indent=2, default=str).replace(
            "\n", "\n    "
        )
        if len(text) > DESCRIPTION_LIMIT:
            self._remarks.append("the study's user attributes are cut, because a description has a limit")
        return text[:DESCRIPTION_LIMIT]

    def _space(self) -> list[Parameter]:
        """Return the parameters of all trials. The default of each is its value in the first trial that has it."""
        seen: dict[str, tuple[BaseDistribution, Any]] = {}
        for trial in self._ended:
            for name, distribution in trial.distributions.items():
                known = seen.get(name)
                if known is None or (distribution != known[0] and not distribution.single()):
                    wider = distribution if known is None else _hull(known[0], distribution)
                    seen[name] = (wider, trial.params[name] if known is None else known[1])
        made = {name: values_of.to_parameter(name, *found) for name, found in seen.items()}
        if single := [name for name, parameter in made.items() if parameter is None]:
            self._remarks.append(f"parameters with one value are left out: {', '.join(single)}")
        if partial := [name for name in made if any(name not in trial.params for trial in self._ended)]:
            self._remarks.append(f"trials without {', '.join(partial)} have the value of the first trial that has it")
        return [parameter for parameter in made.values() if parameter is not None]

    def _add_all(self, study: Study) -> None:
        if study.state.finished:
            wanted = len(self._ended) - len(study.trials())
            if wanted > 0:
                self._remarks.append(f"{wanted} newer trials are left out, because the study has ended")
            return
        refused = 0
        for trial in self._ended:
            try:
                self._add(study, trial)
            except InvalidInput as error:
                refused += 1
                if refused == 1:
                    self._remarks.append(f"trial {trial.number} is refused: {error}")
        if refused > 1:
            self._remarks.append(f"{refused} trials are refused in all")

    def _add(self, study: Study, trial: FrozenTrial) -> None:
        params = self._link.configuration(study, trial)
        request_id = self._link.request_id(trial)
        if trial.state is not TrialState.PRUNED and not trial.intermediate_values:
            result = self._link.result(study, trial)
            if "metrics" in result:
                result["metrics"] |= _numbers(trial)
            study.add_trial(params, request_id=request_id, **result)
            return
        # A trial with measurements has to be active first.
        [queued] = study.enqueue(params, request_id=request_id)
        if queued.state.finished:
            return
        if queued.state == "REQUESTED":
            asked = study.ask(lease=None)
            if [one.number for one in asked] != [queued.number]:
                raise Conflict("imported_at_once", f"Another program uses study {self._name}. Import it again later.")
        self._link.end(study, queued, trial)

    def _remark_on_trials(self) -> None:
        unfinished = Counter(trial.state.name for trial in self._trials if not trial.state.is_finished())
        for state, count in unfinished.items():
            self._remarks.append(f"{count} trials that are {state} are left out")
        if empty := sum(trial.state.is_finished() and not trial.params for trial in self._trials):
            self._remarks.append(f"{empty} trials without parameters are left out")
        attributes = {
            name for trial in self._ended for name, value in trial.user_attrs.items() if not _is_number(value)
        }
        if attributes:
            self._remarks.append(f"user attributes of trials that are no numbers: {', '.join(sorted(attributes))}")
        self._remarks.append("times and durations of trials")


def _numbers(trial: FrozenTrial) -> dict[str, float]:
    """Return the numbers among a trial's user attributes as metrics."""
    return {metric_name(f"attr.{name}"): float(value) for name, value in trial.user_attrs.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _hull(first: BaseDistribution, second: BaseDistribution) -> BaseDistribution:
    """Return a distribution that contains both; Optuna allows other ranges, but no other kind and no other choices."""
    if first.single() and not second.single():
        first, second = second, first
    if isinstance(first, optuna.distributions.FloatDistribution) and isinstance(second, type(first)):
        low, high = min(first.low, second.low), max(first.high, second.high)
        step = first.step if first.step == second.step else None
        return optuna.distributions.FloatDistribution(low, high, log=first.log, step=step)
    if isinstance(first, optuna.distributions.IntDistribution) and isinstance(second, type(first)):
        low, high = min(first.low, second.low), max(first.high, second.high)
        step = first.step if first.step == second.step and (first.low - second.low) % first.step == 0 else 1
        return optuna.distributions.IntDistribution(low, high, log=first.log, step=step)
    return first
