"""Reads the counters that the library has left: a line of JSON for each process that read something."""

import json
from pathlib import Path
from typing import Protocol


class Run(Protocol):
    """What the agent gives: the run's folder."""

    work: Path


def prefetched_bytes(run: Run) -> float:
    """Of all processes together; 0 where the library was switched off, or could not follow its settings."""
    file = run.work / "counters"
    lines = file.read_text().splitlines() if file.exists() else []
    return float(sum(json.loads(line)["prefetched_bytes"] for line in lines))
