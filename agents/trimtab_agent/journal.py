"""What survives the agent: a folder for each lease that the service has not yet heard the end of.

    STATE/agent-id             who this agent is, for ever
    STATE/lock                 held by the one agent that works with this state
    STATE/leases/lease-ID/     lease.json, settlement.json, and all that the runner keeps of the job
    STATE/builds/              the build cache
    STATE/generated/           parameters that components' programs have listed
    STATE/trash/               folders on their way out

A lease is journalled before its trial starts (whole or not at all; should a power cut lose it, the service grants it
again), its settlement before it is reported (durably: what has been sent once is never sent differently).
"""

import errno
import fcntl
import hashlib
import logging
import os
import shutil
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from trimtab_agent.errors import JournalError
from trimtab_agent.lease import Lease, Settlement
from trimtab_agent.runners.base import MEASUREMENTS
from trimtab_agent.supervisor.files import write_atomically

logger = logging.getLogger(__name__)

# free bytes without which no further trial is taken on
ROOM = 32 << 20


def place() -> str:
    """Where this process is: the same for all that could see each other's abstract sockets."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    network = Path("/proc/self/ns/net").readlink()
    return hashlib.sha256(f"{boot} {network}".encode()).hexdigest()[:16]


@dataclass
class Entry:
    """A lease in the journal. `reruns` counts how often its trial was started anew after it had vanished with its
    machine."""

    folder: Path
    lease: Lease
    settlement: Settlement | None = None
    reruns: int = 0

    @property
    def work(self) -> Path:
        """The trial's own folder."""
        return self.folder / "work"


class Journal:
    """The state directory, held by one process at a time."""

    def __init__(self, state: Path) -> None:
        """Opens the state directory, and makes it where there is none.

        Raises:
            JournalError: it cannot be written, or another agent holds it.
        """
        self._identity: socket.socket | None = None
        self.state = state
        self.leases = state / "leases"
        self.trash = state / "trash"
        try:
            for folder in (state, self.leases, self.trash):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(
                f"state directory {state} cannot be used: {error}; choose another with --state-dir"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"another agent works with {state}; give each agent its own --state-dir") from None
        for left in self.trash.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Lets another process have the state directory and the identity."""
        if self._identity is not None:
            self._identity.close()
        os.close(self._lock)

    def agent_id(self) -> str:
        """The agent's identity: made up once, then the same for ever. One process has it at a time: elsewhere than in
        this `place` the service sees to that.

        Raises:
            JournalError: another process here has it, with a copy of the state directory.
        """
        path = self.state / "agent-id"
        if not path.exists():
            write_atomically(path, uuid.uuid4().hex.encode(), durable=True)
        identity = path.read_text(encoding="ascii").strip()
        if self._identity is None:
            self._identity = socket.socket(socket.AF_UNIX)
            try:
                # a name that the kernel gives to one process, until that ends
                self._identity.bind(f"\0trimtab-agent-{identity}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise JournalError(
                    f"another agent works with the identity in {path}, of which this is a copy or the original; "
                    "remove that file from the copy"
                ) from None
        return identity

    def has_room(self) -> bool:
        """Whether there is disk space for another trial, as far as can be told now."""
        try:
            status = os.statvfs(self.state)
        except OSError as error:
            logger.error("%s cannot be reached: %s", self.state, error)
            return False
        return status.f_bavail * status.f_frsize >= ROOM

    def accept(self, lease: Lease) -> Entry:
        """Notes a lease before its trial starts.

        Raises:
            OSError: it cannot be written.
        """
        folder = self.leases / f"lease-{quote(lease.id, safe='')}"
        entry = Entry(folder, lease)
        entry.work.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "lease.json", lease.to_json().encode())
        return entry

    def settle(self, entry: Entry, settlement: Settlement) -> None:
        """Notes how a lease ends, before that is reported.

        Raises:
            OSError: it cannot be written: nothing may be reported yet.
        """
        write_atomically(entry.folder / "settlement.json", settlement.to_json().encode(), durable=True)
        entry.settlement = settlement

    def note_rerun(self, entry: Entry) -> None:
        """Counts another start of the trial, and clears its work folder."""
        entry.reruns += 1
        write_atomically(entry.folder / "reruns", str(entry.reruns).encode())
        # what the run before has measured says nothing of the next
        (entry.folder / MEASUREMENTS).unlink(missing_ok=True)
        shutil.rmtree(entry.work, ignore_errors=True)
        entry.work.mkdir()

    def remove(self, entry: Entry) -> None:
        """Forgets a lease."""
        gone = self.trash / f"{entry.folder.name}.{uuid.uuid4().hex[:8]}"
        entry.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """What an earlier process left, oldest first."""
        found = []
        for folder in sorted(self.leases.iterdir(), key=lambda folder: folder.stat().st_mtime):
            try:
                entry = Entry(folder, Lease.from_json((folder / "lease.json").read_text(encoding="utf-8")))
                if (folder / "settlement.json").exists():
                    entry.settlement = Settlement.from_json((folder / "settlement.json").read_text(encoding="utf-8"))
                if (folder / "reruns").exists():
                    entry.reruns = int((folder / "reruns").read_text(encoding="ascii"))
            except (OSError, ValueError, KeyError, TypeError) as error:
                # only a power cut within moments of the lease's grant leaves such a folder: the service grants that
                # lease again
                logger.warning("%s is damaged and dropped: %s", folder, error)
                folder.rename(self.trash / f"{folder.name}.{uuid.uuid4().hex[:8]}")
                continue
            found.append(entry)
        return found
