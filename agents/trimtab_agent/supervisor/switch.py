"""Apply settings to a live system, and take them back. Standard library only.

The record of an instance is a file that exists as long as settings of a trial may be in force. It is durable before the
first command runs, and has all that is needed to take the settings back: whoever finds it reverts. The lock next to
it belongs to the process that switches the instance; the kernel frees it when the process dies.
"""

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from trimtab_agent.files import sync_folder, write_atomically

# Seconds until a switch must be in force, but at least so many looks on a busy machine; seconds between two attempts to
# revert.
VERIFY_TIME, VERIFY_LOOKS = 5.0, 3
RETRY_INTERVAL = 1.0
# Attempts to revert before the fallback.
ATTEMPTS = 3
# Seconds between two looks at the settings in force.
LOOK_INTERVAL = 0.1
# Bytes of a command's answer.
LARGEST_ANSWER = 1 << 20
# The variable that marks the processes of a switch.
MARK = "TRIMTAB_LIVE"
# Requests to the process that has the lock: put the old settings back, or give the lock to the next trial.
REVERT, HAND_OVER = ".revert", ".wanted"
# It names its own process before it becomes the command, so that others can end it.
_NAMED = 'echo $$ >"$0" && exec "$@"'


class SwitchError(Exception):
    """A command of the component has not done what it should. The text says which, and what it has printed."""


