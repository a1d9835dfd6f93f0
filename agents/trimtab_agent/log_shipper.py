"""Send a trial's output to the service during the run and the rest at its end.

The supervisor keeps the log small (its head and its tail) and only appends to it, so the whole log can be sent.
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
        """Send new output every two seconds until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self.finish()

    async def finish(self) -> None:
        """Send the rest of the output. A failure is ignored: it must not delay the result."""
        while data := self._read():
            try:
                offset = await self._control.append_log(self._lease, self._offset, data)
            except CallError:
                return
            if offset == self._offset:
                return  # the service accepts no more output
            self._offset = offset

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                return file.read(PIECE)
        except OSError:
            return b""
