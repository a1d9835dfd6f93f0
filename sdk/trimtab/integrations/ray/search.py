"""The search algorithm of Ray Tune whose suggestions come from a study."""

import atexit
import json
import re
import sys
import uuid
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ray.tune.result import AUTO_RESULT_KEYS, DONE, TIME_TOTAL_S, TRAINING_ITERATION, TRIAL_ID
from ray.tune.search import Searcher
from ray.tune.search.variant_generator import parse_spec_vars

from trimtab._internal.connection import forks
from trimtab._internal.logger import Logger
from trimtab._internal.messages.values import infinite_beyond, is_measurement
from trimtab._internal.study.optimize import RESULTS_AWAITED
from trimtab.client import Client
from trimtab.errors import Conflict, Infeasible, InvalidInput, NotFound, OperationFailed, Timeout, TrimtabError
from trimtab.objective import Maximize
from trimtab.study import Study
from trimtab.trial import TrialState

logger = Logger("trimtab")

# Seconds that one call of `suggest` waits for the algorithm. Ray handles no results meanwhile, and calls again.
ASK_SECONDS = 2.0
# Names that Ray adds to every result.
RAYS_OWN = {*AUTO_RESULT_KEYS, DONE, TRIAL_ID, "should_checkpoint", "experiment_tag"}

Result = Mapping[str, Any]
"""The flat result of a trainable with Ray's additions. Nested names are joined by '/'."""

# The studies with which this process created searches, by address, name and identity. Ray's files hold no token, so a
# restored search uses the connection of such a study.
_connected: dict[tuple[str, str, str], Study] = {}
# The searches of this process from which Ray has received trials. A copy that Ray has only unpickled, for example in a
# worker, is not among them.
_at_work: set["TrimtabSearch"] = set()


class _Forked:
    """The searches are at work in the parent, which ends their trials. A child has none of them."""

    def after_fork(self) -> None:
        for search in _at_work:
            search.restart()
        _at_work.clear()


_forked = _Forked()
forks.follow(_forked)


@atexit.register
def _close_all() -> None:
    for search in tuple(_at_work):
        search.close(_why_it_ends())


def _why_it_ends() -> str:
    """Return the error with which this process, or the use of its client, ends; "" without one."""
    error: BaseException | None = sys.exc_info()[1] or getattr(sys, "last_value", None)
    while error is not None and error.__cause__ is not None:
        error = error.__cause__
    return "" if error is None else _in_a_line(error)


def _in_a_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    # The text of some of Ray's errors is another error's traceback.
    reported = lines[-1] if lines[0].startswith("Traceback ") else f"{type(error).__name__}: {lines[0]}"
    return reported[:1800]


