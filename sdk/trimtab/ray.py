"""Ray Tune runs the trials, Trimtab says which. Needs Ray: `pip install "trimtab[ray]"`.

    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from trimtab.ray import TrimtabScheduler, TrimtabSearch

    search = TrimtabSearch(study)
    tuner = tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            search_alg=search,
            scheduler=TrimtabScheduler(search, ASHAScheduler(metric="loss", mode="min", max_t=81)),
            num_samples=100,
            max_concurrent_trials=8,
        ),
    )
    tuner.fit()
    print(study.best_trial.params)

The study has the search space, the objectives and the history. After a crash of the driver `tune.Tuner.restore` goes on
with the trials that were open: Ray writes its own state down every ten seconds or so, the service knows the rest. A
driver that ends otherwise, as with an error of Ray's, first ends the trials that are still open.
"""

import atexit
import json
import logging
import math
import re
import sys
import uuid
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.client import Client
from trimtab.errors import Conflict, Infeasible, InvalidInput, OperationFailed, Timeout, TrimtabError
from trimtab.objective import Maximize
from trimtab.optimize import RESULTS_AWAITED
from trimtab.study import Study
from trimtab.trial import TrialState

try:
    from ray import cloudpickle
    from ray.tune.result import AUTO_RESULT_KEYS, DONE, TIME_TOTAL_S, TRAINING_ITERATION, TRIAL_ID
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler
    from ray.tune.search import Searcher
    from ray.tune.search.variant_generator import parse_spec_vars
except ImportError as error:
    raise ImportError('trimtab.ray needs Ray Tune: pip install "trimtab[ray]"') from error

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Trial as RayTrial

__all__ = ["TrimtabScheduler", "TrimtabSearch"]

logger = logging.getLogger("trimtab")

# Seconds for which one call of `suggest` waits for the algorithm. Ray handles no result meanwhile, and asks again.
ASK_SECONDS = 2.0
# What Ray adds to every result.
_RAYS_OWN = {*AUTO_RESULT_KEYS, DONE, TRIAL_ID, "should_checkpoint", "experiment_tag"}

Result = Mapping[str, Any]
"""What a trainable reported and what Ray added, flat: nested names are joined by '/'."""

# Studies that searches of this process were made with, by address and name. A search that Ray has restored from its
# files, which hold no token, is connected as they are.
_connected: dict[tuple[str, str], Study] = {}
# Searches of this process by which Ray has been given trials, or has them again. A copy that Ray has merely unpickled,
# in a worker perhaps, is none of them.
_at_work: set["TrimtabSearch"] = set()


@atexit.register
def _close_all() -> None:
    for search in tuple(_at_work):
        search.close(_why_it_ends())


def _why_it_ends() -> str:
    """The error that this process, or the use of its client, ends with."""
    error: BaseException | None = sys.exc_info()[1] or getattr(sys, "last_value", None)
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    return "" if error is None else _in_a_line(error)


def _in_a_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    # Ray has errors whose text is another one's traceback
    told = lines[-1] if lines[0].startswith("Traceback ") else f"{type(error).__name__}: {lines[0]}"
    return told[:1800]


