"""The order of jobs on one machine: exclusive jobs run alone, others in parallel."""

import asyncio
from pathlib import Path


class Turns:
    """Jobs in the order of their arrival. An exclusive job waits until all jobs before it have ended, and later jobs
    wait for its end."""

    def __init__(self) -> None:
        # By folder: whether the job is exclusive.
        self._running: dict[Path, bool] = {}
        self._waiting: dict[Path, tuple[bool, asyncio.Future[bool]]] = {}

    async def take(self, folder: Path, *, exclusive: bool) -> bool:
        """Wait for the job's turn. Return False if the job has left meanwhile."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[folder] = exclusive, turn
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            self.leave(folder)
            raise

    def join(self, folder: Path, *, exclusive: bool) -> None:
        """Add a job that already runs."""
        self._running.setdefault(folder, exclusive)

    def leave(self, folder: Path) -> None:
        """Remove a job that has ended or must not run. An unknown job is ignored."""
        self._running.pop(folder, None)
        _, turn = self._waiting.pop(folder, (False, None))
        if turn is not None and not turn.done():
            turn.set_result(False)
        self._admit()

    def waits(self, folder: Path) -> bool:
        """Return whether the job still waits for its turn."""
        return folder in self._waiting

    def _admit(self) -> None:
        for folder, (exclusive, turn) in list(self._waiting.items()):
            if any(self._running.values()) or (exclusive and self._running):
                return
            del self._waiting[folder]
            self._running[folder] = exclusive
            turn.set_result(True)
