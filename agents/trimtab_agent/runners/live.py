"""Run trials of live systems on the agent's own machine, and all other trials by another runner.

The supervisor of a live trial and the agent watch each other. The supervisor puts the old settings back if the agent
dies or does not answer; here the agent does so if the supervisor dies or does not answer.
"""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from trimtab_agent.files import write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners import supervisor_process
from trimtab_agent.runners.base import (
    RESULT,
    RESULT_SPACE,
    RUNNING,
    SPEC,
    JobResult,
    JobSpec,
    JobState,
    Json,
    Outcome,
    Runner,
    read_spec,
    reserve_result,
    running_seconds,
    stored_result,
)
from trimtab_agent.supervisor import audit, switch
from trimtab_agent.supervisor.beats import AGENT, SERVICE, SUPERVISOR, Beats
from trimtab_agent.supervisor.costs import LEDGER
from trimtab_agent.supervisor.ledger import Ledger
from trimtab_agent.supervisor.live_trial import BEATS, SILENCE
from trimtab_agent.supervisor.paired import WAITING

logger = Logger(__name__)

# Seconds between two signs of life of this process, and two looks at those of the supervisor.
BEAT_INTERVAL = 0.2

# Seconds until a supervisor must have given its first sign of life.
START_TIME = 30.0
# Disk space that is reserved for the result of a trial, in bytes.
PAIRS_SPACE = 16 * RESULT_SPACE
# Seconds that supervisors of kept settings have to put the old ones back when the agent stops.
FAREWELL = 5.0

_SUPERVISOR = Path(switch.__file__).parent / "live.py"


class LiveRunner(Runner):
    """Gives trials with the key `live` to supervisors of their own, and the others to `others`."""

    def __init__(self, others: Runner) -> None:
        self._others = others
        self._running: dict[Path, _Supervisor] = {}
        # The supervisors that guard kept settings after their trial, and what watches them.
        self._kept: dict[_Supervisor, asyncio.Task[None]] = {}

    @property
    def one_machine(self) -> bool:  # type: ignore[override]  # the other runner decides
        """As in the other runner."""
        return self._others.one_machine

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        if spec.live is None:
            await self._others.submit(folder, spec)
            return
        (folder / "cancel").unlink(missing_ok=True)
        (folder / WAITING).unlink(missing_ok=True)
        audit.remove(folder)
        # Each pair of a live study is in the result.
        reserve_result(folder, PAIRS_SPACE)
        write_atomically(folder / SPEC, spec.to_json().encode())
        Beats.create(folder / BEATS)
        write_atomically(folder / RUNNING, f"0 {time.monotonic()}".encode())
        self._running[folder] = _Supervisor(folder)

    async def status(self, folder: Path) -> JobState:
        if not _is_live(folder):
            return await self._others.status(folder)
        if (folder / RESULT).exists():
            return JobState.ENDED
        # A trial of an earlier agent process is over: its settings were put back before this process asks.
        return JobState.RUNNING if folder in self._running else JobState.ENDED

    async def wait(self, folder: Path) -> JobResult:
        if not _is_live(folder):
            return await self._others.wait(folder)
        supervisor = self._running.get(folder)
        if supervisor is not None:
            try:
                await supervisor.watch(until_kept=True)
            finally:
                if not supervisor.is_alive() and self._running.pop(folder, None) is not None:
                    supervisor.close()
        result = stored_result(folder)
        if result is not None:
            if supervisor is None or not supervisor.is_alive():
                await asyncio.to_thread(_note_reported, read_spec(folder))
            if supervisor is None:
                # An agent that ended before it has reported this: the settings went with it.
                return replace(result, live=_not_kept(result.live))
            if supervisor.is_alive() and self._running.pop(folder, None) is not None:
                self._kept[supervisor] = asyncio.create_task(self._guard(supervisor))
            else:
                await self._leave_nothing(supervisor)
            return result
        spec = read_spec(folder)
        # One that waited for an instance has left nothing there.
        own = [path for path in _records(spec) if not self._is_in_use(path)]
        stuck = "; ".join([why for why in [await self._take_back(path) for path in own] if why])
        live = _stopped(folder, spec, stuck)
        if stuck:
            text = f"the trial's supervisor was killed, and the old settings could not be put back: {stuck}"
            return JobResult(Outcome.FAILED, text, reason_code="live_stuck", live=live)
        text = "the trial's supervisor was killed; the old settings are in force"
        return JobResult(Outcome.FAILED, text, reason_code="live_no_agent", live=live)

    async def started(self, folder: Path) -> str:
        return os.uname().nodename if _is_live(folder) else await self._others.started(folder)

    async def elapsed(self, folder: Path) -> float | None:
        return running_seconds(folder) if _is_live(folder) else await self._others.elapsed(folder)

    def waiting(self, folder: Path) -> str:
        if not _is_live(folder):
            return self._others.waiting(folder)
        try:
            return (folder / WAITING).read_text(encoding="utf-8")
        except OSError:
            return ""

    async def cancel(self, folder: Path) -> None:
        if not _is_live(folder):
            await self._others.cancel(folder)
            return
        (folder / "cancel").touch()
        supervisor = self._running.get(folder)
        if supervisor is not None:
            await supervisor.watch()

    def script(self, folder: Path, spec: JobSpec) -> str:
        return "" if spec.live is not None else self._others.script(folder, spec)

    def silence(self) -> tuple[float, str]:
        return self._others.silence()

    def heard(self) -> None:
        for supervisor in self._running.values():
            supervisor.beats.give(SERVICE)

    def close(self) -> None:
        self._others.close()
        for guard in self._kept.values():
            guard.cancel()
        for supervisor in self._kept:
            # Its supervisor takes the settings back when it sees that the agent has gone.
            supervisor.leave()
        deadline = time.monotonic() + FAREWELL
        while any(supervisor.is_alive() for supervisor in self._kept) and time.monotonic() < deadline:
            time.sleep(BEAT_INTERVAL / 4)

    async def _guard(self, supervisor: "_Supervisor") -> None:
        """Watch a supervisor that guards kept settings, and take them back if it dies."""
        await supervisor.watch()
        supervisor.close()
        del self._kept[supervisor]
        await self._leave_nothing(supervisor)

    async def _leave_nothing(self, supervisor: "_Supervisor") -> None:
        """Take back what a supervisor that has ended has left, unless another one has it now."""
        for path in supervisor.records:
            # A person has to look after an instance that is stuck.
            if path.exists() and not self._is_in_use(path) and not switch.Instance(path).stuck:
                why = await self._take_back(path) or "nobody guards them"
                logger.warning("settings of a trial were taken back", instance=path.stem, reason=why)

    def _is_in_use(self, record: Path) -> bool:
        return any(record in one.records for one in (*self._running.values(), *self._kept))

    async def _take_back(self, record: Path) -> str:
        """Put the old settings back on an instance, and return "", or why that has failed."""
        found = await asyncio.to_thread(switch.revert_all, record.parent, only=record)
        return found.get(record.stem, "")


