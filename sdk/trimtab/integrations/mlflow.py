"""Trials as runs of MLflow. `pip install mlflow-skinny`.

from trimtab.integrations.mlflow import MlflowLogger

logger = MlflowLogger(tracking_uri="sqlite:///mlflow.db", console="https://tune.example.org")
study.optimize(fn, callbacks=[logger])      # or, for a study that agents run: logger.follow(study)
"""

import re
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from trimtab.integrations.trial_logger import TrialLogger, identity, steps
from trimtab.study import Study
from trimtab.trial import Trial, TrialState

try:
    from mlflow.entities import Metric, Param, RunStatus, RunTag
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
except ImportError as error:
    raise ImportError("trimtab.integrations.mlflow needs MLflow: pip install mlflow-skinny") from error

__all__ = ["MlflowLogger"]

STATUS = {TrialState.COMPLETED: "FINISHED", TrialState.PRUNED: "KILLED"}
STUDY, TRIAL = "trimtab.identity", "trimtab.trial"
# MLflow's limits: entries of one call, and characters of a value.
MOST_METRICS, MOST_PARAMS = 1000, 100
LONGEST_PARAM, LONGEST_TAG = 6000, 5000
PAGE = 1000


class MlflowLogger(TrialLogger):
    """Copies each finished trial to a run of MLflow: parameters, metrics of all steps, state, and a link.

    A COMPLETED trial is FINISHED, a PRUNED one is KILLED, and an INFEASIBLE or FAILED one is FAILED. Tags whose names
    begin with `trimtab.` have the rest. Characters that MLflow does not allow in a name become `_`.

    Args:
        experiment: the experiment's name. Default: the name of the study.
        tracking_uri: the tracking server or store. Default: as for MLflow itself, MLFLOW_TRACKING_URI.
        console: the address of Trimtab's console, for links. Default: no links.

    Raises:
        ImportError: MLflow is not installed (when the module is imported).
        InvalidInput: `console` is not an address.
    """

    def __init__(self, experiment: str | None = None, *, tracking_uri: str | None = None, console: str = "") -> None:
        super().__init__(console)
        self._client = MlflowClient(tracking_uri=tracking_uri)
        self._experiment = experiment
        self._guard = threading.Lock()
        # The runs of each study: their ids by trial, and the trials that are complete.
        self._known: dict[str, tuple[str, dict[str, str], set[str]]] = {}

    def log(self, study: Study, trial: Trial) -> None:
        """Copy a finished trial, unless MLflow has it already. Raises MlflowException if MLflow refuses it."""
        with self._guard:
            experiment, runs, complete = self._runs(study)
            number = str(trial.number)
            if number in complete:
                return
            ended = _milliseconds(trial.finished_at)
            started = _milliseconds(trial.started_at or trial.created_at)
            if number not in runs:
                # These two tags find the run again if this program ends before it is complete.
                tags = {STUDY: identity(study), TRIAL: number}
                run = self._client.create_run(
                    experiment, start_time=started, tags=tags, run_name=f"{study.name}-{number}"
                )
                runs[number] = run.info.run_id
            for part in self._parts(study, trial, ended or started or 0):
                self._client.log_batch(runs[number], **part)
            self._client.set_terminated(runs[number], STATUS.get(trial.state, "FAILED"), end_time=ended)
            complete.add(number)

    def _parts(self, study: Study, trial: Trial, time: int) -> Iterator[dict[str, Sequence[Any]]]:
        """Yield the content of the run in parts that MLflow accepts."""
        facts = self._facts(study, trial)
        params = [Param(_name(name), str(value)[:LONGEST_PARAM]) for name, value in trial.params.items()]
        metrics = [
            Metric(_name(name), value, time, step)
            for step, values in steps(study, trial).items()
            for name, value in values.items()
        ]
        yield {"tags": [RunTag(f"trimtab.{name}", text[:LONGEST_TAG]) for name, text in facts.items()]}
        for begin in range(0, len(params), MOST_PARAMS):
            yield {"params": params[begin : begin + MOST_PARAMS]}
        for begin in range(0, len(metrics), MOST_METRICS):
            yield {"metrics": metrics[begin : begin + MOST_METRICS]}

    def _runs(self, study: Study) -> tuple[str, dict[str, str], set[str]]:
        key = identity(study)
        if key not in self._known:
            experiment = self._find_experiment(self._experiment or study.name)
            runs: dict[str, str] = {}
            complete: set[str] = set()
            token = None
            while True:
                found = self._client.search_runs(
                    [experiment], f"tags.`{STUDY}` = '{key}'", max_results=PAGE, page_token=token
                )
                for run in found:
                    number = run.data.tags[TRIAL]
                    runs[number] = run.info.run_id
                    if RunStatus.is_terminated(RunStatus.from_string(run.info.status)):
                        complete.add(number)
                token = found.token
                if not token:
                    break
            self._known[key] = experiment, runs, complete
        return self._known[key]

    def _find_experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:
                # Another program has created it meanwhile.
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)


def _name(name: str) -> str:
    return re.sub(r"[^\w.\- :/]", "_", name)


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1000)
