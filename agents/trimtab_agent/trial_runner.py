"""A trial from its lease to the service's acknowledgement, and all the trials of an agent."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TypeVar

from trimtab_agent import invocation
from trimtab_agent.artifacts import collect
from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import (
    CallError,
    CallRefusedError,
    InvalidReportError,
    NotAcceptedError,
    NotInComponentError,
    PolicyError,
    UnsuitableValueError,
)
from trimtab_agent.installed import Installed
from trimtab_agent.job import job_of
from trimtab_agent.journal import Entry, Journal
from trimtab_agent.lease import Lease, Settlement
from trimtab_agent.log_shipper import LogShipper
from trimtab_agent.measurement_reporter import MeasurementReporter
from trimtab_agent.runners.base import JobResult, JobState, Outcome, Runner, stored_spec

logger = logging.getLogger(__name__)

# a trial that vanished with its machine is started again this often; then it is the service's turn to try it elsewhere
RERUNS = 1
# runs are numbered within their lease; a scheduler starts one job anew fewer times than this
RUNS_OF_A_JOB = 10_000
# seconds that a result waits for the report that its trial had started
START_TIME = 1.0
# seconds between two tries to write the journal on a full disk
JOURNAL_INTERVAL = 2.0
# seconds between two tries to reach a trial's folder
FOLDER_INTERVAL = 2.0

Answer = TypeVar("Answer")


class _Trial:
    """What the agent knows of a trial between its lease and the acknowledgement of its settlement."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.task: asyncio.Task[None] | None = None
        # its processes may be running; it takes a slot
        self.running = entry.settlement is None
        self.lost = False
        # tells the service that it runs, and where
        self.telling: asyncio.Task[None] | None = None
        # why it is to end early; empty: it is not
        self.cancel_reason = ""
        self.released = False