class TrimtabSearch(Searcher):  # type: ignore[misc]  # Ray has no type annotations
    """A search algorithm of Ray Tune that takes its trials from a study and reports their results.

    Each of Ray's trials is a trial of the study. Its results are reported as measurements with `training_iteration` as
    the step; the last one is its value. The trainable must report every objective of the study under its name, and
    every metric in the study's outcome constraints. Other numbers are stored too. A result with an infinite or NaN
    objective is not a measurement; the last result has the same meaning as in `Study.tell`, so the trial is then
    INFEASIBLE. An exception or a lost worker makes the trial FAILED, after as many restarts as Ray's `FailureConfig`
    allows.

    `param_space` of the Tuner may hold only constants. A constant with the name of a parameter fixes that parameter in
    all trials.

    The search has its own `client_id`, which Ray saves in its files with the open trials. `tune.Tuner.restore`
    continues with them: Ray itself runs the trials that it had saved, and the later ones come back as new trials. Only
    the first result of a trial counts. A restored search authenticates with TRIMTAB_TOKEN or `trimtab login`. A script
    that has its token from elsewhere creates a TrimtabSearch of the study before it restores.

    Trials that are open when the process ends become FAILED (see `close`), unless the process is killed. If a restored
    Tuner measures such a trial afterwards, the result is added to the study while the study is active.

    Args:
        study: an ask/tell study. Other clients may use it at the same time.

    Raises:
        InvalidInput: the study's trials run on agents.
    """

    def __init__(self, study: Study) -> None:
        if study.spec.execution is not None:
            raise InvalidInput.of("study", study.name, "a study without a component, whose trials you run yourself")
        objectives = study.objectives
        modes = ["max" if isinstance(objective, Maximize) else "min" for objective in objectives]
        names = [objective.metric for objective in objectives]
        # Ray expects lists if there are several objectives.
        super().__init__(*((names[0], modes[0]) if len(names) == 1 else (names, modes)))
        self._address = study._address
        self._name = study.name
        self._uid = study.uid
        self._fixed: dict[str, Any] = {}
        self.restart()
        _connected[self._address, self._name, self._uid] = study

    def restart(self) -> None:
        """Begin without trials, under a new name."""
        self.client_id = f"ray-{uuid.uuid4().hex}"
        # The numbers of the open trials, by Ray's trial_id.
        self._open: dict[str, int] = {}
        self._study: Study | None = None
        self._forget()

    def _forget(self) -> None:
        """Reset everything that `_state` does not hold."""
        # By trial_id: the last reported step, the state of a trial that somebody else has ended, the scheduler's reason
        # for stopping it, and its latest error.
        self._steps: dict[str, int] = {}
        self._ended: dict[str, TrialState] = {}
        self._stopped: dict[str, str] = {}
        self._errors: dict[str, BaseException] = {}
        self._told_pause = False
        # Whether the service may hold a trial for this client that Ray does not know: after an ask that timed out, or
        # after a crash of the driver.
        self._is_asking = False

    @property
    def study(self) -> Study:
        """The study, with this search's own client_id.

        Raises:
            Unauthenticated: there is no token for the service.
            NotFound: the study was deleted, also if another study has its name by now (`study_replaced`).
        """
        if self._study is None:
            key = (self._address, self._name, self._uid)
            known = _connected.get(key)
            if known is None:
                known = Client(self._address).get_study(self._name)
                if self._uid not in ("", known.uid):
                    raise NotFound("study_replaced", f"Study {self._name} was deleted, and another one has its name.")
                _connected[key] = known
            self._study = known._as_client(self.client_id, held=self._open.values())
        return self._study

    # --- methods that Ray calls

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **_: Any) -> bool:
        """Store the Tuner's constants. Raises InvalidInput if its metric, mode or space differ from the study's."""
        self.check_goal(metric, mode)
        _, domains, grids = parse_spec_vars(config)
        for path, domain in (*domains, *grids):
            field = f"param_space.{'.'.join(map(str, path))}"
            raise InvalidInput.of(field, domain, f"a constant: study {self._name} has the search space")
        names = {parameter.name for parameter in self.study.spec.space}
        self._fixed = {name: value for name, value in config.items() if name in names}
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return a configuration for one of Ray's trials, None if there is none now, or FINISHED if there are no more.

        Raises:
            TrimtabError: the service refuses the ask, or does not answer within the client's `retry_seconds`.
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
            logger.info("the space is exhausted", study=self._name)
            return Searcher.FINISHED
        self._open[trial_id] = trials[0].number
        self._begin()
        return dict(trials[0].params)

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        """Report an intermediate result of a trial."""
        self.report(trial_id, result)

    def on_trial_complete(self, trial_id: str, result: Result | None = None, error: bool = False) -> None:
        """End a trial with its last result."""
        if trial_id not in self._open:
            logger.warning(
                "a trial of Ray is not of the study, its result is ignored", study=self._name, ray_trial=trial_id
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
        """Write the state that `restore` needs to a file. It contains no token."""
        Path(checkpoint_path).write_text(json.dumps(self._state()), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Continue as the search that wrote the file. Raises OSError, or ValueError for another kind of file."""
        path = Path(checkpoint_path)
        self._load(json.loads(path.read_text(encoding="utf-8")))
        # A crash may come after Ray has saved its own state but before this one, or the other way round. Nobody would
        # run an open trial that Ray does not know. Without its name here, the next ask returns it again.
        if states := sorted(path.parent.glob("experiment_state-*.json")):
            known = states[-1].read_text(encoding="utf-8")
            self._open = {trial_id: number for trial_id, number in self._open.items() if trial_id in known}
        self._is_asking = True
        self._begin()

    # --- closing

    def close(self, reason: str = "") -> None:
        """Mark the trials that Ray has received and not ended as FAILED, because nobody runs them any more.

        This happens by itself when the study's client is closed and when the process ends, unless it is killed. Call it
        yourself if the process continues after a Tuner that was interrupted, for example in a notebook. If the service
        does not answer, this call retries like any other.
        """
        _at_work.discard(self)
        if not self._open and not self._is_asking:
            return
        reported = "Ray Tune ended before this trial did" + (f": {reason}" if reason else "")
        try:
            own = {trial.number for trial in self.study.trials(["ACTIVE"]) if trial.client_id == self.client_id}
            for number in sorted(own.union(self._open.values())):
                try:
                    self.study.tell(number, failed=reported)
                except Conflict as ended:
                    logger.debug("the trial has already ended", study=self._name, trial=number, error=ended)
        except TrimtabError as error:
            logger.error("trials that no longer run may have stayed open", study=self._name, error=error)
        self._open.clear()
        self._is_asking = False

    def _begin(self) -> None:
        """Register this search: from now on its open trials must be ended if Ray does not end them."""
        if self not in _at_work:
            _at_work.add(self)
            self.study._before_close(self._close_with_client)

    def _close_with_client(self) -> None:
        if self in _at_work:
            self.close(_why_it_ends())

    # --- for the scheduler

    def check_goal(self, metric: str | None, mode: str | None) -> None:
        """Raise InvalidInput if the Tuner has a metric or mode that differs from the study's."""
        for wanted, found, name in ((metric, self._metric, "metric"), (mode, self._mode, "mode")):
            if wanted is not None and wanted != found:
                raise InvalidInput.of(f"TuneConfig.{name}", wanted, f"{found!r}, the {name} of study {self._name}")

    def needed_metrics(self) -> list[str]:
        """Return the metrics that every trial must report: the objectives, then those in outcome constraints."""
        constraints = " ".join(self.study.spec.outcome_constraints)
        return list(dict.fromkeys([*self._names(), *re.findall(r"[A-Za-z_]\w*", constraints)]))

    def report(self, trial_id: str, result: Result) -> bool:
        """Report a result if it is new; return whether the service has stopped the trial."""
        number = self._open.get(trial_id)
        metrics = self._metrics(result)
        step = result.get(TRAINING_ITERATION)
        known = trial_id in self._ended or step is None or step <= self._steps.get(trial_id, -1)
        if number is not None and step is not None and metrics is not None and not known:
            self._report(trial_id, number, int(step), metrics, result.get(TIME_TOTAL_S))
        return self._ended.get(trial_id) is TrialState.PRUNED

    def is_readable(self, result: Result) -> bool:
        """Return whether the objectives in a result are numbers. Other values make Ray's schedulers fail."""
        return all(isinstance(result[metric], Real) for metric in self._names() if metric in result)

    def stop_early(self, trial_id: str, reason: str) -> None:
        """Note that the scheduler stops a trial. The trial becomes PRUNED: its value is a bound."""
        self._stopped[trial_id] = reason

    def note_error(self, trial_id: str, error: BaseException) -> None:
        """Note the error of a trial. Ray may start the trial again."""
        self._errors[trial_id] = error

    # --- telling

    def _report(self, trial_id: str, number: int, step: int, metrics: dict[str, float], elapsed: float | None) -> None:
        try:
            trial = self.study.report(number, step=step, metrics=metrics, elapsed=elapsed)
        except Conflict as conflict:
            if conflict.code == "trial_already_finished":
                self._ended[trial_id] = TrialState(str(conflict.data["state"]))
            # Otherwise the step was reported before the driver crashed, and has another value this time.
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
            self.study.tell(number, failed=f"Ray's trial {trial_id} ended without a result")
            return
        missing = [metric for metric in self._names() if not isinstance(result.get(metric), Real)]
        if missing:
            self.study.tell(number, failed=f"Ray's trial {trial_id} reported no number for {', '.join(missing)}")
            return
        if trial_id in self._stopped and self._metrics(result) is not None:
            self.report(trial_id, result)
            self.study.stop_trial(number, self._stopped[trial_id])
        else:
            self.study.tell(number, self._numbers(result))

    def _tell_error(self, number: int, trial_id: str) -> None:
        cause = self._errors.get(trial_id)
        if isinstance(cause, Infeasible):
            self.study.tell(number, infeasible=str(cause) or "infeasible")
        elif cause is None:
            self.study.tell(number, failed=f"Ray's trial {trial_id} ended with an error")
        else:
            self.study.tell(number, failed=_in_a_line(cause))

    def _told_late(self, trial_id: str, result: Result | None, error: bool, conflict: Conflict) -> None:
        """Handle the result of a trial that has already ended.

        The driver that crashed, a user, an error or the end of the driver has ended it. In the last two cases the trial
        is FAILED and Ray was asked to run it again, so the result is new and is added to the study.
        """
        number = self._open[trial_id]
        metrics = None if error or not result else self._metrics(result)
        if conflict.data.get("state") == TrialState.FAILED and metrics is not None:
            params = self.study.trial(number).params
            try:
                self.study.add_trial(params, metrics, request_id=f"{self.client_id}-{number}")
            except Conflict as over:
                logger.warning("a result comes too late", study=self._name, ray_trial=trial_id, error=over)
        else:
            logger.info("the trial has already ended", study=self._name, trial=number, error=conflict)

    def _no_trial(self, error: TrimtabError) -> Any:
        """Return Ray's answer to a refused ask, or raise the error if it is a real error."""
        if error.code == RESULTS_AWAITED:
            return None
        state = self.study.refresh()
        if error.code == "budget_exhausted" or state.state.finished:
            logger.info("the study suggests no more trials", study=self._name, reason=error)
            return Searcher.FINISHED
        if state.state != "PAUSED":
            raise error
        if not self._told_pause:
            self._told_pause = True
            logger.warning("the study is paused, no trial starts until it is resumed", study=self._name)
        return None

    def _names(self) -> list[str]:
        return [objective.metric for objective in self.study.objectives]

    def _metrics(self, result: Result) -> dict[str, float] | None:
        """Return the numbers that the trainable reported and the service takes; None if an objective is missing."""
        found = {name: value for name, value in self._numbers(result).items() if is_measurement(value)}
        return found if all(metric in found for metric in self._names()) else None

    def _numbers(self, result: Result) -> dict[str, float]:
        """Return all numbers that the trainable reported. One that is too large for the service is infinite."""
        return {
            name: infinite_beyond(float(value))
            for name, value in result.items()
            if isinstance(value, Real)
            and not isinstance(value, bool)
            and name not in RAYS_OWN
            and not name.startswith("config/")
        }

    # --- pickling

    def _state(self) -> dict[str, Any]:
        return {
            "address": self._address,
            "study": self._name,
            "uid": self._uid,
            "client_id": self.client_id,
            "metric": self._metric,
            "mode": self._mode,
            "fixed": self._fixed,
            "open": self._open,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        # Files of earlier versions do not have the identity of the study.
        self._address, self._name, self._uid = state["address"], state["study"], state.get("uid", "")
        self.client_id, self._metric, self._mode = state["client_id"], state["metric"], state["mode"]
        self._fixed, self._open = dict(state["fixed"]), dict(state["open"])
        self._study = None
        self._forget()

    # Ray pickles the search with the Tuner. A connection cannot be pickled, and a token must not be.
    __getstate__ = _state
    __setstate__ = _load
