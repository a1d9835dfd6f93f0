"""Import the studies of an Optuna storage as ended studies."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import optuna
from optuna.trial import TrialState

from trimtab.client import Client
from trimtab.errors import Conflict, InvalidInput, NotFound, TrimtabError, Unavailable
from trimtab.integrations.foreign_names import study_name
from trimtab.integrations.optuna.link import Link
from trimtab.integrations.optuna.read_only import opened
from trimtab.study import Study

# The service's limit for a description.
DESCRIPTION_LIMIT = 10_000


@dataclass(frozen=True)
class Imported:
    """The result for one Optuna study."""

    optuna_name: str
    study: str
    """The name of the study on the service; empty if there is none."""
    trials: dict[str, int]
    """How many trials the study has now, by state."""
    added: int
    """How many of them this import has added."""
    remarks: tuple[str, ...]
    """The parts that could not be mapped."""
    error: str = ""
    """Why this study could not be imported; empty if it was."""


def import_storage(
    client: Client, url: str, names: Sequence[str] = (), *, prefix: str = "", keep_active: bool = False
) -> Iterator[Imported]:
    """Import studies of the storage and yield a result for each. A second import adds new trials, and nothing twice.

    The storage is only read. A study that cannot be imported has an `error`, and the others are imported all the same.

    Args:
        client: the connection to the service.
        url: the storage, such as "sqlite:///study.db" or "postgresql://USER@HOST/DATABASE".
        names: the studies to import; empty: all.
        prefix: a text that the names on the service begin with.
        keep_active: whether the imported studies stay ACTIVE, so that they can be continued.

    Raises:
        InvalidInput: the storage cannot be read, or has no such study.
        Unavailable: the service does not answer.
    """
    with opened(url) as storage:
        known = optuna.study.get_all_study_names(storage)
        for name in names:
            if name not in known:
                allowed = f"one of the storage's studies: {', '.join(known) or 'it has none'}"
                raise InvalidInput.of("study", name, allowed)
        for name in names or known:
            try:
                study = optuna.load_study(study_name=name, storage=storage)
                imported = _Import(client, study, study_name(prefix + name)).run(keep_active)
            except Unavailable:
                raise
            except TrimtabError as error:
                imported = Imported(name, "", {}, 0, (), str(error))
            except Exception as error:  # noqa: BLE001 - a storage can hold anything, and Optuna raises of all kinds
                imported = Imported(name, "", {}, 0, (), f"Optuna cannot read it: {type(error).__name__}: {error}")
            yield imported


class _Import:
    def __init__(self, client: Client, study: optuna.Study, name: str) -> None:
        self._client = client
        self._optuna = study
        self._name = name
        self._link = Link(study, client, name, {})
        self._trials = study.get_trials(deepcopy=False)
        self._ended = [trial for trial in self._trials if trial.state.is_finished()]
        self._remarks: list[str] = []

    def run(self, keep_active: bool) -> Imported:
        with_params = [trial for trial in self._ended if trial.params]
        if not with_params:
            remark = "no ended trial has a parameter, so nothing was imported"
            return Imported(self._optuna.study_name, "", {}, 0, (remark,))
        first = next((trial for trial in with_params if trial.state is TrialState.COMPLETE), with_params[0])
        study = self._find() or self._link.create(
            first, self._ended, algorithm="random", description=self._description()
        )
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

    def _add_all(self, study: Study) -> None:
        if study.state.finished:
            wanted = len(self._ended) - len(study.trials())
            if wanted > 0:
                self._remarks.append(f"{wanted} newer trials are left out, because the study has ended")
            return
        self._link.cover(study, self._ended)
        refused = 0
        for trial in self._ended:
            try:
                self._link.add_or_raise(study, trial)
            except InvalidInput as error:
                refused += 1
                if refused == 1:
                    self._remarks.append(f"trial {trial.number} is refused: {error}")
        if refused > 1:
            self._remarks.append(f"{refused} trials are refused in all")

    def _remark_on_trials(self) -> None:
        unfinished = Counter(trial.state.name for trial in self._trials if not trial.state.is_finished())
        for state, count in unfinished.items():
            self._remarks.append(f"{count} trials that are {state} are left out")
        self._remarks.append("times and durations of trials")
