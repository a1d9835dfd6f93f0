"""Link a prepared target with its functions in a given order, and verify the order.

The order file of gold names sections, and lld's names symbols. With `-ffunction-sections` each function is in a
section, which mostly has its name: `.text.NAME`, or `.text.unlikely.NAME` for a function that GCC takes for cold.
"""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graph import CallGraph, Symbols

# a text segment that starts at a multiple of 2 MiB can be on huge pages
ALWAYS = ("-no-pie", "-Wl,-z,max-page-size=0x200000", "-Wl,-z,common-page-size=4096")
LINKERS = ("gold", "lld")


class LinkError(Exception):
    """The linker is missing or fails, or has not placed functions as it was asked."""


@dataclass(frozen=True)
class Linked:
    """A linked program: its functions, and the range of the ones that were ordered (two equal addresses if none)."""

    program: Path
    symbols: Symbols
    hot: tuple[int, int]


class Objects:
    """The object files of a prepared target, and how they are linked."""

    def __init__(self, source: Path) -> None:
        self.source = source
        described = json.loads((source / "link.json").read_text())
        self.folder = source / described["folder"]
        self.arguments: list[str] = [item.replace("{source}", str(source)) for item in described["arguments"]]

    def sections(self) -> dict[str, str]:
        """Return the section of code of each function."""
        files = [item for item in self.arguments if item.endswith((".o", ".a"))]
        listed = subprocess.run(
            ["objdump", "--syms", *files], cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout
        found = re.findall(r"^[0-9a-f]+ .{6}F (\.text\S*)\s+[0-9a-f]+ (?:\.hidden )?(\S+)$", listed, re.MULTILINE)
        return {name: section for section, name in found}

    def link(self, to: Path, order: Sequence[str] = (), linker: str = "gold", extra: Sequence[str] = ()) -> Linked:
        """Link the program with these functions first.

        Args:
            to: the program.
            order: functions; the others stay in the linker's own order.
            linker: one of `LINKERS`.
            extra: more arguments of gcc.

        Raises:
            LinkError: the linker is missing, fails, or has ignored the order.
        """
        options = list(extra)
        placed: list[str] = []
        if order:
            sections = self.sections()
            placed = [name for name in dict.fromkeys(order) if name in sections]
            listed = [sections[name] for name in placed] if linker == "gold" else placed
            file = to.with_suffix(".order")
            file.write_text("".join(f"{name}\n" for name in dict.fromkeys(listed)))
            options.append(
                f"-Wl,--section-ordering-file={file}"
                if linker == "gold"
                else f"-Wl,--symbol-ordering-file={file},--no-warn-symbol-ordering"
            )
        command = ["gcc", *self.arguments, *ALWAYS, *options, *linker_options(linker), "-o", str(to)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LinkError(f"{linker} ended with exit code {done.returncode}:\n{done.stderr[-2000:]}")
        symbols = Symbols.of(to)
        return Linked(to, symbols, verified(placed, symbols))


def linker_options(linker: str) -> list[str]:
    """Return the arguments by which gcc uses a linker. Raise LinkError if it is not installed."""
    if linker == "gold":
        if shutil.which("ld.gold") is None:
            raise LinkError("ld.gold is not in PATH: install it (Debian package binutils)")
        return ["-fuse-ld=gold"]
    folders = [Path("/usr/lib").joinpath(f"llvm-{version}", "bin") for version in range(30, 10, -1)]
    for folder in folders:
        if (folder / "ld.lld").exists():
            return [f"-B{folder}", "-fuse-ld=lld"]
    if shutil.which("ld.lld"):
        return ["-fuse-ld=lld"]
    raise LinkError("ld.lld is not installed: install it (Debian package lld)")


def verified(order: Sequence[str], symbols: Symbols) -> tuple[int, int]:
    """Return the range of functions that were ordered. Raise LinkError if their addresses do not rise as asked.

    Functions that the linker has dropped are skipped. A name that several static functions share is skipped, too: all
    of them were placed together.
    """
    found = [name for name in order if name in symbols.address]
    unique = [name for name in found if symbols.count[name] == 1]
    wrong = [(one, other) for one, other in itertools.pairwise(unique) if symbols.address[one] > symbols.address[other]]
    if wrong:
        one, other = wrong[0]
        raise LinkError(f"the linker has not kept the order: {one} is after {other}, and {len(wrong)} pairs in all")
    if not unique:
        return 0, 0
    last = unique[-1]
    return symbols.address[unique[0]], symbols.address[last] + symbols.size[last]


def call_graph_profile(graph: CallGraph, names: Mapping[str, object]) -> str:
    """Return the arcs as lld reads them by `--call-graph-ordering-file`."""
    return "".join(
        f"{caller} {callee} {weight:.0f}\n"
        for (caller, callee), weight in graph.arcs.items()
        if caller in names and callee in names
    )
