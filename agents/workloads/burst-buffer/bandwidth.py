"""Read from the output of fio and of `checkpoint` how fast the application's own I/O was, without computing and drain.

For fio it is the last job that counts. For `checkpoint` the bandwidth is of the checkpoints alone; of several hosts at
the same time it is the sum.
"""

import json
from typing import Protocol

MIB = 1 << 20
# Fields of a line of `fio --minimal`, version 3: the error, then KiB and milliseconds of reads and of writes.
ERROR, KIB, MILLISECONDS = 4, (5, 46), (8, 49)


class Run(Protocol):
    """The argument that the agent passes: the output of the run."""

    stdout: str


def mib_per_second(run: Run) -> float:
    """Return the MiB a second of the application's reads and writes."""
    if fields := _fio(run.stdout):
        return sum(float(fields[place]) for place in KIB) / 1024 / io_seconds(run)
    return sum(one["bytes"] / MIB / one["write_seconds"] for one in _checkpoints(run.stdout))


def io_seconds(run: Run) -> float:
    """Return the seconds in which the application read or wrote, of the slowest host."""
    if fields := _fio(run.stdout):
        # Reads and writes of a job are mixed, so that both take the same time; fio rounds it to milliseconds.
        return max(1.0, *(float(fields[place]) for place in MILLISECONDS)) / 1000
    return max(one["write_seconds"] + one["restart_seconds"] for one in _checkpoints(run.stdout))


def _fio(text: str) -> list[str]:
    """Return the fields of fio's last job; none of another output. Raise ValueError for an error of fio."""
    lines = [line.split(";") for line in text.splitlines() if line.startswith("3;")]
    if not lines:
        return []
    if lines[-1][ERROR] != "0":
        raise ValueError(f"fio reports the error {lines[-1][ERROR]}")
    return lines[-1]


def _checkpoints(text: str) -> list[dict[str, float]]:
    """Return what each `checkpoint` has printed. Raise ValueError if there is none."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{") and "write_seconds" in line]
    if not found:
        raise ValueError("the output is neither that of fio --minimal nor that of checkpoint")
    return found