class _Supervisor:
    """The supervisor process of one live trial."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records = _records(read_spec(folder))
        self.beats = Beats(folder / BEATS)
        self._created = self.beats.last(SUPERVISOR)
        self._socket, self.process = supervisor_process.start(_SUPERVISOR, str(folder))

    def is_alive(self) -> bool:
        """Return whether the process has not ended."""
        return self.process.poll() is None

    def close(self) -> None:
        """Release what the process has needed. It has ended."""
        self.leave()
        self.beats.close()

    def leave(self) -> None:
        """Let the process see that the agent has gone."""
        self._socket.close()

    async def watch(self, *, until_kept: bool = False) -> None:
        """Give signs of life until the process has ended; kill it if it gives none.

        `until_kept`: only until it has stored a result whose settings stay in force.
        """
        while self.is_alive():
            if until_kept and (self.folder / RESULT).exists() and _keeps(stored_result(self.folder)):
                return
            self.beats.give(AGENT)
            # Before its first sign it has switched nothing, and a busy machine starts a process slowly.
            began = self.beats.last(SUPERVISOR) != self._created
            if self.beats.age(SUPERVISOR) > (SILENCE if began else START_TIME):
                logger.warning("the supervisor of a live trial does not answer and is killed", folder=self.folder)
                os.kill(self.process.pid, signal.SIGKILL)
            await asyncio.sleep(BEAT_INTERVAL)


def _is_live(folder: Path) -> bool:
    return (folder / BEATS).exists()


def _records(spec: JobSpec) -> list[Path]:
    """Return the records of the instances that a trial may switch."""
    assert spec.live is not None
    return [Path(one["record"]) for one in (spec.live, *spec.live["peers"])]


def _note_reported(spec: JobSpec) -> None:
    """Note in the ledgers that a stored result contains all costs: its supervisor may have died before it has."""
    for path in _records(spec):
        instance = switch.Instance(path)
        # Another trial that has the instance has read the ledger already.
        if instance.take():
            with suppress(OSError):  # a full disk leaves them for the next result
                Ledger(path.with_suffix(LEDGER)).report(spec.name.rpartition("/")[0])
            instance.leave()


def _keeps(result: JobResult | None) -> bool:
    return result is not None and result.live is not None and bool(result.live["stays"])


def _not_kept(live: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
    return None if live is None else {**live, "kept": False}


def _stopped(folder: Path, spec: JobSpec, stuck: str) -> Mapping[str, Json] | None:
    """Return what is known of a live trial whose supervisor was killed."""
    if spec.live is None or spec.live["plan"] is None:
        return None
    entries = audit.Audit(folder)
    entries.add("revert", stuck or "the trial's supervisor was killed")
    return {
        "decision": "stopped",
        "pairs": [],
        "effect": None,
        "low": None,
        "high": None,
        "deviation": 0.0,
        "cost": {},
        "incumbent": {},
        "instances": [],
        "kept": False,
        "rolled_back": False,
        "audit": entries.entries,
    }
