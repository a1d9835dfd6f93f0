"""The scheduler of Ray Tune that connects any other one with a study."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ray import cloudpickle
from ray.tune.result import DONE, TRAINING_ITERATION
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from trimtab._internal.logger import Logger
from trimtab.errors import InvalidInput
from trimtab.integrations.ray.search import RAYS_OWN, Result, TrimtabSearch

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Trial as RayTrial

logger = Logger("trimtab")


class TrimtabScheduler(TrialScheduler):  # type: ignore[misc]
    """A wrapper around any of Ray's schedulers that lets the scheduler and the study stop each other's trials.

    Without it, the study's pruning policies end a trial only in the study, and the last value of a trial that, for
    example, ASHA stops counts like that of a complete trial. With it, Ray stops the trials that the study prunes, and a
    trial that the scheduler stops is PRUNED: its last value is a bound. A trial that reaches the scheduler's `max_t` is
    complete. A FAILED trial has its error as the reason, and a trial that raised `trimtab.Infeasible` is INFEASIBLE.

    A scheduler without a metric uses the study's objective if there is only one.

    Args:
        search: the search of the same Tuner.
        scheduler: the scheduler to wrap; None: Ray's FIFO scheduler, which stops nothing.
        metrics: further metrics that the trainable reports and the scheduler uses.

    Raises:
        InvalidInput: the scheduler uses an unknown metric, or minimizes a metric that the study maximizes, or the
            reverse.
    """

    def __init__(
        self, search: TrimtabSearch, scheduler: TrialScheduler | None = None, *, metrics: Iterable[str] = ()
    ) -> None:
        super().__init__()
        self.search = search
        self.scheduler: Any = FIFOScheduler() if scheduler is None else scheduler
        metric, mode = getattr(scheduler, "metric", None), getattr(scheduler, "_mode", None)
        known = [*search.needed_metrics(), *metrics]
        if metric is not None and metric not in (*known, *RAYS_OWN):
            allowed = f"one of {', '.join(known)}; name other metrics that the trainable reports in `metrics`"
            raise InvalidInput.of("scheduler.metric", metric, allowed)
        if mode is not None and metric == search.metric and mode != search.mode:
            raise InvalidInput.of("scheduler.mode", mode, f"{search.mode!r}, the mode of the study")

    @property
    def metric(self) -> Any:
        """The metric that the scheduler uses."""
        return self.scheduler.metric

    @property
    def supports_buffered_results(self) -> bool:
        """True if the scheduler accepts several results at a time."""
        return bool(self.scheduler.supports_buffered_results)

    def on_trial_result(self, tune_controller: "TuneController", trial: "RayTrial", result: Result) -> str:
        """Return the scheduler's decision, or STOP if the study has stopped the trial."""
        if not self.search.is_readable(result):
            return str(TrialScheduler.STOP)  # on_trial_complete reports this result
        decision = str(self.scheduler.on_trial_result(tune_controller, trial, result))
        if decision == TrialScheduler.STOP:
            step = result.get(getattr(self.scheduler, "_time_attr", TRAINING_ITERATION), 0)
            if not result.get(DONE) and step < getattr(self.scheduler, "_max_t", math.inf):
                self.search.stop_early(trial.trial_id, f"stopped by Ray's {type(self.scheduler).__name__}")
        elif self.search.report(trial.trial_id, result):
            return str(TrialScheduler.STOP)
        return decision

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Store the Tuner's metric and mode. Raises InvalidInput if they differ from the study's."""
        # Ray does not call the search's method if the Tuner has no constants.
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
        except Exception as unreadable:  # noqa: BLE001  an unknown class, or no file
            logger.debug("the error of a trial of Ray cannot be read", ray_trial=trial.trial_id, error=unreadable)
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
