"""The loop of `Study.optimize`: ask, run the user's function, tell."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Protocol, TypeAlias

from trimtab._internal.logger import Logger
from trimtab._internal.messages.values import to_float, to_int
from trimtab.errors import Conflict, Infeasible, InvalidInput, OperationFailed, TrimtabError
from trimtab.progress import Progress
from trimtab.space import Params
from trimtab.spec import StudySpec, StudyState, StudyStatus
from trimtab.trial import Metrics, Trial

logger = Logger("trimtab")

# After this many failures in a row, the function is probably broken. The rest of the budget is saved.
FAILURES_IN_A_ROW = 10
INTERRUPTED = "interrupted by the user"
RESULTS_AWAITED = "results_awaited"
NOT_ACTIVE = "study_not_active"
# How long a paused study is left alone before the next ask.
PAUSED_SECONDS = 2.0
# Seconds between asks of a study whose time is over and whose final check is about to begin.
OVERDUE_PAUSES = (0.5, 1.0, 2.0, 4.0)
# How long a second Ctrl-C waits for an ask in progress. Otherwise its trials would stay open.
ABANDON_SECONDS = 5.0


class TunedStudy(Protocol):
    """The methods of a study that the loop calls."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> StudySpec: ...

    def ask(self, n: int, *, fixed: Mapping[str, object] | None, schedule_context: bool) -> list[Trial]: ...

    def tell(self, trial: Trial, metrics: Metrics | None, *, infeasible: str | None, failed: str | None) -> Trial: ...

    def refresh(self) -> StudyStatus: ...


@dataclass(frozen=True)
class _Asked:
    trials: list[Trial]
    error: BaseException | None = None


@dataclass(frozen=True)
class _Finished:
    trial: Trial
    reported: Trial | None
    """None: the service did not get the result."""
    error: BaseException | None = None


class _Interrupted:
    """The user pressed Ctrl-C."""


_Event: TypeAlias = _Asked | _Finished | _Interrupted


