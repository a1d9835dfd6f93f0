"""Who may run on this machine, and when: some alone, others side by side."""

import asyncio
from pathlib import Path


class Turns:
    """Jobs in the order in which they came; an exclusive one waits until all before it have ended, and those after it
    wait for its end."""

    def __init__(self) -> None:
        # folder -> whether it is exclusive
        self._running: dict[Path, bool] = {}
        self._waiting: dict[Path, tuple[bool, asyncio.Future[bool]]] = {}

    async def take(self, folder: Path, *, exclusive: bool) -> bool:
        """Waits for the job's turn. False: it has left meanwhile."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[folder] = exclusive, turn
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            self.leave(folder)
            raise

    def join(self, folder: Path, *, exclusive: bool) -> None:
        """Counts a job that runs already."""
        self._running.setdefault(folder, exclusive)

    def leave(self, folder: Path) -> None:
        """The job has ended, or is not to run any more. One that is not here is left alone."""
        self._running.pop(folder, None)
        _, turn = self._waiting.pop(folder, (False, None))
        if turn is not None and not turn.done():
            turn.set_result(False)
        self._admit()

    def waits(self, folder: Path) -> bool:
        """Whether the job's turn has not come yet."""
        return folder in self._waiting

    def _admit(self) -> None:
        for folder, (exclusive, turn) in list(self._waiting.items()):
            if any(self._running.values()) or (exclusive and self._running):
                return
            del self._waiting[folder]
            self._running[folder] = exclusive
            turn.set_result(True)