@dataclass(frozen=True)
class Record:
    """Everything needed to take settings back. `incumbent` has the values before, as `verify` has shown them.

    Commands have `argv` and `timeout`, and run in `folder` with the environment `env`. `kept`: the candidate is proven
    and stays in force, under its guards.
    """

    component: str
    instance: str
    trial: str
    folder: str
    env: Mapping[str, str]
    incumbent: Mapping[str, Any]
    candidate: Mapping[str, Any]
    revert: Mapping[str, Any]
    verify: Mapping[str, Any]
    fallback: Mapping[str, Any] | None = None
    since: float = field(default_factory=time.time)
    kept: bool = False

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the stored form."""
        return cls(**json.loads(text))


class Instance:
    """The record of one instance of a live system, and its lock."""

    def __init__(self, path: Path) -> None:
        """`path` is the record's file."""
        self.path = path
        self._lock = -1

    @classmethod
    def of(cls, folder: Path, component: str, instance: str) -> Self:
        """Return the instance in the agent's folder of live systems."""
        return cls(folder / f"{component}.{instance}.json")

    def take(self) -> bool:
        """Try to get the lock; return whether this object has it."""
        if self._lock >= 0:
            return True
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        return True

    def leave(self) -> None:
        """Free the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def record(self) -> Record | None:
        """Return the record; None if no settings of a trial can be in force."""
        try:
            return Record.from_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def begin(self, record: Record) -> None:
        """Store the record before settings are applied."""
        write_atomically(self.path, record.to_json().encode(), durable=True)

    @property
    def obstacle(self) -> str:
        """Why no trial may begin here until a person has looked after the instance; "" if it may."""
        if self.is_stopped:
            return "live trials were stopped here"
        if self.stuck:
            return "settings of an earlier trial could not be taken back"
        record = self.record()
        return "settings of an earlier trial may be in force" if record is not None and not record.kept else ""

    @property
    def is_stopped(self) -> bool:
        """True if somebody has stopped live trials here."""
        return self._stopped.exists()

    @property
    def stuck(self) -> str:
        """Why the settings of a trial could not be taken back; "" if nothing is known of that."""
        try:
            return self._stuck.read_text(encoding="utf-8") or "unknown reason"
        except FileNotFoundError:
            return ""

    def request(self, mark: str, why: str = "") -> None:
        """Ask the process that has the lock to put the old settings back (REVERT), or to leave them (HAND_OVER).

        Raises:
            OSError: the disk is full.
        """
        self.path.with_suffix(mark).touch()
        with suppress(OSError):  # the reason is for people alone
            if why:
                self.path.with_suffix(mark).write_text(why, encoding="utf-8")

    def is_requested(self, mark: str) -> bool:
        """Return whether somebody has made this request, and nobody has answered it."""
        return self.path.with_suffix(mark).exists()

    def why_revert(self) -> str:
        """Return why the old settings are wanted, as a person or the service has said with the request REVERT."""
        with suppress(OSError):
            if said := self.path.with_suffix(REVERT).read_text(encoding="utf-8").strip():
                return said
        return "somebody has run `trimtab-agent live revert`"

    def answer(self, *marks: str) -> None:
        """Forget requests. The caller has the lock."""
        for mark in marks:
            self.path.with_suffix(mark).unlink(missing_ok=True)

    @property
    def last(self) -> str:
        """Why the last kept settings were taken back, for people; "" if nothing is known of that."""
        try:
            return self._last.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def note(self, text: str) -> None:
        """Remember why kept settings were taken back."""
        with suppress(OSError):  # for people alone
            self._last.write_text(text, encoding="utf-8")

    def is_calibrated(self, guards: object) -> bool:
        """Return whether a trial has watched the settings before it under these guards for long enough."""
        try:
            return self._calibrated.read_text(encoding="utf-8") == json.dumps(guards)
        except OSError:
            return False

    def note_calibrated(self, guards: object) -> None:
        """Remember that a trial has watched the settings before it under these guards."""
        with suppress(OSError):  # the next trial then watches again
            self._calibrated.write_text(json.dumps(guards), encoding="utf-8")

    def stop(self) -> None:
        """Let no further trial begin until `clear`."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._stopped.touch()

    def clear(self) -> None:
        """Forget that settings may be in force, and that trials were stopped: a person has looked at the instance."""
        self._stopped.unlink(missing_ok=True)
        self.forget()

    def revert(self, alive: Callable[[], None] = lambda: None) -> str:
        """Take the settings back, as often as needed, and return "", or why that has failed.

        The caller has the lock. After `ATTEMPTS` failures the fallback runs, and the record stays. A record that is not
        there means that nothing is in force. `alive` is called all the time.
        """

        def look() -> bool:
            alive()
            return True

        self._end_switch()
        record = self.record()
        if record is None:
            return ""
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                again = time.monotonic() + RETRY_INTERVAL
                while time.monotonic() < again:
                    look()
                    time.sleep(LOOK_INTERVAL)
            try:
                call(record, record.revert, look=look)
                await_settings(record, record.incumbent, look)
            except SwitchError as error:
                reason = str(error)
            else:
                self.forget()
                return ""
        if record.fallback is not None:
            try:
                call(record, record.fallback, look=look)
            except SwitchError as error:
                reason += f"; fallback: {error}"
        with suppress(OSError):  # the record itself says that settings may be in force
            self._stuck.write_text(reason, encoding="utf-8")
        return reason

    def retry(self) -> bool:
        """Try once more to take settings back that are stuck, and return whether that has worked.

        The caller has the lock. The instance stays stuck, so that a person looks at it before the next trial.
        """
        record = self.record()
        if record is None:
            return False
        self._end_switch()
        try:
            call(record, record.revert)
            if _why_not(record, record.incumbent, lambda: True):
                return False
        except SwitchError:
            return False
        with suppress(OSError):  # for people alone
            self._stuck.write_text(f"{self.stuck}. Meanwhile the old settings are in force", encoding="utf-8")
        self._remove_record()
        return True

    @property
    def _stuck(self) -> Path:
        return self.path.with_suffix(".stuck")

    @property
    def _stopped(self) -> Path:
        return self.path.with_suffix(".stopped")

    @property
    def _calibrated(self) -> Path:
        return self.path.with_suffix(".calibrated")

    @property
    def _last(self) -> Path:
        return self.path.with_suffix(".last")

    @property
    def child(self) -> Path:
        """The file with the number of the process that applies settings."""
        return self.path.with_suffix(".child")

    def _end_switch(self) -> None:
        """Kill a command that still applies settings, with all processes of its session."""
        with suppress(OSError, ValueError):
            number = int(self.child.read_text(encoding="ascii"))
            if f"{MARK}={self.path}".encode() in Path(f"/proc/{number}/environ").read_bytes().split(b"\0"):
                os.killpg(number, signal.SIGKILL)
        self.child.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove the record, and why an attempt to revert has failed: nothing of a trial is in force any more."""
        self._stuck.unlink(missing_ok=True)
        self._remove_record()

    def _remove_record(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()
            sync_folder(self.path.parent)


def apply(
    instance: Instance,
    record: Record,
    command: Mapping[str, Any],
    look: Callable[[], bool],
    values: Mapping[str, Any] | None = None,
) -> None:
    """Apply values (default: the candidate of the record) and wait until `verify` shows them.

    `look` says whether to go on.

    Raises:
        SwitchError: the command has failed, the settings are not in force in time, or `look` has ended it.
    """
    named = ["/bin/sh", "-c", _NAMED, str(instance.child), *command["argv"]]
    env = {MARK: str(instance.path)}
    wanted = record.candidate if values is None else values
    call(record, {**command, "argv": named}, json.dumps(wanted), env=env, look=look, name=command["argv"][0])
    await_settings(record, wanted, look)


def settings(record: Record, look: Callable[[], bool] = lambda: True) -> dict[str, Any]:
    """Return the settings in force. `look` says whether to go on.

    Raises:
        SwitchError: `verify` has failed or has not printed a JSON object.
    """
    answer = call(record, record.verify, look=look)
    try:
        found = json.loads(answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SwitchError(f"verify: {record.verify['argv'][0]} has not printed a JSON object but {_short(answer)}")
    return found


def await_settings(record: Record, wanted: Mapping[str, Any], look: Callable[[], bool] = lambda: True) -> None:
    """Wait until the wanted settings are in force.

    Raises:
        SwitchError: they are not after `VERIFY_TIME` seconds, or `look` has said no.
    """
    deadline, looks = time.monotonic() + VERIFY_TIME, 0
    while True:
        looks += 1
        why = _why_not(record, wanted, look)
        if not why:
            return
        if not look() or (time.monotonic() > deadline and looks >= VERIFY_LOOKS):
            raise SwitchError(why)
        time.sleep(LOOK_INTERVAL)


def _why_not(record: Record, wanted: Mapping[str, Any], look: Callable[[], bool]) -> str:
    """Return "", or why the wanted settings are not in force. A system that restarts may not answer for a moment."""
    try:
        found = settings(record, look)
    except SwitchError as error:
        return str(error)
    wrong = [name for name, value in wanted.items() if not same(found.get(name), value)]
    return f"verify: {wrong[0]} is {found.get(wrong[0])!r} and should be {wanted[wrong[0]]!r}" if wrong else ""


def same(found: object, wanted: object) -> bool:
    """Return whether two values of a setting are equal, as numbers or as text."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return str(found).lower() == str(wanted).lower()
    try:
        return float(found) == float(wanted)  # type: ignore[arg-type]  # of any type, which raises
    except (TypeError, ValueError):
        return found is not None and str(found) == str(wanted)


