"""The loop of `Study.optimize`: asks, runs the user's function, tells."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias

from trimtab.errors import Conflict, Infeasible, InvalidInput, OperationFailed, TrimtabError
from trimtab.progress import Progress
from trimtab.space import Params
from trimtab.trial import Trial

if TYPE_CHECKING:
    from trimtab.study import Metrics, Study

logger = logging.getLogger("trimtab")

# A function that has failed this often in a row, whatever it was given, is broken: the rest of the budget is spared.
FAILURES_IN_A_ROW = 10
INTERRUPTED = "interrupted by the user"
RESULTS_AWAITED = "results_awaited"
# Seconds between asks of a study whose time is over and whose final check the service is about to begin.
OVERDUE_PAUSES = (0.5, 1.0, 2.0, 4.0)
# How long a second Ctrl-C waits for an ask under way, whose trials would be left open otherwise.
ABANDON_SECONDS = 5.0


@dataclass(frozen=True)
class _Asked:
    trials: list[Trial]
    error: BaseException | None = None


@dataclass(frozen=True)
class _Finished:
    trial: Trial
    told: Trial | None
    """None: the service could not be told."""
    error: BaseException | None = None


class _Interrupted:
    """Ctrl-C was pressed."""


_Event: TypeAlias = _Asked | _Finished | _Interrupted


class Run:
    """One call of `Study.optimize`; see there for the arguments.

    The calling thread directs. Asks run in a thread of their own, so that Ctrl-C never breaks one off half-way and
    loses the trials that it was about to get. With `parallel` 1 the function runs in the calling thread, where
    debuggers and Ctrl-C reach it, else each trial has a thread. Whatever happens comes as an event through one queue.
    """

    def __init__(
        self,
        study: "Study",
        fn: "Callable[[Params], Metrics]",
        *,
        n_trials: int | None,
        parallel: int,
        timeout: float | None,
        progress: bool,
        fixed: Mapping[str, object] | None,
        catch: tuple[type[Exception], ...],
    ) -> None:
        if parallel < 1:
            raise InvalidInput.of("parallel", parallel, "a whole number from 1 on")
        if n_trials is not None and n_trials < 0:
            raise InvalidInput.of("n_trials", n_trials, "a whole number from 0 on, or None")
        self._study = study
        self._fn = fn
        self._left = n_trials
        self._parallel = parallel
        self._end = None if timeout is None else time.monotonic() + timeout
        self._fixed = fixed
        self._catch = catch
        self._progress = Progress(study.name, study.spec, total=n_trials, enabled=progress)
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._asking = False
        self._no_more = False
        # The final check has nothing to measure before one of the running trials has a result.
        self._awaiting = False
        # Whether a result was told after the running ask was sent, which may not have seen it.
        self._told_since = False
        self._running: dict[int, Trial] = {}
        self._begun = 0
        self._failures_in_a_row = 0
        self._error: BaseException | None = None
        self._inside_fn = False

    def run(self) -> None:
        """Returns when all is done; raises what ended it early."""
        with self._progress:
            try:
                with self._ctrl_c_as_event():
                    self._direct()
            finally:
                # Something is left only after a second Ctrl-C, or an exception from a signal handler of the user's own.
                self._abandon()
        if self._error is not None:
            raise self._error

    def _direct(self) -> None:
        while True:
            self._ask()
            if not self._asking and not self._running:
                return
            match self._events.get():
                case _Asked(trials, error):
                    self._take_trials(trials, error)
                case _Finished(trial, told, error):
                    self._take_result(trial, told, error)
                case _Interrupted():
                    if isinstance(self._error, KeyboardInterrupt):
                        return
                    self._stop(KeyboardInterrupt())
                    logger.warning(
                        "Interrupted: %d running trials are finished first; Ctrl-C again abandons them.",
                        len(self._running),
                    )

    def _stop(self, error: BaseException) -> None:
        """Begins nothing more; `error` is raised when all that runs has finished."""
        self._no_more = True
        if self._error is None or isinstance(error, KeyboardInterrupt):
            self._error = error

    # --- asking

    def _ask(self) -> None:
        if self._end is not None and time.monotonic() >= self._end:
            self._no_more = True
        count = self._parallel - len(self._running)
        if self._left is not None:
            count = min(count, self._left)
        if count > 0 and not self._asking and not self._awaiting and not self._no_more:
            self._asking, self._told_since = True, False
            threading.Thread(target=self._ask_for, args=(count,), name="trimtab-ask", daemon=True).start()

    def _ask_for(self, count: int) -> None:
        try:
            self._events.put(_Asked(self._ask_once_more(count)))
        except BaseException as error:  # noqa: BLE001 - the directing thread raises it
            self._events.put(_Asked([], error))

    def _ask_once_more(self, count: int) -> list[Trial]:
        for pause in OVERDUE_PAUSES:
            try:
                return self._study.ask(count, fixed=self._fixed)
            except Conflict as conflict:
                # Nobody measures anything: the service is about to end the search.
                if conflict.code != RESULTS_AWAITED or conflict.data.get("open") != 0:
                    raise
            time.sleep(pause)
        return self._study.ask(count, fixed=self._fixed)

    def _take_trials(self, trials: list[Trial], error: BaseException | None) -> None:
        self._asking = False
        if isinstance(error, TrimtabError) and error.code == RESULTS_AWAITED and (self._running or self._told_since):
            self._awaiting = not self._told_since
            return
        if error is not None and not self._is_an_end(error):
            self._stop(error)
        # Neither is an empty answer asked for again: the space is exhausted.
        self._no_more = self._no_more or not trials
        for trial in trials:
            # Looked at for each: with one trial at a time, the one before has run by then.
            if self._error is None:
                self._begin(trial)
            else:
                self._settle(trial, failed="never begun: " + _reason(self._error))

    def _is_an_end(self, error: BaseException) -> bool:
        """Whether nothing could be got because the study has ended, as it should some time during a run."""
        if not isinstance(error, (Conflict, OperationFailed)) or self._begun == 0:
            return False
        return error.code in ("budget_exhausted", RESULTS_AWAITED) or self._study.refresh().state.finished

    # --- running

    def _begin(self, trial: Trial) -> None:
        self._begun += 1
        if self._left is not None:
            self._left -= 1
        self._running[trial.number] = trial
        if self._parallel == 1:
            self._evaluate(trial)
        else:
            name = f"trimtab-trial-{trial.number}"
            threading.Thread(target=self._evaluate, args=(trial,), name=name, daemon=True).start()

    def _evaluate(self, trial: Trial) -> None:
        """Runs the function and tells the service how it ended."""
        error: BaseException | None = None
        told: Trial | None = None
        try:
            metrics = self._call(trial)
            told = self._settle(trial, metrics=metrics)
        except Infeasible as reason:
            told = self._settle(trial, infeasible=str(reason) or "infeasible")
        except BaseException as failure:  # noqa: BLE001 - its trial must not stay open
            error = failure
            told = self._settle(trial, failed=_reason(failure))
        self._events.put(_Finished(trial, told, error))

    def _call(self, trial: Trial) -> "Metrics":
        # The main thread's Ctrl-C reaches the function only where it runs there: see _ctrl_c_as_event.
        self._inside_fn = self._parallel == 1
        try:
            metrics: object = self._fn(dict(trial.params))
        finally:
            self._inside_fn = False
        if metrics is None:
            raise InvalidInput.of("the function's result", metrics, "a number, or a dict of metrics")
        return metrics  # type: ignore[return-value]  # tell looks at it

    def _settle(
        self,
        trial: Trial,
        *,
        metrics: "Metrics | None" = None,
        infeasible: str | None = None,
        failed: str | None = None,
    ) -> Trial | None:
        """Tells the trial's end. None: the service cannot be told, and the run is to end.

        Raises:
            InvalidInput: the metrics are not what the study needs.
        """
        try:
            return self._study.tell(trial, metrics, infeasible=infeasible, failed=failed)
        except InvalidInput:
            if metrics is not None:
                raise
        except Conflict as conflict:
            # Somebody else has ended it: stopped by a user, or told by a second program with the same client_id.
            logger.warning("Trial %d of study %s: %s", trial.number, self._study.name, conflict)
            return trial
        except TrimtabError as error:
            logger.warning("Trial %d of study %s could not be told: %s", trial.number, self._study.name, error)
            self._stop(error)
        return None

    def _take_result(self, trial: Trial, told: Trial | None, error: BaseException | None) -> None:
        del self._running[trial.number]
        self._awaiting, self._told_since = False, True
        if told is not None:
            self._progress.update(told)
        if error is None:
            self._failures_in_a_row = 0
            return
        self._failures_in_a_row += 1
        logger.warning("Trial %d of study %s failed: %s", trial.number, self._study.name, _reason(error))
        logger.debug("Where it failed:", exc_info=error)
        if not isinstance(error, self._catch) or self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self._stop(error)

    # --- Ctrl-C

    @contextmanager
    def _ctrl_c_as_event(self) -> Iterator[None]:
        """Inside, Ctrl-C is an event among the others, not an exception between any two instructions.

        Only the main thread has a say in this, and a handler that the program has set is left alone.
        """

        def interrupt(number: int, frame: FrameType | None) -> None:
            if self._inside_fn:
                raise KeyboardInterrupt
            self._events.put(_Interrupted())  # a SimpleQueue may be put to in the middle of its own get

        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _abandon(self) -> None:
        """Marks what still runs as FAILED without waiting for it; its threads' own results come too late."""
        self._no_more = True
        for trial in self._running.values():
            self._settle(trial, failed=INTERRUPTED)
        end = time.monotonic() + ABANDON_SECONDS
        while self._asking:
            try:
                event = self._events.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                return
            if isinstance(event, _Asked):
                self._asking = False
                for trial in event.trials:
                    self._settle(trial, failed=INTERRUPTED)


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return f"{type(error).__name__}: {error}"[:2000]
