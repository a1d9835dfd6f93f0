"""BOLT's order of functions, from the same samples."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from graph import Stack, Symbols
from serving import MachineError


def bolt() -> str:
    """Return the newest llvm-bolt that is installed. Raise MachineError."""
    for name in ("llvm-bolt", *(f"llvm-bolt-{version}" for version in range(30, 13, -1))):
        if found := shutil.which(name):
            return found
    raise MachineError("llvm-bolt is not in PATH: install it (Debian package bolt-19 or another version)")


def bolted(program: Path, symbols: Symbols, stacks: Iterable[Stack], to: Path) -> None:
    """Write a program whose functions BOLT has placed; it was linked with its relocations (`--emit-relocs`).

    BOLT gets the samples as a flat profile. perf2bolt cannot read samples with stacks, and without branch records BOLT
    estimates the calls. It changes more than the order: hot functions are moved into a separate section.

    Raises:
        MachineError: BOLT is missing or fails.
    """
    counts = Counter(stack[0] for stack in stacks)
    lines = ["no_lbr cpu-clock"]
    for address, count in sorted(counts.items()):
        name = symbols.at(address)
        if name is not None and symbols.count[name] == 1:
            lines.append(f"1 {name} {address - symbols.address[name]:x} {count}")
    profile = to.with_suffix(".fdata")
    profile.write_text("\n".join([*lines, ""]))
    command = [bolt(), str(program), "-o", str(to), "--data", str(profile), "--reorder-functions=hfsort"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"BOLT ended with {done.returncode}:\n{done.stderr[-1000:]}")
