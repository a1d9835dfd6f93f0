"""The trials of an agent, each from its lease to the acknowledged settlement."""

import asyncio
import math
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from trimtab_agent import invocation, tracing
from trimtab_agent.artifacts import collect
from trimtab_agent.config import Config
from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.credentials import Credentials
from trimtab_agent.errors import (
    CallError,
    CallRefusedError,
    InvalidReportError,
    NotAcceptedError,
    PolicyError,
)
from trimtab_agent.installed import Installed
from trimtab_agent.job import job_of
from trimtab_agent.journal import Entry, Journal
from trimtab_agent.lease import Lease, Settlement
from trimtab_agent.log_shipper import LogShipper
from trimtab_agent.logger import Logger
from trimtab_agent.measurement_reporter import MeasurementReporter
from trimtab_agent.redaction import Redactor
from trimtab_agent.runners.base import JobResult, JobState, Outcome, Runner, stored_spec
from trimtab_components.errors import NotInComponentError, UnsuitableValueError

logger = Logger(__name__)

# The code of a refusal by the administrator's policy, which the service knows.
POLICY = "policy_refused"

# How often the agent restarts a trial that was lost with its machine. Then the service tries elsewhere.
RERUNS = 1
# Runs are numbered within their lease. A scheduler restarts one job fewer times than this.
RUNS_OF_A_JOB = 10_000
# Seconds that a result waits for the report that its trial has started.
START_TIME = 1.0
# Seconds between two attempts to write the journal on a full disk.
JOURNAL_INTERVAL = 2.0
# Seconds between two attempts to reach a trial's folder.
FOLDER_INTERVAL = 2.0

Answer = TypeVar("Answer")


