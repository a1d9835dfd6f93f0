"""The agent's durable state: a folder for each lease whose end the service has not acknowledged.

    STATE/agent-id             the agent's permanent identity
    STATE/lock                 held by the one agent that uses this state
    STATE/leases/lease-ID/     lease.json, settlement.json, and the runner's files of the job
    STATE/builds/              the build cache
    STATE/generated/           parameters that components' programs have listed
    STATE/trash/               folders to remove

The journal holds a lease before its trial starts (atomically; if a power cut loses it, the service grants it again),
and its settlement before it is reported (durably, so that a repeated report never differs).
"""

import errno
import fcntl
import hashlib
import os
import shutil
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from trimtab_agent.errors import JournalError
from trimtab_agent.files import write_atomically
from trimtab_agent.lease import Lease, Settlement
from trimtab_agent.logger import Logger
from trimtab_agent.runners.base import MEASUREMENTS

logger = Logger(__name__)

# Minimum free disk space, in bytes, to accept another trial.
LEAST_FREE = 32 << 20
# The name of a lease's folder is this and the lease's id.
LEASE_FOLDER = "lease-"


def host_id() -> str:
    """Return an id that is the same for all processes that can see each other's abstract sockets."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    network = Path("/proc/self/ns/net").readlink()
    return hashlib.sha256(f"{boot} {network}".encode()).hexdigest()[:16]


@dataclass
class Entry:
    """A lease in the journal. `reruns` counts how often its trial was started again after it was lost with its
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
    """The state directory. Only one process at a time uses it."""

    def __init__(self, state: Path) -> None:
        """Open the state directory; create it if it does not exist.

        Raises:
            JournalError: it cannot be written, or another agent uses it.
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
            raise JournalError(f"another agent uses {state}; give each agent its own --state-dir") from None
        for left in self.trash.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def close(self) -> None:
        """Release the state directory and the identity for another process."""
        if self._identity is not None:
            self._identity.close()
        os.close(self._lock)

    def agent_id(self) -> str:
        """Return the agent's identity, which is created once and never changes.

        One process at a time holds it. Across different `host_id`s the service ensures this.

        Raises:
            JournalError: another process here holds it, with a copy of the state directory.
        """
        path = self.state / "agent-id"
        if not path.exists():
            write_atomically(path, uuid.uuid4().hex.encode(), durable=True)
        identity = path.read_text(encoding="ascii").strip()
        if self._identity is None:
            self._identity = socket.socket(socket.AF_UNIX)
            try:
                # The kernel gives this name to one process until the process ends.
                self._identity.bind(f"\0trimtab-agent-{identity}")
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                raise JournalError(
                    f"another agent uses the identity in {path}: one state directory is a copy of the other. "
                    "Remove that file from the copy"
                ) from None
        return identity

    def has_space(self) -> bool:
        """Return whether there seems to be enough disk space for another trial."""
        try:
            status = os.statvfs(self.state)
        except OSError as error:
            logger.error("the state directory cannot be reached", folder=self.state, error=error)
            return False
        return status.f_bavail * status.f_frsize >= LEAST_FREE

    def accept(self, lease: Lease) -> Entry:
        """Record a lease before its trial starts.

        Raises:
            OSError: it cannot be written.
        """
        folder = self.leases / f"{LEASE_FOLDER}{quote(lease.id, safe='')}"
        entry = Entry(folder, lease)
        entry.work.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "lease.json", lease.to_json().encode())
        return entry

    def settle(self, entry: Entry, settlement: Settlement) -> None:
        """Record the end of a lease before it is reported.

        Raises:
            OSError: it cannot be written, so nothing may be reported yet.
        """
        write_atomically(entry.folder / "settlement.json", settlement.to_json().encode(), durable=True)
        entry.settlement = settlement

    def note_rerun(self, entry: Entry) -> None:
        """Count another start of the trial and clear its work folder."""
        entry.reruns += 1
        write_atomically(entry.folder / "reruns", str(entry.reruns).encode())
        # The next run reports its own measurements.
        (entry.folder / MEASUREMENTS).unlink(missing_ok=True)
        shutil.rmtree(entry.work, ignore_errors=True)
        entry.work.mkdir()

    def remove(self, entry: Entry) -> None:
        """Remove a lease."""
        gone = self.trash / f"{entry.folder.name}.{uuid.uuid4().hex[:8]}"
        entry.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """Return the leases that an earlier process left, oldest first."""
        found = []
        for folder in sorted(self.leases.iterdir(), key=lambda folder: folder.stat().st_mtime):
            try:
                entry = Entry(folder, Lease.from_json((folder / "lease.json").read_text(encoding="utf-8")))
                if (folder / "settlement.json").exists():
                    entry.settlement = Settlement.from_json((folder / "settlement.json").read_text(encoding="utf-8"))
                if (folder / "reruns").exists():
                    entry.reruns = int((folder / "reruns").read_text(encoding="ascii"))
            except (OSError, ValueError, KeyError, TypeError) as error:
                # Only a power cut right after the grant leaves such a folder. The service grants that lease again.
                logger.warning("a damaged lease is removed", folder=folder, error=error)
                folder.rename(self.trash / f"{folder.name}.{uuid.uuid4().hex[:8]}")
                continue
            found.append(entry)
        return found
