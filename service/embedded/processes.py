"""Child processes that cannot outlive their parent and are restarted when they die."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from service.embedded import out_of_memory
from service.platform.predecessor import END_VARIABLE, End

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

# -P: a folder `service` in the current folder of the user is not this package.
PYTHON = (sys.executable, "-P", "-m")
LOG_BYTES = 5 * 1024 * 1024
BACK_OFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
# A process that has run for this time is restarted without back-off.
STEADY_SECONDS = 10.0
# A process that gives no sign of life for this time hangs. It is long, because a machine may be busy.
HANGING_SECONDS = 60.0
LONGEST_LOOK_SECONDS = 2.0


class Process(Protocol):
    """A process that was started. `returncode`: negative for a signal, None while it runs."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | Any: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def poll(self) -> int | None: ...
    def send_signal(self, number: int) -> None: ...
    def kill(self) -> None: ...


def service_command(*arguments: str) -> list[str]:
    """Return the command line of `trimtab-service ARGUMENTS`."""
    return [*PYTHON, "service.main", *arguments]


def start(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start `argv` in its own session, so that Ctrl-C in a terminal reaches only the parent.

    The kernel sends it `death_signal` when the parent dies for any reason. Output is appended to `log`; without a log
    the child shares the parent's output. Must be called from the main thread, because the kernel watches the thread
    that forked.
    """
    parent = os.getpid()

    def prepare() -> None:
        # This runs in the child between fork and exec.
        die_with(parent, death_signal)
        for number in (signal.SIGINT, signal.SIGTERM):  # the supervisor's handlers would ignore them
            signal.signal(number, signal.SIG_DFL)

    output = log.open("ab") if log else None
    try:
        return subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            start_new_session=True,
            preexec_fn=prepare,  # safe: the supervisor has one thread
        )
    finally:
        if output:
            output.close()


def die_with(parent: int, death_signal: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process `death_signal` when its parent dies. The parent's main thread has forked it."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
    if os.getppid() != parent:  # the parent died before the line above
        os._exit(1)


@dataclass
class Child:
    """A process that must always run.

    `before` runs before each start. To stop the process, `stop_signals` are sent in order, each with the seconds to
    wait for it; SIGKILL follows. The process gets in its environment how the one before it has ended (`end`).
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    # None: it shares this process's output
    log: Path | None
    stop_signals: Sequence[tuple[signal.Signals, float]] = ((signal.SIGTERM, 3.0),)
    death_signal: signal.Signals = signal.SIGKILL
    before: Callable[[], None] | None = None
    # The file that the process touches while it is alive; None: it is not expected to.
    alive: Path | None = None
    process: Process | None = None
    started: float = 0.0
    not_before: float = 0.0
    deaths: int = field(default=0)
    touched: int = 0
    silence: float = 0.0
    looked: float = 0.0
    end: End = End.STOPPED
    short_of_memory: int | None = None

    def start(self) -> None:
        """Start the process."""
        if self.before:
            self.before()
        if self.alive is not None:
            self.alive.unlink(missing_ok=True)
        self.touched, self.silence = 0, 0.0
        self.started = time.monotonic()
        self.short_of_memory = out_of_memory.kills()
        environment = {**self.environment, END_VARIABLE: self.end}
        self.end = End.DIED
        self.process = self._launch(environment)

    def _launch(self, environment: Mapping[str, str]) -> Process:
        return start(self.argv, environment=environment, log=self.log, death_signal=self.death_signal)

    def keep_alive(self) -> str | None:
        """Restart the process if it has died and its back-off is over. Return a message for the operator, or None."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.not_before:
                self.start()
            return None
        code = self.process.poll()
        if code is None:
            return self._end_hanging(now)
        self.process = None
        killed = code < 0 and self._was_stopped(code)
        if self.end is not End.HUNG and (killed or code == 0):
            self.end = End.STOPPED
        # Someone who kills processes is no defect of theirs, so the restart does not wait.
        self.deaths = 1 if killed or now - self.started > STEADY_SECONDS else self.deaths + 1
        delay = BACK_OFF_SECONDS[min(self.deaths, len(BACK_OFF_SECONDS)) - 1]
        self.not_before = now + delay
        end = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self.name} {end}. It restarts in {delay} s (log: {self.log})"

    def _was_stopped(self, code: int) -> bool:
        """Return whether someone has sent the signal that ended the process. The kernel does so if memory is short."""
        if code == -signal.SIGKILL:
            return self.short_of_memory is not None and out_of_memory.kills() == self.short_of_memory
        return code in (-signal.SIGTERM, -signal.SIGINT)

    def _end_hanging(self, now: float) -> str | None:
        """Kill the process if it hangs: it has touched its file once, and then not for HANGING_SECONDS."""
        awake, self.looked = now - self.looked, now
        if self.alive is None or self.process is None:
            return None
        try:
            touched = self.alive.stat().st_mtime_ns
        except FileNotFoundError:  # it is still starting
            return None
        if touched != self.touched:
            self.touched, self.silence = touched, 0.0
            return None
        # While this process itself did not run (Ctrl-Z, a suspended machine), the others may not have run either.
        self.silence += min(awake, LONGEST_LOOK_SECONDS)
        if self.silence < HANGING_SECONDS:
            return None
        self.silence, self.end = 0.0, End.HUNG
        self.process.kill()
        return f"{self.name} hangs: it gave no sign of life for {HANGING_SECONDS:g} s. It is killed and restarts"

    def running(self) -> bool:
        """Return whether the process is alive."""
        return self.process is not None and self.process.poll() is None

    def trim_log(self) -> None:
        """Move the content of a log that has grown too large to the old log, which it replaces.

        The file is emptied and not renamed, because the process continues to append to it.
        """
        if self.log is None:
            return
        try:
            if self.log.stat().st_size > LOG_BYTES:
                self.log.with_suffix(".old.log").write_bytes(self.log.read_bytes())
                os.truncate(self.log, 0)
        except FileNotFoundError:
            pass


def stop(children: Sequence[Child]) -> None:
    """Stop all `children` together, each by its own signals, and return when none is left."""
    plans = {child.name: iter(child.stop_signals) for child in children}
    patience = {child.name: 0.0 for child in children}
    while left := [child for child in children if child.running()]:
        now = time.monotonic()
        for child in left:
            if now >= patience[child.name] and child.process is not None:
                number, seconds = next(plans[child.name], (signal.SIGKILL, 5.0))
                child.process.send_signal(number)
                patience[child.name] = now + seconds
        time.sleep(0.02)
