"""The journal of one live trial: what was done, in a chain of hashes. Standard library only."""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

AUDIT = "audit"


class Audit:
    """The entries of a trial, on disk as well, so that they survive the supervisor."""

    def __init__(self, folder: str | Path) -> None:
        """Continue the journal in the trial's folder."""
        self._path = Path(folder) / AUDIT
        self.entries: list[Mapping[str, Any]] = read(folder)

    def add(self, kind: str, text: str) -> None:
        """Append an entry: plan, apply, switch, guard, revert or keep."""
        before = self.entries[-1]["hash"] if self.entries else ""
        now = time.time()
        digest = hashlib.sha256(f"{before}\n{now:.6f}\n{kind}\n{text}".encode()).hexdigest()
        entry = {"time": round(now, 6), "kind": kind, "text": text, "hash": digest}
        self.entries.append(entry)
        # A full disk must not keep anything from being reverted. The result has the entries, too.
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def read(folder: str | Path) -> list[Mapping[str, Any]]:
    """Return the entries that a trial has left; none if there are none."""
    try:
        lines = (Path(folder) / AUDIT).read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            break  # the disk was full, or the process was killed
    return found


def remove(folder: str | Path) -> None:
    """Forget the entries of an earlier run of the trial."""
    (Path(folder) / AUDIT).unlink(missing_ok=True)
