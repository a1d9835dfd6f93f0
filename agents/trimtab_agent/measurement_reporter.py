"""Report a trial's measurements during the run, and end the trial if a pruning policy says so."""

import asyncio
import json
import os
from collections.abc import Callable

from trimtab_agent.control_plane import ControlPlane
from trimtab_agent.errors import CallError, CallRefusedError
from trimtab_agent.journal import Entry
from trimtab_agent.logger import Logger
from trimtab_agent.runners.base import MEASUREMENTS

logger = Logger(__name__)

INTERVAL = 0.25
# Seconds that a settlement waits for the report of the last measurements.
LAST_TIME = 10.0


class MeasurementReporter:
    """Reports the measurements of one trial from the file to which its supervisor appends them."""

    def __init__(self, control: ControlPlane, entry: Entry, stop: Callable[[], None]) -> None:
        """Create the reporter. It calls `stop` if the service wants the trial to end."""
        self._control = control
        self._study, self._trial = entry.lease.study, entry.lease.trial
        self._lease = entry.lease.id
        self._path = entry.folder / MEASUREMENTS
        self._offset = 0
        self._inode = 0
        self._stop = stop

    async def follow(self) -> None:
        """Report new measurements until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            await self._report()

    async def finish(self) -> None:
        """Report the remaining measurements within LAST_TIME."""
        try:
            async with asyncio.timeout(LAST_TIME):
                while not await self._report():  # noqa: ASYNC110  there is no event for the return of the service
                    await asyncio.sleep(INTERVAL)
        except TimeoutError:
            logger.info(
                "the last measurements are not reported, the service does not answer",
                study=self._study,
                trial=self._trial,
            )

    async def _report(self) -> bool:
        """Report new measurements; return whether the service has accepted all of them."""
        for line in self._read():
            try:
                reported = json.loads(line)
                run = reported.get("run", 0)
                if await self._control.report_measurement(
                    self._lease, run, reported["step"], reported["metrics"], reported["elapsed"]
                ):
                    self._stop()
            except (CallRefusedError, ValueError, KeyError) as error:
                # A full disk leaves damaged lines.
                logger.info("a measurement is not reported", study=self._study, trial=self._trial, error=error)
            except CallError:
                return False
            self._offset += len(line)
        return True

    def _read(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size < self._offset or status.st_ino != self._inode:
                    # A job that was started again writes a new file.
                    self._offset = 0
                self._inode = status.st_ino
                file.seek(self._offset)
                return [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        except OSError:
            return []
