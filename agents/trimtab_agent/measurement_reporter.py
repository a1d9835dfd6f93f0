"""Reports what a trial tells while it runs, and ends it where a pruning policy says so."""

import asyncio
import json
import logging
import os
from collections.abc import Callable

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError, CallRefusedError
from trimtab_agent.journal import Entry
from trimtab_agent.runners.base import MEASUREMENTS

logger = logging.getLogger(__name__)

INTERVAL = 0.25
# seconds that a trial's settlement waits for what it told last
LAST_TIME = 10.0


class MeasurementReporter:
    """The measurements of one trial, from the file to which its supervisor appends them."""

    def __init__(self, control: ControlPlane, entry: Entry, stop: Callable[[], None]) -> None:
        """`stop`: called where the service wants the trial no more."""
        self._control = control
        self._title = entry.lease.title
        self._lease = entry.lease.id
        self._path = entry.folder / MEASUREMENTS
        self._offset = 0
        self._inode = 0
        self._stop = stop

    async def follow(self) -> None:
        """Reports what comes until it is cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self._report()

    async def finish(self) -> None:
        """Reports what is left, as far as that takes no time."""
        try:
            async with asyncio.timeout(LAST_TIME):
                while not await self._report():  # noqa: ASYNC110  the far side's return is no event of ours
                    await asyncio.sleep(INTERVAL)
        except TimeoutError:
            logger.info("%s: its last measurements are not reported, for the service does not answer", self._title)

    async def _report(self) -> bool:
        """Whether the service has heard of all that is there."""
        for line in self._read():
            try:
                told = json.loads(line)
                run = told.get("run", 0)
                if await self._control.report_measurement(
                    self._lease, run, told["step"], told["metrics"], told["elapsed"]
                ):
                    self._stop()
            except (CallRefusedError, ValueError, KeyError) as error:
                # a disk that was full
                logger.info("%s: a measurement is left out: %s", self._title, error)
            except CallError:
                return False
            self._offset += len(line)
        return True

    def _read(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size < self._offset or status.st_ino != self._inode:
                    # a job that was started anew tells anew
                    self._offset = 0
                self._inode = status.st_ino
                file.seek(self._offset)
                return [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        except OSError:
            return []
