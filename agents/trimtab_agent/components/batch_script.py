"""A user's own batch script, as it is written for sbatch."""

import re
from dataclasses import dataclass

# #SBATCH, #BB, #BB_LUA, #DW, #SBB ...
DIRECTIVE = re.compile(r"#[A-Z][A-Z_]*\s+\S")
# what would be many jobs, of which a trial is one
MANY = {
    "an array": re.compile(r"#SBATCH\s+(--arr|-a)"),
    "a heterogeneous job": re.compile(r"#SBATCH\s+(het|pack)job\b", re.IGNORECASE),
}


class BatchScriptError(Exception):
    """The script cannot be used; `str()` says what is allowed."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True)
class BatchScript:
    """`interpreter`: the argv of the first line. `directives`: the lines for schedulers, which stand before the first
    command."""

    interpreter: tuple[str, ...]
    directives: tuple[str, ...]


def parse(data: bytes) -> BatchScript:
    """What a scheduler reads in a script.

    Raises:
        BatchScriptError: sbatch would not take it, or not as it is meant.
    """
    for number, raw in enumerate(data.split(b"\n"), 1):
        if raw.endswith(b"\r"):
            raise BatchScriptError(number, "the line ends with CRLF, as on Windows; allowed is LF alone (dos2unix)")
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise BatchScriptError(data[: error.start].count(b"\n") + 1, f"is not UTF-8 text: {error}") from None
    first = lines[0] if lines else ""
    # the kernel gives all that follows the interpreter as one argument
    interpreter = first[2:].strip().split(maxsplit=1)
    if not first.startswith("#!") or not interpreter or not interpreter[0].startswith("/"):
        raise BatchScriptError(1, f"{first[:40]!r} is not '#!' with the path of an interpreter, as '#!/bin/bash'")
    directives = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip() and not line.startswith("#"):
            break
        for what, pattern in MANY.items():
            if pattern.match(line):
                raise BatchScriptError(number, f"{line!r}: a trial is one job, so that {what} is not allowed")
        if DIRECTIVE.match(line):
            directives.append(line)
    return BatchScript(tuple(interpreter), tuple(directives))
