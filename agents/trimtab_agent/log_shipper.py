"""Sends a trial's output to the service while it runs, and what is left of it at its end.

The supervisor keeps the log small (its head and its tail) and only ever appends to it, so that all of it is sent.
"""

import asyncio

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError
from trimtab_agent.journal import Entry
from trimtab_agent.runners.base import LOG

INTERVAL = 2.0
PIECE = 64 << 10


class LogShipper:
    """The log of one trial."""

    def __init__(self, control: ControlPlane, entry: Entry) -> None:
        self._control = control
        self._lease = entry.lease.id
        self._path = entry.folder / LOG
        self._offset = 0

    async def follow(self) -> None:
        """Sends what comes, every two seconds, until it is cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self.finish()

    async def finish(self) -> None:
        """Sends what is there. A log that cannot be sent is no reason to hold a result back."""
        while data := self._read():
            try:
                offset = await self._control.append_log(self._lease, self._offset, data)
            except CallError:
                return
            if offset == self._offset:
                return  # the service takes no more of it
            self._offset = offset

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                return file.read(PIECE)
        except OSError:
            return b""
