"""Read the counters that the library has written: a line of JSON for each process that has read something."""

import json
from pathlib import Path
from typing import Protocol


class Run(Protocol):
    """The argument that the agent passes: the folder of the run."""

    work: Path


def prefetched_bytes(run: Run) -> float:
    """Return the sum over all processes; 0 if the library was switched off or refused its settings."""
    file = run.work / "counters"
    lines = file.read_text().splitlines() if file.exists() else []
    return float(sum(json.loads(line)["prefetched_bytes"] for line in lines))