class TrimtabSearch(Searcher):  # type: ignore[misc]  # Ray's own types are not looked at
    """Asks a study for Ray Tune's trials, and tells it what they were worth.

    Each of Ray's trials is one of the study. Its results are reported as measurements, by `training_iteration`; the
    last one is its value. A trainable has to report every objective of the study under its name, and whatever the
    study's outcome constraints name; other numbers are kept too. An objective that is infinite or no number is no
    measurement, and in the last result says that the configuration cannot work (INFEASIBLE); an exception or a lost
    worker makes the trial FAILED, after as many new starts as Ray's `FailureConfig` allows.

    `param_space` of the Tuner may hold constants only. One that is named as a parameter of the study has that value in
    all trials.

    The search has a `client_id` of its own, which Ray keeps in its files with the open trials. `tune.Tuner.restore`
    then goes on with them: those that Ray had written down it runs again itself, and those begun since come back as
    new ones. A result counts once, the first time. The restored search finds the service again by TRIMTAB_TOKEN or
    `trimtab login`; a script that has its token from elsewhere makes a TrimtabSearch of the study before it restores.

    Trials that are open when the process ends are FAILED (see `close`), except where it is killed. What a restored
    Tuner then measures of them is added to the study, while that goes on.

    Args:
        study: an ask/tell study; it may be in use by others, too.

    Raises:
        InvalidInput: the study's trials run on agents.
    """

    def __init__(self, study: Study) -> None:
        if study.spec.execution is not None:
            raise InvalidInput.of("study", study.name, "a study without a component, whose trials you run yourself")
        objectives = study.objectives
        modes = ["max" if isinstance(objective, Maximize) else "min" for objective in objectives]
        names = [objective.metric for objective in objectives]
        # Ray takes a list where there are several
        super().__init__(*((names[0], modes[0]) if len(names) == 1 else (names, modes)))
        self.client_id = f"ray-{uuid.uuid4().hex}"
        self._address = study.address
        self._name = study.name
        self._fixed: dict[str, Any] = {}
        # Numbers of open trials by Ray's names for them.
        self._open: dict[str, int] = {}
        self._study: Study | None = None
        self._forget()
        _connected[self._address, self._name] = study

    def _forget(self) -> None:
        """Nothing is known but what `_state` holds."""
        # The last step that was reported of a trial; the states of those that somebody else has ended; why the
        # scheduler stops one; and its latest error.
        self._steps: dict[str, int] = {}
        self._ended: dict[str, TrialState] = {}
        self._stopped: dict[str, str] = {}
        self._errors: dict[str, BaseException] = {}
        self._told_pause = False
        # Whether there may be a trial that Ray has not: of an ask that was not waited for, or of a driver that crashed.
        self._is_asking = False

    @property
    def study(self) -> Study:
        """The study, asked as this search's own client.

        Raises:
            Unauthenticated: there is no token for the service.
        """
        if self._study is None:
            known = _connected.get((self._address, self._name))
            if known is None:
                known = _connected[self._address, self._name] = Client(self._address).get_study(self._name)
            self._study = known.as_client(self.client_id, held=self._open.values())
        return self._study

    # --- what Ray calls

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **_: Any) -> bool:
        """Takes the Tuner's constants. Raises InvalidInput where the Tuner wants something else than the study."""
        self.check_goal(metric, mode)
        _, domains, grids = parse_spec_vars(config)
        for path, domain in (*domains, *grids):
            field = f"param_space.{'.'.join(map(str, path))}"
            raise InvalidInput.of(field, domain, f"a constant: study {self._name} has the search space")
        names = {parameter.name for parameter in self.study.spec.space}
        self._fixed = {name: value for name, value in config.items() if name in names}
        return True

    def suggest(self, trial_id: str) -> Any:
        """A configuration for one of Ray's trials; None: not now; FINISHED: there is nothing more to do.

        Raises:
            TrimtabError: the service refuses, or is away for longer than the client is willing to try.
        """
        try:
            trials = self.study.ask(fixed=self._fixed, timeout=ASK_SECONDS)
        except Timeout:
            self._is_asking = True
            self._begin()
            return None
        except (Conflict, OperationFailed) as error:
            return self._no_trial(error)
        self._told_pause = self._is_asking = False
        if not trials:
            logger.info("The space of study %s is exhausted.", self._name)
            return Searcher.FINISHED
        self._open[trial_id] = trials[0].number
        self._begin()
        return dict(trials[0].params)

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        """Reports a result of a trial that goes on."""
        self.report(trial_id, result)

    def on_trial_complete(self, trial_id: str, result: Result | None = None, error: bool = False) -> None:
        """Ends a trial with its last result."""
        if trial_id not in self._open:
            logger.warning(
                "Ray's trial %s is none that study %s was asked for; it does not count.", trial_id, self._name
            )
            return
        try:
            if self._ended.get(trial_id) is not TrialState.PRUNED:
                self._tell(trial_id, result, error)
        except Conflict as conflict:
            self._told_late(trial_id, result, error, conflict)
        for known in (self._open, self._steps, self._ended, self._stopped, self._errors):
            known.pop(trial_id, None)

    def save(self, checkpoint_path: str) -> None:
        """Writes to a file what `restore` needs. It holds no token."""
        Path(checkpoint_path).write_text(json.dumps(self._state()), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Goes on as the search that wrote the file. Raises OSError, or ValueError where the file is none of ours."""
        path = Path(checkpoint_path)
        self._load(json.loads(path.read_text(encoding="utf-8")))
        # A crash may come between the writing of Ray's own state and of this one. An open trial that Ray does not know
        # nobody would run: without its name it comes back with the next ask.
        if states := sorted(path.parent.glob("experiment_state-*.json")):
            known = states[-1].read_text(encoding="utf-8")
            self._open = {trial_id: number for trial_id, number in self._open.items() if trial_id in known}
        self._is_asking = True
        self._begin()

    # --- at the end

    def close(self, reason: str = "") -> None:
        """Ends the trials that Ray has been given and has not ended: FAILED, for nobody works on them.

        That is done when the study's client is closed and at the end of the process, unless it is killed. Where it goes
        on after a Tuner that has not come to its end, as in a notebook, call it. A service that does not answer is
        waited for as in any other call.
        """
        _at_work.discard(self)
        if not self._open and not self._is_asking:
            return
        told = "Ray Tune ended before this trial did" + (f": {reason}" if reason else "")
        try:
            own = {trial.number for trial in self.study.trials(["ACTIVE"]) if trial.client_id == self.client_id}
            for number in sorted(own.union(self._open.values())):
                try:
                    self.study.tell(number, failed=told)
                except Conflict as ended:
                    logger.debug("Trial %d of study %s: %s", number, self._name, ended)
        except TrimtabError as error:
            logger.error("Study %s: trials that nobody runs any more may be left open: %s", self._name, error)
        self._open.clear()
        self._is_asking = False

    def _begin(self) -> None:
        """There are trials to be ended, should Ray not do it."""
        if self not in _at_work:
            _at_work.add(self)
            self.study.before_close(self._close_with_client)

    def _close_with_client(self) -> None:
        if self in _at_work:
            self.close(_why_it_ends())

    # --- for the scheduler

    def check_goal(self, metric: str | None, mode: str | None) -> None:
        """Raises InvalidInput where the Tuner has a metric or mode, and not the study's."""
        for wanted, found, name in ((metric, self._metric, "metric"), (mode, self._mode, "mode")):
            if wanted is not None and wanted != found:
                raise InvalidInput.of(f"TuneConfig.{name}", wanted, f"{found!r}, as study {self._name} has it")

    def needed_metrics(self) -> list[str]:
        """What the study needs of every trial: its objectives, then what its outcome constraints name."""
        constraints = " ".join(self.study.spec.outcome_constraints)
        return list(dict.fromkeys([*self._names(), *re.findall(r"[A-Za-z_]\w*", constraints)]))

    def report(self, trial_id: str, result: Result) -> bool:
        """Reports a result; whether the service has stopped the trial. One that was reported already is not again."""
        number = self._open.get(trial_id)
        metrics = self._metrics(result)
        step = result.get(TRAINING_ITERATION)
        known = trial_id in self._ended or step is None or step <= self._steps.get(trial_id, -1)
        if number is not None and step is not None and metrics is not None and not known:
            self._report(trial_id, number, int(step), metrics, result.get(TIME_TOTAL_S))
        return self._ended.get(trial_id) is TrialState.PRUNED

    def is_readable(self, result: Result) -> bool:
        """Whether the objectives in a result are numbers. Ray's schedulers fail on others, and with them all trials."""
        return all(isinstance(result[metric], Real) for metric in self._names() if metric in result)

    def stop_early(self, trial_id: str, reason: str) -> None:
        """The scheduler gives a trial up: its value is a bound, no measurement (PRUNED)."""
        self._stopped[trial_id] = reason

    def note_error(self, trial_id: str, error: BaseException) -> None:
        """A trial has ended with an error, and is perhaps begun again."""
        self._errors[trial_id] = error

    # --- telling

    def _report(self, trial_id: str, number: int, step: int, metrics: dict[str, float], elapsed: float | None) -> None:
        try:
            trial = self.study.report(number, step=step, metrics=metrics, elapsed=elapsed)
        except Conflict as conflict:
            if conflict.code == "trial_already_finished":
                self._ended[trial_id] = TrialState(str(conflict.data["state"]))
            # else a step that was reported before the driver crashed, and came out differently this time
        else:
            if trial.state.finished:
                self._ended[trial_id] = trial.state
        self._steps[trial_id] = step

    def _tell(self, trial_id: str, result: Result | None, error: bool) -> None:
        number = self._open[trial_id]
        if error:
            self._tell_error(number, trial_id)
            return
        if not result:
            self.study.tell(number, failed=f"Ray's trial {trial_id} was ended before it had a result")
            return
        missing = [metric for metric in self._names() if not isinstance(result.get(metric), Real)]
        if missing:
            self.study.tell(number, failed=f"Ray's trial {trial_id} has reported no number for {', '.join(missing)}")
            return
        metrics = self._metrics(result)
        if metrics is None:
            values = ", ".join(f"{metric} is {result[metric]}" for metric in self._names())
            self.study.tell(number, infeasible=f"reported that {values}")
        elif trial_id in self._stopped:
            self.report(trial_id, result)
            self.study.stop_trial(number, self._stopped[trial_id])
        else:
            self.study.tell(number, metrics)

    def _tell_error(self, number: int, trial_id: str) -> None:
        cause = self._errors.get(trial_id)
        if isinstance(cause, Infeasible):
            self.study.tell(number, infeasible=str(cause) or "infeasible")
        elif cause is None:
            self.study.tell(number, failed=f"Ray's trial {trial_id} ended with an error")
        else:
            self.study.tell(number, failed=_in_a_line(cause))

    def _told_late(self, trial_id: str, result: Result | None, error: bool, conflict: Conflict) -> None:
        """The trial was ended before: by the driver that crashed, by a user, or as FAILED by an error or at the end of
        the driver, and Ray was told to run it again. Only the last is news."""
        number = self._open[trial_id]
        metrics = None if error or not result else self._metrics(result)
        if conflict.data.get("state") == TrialState.FAILED and metrics is not None:
            params = self.study.trial(number).params
            try:
                self.study.add_trial(params, metrics, request_id=f"{self.client_id}-{number}")
            except Conflict as over:
                logger.warning("What Ray's trial %s has measured after all comes too late: %s", trial_id, over)
        else:
            logger.info("Trial %d of study %s: %s", number, self._name, conflict)

    def _no_trial(self, error: TrimtabError) -> Any:
        """What an ask that was refused means for Ray. Raises the error where it is one."""
        if error.code == RESULTS_AWAITED:
            return None
        state = self.study.refresh()
        if error.code == "budget_exhausted" or state.state.finished:
            logger.info("Study %s gives no further trial: %s", self._name, error)
            return Searcher.FINISHED
        if state.state != "PAUSED":
            raise error
        if not self._told_pause:
            self._told_pause = True
            logger.warning("Study %s is paused: no trial begins before it is resumed.", self._name)
        return None

    def _names(self) -> list[str]:
        return [objective.metric for objective in self.study.objectives]

    def _metrics(self, result: Result) -> dict[str, float] | None:
        """The finite numbers that the trainable reported; None where an objective is not among them."""
        found = {
            name: float(value)
            for name, value in result.items()
            if isinstance(value, Real)
            and not isinstance(value, bool)
            and name not in _RAYS_OWN
            and not name.startswith("config/")
            and math.isfinite(value)
        }
        return found if all(metric in found for metric in self._names()) else None

    # --- its state

    def _state(self) -> dict[str, Any]:
        return {
            "address": self._address,
            "study": self._name,
            "client_id": self.client_id,
            "metric": self._metric,
            "mode": self._mode,
            "fixed": self._fixed,
            "open": self._open,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        self._address, self._name = state["address"], state["study"]
        self.client_id, self._metric, self._mode = state["client_id"], state["metric"], state["mode"]
        self._fixed, self._open = dict(state["fixed"]), dict(state["open"])
        self._study = None
        self._forget()

    # Ray pickles the search with the Tuner; a connection cannot be, and a token shall not.
    __getstate__ = _state
    __setstate__ = _load


class TrimtabScheduler(TrialScheduler):  # type: ignore[misc]
    """Tells the study why trials end, and lets it end them: a bridge around any of Ray's schedulers.

    Without it, the study's own pruning policies end a trial only in the study, and a trial that, say, ASHA stops counts
    with its last value as if it had run to its end. With it, the study's pruning ends the trial in Ray, and one that
    the scheduler gives up is PRUNED: its last value is a bound. One that has come to the scheduler's `max_t` is
    complete. A FAILED trial has its error as the reason, and one that raised `trimtab.Infeasible` is INFEASIBLE.

    A scheduler without a metric of its own has the study's, where that has one objective.

    Args:
        search: the search of the same Tuner.
        scheduler: what else decides; None: nothing (FIFO).
        metrics: what the trainable reports beside what the study knows of, where the scheduler looks at that.

    Raises:
        InvalidInput: the scheduler looks at a metric of which nothing is known, or minimizes what the study maximizes,
            or the other way round.
    """

    def __init__(
        self, search: TrimtabSearch, scheduler: TrialScheduler | None = None, *, metrics: Iterable[str] = ()
    ) -> None:
        super().__init__()
        self.search = search
        self.scheduler: Any = FIFOScheduler() if scheduler is None else scheduler
        metric, mode = getattr(scheduler, "metric", None), getattr(scheduler, "_mode", None)
        known = [*search.needed_metrics(), *metrics]
        if metric is not None and metric not in (*known, *_RAYS_OWN):
            allowed = f"one of {', '.join(known)}; another that the trainable reports is named in `metrics`"
            raise InvalidInput.of("scheduler.metric", metric, allowed)
        if mode is not None and metric == search.metric and mode != search.mode:
            raise InvalidInput.of("scheduler.mode", mode, f"{search.mode!r}, as the study has it")

    @property
    def metric(self) -> Any:
        """The metric that the scheduler looks at."""
        return self.scheduler.metric

    @property
    def supports_buffered_results(self) -> bool:
        """Whether the scheduler minds that several results come at a time."""
        return bool(self.scheduler.supports_buffered_results)

    def on_trial_result(self, tune_controller: "TuneController", trial: "RayTrial", result: Result) -> str:
        """The scheduler's decision, or STOP where the study has stopped the trial."""
        if not self.search.is_readable(result):
            return str(TrialScheduler.STOP)  # what the study is told at its end
        decision = str(self.scheduler.on_trial_result(tune_controller, trial, result))
        if decision == TrialScheduler.STOP:
            step = result.get(getattr(self.scheduler, "_time_attr", TRAINING_ITERATION), 0)
            if not result.get(DONE) and step < getattr(self.scheduler, "_max_t", math.inf):
                self.search.stop_early(trial.trial_id, f"stopped by Ray's {type(self.scheduler).__name__}")
        elif self.search.report(trial.trial_id, result):
            return str(TrialScheduler.STOP)
        return decision

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Takes the Tuner's metric and mode. Raises InvalidInput where they are not the study's."""
        # Ray does not ask the search where the Tuner has no constants.
        self.search.check_goal(metric, mode)
        own = getattr(self.scheduler, "metric", None), getattr(self.scheduler, "_mode", None)
        if own == (None, None) and isinstance(self.search.metric, str):
            metric, mode = self.search.metric, self.search.mode
        return bool(self.scheduler.set_search_properties(metric, mode, **spec))

    def on_trial_add(self, tune_controller: "TuneController", trial: "RayTrial") -> None:
        self.scheduler.on_trial_add(tune_controller, trial)

    def on_trial_error(self, tune_controller: "TuneController", trial: "RayTrial") -> None:
        try:
            error = cloudpickle.loads(Path(trial.pickled_error_file).read_bytes())
            self.search.note_error(trial.trial_id, getattr(error, "cause", error))
        except Exception as unreadable:  # noqa: BLE001  a class that is not known here, or no file
            logger.debug("What ended Ray's trial %s cannot be told: %s", trial.trial_id, unreadable)
        self.scheduler.on_trial_error(tune_controller, trial)

    def on_trial_complete(self, tune_controller: "TuneController", trial: "RayTrial", result: Result) -> None:
        self.scheduler.on_trial_complete(tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: "TuneController", trial: "RayTrial") -> None:
        self.scheduler.on_trial_remove(tune_controller, trial)

    def choose_trial_to_run(self, tune_controller: "TuneController") -> "RayTrial | None":
        return self.scheduler.choose_trial_to_run(tune_controller)

    def debug_string(self) -> str:
        return str(self.scheduler.debug_string())

    def save(self, checkpoint_path: str) -> None:
        self.scheduler.save(checkpoint_path)

    def restore(self, checkpoint_path: str) -> None:
        self.scheduler.restore(checkpoint_path)
