"""Signs of life between an agent and the supervisor of a live trial, in a file that is written in place.

Writing in place needs no disk space, and the monotonic clock is the same for both processes whatever date is set.
"""

import os
import struct
import time
from pathlib import Path

# The agent's own sign, the service's last answer to it, and the supervisor's sign.
AGENT, SERVICE, SUPERVISOR = range(3)
_SIZE = struct.calcsize("d")


class Beats:
    """The times of the last signs of life."""

    def __init__(self, path: Path) -> None:
        """Open the file, which `create` has made.

        Raises:
            OSError: there is no such file.
        """
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    @staticmethod
    def create(path: Path) -> None:
        """Make the file, with all signs given now."""
        path.write_bytes(struct.pack("d", time.monotonic()) * 3)

    def give(self, whose: int) -> None:
        """Give a sign of life now."""
        os.pwrite(self._file, struct.pack("d", time.monotonic()), whose * _SIZE)

    def last(self, whose: int) -> float:
        """Return the time of the last sign on the monotonic clock."""
        return float(struct.unpack("d", os.pread(self._file, _SIZE, whose * _SIZE))[0])

    def age(self, whose: int) -> float:
        """Return the seconds since the last sign."""
        return time.monotonic() - self.last(whose)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
