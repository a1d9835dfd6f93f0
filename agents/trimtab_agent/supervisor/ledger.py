"""The costs of live trials on an instance, durable before the settings that may cost it are applied.

Standard library only. Each line of the file is a block with settings of a trial: when it began, for how many seconds
they were in force, and its cost by budget. A line is written before the block, with the largest cost that it can have,
and once more after it; the last line of a block counts. So a process that is killed leaves a cost, and not a gap.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trimtab_agent.files import write_atomically

DAY = 24 * 3600.0
# Seconds for which reported blocks are kept, for the rule of exposure.
_KEPT = 2 * DAY


class Ledger:
    """The ledger of one instance. Only the holder of the instance's lock writes it."""

    def __init__(self, path: Path) -> None:
        """Read the file, without what is old and reported.

        Raises:
            OSError: the file cannot be read.
        """
        self._path = path
        self._blocks: dict[str, dict[str, Any]] = {}
        with suppress(FileNotFoundError):
            for line in path.read_bytes().splitlines():
                with suppress(ValueError, KeyError, TypeError):  # the last line of a process that was killed
                    entry = json.loads(line)
                    self._blocks[entry["block"]] = entry
        oldest = time.time() - _KEPT
        self._blocks = {name: one for name, one in self._blocks.items() if one["began"] > oldest or not one["reported"]}

    def unreported(self, study: str) -> dict[str, float]:
        """Return the cost of a study's blocks that no result has contained, by budget."""
        found: dict[str, float] = {}
        for one in self._blocks.values():
            if one["study"] == study and not one["reported"]:
                for budget, cost in one["cost"].items():
                    found[budget] = found.get(budget, 0.0) + cost
        return found

    def exposure(self) -> float:
        """Return for how many of the last 24 hours' seconds settings of trials were in force."""
        now = time.time()
        # A clock that was set back must not hide what was in force.
        found = (min(one["seconds"], one["began"] + one["seconds"] - now + DAY) for one in self._blocks.values())
        return sum(max(0.0, float(seconds)) for seconds in found)

    def write(self, block: str, study: str, *, began: float, seconds: float, cost: Mapping[str, float]) -> None:
        """Store a block before it begins, with the most that it can cost, or after its end.

        Raises:
            OSError: the disk is full.
        """
        entry = {
            "block": block,
            "study": study,
            "began": began,
            "seconds": seconds,
            "cost": dict(cost),
            "reported": False,
        }
        self._append([entry])
        self._blocks[block] = entry

    def report(self, study: str) -> None:
        """Note that a stored result contains all blocks of a study.

        Raises:
            OSError: the disk is full.
        """
        open_blocks = [one for one in self._blocks.values() if one["study"] == study and not one["reported"]]
        for one in open_blocks:
            one["reported"] = True
        if open_blocks:
            self._append(open_blocks)

    def compact(self) -> None:
        """Remove lines that say nothing any more.

        Raises:
            OSError: the disk is full; the file stays unchanged.
        """
        lines = "".join(json.dumps(one) + "\n" for one in self._blocks.values())
        write_atomically(self._path, lines.encode(), durable=True)

    def _append(self, entries: Sequence[Mapping[str, Any]]) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # A line that a full disk has cut must not spoil the next one.
            left = memoryview(("\n" + "".join(json.dumps(one) + "\n" for one in entries)).encode())
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        finally:
            os.close(handle)