class TrialRunner:
    """The trials of this agent. All methods belong to the event loop's thread."""

    def __init__(
        self,
        config: Config,
        installed: Installed,
        journal: Journal,
        runner: Runner,
        control: ControlPlane,
    ) -> None:
        self._config = config
        self._installed = installed
        self._journal = journal
        self._runner = runner
        self._control = control
        self._trials: dict[str, _Trial] = {}
        self._slot_freed = asyncio.Event()
        self._confirmed = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    # -- what the loops ask and say

    def held(self) -> list[str]:
        """Every lease whose end the service has not acknowledged."""
        return list(self._trials)

    async def elapsed(self) -> dict[str, float]:
        """How long the applications of running trials have been running, in seconds, by lease."""
        found: dict[str, float] = {}
        for lease, trial in list(self._trials.items()):
            if trial.running and (seconds := await self._runner.elapsed(trial.entry.folder)) is not None:
                found[lease] = seconds
        return found

    def waiting(self) -> dict[str, str]:
        """Why trials do not start, where that is to be told, by lease."""
        running = [(lease, trial.entry.folder) for lease, trial in self._trials.items() if trial.running]
        return {lease: why for lease, folder in running if (why := self._runner.waiting(folder))}

    async def free_slots(self) -> int:
        """For how many trials to ask, as soon as a slot is free. None while a trial has the machine for itself, or
        waits for that: another agent may run at once what here would have to wait. So one at a time where all run on
        this machine: whether the next is to have that for itself is not known before."""
        while True:
            self._slot_freed.clear()
            running = [trial for trial in self._trials.values() if trial.running]
            free = self._config.slots - len(running)
            alone = self._runner.one_machine and any(trial.entry.lease.exclusive for trial in running)
            if free > 0 and not alone:
                return 1 if self._runner.one_machine else free
            await self._slot_freed.wait()

    def start(self, lease: Lease) -> None:
        """Takes on a lease. One that is held already (its answer came twice) changes nothing."""
        if lease.id in self._trials:
            return
        try:
            entry = self._journal.accept(lease)
        except OSError as error:
            # without a journal it is not held: the service grants it again, to this agent or another
            logger.error("lease of %s cannot be journalled and is left to expire: %s", lease.title, error)
            return
        self._begin(entry)

    def resume(self, entry: Entry) -> None:
        """Takes up a lease that an earlier process of this agent left. What runs is followed and what has ended is
        reported at once; what has to run again waits for `confirm`."""
        self._begin(entry)

    def confirm(self) -> None:
        """Leases that `lose` has not named by now are still this agent's."""
        self._confirmed.set()

    def cancel(self, lease: str, reason: str) -> None:
        """Ends a trial that the service does not want any more."""
        trial = self._trials.get(lease)
        if trial and trial.running and not trial.cancel_reason:
            logger.info("%s is cancelled: %s", trial.entry.lease.title, reason)
            trial.cancel_reason = reason or "cancelled by the service"
            self._spawn(self._patiently(trial, self._runner.cancel))

    def lose(self, lease: str) -> None:
        """Ends a trial that belongs to another agent by now. A result that is there already is reported all the same:
        what it is worth is for the service to say."""
        trial = self._trials.get(lease)
        if trial and trial.running and not trial.lost:
            logger.warning("the lease of %s is lost; its trial is ended", trial.entry.lease.title)
            trial.lost = True
            self._spawn(self._patiently(trial, self._runner.cancel))

    async def shut_down(self, seconds: float) -> None:
        """Ends every trial and gives its lease back. What cannot be reported in time stays in the journal for the next
        start."""
        running = [trial for trial in self._trials.values() if trial.running]
        for trial in running:
            trial.released = True
        self.confirm()
        ending = [self._runner.cancel(trial.entry.folder) for trial in running]
        for error in filter(None, await asyncio.gather(*ending, return_exceptions=True)):
            logger.warning("a trial cannot be ended now: %s", error)
        tasks = [trial.task for trial in self._trials.values() if trial.task]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for task in [*tasks, *self._background]:
            task.cancel()
        await asyncio.gather(*tasks, *self._background, return_exceptions=True)

    # -- one trial

    def _begin(self, entry: Entry) -> None:
        trial = self._trials[entry.lease.id] = _Trial(entry)
        trial.task = asyncio.create_task(self._live(trial), name=entry.lease.title)
        trial.task.add_done_callback(_tell_failure)

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(_tell_failure)
        return task

    async def _live(self, trial: _Trial) -> None:
        entry = trial.entry
        shipper = LogShipper(self._control, entry)
        if entry.settlement is None:
            following = [asyncio.create_task(shipper.follow())]
            reporter = MeasurementReporter(self._control, entry, lambda: self.cancel(entry.lease.id, "pruned"))
            if (component := self._installed.components.get(entry.lease.component)) and component.stream:
                following.append(asyncio.create_task(reporter.follow()))
            try:
                settlement = await self._settlement(trial)
            finally:
                for task in following:
                    task.cancel()
                trial.running = False
                self._slot_freed.set()
            if trial.lost:
                await self._forget(trial)
                return
            await self._journal_settlement(entry, settlement)
            # a lease that is settled takes none any more
            await reporter.finish()
        if trial.telling:
            # a lease that is settled takes no node any more
            await asyncio.wait([trial.telling], timeout=START_TIME)
        # the result before the log: the next trial may be waiting for it
        await self._report(entry)
        await shipper.finish()
        if entry.settlement is not None and entry.settlement.outcome is not Outcome.RELEASED:
            await self._send_artifacts(entry)
        await self._forget(trial)

    async def _report(self, entry: Entry) -> None:
        assert entry.settlement is not None
        try:
            await self._control.settle(entry.lease.id, entry.settlement)
        except InvalidReportError as error:
            # it measures something else than the study asks for: the study has to hear that
            logger.warning("%s: %s", entry.lease.title, error)
            await self._journal_settlement(entry, Settlement(Outcome.FAILED, str(error)))
            await self._report(entry)
        except CallRefusedError as error:
            logger.warning("the service does not take the result of %s: %s", entry.lease.title, error)
        else:
            logger.info("%s: %s%s", entry.lease.title, entry.settlement.outcome, _told(entry.settlement))

    async def _forget(self, trial: _Trial) -> None:
        del self._trials[trial.entry.lease.id]
        try:
            await asyncio.to_thread(self._journal.remove, trial.entry)
        except OSError as error:
            # at the next start it is reported once more, which changes nothing
            logger.warning("%s cannot be removed: %s", trial.entry.folder, error)

    async def _settlement(self, trial: _Trial) -> Settlement:
        """Runs the trial, or waits for one that runs already."""
        try:
            result = await self._result(trial)
        except UnsuitableValueError as error:
            result = JobResult(Outcome.INFEASIBLE, str(error))
        except (NotInComponentError, NotAcceptedError, PolicyError) as error:
            result = JobResult(Outcome.FAILED, str(error))
        except OSError as error:
            result = await self._give_up(trial, f"the trial could not be run: {error}")
        except Exception as error:
            # a fault of ours must not leave the service waiting for this trial
            logger.exception("%s", trial.entry.lease.title)
            result = await self._give_up(trial, f"the agent failed: {type(error).__name__}: {error}")
        # a trial that ended by itself before the signal came has its own result
        if trial.released and result.outcome in (Outcome.CANCELLED, Outcome.FAILED):
            return Settlement(Outcome.RELEASED, "the agent was stopped")
        if trial.cancel_reason and result.outcome in (Outcome.CANCELLED, Outcome.FAILED):
            return Settlement(Outcome.CANCELLED, trial.cancel_reason, elapsed=result.elapsed, node=result.node)
        return Settlement.of(result)

    async def _give_up(self, trial: _Trial, reason: str) -> JobResult:
        """Ends what may run of a trial before the service, hearing that it has failed, starts it elsewhere."""
        try:
            await self._patiently(trial, self._runner.cancel)
        except Exception:
            logger.exception("%s may still run", trial.entry.lease.title)
        return JobResult(Outcome.FAILED, reason)

    async def _patiently(self, trial: _Trial, ask: Callable[[Path], Awaitable[Answer]]) -> Answer:
        """What the runner answers about a trial, as soon as its folder can be reached: that it cannot be now (a file
        server is away, a quota is used up) says nothing about the job.

        Raises:
            FileNotFoundError: the folder is gone.
        """
        tries = 0
        while True:
            try:
                return await ask(trial.entry.folder)
            except FileNotFoundError:
                raise
            except OSError as error:
                tries += 1
                if tries in (1, 10) or tries % 100 == 0:
                    logger.warning("%s cannot be followed now: %s; trying again", trial.entry.lease.title, error)
                await asyncio.sleep(FOLDER_INTERVAL)

    async def _result(self, trial: _Trial) -> JobResult:
        entry = trial.entry
        folder = entry.folder
        if await self._patiently(trial, self._runner.status) is JobState.ABSENT:
            await self._confirmed.wait()
            if trial.released or trial.cancel_reason or trial.lost:
                return JobResult(Outcome.CANCELLED)
            if (folder / "spec.json").exists():
                if entry.reruns >= RERUNS:
                    return JobResult(
                        Outcome.FAILED,
                        "the trial vanished without a result, with its machine or by a signal, more than once",
                    )
                logger.warning("%s vanished without a result; it is run again", entry.lease.title)
                self._journal.note_rerun(entry)
            run = 1 + entry.reruns * RUNS_OF_A_JOB
            spec = job_of(entry.lease, self._config, self._installed.components, work=entry.work, run=run)
            await self._runner.submit(folder, spec)
            if trial.released or trial.cancel_reason or trial.lost:
                # it came while the job was being submitted, and found nothing to end
                await self._runner.cancel(folder)
        starting = asyncio.create_task(self._follow_start(trial))
        try:
            result = await self._patiently(trial, self._runner.wait)
        finally:
            starting.cancel()
        if result.elapsed and trial.telling is None:
            self._tell_start(trial, result.node)
        return result

    async def _follow_start(self, trial: _Trial) -> None:
        self._tell_start(trial, await self._runner.started(trial.entry.folder))

    def _tell_start(self, trial: _Trial, node: str) -> None:
        trial.telling = self._spawn(self._report_started(trial.entry, node))

    async def _report_started(self, entry: Entry, node: str) -> None:
        spec = stored_spec(entry.folder)
        shown = None
        if spec is not None and self._config.policy.show_commands:
            shown = invocation.of(spec, self._runner.script(entry.folder, spec))
        try:
            await self._control.report_started(entry.lease.id, node, 0 if spec is None else spec.run, shown)
        except CallError as error:
            logger.info("%s: %s", entry.lease.title, error)

    async def _send_artifacts(self, entry: Entry) -> None:
        """Sends the files that the trial has left. What cannot be sent is no reason to hold anything up."""
        spec = await asyncio.to_thread(stored_spec, entry.folder)
        if spec is None or not spec.artifacts:
            return
        policy = self._config.policy
        found = collect(entry.work, spec.artifacts, most=policy.artifacts, largest=policy.artifact_bytes)
        while artifact := await asyncio.to_thread(next, found, None):
            try:
                refused = await self._control.put_artifact(entry.lease.id, artifact)
            except CallError as error:
                logger.warning("%s: its artifact %s is lost: %s", entry.lease.title, artifact.name, error)
                return
            if refused and not artifact.left_out:
                logger.warning("%s: the service does not keep %s: %s", entry.lease.title, artifact.name, refused)

    async def _journal_settlement(self, entry: Entry, settlement: Settlement) -> None:
        told = False
        while True:
            try:
                # in a thread: the loop asks for the next lease meanwhile
                await asyncio.to_thread(self._journal.settle, entry, settlement)
                return
            except OSError as error:
                if not told:
                    told = True
                    logger.error(
                        "the result of %s cannot be written to %s and waits until there is room: %s",
                        entry.lease.title,
                        entry.folder,
                        error,
                    )
                # the trial's own files may be what fills the disk
                await asyncio.to_thread(shutil.rmtree, entry.work, ignore_errors=True)
                await asyncio.sleep(JOURNAL_INTERVAL)


def _tell_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()):
        logger.error("%s: %s", task.get_name(), error, exc_info=error)


def _told(settlement: Settlement) -> str:
    metrics = ", ".join(f"{name}={value:.6g}" for name, value in settlement.metrics.items())
    reason = settlement.reason.splitlines()[0] if settlement.reason else ""
    return "".join(f" ({part})" for part in (metrics, reason) if part)
