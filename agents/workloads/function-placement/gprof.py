"""The order of GNU gprof, from sampled stacks that are written as a profile of gprof [ottoni-2017, section 7.6]."""

import struct
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from graph import Stack

GMON_VERSION = 1
HISTOGRAM, CALL_ARC = 0, 1
BIN = 4  # bytes of code for one counter of the histogram
LARGEST = 0xFFFF


def write_profile(stacks: Iterable[Stack], low: int, high: int, hertz: int, to: Path) -> None:
    """Write samples as a file gmon.out.

    Args:
        stacks: the samples.
        low: the first address of the program's code.
        high: the address after its last byte.
        hertz: samples per second.
        to: the file.
    """
    bins = (high - low + BIN - 1) // BIN
    counts = [0] * bins
    arcs: Counter[tuple[int, int]] = Counter()
    for stack in stacks:
        if not low <= stack[0] < high:
            continue
        counts[(stack[0] - low) // BIN] += 1
        if len(stack) > 1 and low <= stack[1] < high:
            arcs[stack[1] - 1, stack[0]] += 1
    with to.open("wb") as file:
        file.write(struct.pack("<4si12x", b"gmon", GMON_VERSION))
        file.write(struct.pack("<B", HISTOGRAM))
        file.write(struct.pack("<QQii15sc", low, low + bins * BIN, bins, hertz, b"seconds", b"s"))
        file.write(struct.pack(f"<{bins}H", *(min(count, LARGEST) for count in counts)))
        for (caller, callee), count in arcs.items():
            file.write(struct.pack("<BQQi", CALL_ARC, caller, callee, count))


def function_order(program: Path, profile: Path) -> list[str]:
    """Return the functions in the order of `gprof --function-ordering`, unused functions at the end."""
    done = subprocess.run(
        ["gprof", "--brief", "--function-ordering", program, profile], capture_output=True, text=True, check=True
    )
    return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
