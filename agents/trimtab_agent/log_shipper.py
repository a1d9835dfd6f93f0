"""Send a trial's output to the service during the run and the rest at its end, without secrets.

The supervisor keeps the log small (its head and its tail) and only appends to it, so the whole log can be sent.
"""

import asyncio

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError
from trimtab_agent.journal import Entry
from trimtab_agent.redaction import LONGEST, Redactor, safe_end
from trimtab_agent.runners.base import LOG

INTERVAL = 2.0
PIECE = 64 << 10


class LogShipper:
    """The log of one trial."""

    def __init__(self, control: ControlPlane, entry: Entry, redactor: Redactor) -> None:
        self._control = control
        self._lease = entry.lease.id
        self._path = entry.folder / LOG
        self._redactor = redactor
        self._offset = 0

    async def follow(self) -> None:
        """Send new output every two seconds until cancelled. A word that is not complete waits."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self._send(complete=False)

    async def finish(self) -> None:
        """Send the rest of the output. A failure is ignored: it must not delay the result."""
        await self._send(complete=True)

    async def _send(self, *, complete: bool) -> None:
        while data := self._read(complete):
            try:
                offset = await self._control.append_log(self._lease, self._offset, data)
            except CallError:
                return
            if offset == self._offset:
                return  # the service accepts no more output
            self._offset = offset

    def _read(self, complete: bool) -> bytes:
        """Return the next piece without secrets.

        It is redacted together with the bytes before and after it, so that a secret across the border is recognized.
        """
        start = max(0, self._offset - LONGEST)
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                window = file.read(self._offset - start + PIECE + LONGEST)
        except OSError:
            return b""
        own = self._offset - start
        end = min(own + PIECE, len(window) if complete else safe_end(window))
        return self._redactor.data(window)[own:end]