class Run:
    """One call of `Study.optimize`, which documents the arguments.

    The calling thread coordinates. Asks run in a separate thread, so that Ctrl-C cannot interrupt an ask and lose its
    trials. With `parallel` 1 the function runs in the calling thread, where debuggers and Ctrl-C reach it; otherwise
    each trial has a thread. Every result arrives as an event in one queue.
    """

    def __init__(
        self,
        study: TunedStudy,
        fn: Callable[[Params], Metrics],
        *,
        n_trials: int | None,
        parallel: int,
        timeout: float | None,
        progress: bool,
        fixed: Mapping[str, object] | None,
        catch: tuple[type[Exception], ...],
        callbacks: Sequence[Callable[[Trial], None]],
    ) -> None:
        parallel = _whole("parallel", parallel, 1)
        if n_trials is not None:
            n_trials = _whole("n_trials", n_trials, 0)
        if timeout is not None and not to_float("timeout", timeout) >= 0:
            raise InvalidInput.of("timeout", timeout, "a number of seconds of at least 0, or None")
        self._study = study
        self._fn = fn
        self._left = n_trials
        self._parallel = parallel
        self._end = None if timeout is None else time.monotonic() + timeout
        self._fixed = fixed
        self._catch = catch
        self._callbacks = callbacks
        self._progress = Progress(study.name, study.spec, total=n_trials, enabled=progress)
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._asking = False
        self._no_more = False
        self._told_pause = False
        # The final check has nothing to measure before one of the running trials has a result.
        self._awaiting = False
        # Whether a result was reported after the current ask was sent. That ask may not have seen it.
        self._reported_since = False
        self._running: dict[int, Trial] = {}
        self._begun = 0
        self._failures_in_a_row = 0
        self._failures = 0
        self._error: BaseException | None = None
        self._inside_fn = False
        self._process = os.getpid()

    def run(self) -> None:
        """Run until the work is done; raise the error that ended it early."""
        with self._progress:
            try:
                with self._ctrl_c_as_event():
                    self._direct()
            finally:
                # Trials are left only after a second Ctrl-C or an exception from the user's own signal handler.
                if not self._is_forked():
                    self._abandon()
        if self._failures > 1:
            logger.warning("trials failed in this run", study=self._study.name, failed=self._failures)
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
                case _Finished(trial, reported, error):
                    self._take_result(trial, reported, error)
                case _Interrupted():
                    if isinstance(self._error, KeyboardInterrupt):
                        return
                    self._stop(KeyboardInterrupt())
                    logger.warning(
                        "interrupted, waiting for the running trials to finish; press Ctrl-C again to abandon them",
                        running=len(self._running),
                    )

    def _stop(self, error: BaseException) -> None:
        """Start no more trials; `run` raises `error` after the running trials have finished."""
        self._no_more = True
        if self._error is None or isinstance(error, KeyboardInterrupt):
            self._error = error

    # --- asking

    def _ask(self) -> None:
        self._no_more = self._is_over()
        count = self._parallel - len(self._running)
        if self._left is not None:
            count = min(count, self._left)
        if count > 0 and not self._asking and not self._awaiting and not self._no_more:
            self._asking, self._reported_since = True, False
            threading.Thread(target=self._ask_for, args=(count,), name="trimtab-ask", daemon=True).start()

    def _ask_for(self, count: int) -> None:
        try:
            self._events.put(_Asked(self._ask_once_more(count)))
        except BaseException as error:  # noqa: BLE001 - the directing thread raises it
            self._events.put(_Asked([], error))

    def _ask_once_more(self, count: int) -> list[Trial]:
        for pause in OVERDUE_PAUSES:
            try:
                return self._ask_after_pauses(count)
            except Conflict as conflict:
                # No trial is running: the service is about to end the search.
                if conflict.code != RESULTS_AWAITED or conflict.data.get("open") != 0:
                    raise
            time.sleep(pause)
        return self._ask_after_pauses(count)

    def _ask_after_pauses(self, count: int) -> list[Trial]:
        """Ask, and wait while the study is paused. Return no trials if the run is to end meanwhile."""
        while not self._is_over():
            try:
                return self._study.ask(count, fixed=self._fixed, schedule_context=True)
            except Conflict as conflict:
                if conflict.code != NOT_ACTIVE or self._study.refresh().state is not StudyState.PAUSED:
                    raise
            if not self._told_pause:
                self._told_pause = True
                logger.warning("the study is paused, no trial starts until it is resumed", study=self._study.name)
            end = time.monotonic() + PAUSED_SECONDS
            while time.monotonic() < end and not self._is_over():
                time.sleep(0.1)
        return []

    def _is_over(self) -> bool:
        return self._no_more or (self._end is not None and time.monotonic() >= self._end)

    def _take_trials(self, trials: list[Trial], error: BaseException | None) -> None:
        self._asking = False
        if (
            isinstance(error, TrimtabError)
            and error.code == RESULTS_AWAITED
            and (self._running or self._reported_since)
        ):
            self._awaiting = not self._reported_since
            return
        if error is not None and not self._is_an_end(error):
            self._stop(error)
        # An empty answer means that the space is exhausted: do not ask again.
        self._no_more = self._no_more or not trials
        for trial in trials:
            # With one trial at a time, the previous trial has run by now and may have failed.
            if self._error is None:
                self._begin(trial)
            else:
                self._settle(trial, failed="not started: " + _reason(self._error))

    def _is_an_end(self, error: BaseException) -> bool:
        """Return whether an ask failed because the study has ended, which is the normal end of a run."""
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
            threading.Thread(target=self._evaluate_in_thread, args=(trial,), name=name, daemon=True).start()

    def _evaluate_in_thread(self, trial: Trial) -> None:
        try:
            self._evaluate(trial)
        except BaseException as error:
            if self._is_forked():
                _end_child(error)
            raise

    def _evaluate(self, trial: Trial) -> None:
        """Run the function and tell the service its result."""
        error: BaseException | None = None
        reported: Trial | None = None
        try:
            metrics = self._call(trial)
            reported = self._settle(trial, metrics=metrics)
            if reported is not None and reported.state == "INFEASIBLE":
                # A function that always returns NaN would otherwise use up the budget without a word.
                logger.warning(
                    "trial is infeasible", study=self._study.name, trial=trial.number, reason=reported.reason
                )
        except Infeasible as reason:
            if self._is_forked():
                raise
            reported = self._settle(trial, infeasible=str(reason) or "infeasible")
        except BaseException as failure:  # its trial must not stay open
            if self._is_forked():
                raise
            error = failure
            reported = self._settle(trial, failed=_reason(failure))
        self._events.put(_Finished(trial, reported, error))

    def _call(self, trial: Trial) -> Metrics:
        # Ctrl-C reaches the function only if it runs in the main thread: see _ctrl_c_as_event.
        self._inside_fn = self._parallel == 1
        try:
            metrics: object = self._fn(dict(trial.params))
        finally:
            self._inside_fn = False
        if self._is_forked():
            raise Conflict(
                "forked_in_function",
                f"The function was forked during trial {trial.number}, and has returned in the child, too. The parent"
                " reports its result: end the child with os._exit.",
            )
        if metrics is None:
            raise InvalidInput.of("the function's result", metrics, "a number, or a dict of metrics")
        return metrics  # type: ignore[return-value]  # tell checks it

    def _is_forked(self) -> bool:
        """Return whether this is a child that the function has forked. The trials are its parent's."""
        return os.getpid() != self._process

    def _settle(
        self,
        trial: Trial,
        *,
        metrics: Metrics | None = None,
        infeasible: str | None = None,
        failed: str | None = None,
    ) -> Trial | None:
        """Tell the result of a trial. Return None if the service did not accept it; the run then ends.

        Raises:
            InvalidInput: the metrics do not fit the study.
        """
        try:
            return self._study.tell(trial, metrics, infeasible=infeasible, failed=failed)
        except InvalidInput as error:
            if error.code == "metric_too_large":
                # The function says "bad" with a large number, as with an infinite one.
                return self._settle(trial, infeasible=str(error))
            if metrics is not None:
                raise
        except Conflict as conflict:
            # A user has stopped it, or a second program with the same client_id has reported its result.
            logger.warning(
                "the result of the trial is refused", study=self._study.name, trial=trial.number, error=conflict
            )
            return trial
        except TrimtabError as error:
            logger.warning(
                "the result of the trial could not be reported", study=self._study.name, trial=trial.number, error=error
            )
            self._stop(error)
        return None

    def _take_result(self, trial: Trial, reported: Trial | None, error: BaseException | None) -> None:
        del self._running[trial.number]
        self._awaiting, self._reported_since = False, True
        if reported is not None:
            self._progress.update(reported)
            for callback in self._callbacks:
                try:
                    callback(reported)
                except Exception as failure:  # noqa: BLE001 - the other trials finish before it is raised
                    self._stop(failure)
        if error is None:
            self._failures_in_a_row = 0
            return
        self._failures_in_a_row += 1
        self._failures += 1
        # One traceback shows where the function is at fault. The trials keep the reasons of the others.
        logger.log(
            logging.WARNING if self._failures == 1 else logging.DEBUG,
            "trial failed",
            study=self._study.name,
            trial=trial.number,
            error=_reason(error),
            exc_info=error,
        )
        if not isinstance(error, self._catch) or self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self._stop(error)

    # --- Ctrl-C

    @contextmanager
    def _ctrl_c_as_event(self) -> Iterator[None]:
        """Turn Ctrl-C into an event, so that it does not raise an exception between any two instructions.

        This works only in the main thread. A handler that the program has set stays in place.
        """

        def interrupt(number: int, frame: FrameType | None) -> None:
            if self._inside_fn:
                raise KeyboardInterrupt
            self._events.put(_Interrupted())  # SimpleQueue.put is reentrant: it may interrupt a get

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
        """Mark the running trials as FAILED without waiting for them; later results of their threads are ignored."""
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


def _whole(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least`. Raises InvalidInput, also for True."""
    try:
        number = -1 if isinstance(value, bool) else to_int(name, value)
    except InvalidInput:
        number = -1
    if number < least:
        raise InvalidInput.of(name, value, f"a whole number of at least {least}")
    return number


def _end_child(error: BaseException) -> None:
    """End the process as an uncaught exception of its main thread does.

    This is a child that a thread has forked, so it has no other thread. If the thread just ended, the process would run
    the exit handlers of C, in which gRPC waits for its threads for ever.
    """
    code = error.code if isinstance(error, SystemExit) else 1
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
    elif code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(0 if code is None else int(code) & 0xFF)


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return f"{type(error).__name__}: {error}"[:2000]
