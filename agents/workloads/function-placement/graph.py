"""The dynamic call graph of a program, from its symbols and from stacks that perf has sampled [ottoni-2017, section 4].

Programs are linked at fixed addresses (`-no-pie`), so that a sampled address is the address of a symbol.
"""

import bisect
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Arc = tuple[str, str]
"""Caller and callee."""
Stack = Sequence[int]
"""Addresses of a sample: the instruction, and the return addresses of the functions below it."""


@dataclass(frozen=True)
class CallGraph:
    """Functions of a program with what a profile says of them.

    `size` has the bytes of each function, `time` the samples with the function on top of the stack, and `arcs` the
    samples with the callee on top and the caller just below it.
    """

    size: Mapping[str, int]
    time: Mapping[str, float]
    arcs: Mapping[Arc, float]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CallGraph":
        """Return the graph that `to_json` has written."""
        return cls(data["size"], data["time"], {(caller, callee): weight for caller, callee, weight in data["arcs"]})

    def to_json(self) -> dict[str, Any]:
        """Return the graph as JSON values."""
        arcs = [[*arc, weight] for arc, weight in self.arcs.items()]
        return {"size": dict(self.size), "time": dict(self.time), "arcs": arcs}

    def without_rare(self, share: float) -> "CallGraph":
        """Return the graph without arcs that stand for less than this share of their callee's samples."""
        kept = {arc: weight for arc, weight in self.arcs.items() if weight >= share * self.time[arc[1]]}
        return CallGraph(self.size, self.time, kept)


class Symbols:
    """The functions of a program and their addresses.

    Functions with one name (static functions of several files) and functions with one address (aliases) count as one
    function: a linker places sections by name.
    """

    def __init__(self, functions: Iterable[tuple[str, int, int]]) -> None:
        """Take names, addresses and sizes."""
        self.address: dict[str, int] = {}
        self.size: Counter[str] = Counter()
        self.count: Counter[str] = Counter()
        self.aliases: dict[str, list[str]] = {}
        self._first: dict[str, str] = {}
        by_address: dict[int, str] = {}
        spans = []
        for name, address, size in sorted(functions, key=lambda function: (function[1], function[0])):
            first = by_address.setdefault(address, name)
            if first != name:
                self._first[name] = first
                self.aliases.setdefault(first, []).append(name)
                continue
            spans.append((address, address + size, name))
            self.address.setdefault(name, address)
            self.size[name] += size
            self.count[name] += 1
        self._starts = [start for start, _, _ in spans]
        self._spans = spans

    @classmethod
    def of(cls, program: Path) -> "Symbols":
        """Return the functions of a linked program."""
        listed = subprocess.run(
            ["nm", "--print-size", "--defined-only", program], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in listed.splitlines()]
        return cls((row[3], int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "tTwWi")

    def with_aliases(self, names: Iterable[str]) -> list[str]:
        """Return the names, each followed by the other names of the same code."""
        return [one for name in names for one in (name, *self.aliases.get(name, ()))]

    def range_of(self, names: Iterable[str]) -> tuple[int, int]:
        """Return the first address of these functions, and the address after the last one."""
        known = [name for name in names if name in self.address]
        return min(self.address[name] for name in known), max(self.address[name] + self.size[name] for name in known)

    def place_of(self, text: str) -> int:
        """Return the address of `NAME+0xOFFSET`; 0 for an unknown name."""
        name, _, offset = text.partition("+")
        address = self.address.get(self._first.get(name, name), 0)
        return address + int(offset or "0", 16) if address else 0

    def at(self, address: int) -> str | None:
        """Return the function that has this address."""
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0 or address >= self._spans[place][1]:
            return None
        return self._spans[place][2]


def graph_of(stacks: Iterable[Stack], symbols: Symbols) -> CallGraph:
    """Return the call graph of samples. Samples outside the program, such as in the C library, do not count."""
    time: Counter[str] = Counter()
    arcs: Counter[Arc] = Counter()
    for stack in stacks:
        callee = symbols.at(stack[0])
        if callee is None:
            continue
        time[callee] += 1
        # the return address may be the first byte of the next function, after a call that does not return
        caller = symbols.at(stack[1] - 1) if len(stack) > 1 else None
        if caller is not None:
            time[caller] += 0
            if caller != callee:
                arcs[caller, callee] += 1
    return CallGraph({name: symbols.size[name] for name in time}, dict(time), dict(arcs))


def stacks_of(script: str, program: Path, symbols: Symbols) -> list[list[int]]:
    """Return the stacks in the output of `perf script -F ip,sym,symoff,dso`; frames outside the program are 0.

    Names and offsets are read, not addresses: versions of perf differ in which addresses they print.
    """
    stacks = []
    for block in script.split("\n\n"):
        frames = re.findall(r"^\s*[0-9a-f]+ (.*) \((.*)\)$", block, re.MULTILINE)
        stack = [symbols.place_of(text) if Path(dso) == program else 0 for text, dso in frames]
        if stack:
            stacks.append(stack)
    return stacks
