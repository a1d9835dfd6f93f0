"""Parse a user's own batch script for sbatch."""

import re
from dataclasses import dataclass

# #SBATCH, #BB, #BB_LUA, #DW, #SBB ...
DIRECTIVE = re.compile(r"#[A-Z][A-Z_]*\s+\S")
# directives that create several jobs; a trial is one job
MANY = {
    "an array": re.compile(r"#SBATCH\s+(--arr|-a)"),
    "a heterogeneous job": re.compile(r"#SBATCH\s+(het|pack)job\b", re.IGNORECASE),
}


class BatchScriptError(Exception):
    """The script cannot be used. `str(error)` says what is allowed."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True)
class BatchScript:
    """A batch script. `interpreter` is the argv in its first line. `directives` are the scheduler lines before the
    first command."""

    interpreter: tuple[str, ...]
    directives: tuple[str, ...]


def parse(data: bytes) -> BatchScript:
    """Return the parts of a script that a scheduler reads.

    Raises:
        BatchScriptError: sbatch would refuse the script or misread it.
    """
    for number, raw in enumerate(data.split(b"\n"), 1):
        if raw.endswith(b"\r"):
            raise BatchScriptError(number, "the line ends with CRLF, as on Windows; use LF only (dos2unix)")
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise BatchScriptError(data[: error.start].count(b"\n") + 1, f"the script is not UTF-8 text: {error}") from None
    first = lines[0] if lines else ""
    # The kernel passes everything after the interpreter as one argument.
    interpreter = first[2:].strip().split(maxsplit=1)
    if not first.startswith("#!") or not interpreter or not interpreter[0].startswith("/"):
        raise BatchScriptError(1, f"{first[:40]!r} is not '#!' with the path of an interpreter, such as '#!/bin/bash'")
    directives = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip() and not line.startswith("#"):
            break
        for what, pattern in MANY.items():
            if pattern.match(line):
                raise BatchScriptError(number, f"{line!r}: a trial is one job, so {what} is not allowed")
        if DIRECTIVE.match(line):
            directives.append(line)
    return BatchScript(tuple(interpreter), tuple(directives))