class _Trial:
    """A trial between its lease and the acknowledgement of its settlement."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.task: asyncio.Task[None] | None = None
        # Whether its processes may be running. It then takes a slot.
        self.running = entry.settlement is None
        self.lost = False
        # The task that reports the start and the node to the service.
        self.telling: asyncio.Task[None] | None = None
        # Why it must end early; empty if it need not.
        self.cancel_reason = ""
        self.released = False


class TrialRunner:
    """The trials of this agent. All methods must be called in the event loop's thread."""

    def __init__(
        self,
        config: Config,
        installed: Installed,
        journal: Journal,
        runner: Runner,
        control: ControlPlane,
        credentials: Credentials,
    ) -> None:
        self._config = config
        self._credentials = credentials
        self._installed = installed
        self._journal = journal
        self._runner = runner
        self._control = control
        self._trials: dict[str, _Trial] = {}
        self._slot_freed = asyncio.Event()
        self._confirmed = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    # -- called by the loops

    def held(self) -> list[str]:
        """Return the ids of all leases whose end the service has not acknowledged."""
        return list(self._trials)

    def runs(self, component: str) -> bool:
        """Return whether a trial of this component runs, or waits to run."""
        return any(trial.running and trial.entry.lease.component == component for trial in self._trials.values())

    async def elapsed(self) -> dict[str, float]:
        """Return the running time of each running trial's application, in seconds, by lease."""
        found: dict[str, float] = {}
        for lease, trial in list(self._trials.items()):
            if trial.running and (seconds := await self._runner.elapsed(trial.entry.folder)) is not None:
                found[lease] = seconds
        return found

    def waiting(self) -> dict[str, str]:
        """Return why trials do not start, if the runner knows a reason, by lease."""
        running = [(lease, trial.entry.folder) for lease, trial in self._trials.items() if trial.running]
        return {lease: why for lease, folder in running if (why := self._runner.waiting(folder))}

    def shortest_away(self) -> float:
        """Return the shortest time without the service after which a trial of a live system ends here, in seconds.

        It is infinite without such a system.
        """
        found = (component.live for component in self._installed.components.values())
        return min((live.away for live in found if live is not None), default=math.inf)

    def heard(self) -> None:
        """Note that the service has answered just now."""
        self._runner.heard()

    async def free_slots(self) -> int:
        """Wait until a slot is free and return for how many trials to ask.

        While a trial has the machine for itself, or waits for that, no slot is free: another agent may run at once what
        would have to wait here. If all trials run on this machine, the answer is at most 1, because only the lease says
        whether the next trial needs the machine for itself.
        """
        while True:
            self._slot_freed.clear()
            running = [trial for trial in self._trials.values() if trial.running]
            free = self._config.slots - len(running)
            alone = self._runner.one_machine and any(trial.entry.lease.exclusive for trial in running)
            if free > 0 and not alone:
                return 1 if self._runner.one_machine else free
            await self._slot_freed.wait()

    def start(self, lease: Lease) -> None:
        """Start the trial of a lease. A lease that is already held (a repeated answer) changes nothing."""
        if lease.id in self._trials:
            return
        try:
            entry = self._journal.accept(lease)
        except OSError as error:
            # Without a journal entry the lease is not held. The service grants it again to this or another agent.
            logger.error(
                "a lease cannot be written to the journal and will expire",
                study=lease.study,
                trial=lease.trial,
                error=error,
            )
            return
        self._begin(entry)

    def resume(self, entry: Entry) -> None:
        """Continue a lease that an earlier process of this agent left.

        A running trial is followed, and the result of one that has ended is reported at once. A trial that must run
        again waits for `confirm`.
        """
        self._begin(entry)

    def confirm(self) -> None:
        """Note that the agent still holds all leases that `lose` has not named."""
        self._confirmed.set()

    def cancel(self, lease: str, reason: str) -> None:
        """End a trial that the service has cancelled."""
        trial = self._trials.get(lease)
        if trial and trial.running and not trial.cancel_reason:
            known = trial.entry.lease
            logger.info("a trial is cancelled", study=known.study, trial=known.trial, reason=reason)
            trial.cancel_reason = reason or "cancelled by the service"
            self._spawn(self._patiently(trial, self._runner.cancel))

    def lose(self, lease: str) -> None:
        """End a trial whose lease now belongs to another agent. If it already has a result, it is reported all the
        same, and the service decides what it is worth."""
        trial = self._trials.get(lease)
        if trial and trial.running and not trial.lost:
            known = trial.entry.lease
            logger.warning("a lease is lost, its trial is ended", study=known.study, trial=known.trial)
            trial.lost = True
            self._spawn(self._patiently(trial, self._runner.cancel))

    async def shut_down(self, seconds: float) -> None:
        """End every trial and give its lease back. Reports that do not succeed in time stay in the journal for the next
        start."""
        running = [trial for trial in self._trials.values() if trial.running]
        for trial in running:
            trial.released = True
        self.confirm()
        ending = [self._runner.cancel(trial.entry.folder) for trial in running]
        for error in filter(None, await asyncio.gather(*ending, return_exceptions=True)):
            logger.warning("a trial could not be ended", error=error)
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
        lease = trial.entry.lease
        # A trace of its own: a study's trials follow from each other, and one trace of them all would have no end.
        with tracing.span(
            "trial",
            link=lease.traceparent,
            attributes={
                "trimtab.study": lease.study,
                "trimtab.trial": lease.trial,
                "trimtab.lease": lease.id,
                "trimtab.attempt": lease.attempt,
                "trimtab.component": lease.component,
                "trimtab.application": lease.application,
            },
        ):
            await self._follow(trial)

    async def _follow(self, trial: _Trial) -> None:
        entry = trial.entry
        redactor = self._redactor(entry)
        shipper = LogShipper(self._control, entry, redactor)
        if entry.settlement is None:
            following = [asyncio.create_task(shipper.follow())]
            reporter = MeasurementReporter(self._control, entry, lambda: self.cancel(entry.lease.id, "pruned"))
            if (component := self._installed.components.get(entry.lease.component)) and component.stream:
                following.append(asyncio.create_task(reporter.follow()))
            try:
                settlement = await self._settlement(trial)
                # The reason may quote the output.
                values = {name: redactor.text(value) for name, value in settlement.reason_values.items()}
                settlement = replace(settlement, reason=redactor.text(settlement.reason), reason_values=values)
            finally:
                for task in following:
                    task.cancel()
                trial.running = False
                self._slot_freed.set()
            if trial.lost and not _has_cost(settlement):
                await self._forget(trial)
                return
            await self._journal_settlement(entry, settlement)
            # A settled lease accepts no measurements.
            await reporter.finish()
        if trial.telling:
            # A settled lease accepts no node.
            await asyncio.wait([trial.telling], timeout=START_TIME)
        # The result goes before the log, because the next trial may wait for it.
        if entry.settlement is not None:
            tracing.note("trimtab.outcome", entry.settlement.outcome)
        with tracing.span("report"):
            await self._report(entry)
        await shipper.finish()
        if entry.settlement is not None and entry.settlement.outcome is not Outcome.RELEASED:
            await self._send_artifacts(entry, redactor)
        await self._forget(trial)

    def _redactor(self, entry: Entry) -> Redactor:
        """Return what hides the agent's credentials and the secrets in the trial's environment."""
        own: set[str] = set()

        def known() -> set[str]:
            if not own and (spec := stored_spec(entry.folder)) is not None:
                own.update(invocation.secrets(spec.env))
            return own | self._credentials.secrets()

        return Redactor(known)

    async def _report(self, entry: Entry) -> None:
        assert entry.settlement is not None
        lease, settlement = entry.lease, entry.settlement
        try:
            await self._control.settle(lease.id, settlement)
        except InvalidReportError as error:
            # The trial measured other metrics than the study needs. Report that to the study.
            logger.warning("the service finds an error in a result", study=lease.study, trial=lease.trial, error=error)
            await self._journal_settlement(entry, Settlement(Outcome.FAILED, str(error)))
            await self._report(entry)
        except CallRefusedError as error:
            logger.warning("the service refuses a result", study=lease.study, trial=lease.trial, error=error)
        else:
            logger.info(
                "a result is reported",
                study=lease.study,
                trial=lease.trial,
                outcome=settlement.outcome,
                metrics=_metrics(settlement),
                reason=_first_line(settlement.reason),
                doubt=_first_line(settlement.doubt),
            )

    async def _forget(self, trial: _Trial) -> None:
        del self._trials[trial.entry.lease.id]
        try:
            await asyncio.to_thread(self._journal.remove, trial.entry)
        except OSError as error:
            # The next start reports it again, which changes nothing.
            logger.warning("the folder of a trial cannot be removed", folder=trial.entry.folder, error=error)

    async def _settlement(self, trial: _Trial) -> Settlement:
        """Run the trial, or wait for a running one, and return its settlement."""
        lease = trial.entry.lease
        try:
            result = await self._result(trial)
        except UnsuitableValueError as error:
            result = JobResult(Outcome.INFEASIBLE, str(error))
        except PolicyError as error:
            # The service does not count it against the budget, because no program has run.
            result = JobResult(Outcome.FAILED, str(error), reason_code=POLICY)
        except (NotInComponentError, NotAcceptedError) as error:
            result = JobResult(Outcome.FAILED, str(error))
        except OSError as error:
            result = await self._give_up(trial, f"the trial could not run: {error}")
        except Exception as error:
            # A defect of the agent must not leave the service waiting for this trial.
            logger.exception("the agent has failed to run a trial", study=lease.study, trial=lease.trial)
            result = await self._give_up(trial, f"the agent failed: {type(error).__name__}: {error}")
        # A trial that ended by itself before the signal has its own result.
        if trial.released and result.outcome in (Outcome.CANCELLED, Outcome.FAILED):
            # What a live trial has cost counts also if its settings did not.
            return Settlement(Outcome.RELEASED, "the agent was stopped", live=result.live)
        if trial.cancel_reason and result.outcome in (Outcome.CANCELLED, Outcome.FAILED):
            return Settlement(
                Outcome.CANCELLED, trial.cancel_reason, elapsed=result.elapsed, node=result.node, live=result.live
            )
        return Settlement.of(result)

    async def _give_up(self, trial: _Trial, reason: str) -> JobResult:
        """End the trial's processes before the service learns of the failure and starts it elsewhere."""
        lease = trial.entry.lease
        try:
            await self._patiently(trial, self._runner.cancel)
        except Exception:
            logger.exception("a trial may still be running", study=lease.study, trial=lease.trial)
        return JobResult(Outcome.FAILED, reason)

    async def _patiently(self, trial: _Trial, ask: Callable[[Path], Awaitable[Answer]]) -> Answer:
        """Return the runner's answer about a trial as soon as its folder can be reached.

        An unreachable folder (a file server is away, a quota is used up) says nothing about the job.

        Raises:
            FileNotFoundError: the folder is gone.
        """
        lease = trial.entry.lease
        tries = 0
        while True:
            try:
                return await ask(trial.entry.folder)
            except FileNotFoundError:
                raise
            except OSError as error:
                tries += 1
                if tries in (1, 10) or tries % 100 == 0:
                    logger.warning(
                        "the folder of a trial cannot be reached, trying again",
                        study=lease.study,
                        trial=lease.trial,
                        error=error,
                    )
                await asyncio.sleep(FOLDER_INTERVAL)

    async def _result(self, trial: _Trial) -> JobResult:
        entry = trial.entry
        lease, folder = entry.lease, entry.folder
        if await self._patiently(trial, self._runner.status) is JobState.ABSENT:
            await self._confirmed.wait()
            if trial.released or trial.cancel_reason or trial.lost:
                return JobResult(Outcome.CANCELLED)
            if (folder / "spec.json").exists():
                if entry.reruns >= RERUNS:
                    return JobResult(
                        Outcome.FAILED,
                        "the trial was lost without a result more than once, with its machine or by a signal",
                    )
                logger.warning(
                    "a trial was lost without a result, running it again", study=lease.study, trial=lease.trial
                )
                self._journal.note_rerun(entry)
            run = 1 + entry.reruns * RUNS_OF_A_JOB
            with tracing.span("prepare"):
                spec = job_of(lease, self._config, self._installed.components, work=entry.work, run=run)
                await self._runner.submit(folder, spec)
            if trial.released or trial.cancel_reason or trial.lost:
                # The cancellation came during the submission and found nothing to end.
                await self._runner.cancel(folder)
        starting = asyncio.create_task(self._follow_start(trial))
        try:
            result = await self._patiently(trial, self._runner.wait)
        finally:
            starting.cancel()
        for step in result.steps:
            tracing.past(*step)
        if result.elapsed and trial.telling is None:
            self._tell_start(trial, result.node)
        return result

    async def _follow_start(self, trial: _Trial) -> None:
        self._tell_start(trial, await self._runner.started(trial.entry.folder))

    def _tell_start(self, trial: _Trial, node: str) -> None:
        trial.telling = self._spawn(self._report_started(trial.entry, node))

    async def _report_started(self, entry: Entry, node: str) -> None:
        lease = entry.lease
        spec = stored_spec(entry.folder)
        shown = None
        if spec is not None and self._config.policy.show_commands:
            shown = invocation.of(spec, self._runner.script(entry.folder, spec))
        try:
            await self._control.report_started(lease.id, node, 0 if spec is None else spec.run, shown)
        except CallError as error:
            logger.info("the start of a trial is not reported", study=lease.study, trial=lease.trial, error=error)

    async def _send_artifacts(self, entry: Entry, redactor: Redactor) -> None:
        """Send the trial's artifacts. A failure is logged and delays nothing."""
        lease = entry.lease
        spec = await asyncio.to_thread(stored_spec, entry.folder)
        if spec is None or not spec.artifacts:
            return
        policy = self._config.policy
        most, largest = policy.artifacts, policy.artifact_bytes
        found = collect(entry.work, spec.artifacts, most=most, largest=largest, redactor=redactor)
        while artifact := await asyncio.to_thread(next, found, None):
            try:
                refused = await self._control.put_artifact(lease.id, artifact)
            except CallError as error:
                logger.warning(
                    "an artifact is lost", study=lease.study, trial=lease.trial, artifact=artifact.name, error=error
                )
                return
            if refused and not artifact.left_out:
                logger.warning(
                    "the service does not store an artifact",
                    study=lease.study,
                    trial=lease.trial,
                    artifact=artifact.name,
                    reason=refused,
                )

    async def _journal_settlement(self, entry: Entry, settlement: Settlement) -> None:
        lease, reported = entry.lease, False
        while True:
            try:
                # This runs in a thread, so that the loop can ask for the next lease.
                await asyncio.to_thread(self._journal.settle, entry, settlement)
                return
            except OSError as error:
                if not reported:
                    reported = True
                    logger.error(
                        "a result cannot be written, waiting for disk space",
                        study=lease.study,
                        trial=lease.trial,
                        folder=entry.folder,
                        error=error,
                    )
                # The trial's own files may fill the disk.
                await asyncio.to_thread(shutil.rmtree, entry.work, ignore_errors=True)
                await asyncio.sleep(JOURNAL_INTERVAL)


def _has_cost(settlement: Settlement) -> bool:
    """Return whether a trial of a live system has cost something, which counts also if its result does not."""
    cost = {} if settlement.live is None else settlement.live["cost"]
    return isinstance(cost, Mapping) and any(cost.values())


def _tell_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()):
        logger.error("a task has failed", task=task.get_name(), error=error, exc_info=error)


def _metrics(settlement: Settlement) -> str:
    return ", ".join(f"{name}={value:.6g}" for name, value in settlement.metrics.items())


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
