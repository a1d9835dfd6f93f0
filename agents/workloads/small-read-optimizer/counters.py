"""Read the counters that the library has written, a line of JSON for each process that has read something, and the
bandwidth from the output of fakeapp."""

import json
from pathlib import Path
from typing import Protocol


class Run(Protocol):
    """The argument that the agent passes: the output and the folder of the run."""

    stdout: str
    work: Path


def mib_per_second(run: Run) -> float:
    """Return the MiB a second that the application has read."""
    printed = json.loads(run.stdout)
    return float(printed["bytes"]) / (1 << 20) / float(printed["seconds"])


def prefetched_bytes(run: Run) -> float:
    """Return the bytes that were prefetched; 0 if the library was switched off or refused its settings."""
    return _total(run, "prefetched_bytes")


def reads(run: Run) -> float:
    """Return the number of reads that the library saw."""
    return _total(run, "reads")


def triggers(run: Run) -> float:
    """Return how often the threshold was met."""
    return _total(run, "triggers")


def prefetches(run: Run) -> float:
    """Return the number of zones that were requested."""
    return _total(run, "prefetches")


def _total(run: Run, name: str) -> float:
    """Return the sum of a counter over all processes."""
    file = run.work / "counters"
    lines = file.read_text().splitlines() if file.exists() else []
    return float(sum(json.loads(line)[name] for line in lines))
