"""Show people the instances of a live trial while it runs. Standard library only.

A thread of its own writes the files, so that a disk that hangs or is full delays neither the guards nor a revert.
"""

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trimtab_agent.files import write_atomically

# The file next to the record of an instance.
NOW = ".now"
# Seconds between two writes of a file.
INTERVAL = 1.0


class Shown:
    """Writes what is seen of instances, the latest only."""

    def __init__(self) -> None:
        self._next = 0.0
        self._pending: dict[Path, Mapping[str, Any] | None] = {}
        self._changed = threading.Event()
        threading.Thread(target=self._write, daemon=True).start()

    def is_due(self) -> bool:
        """Return whether it is time for the next picture; each is due once."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + INTERVAL
        return True

    def put(self, record: Path, picture: Mapping[str, Any] | None) -> None:
        """Show a picture of the instance with this record; None: nothing any more."""
        self._pending[record.with_suffix(NOW)] = picture
        self._changed.set()

    def _write(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            while self._pending:
                path, picture = self._pending.popitem()
                with suppress(OSError):  # for people alone
                    if picture is None:
                        path.unlink(missing_ok=True)
                    else:
                        write_atomically(path, json.dumps(picture).encode())