def call(
    record: Record,
    command: Mapping[str, Any],
    given: str = "",
    *,
    env: Mapping[str, str] | None = None,
    look: Callable[[], bool] = lambda: True,
    name: str = "",
) -> str:
    """Run a command of a component in a session of its own, and return what it has printed.

    Raises:
        SwitchError: it could not be started, has failed, has taken too long, or `look` has said no.
    """
    name = name or command["argv"][0]
    try:
        process = subprocess.Popen(
            command["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=record.folder,
            env={**record.env, **(env or {})},
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise SwitchError(f"{name} cannot be started: {error.strerror}") from None
    deadline = time.monotonic() + command["timeout"]
    # The text is given once, and a time-out of `communicate` does not lose what it has read.
    text: str | None = given
    while True:
        try:
            output = process.communicate(text, timeout=LOOK_INTERVAL)[0][:LARGEST_ANSWER]
            break
        except subprocess.TimeoutExpired:
            text = None
            over = time.monotonic() > deadline
            if not over and look():
                continue
            kill(process)
            why = f"has not ended within {command['timeout']:g} s" if over else "was ended with the trial"
            raise SwitchError(f"{name} {why}") from None
    if process.returncode:
        raise SwitchError(f"{name} ended with exit code {process.returncode}: {_short(output)}")
    return output


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill a command with all processes of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def revert_all(folder: Path, *, only: Path | None = None, wait: float = 30.0) -> dict[str, str]:
    """Take back what trials have left in force, and return by instance "", or why that has failed.

    A supervisor that still lives takes its settings back by itself; wait for it at most so many seconds. `only`: one
    record.
    """
    found = {}
    for path in sorted(folder.glob("*.json")) if only is None else filter(Path.exists, [only]):
        instance = Instance(path)
        deadline = time.monotonic() + wait
        if not instance.take():
            # A process that guards kept settings waits for this.
            with suppress(OSError):
                instance.request(REVERT)
        while not instance.take() and time.monotonic() < deadline:
            time.sleep(LOOK_INTERVAL)
        if not instance.take():
            found[path.stem] = "another process is switching it"
            continue
        try:
            instance.answer(REVERT, HAND_OVER)
            found[path.stem] = instance.revert()
        except (OSError, ValueError, KeyError, TypeError) as error:
            found[path.stem] = f"the record {path} cannot be used: {error}"
        finally:
            instance.leave()
    return found


def have_reverted(instance: Instance, why: str, alive: Callable[[], None] = lambda: None, wait: float = 30.0) -> str:
    """Have the process that guards an instance take the settings back; return "", or why they stay.

    The caller does not have its lock. `alive` is called all the time.
    """
    with suppress(OSError):
        instance.request(REVERT, why)
    deadline = time.monotonic() + wait
    while instance.path.exists() and not instance.stuck and time.monotonic() < deadline:
        alive()
        time.sleep(LOOK_INTERVAL)
    if not instance.path.exists():
        return ""
    return f"{instance.path.stem}: {instance.stuck or 'another process is switching it'}"


def of_study(folder: Path, component: str, study: str) -> list[Instance]:
    """Return the instances of a component where settings of a study are in force, newest first."""
    found = []
    for path in folder.glob("*.json"):
        instance = Instance(path)
        with suppress(OSError, ValueError, TypeError):  # a record that cannot be read is for `revert_all`
            record = instance.record()
            if record is not None and (record.component, record.trial.rpartition("/")[0]) == (component, study):
                found.append((record.since, instance))
    return [instance for _, instance in sorted(found, key=lambda one: one[0], reverse=True)]


def _short(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return repr(lines[-1][:200]) if lines else "nothing"
