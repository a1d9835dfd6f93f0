"""Where a user's batch script has values that could be tuned, and which variables it sets itself.

A variable that a script sets itself keeps that value, whatever comes from outside: a study of it would measure one
configuration many times. This is a reading of lines and not a shell, so that it finds the plain cases: for `fixed`, an
assignment that always runs and does not use the value from outside.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

# The longest script that is read, in characters.
LONGEST = 256 * 1024
# A longer line is left out: its reading would take too long, and nobody has written it.
_LONGEST_LINE = 2000
# The options of sbatch that change how fast a job runs, and the short forms of some.
_OPTION = re.compile(
    r"nodes|ntasks|ntasks-per-(node|core|socket)|cpus-per-task|threads-per-core|sockets-per-node|cores-per-socket|gpus"
    r"|gpus-per-(node|task)|cpu-freq|distribution|hint"
)
_SHORT = {"N": "nodes", "n": "ntasks", "c": "cpus-per-task", "G": "gpus", "m": "distribution"}
# Variables that a job has from Slurm, its shell or its user.
_GIVEN = re.compile(
    r"SLURM_.*|SBATCH_.*|BASH.*|HOME|PATH|USER|LOGNAME|PWD|OLDPWD|SHELL|TMPDIR|HOSTNAME|LANG|LC_.*|UID|EUID|RANDOM"
    r"|SECONDS|LINENO|IFS|PS[0-9]|REPLY|OPTARG|OPTIND|PIPESTATUS|.*LIBRARY_PATH|.*_HOME|.*_ROOT|.*_DIR"
)
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_DECLARING = r"(?:(?:export|readonly|local|declare|typeset)\s+(?:-\w+\s+)*)?"
_ASSIGNED = re.compile(rf"^(\s*(?:export\s+)?({_VARIABLE})=)([\"']?)([\w.+-]+)\3\s*(?:#.*)?$", re.ASCII)
_DEFAULTED = re.compile(rf"\$\{{({_VARIABLE}|[1-9]):?[-=][\"']?([\w.+-]+)[\"']?\}}", re.ASCII)
_WRITTEN = re.compile(
    rf"(?:^|[\s;(])(?:export\s+|local\s+|declare\s+(?:-\w+\s+)*)?({_VARIABLE})\+?="
    rf"|\b(?:for|read(?:\s+-\w+)*)\s+({_VARIABLE})",
    re.ASCII,
)
_USED = re.compile(rf"\$(?:\{{({_VARIABLE})[^}}]*\}}|({_VARIABLE})|\{{?([1-9])\}}?)", re.ASCII)
_DIRECTIVE = re.compile(r"#SBATCH\s+(.*)$")
_ASKED = re.compile(r"(?:^|\s)(?:--([a-z-]+)(?:=|\s+)|-([A-Za-z])\s*)([\w.+:,-]+)", re.ASCII)
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")
# An assignment at the beginning of a command, and its value as far as a shell reads one word.
_SET = re.compile(
    rf"({_VARIABLE})(\+?)=((?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|\$\((?:[^()]|\([^()]*\))*\)|[^\s\"';&|])*)", re.ASCII
)
_LOOP = re.compile(rf"(?:for|select)\s+({_VARIABLE})\b|read(?:\s+-\w+)*\s+({_VARIABLE})\b", re.ASCII)
_OPENS = re.compile(r"(?:if|for|while|until|case|select)\b|\{(?:\s|$)|function\b|[\w-]+\s*\(\)")
_CLOSES = re.compile(r"(?:fi|done|esac)\b|\}")
_SHELLS = re.compile(r"(?:ba|da|k|z)?sh")


@dataclass(frozen=True)
class Place:
    """A value in a script that could be tuned.

    `kind` says how a value from outside arrives: env, option (of sbatch) or argument. `target` is the variable, the
    option without its dashes, or the number of the argument. `value` is the present value; "" if the script does not
    say. `line` counts from 1. `fixed`: the script sets the variable itself, so that a value from outside has no effect.
    """

    name: str
    kind: Literal["env", "option", "argument"]
    target: str
    value: str
    line: int
    fixed: bool


@dataclass(frozen=True)
class Assignment:
    """A variable that a script sets itself, at a line, to a value as it is written there."""

    variable: str
    line: int
    value: str

    @property
    def remedy(self) -> str:
        """How to write the line so that a value from outside has an effect."""
        literal = re.fullmatch(r"([\"']?)([\w.+-]+)\1", self.value, re.ASCII)
        default = literal[2] if literal else "..."
        return f"{self.variable}=${{{self.variable}:-{default}}}"


def is_shell(interpreter: Sequence[str]) -> bool:
    """Return whether a script's interpreter is a shell of the Bourne family."""
    words = [word.rpartition("/")[2] for item in interpreter for word in item.split()]
    if words[:1] == ["env"]:
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return bool(words) and _SHELLS.fullmatch(words[0]) is not None


def find(script: str) -> list[Place]:
    """Return the places of a script where a value could be tuned, in the order of their lines."""
    found: dict[tuple[str, str], Place] = {}

    def add(
        kind: Literal["env", "option", "argument"], target: str, value: str, line: int, fixed: bool = False
    ) -> None:
        if (kind, target) in found:
            return
        name = f"argument{target}" if kind == "argument" else target.lower().replace("-", "_")
        taken = any(other.name == name for other in found.values())
        found[kind, target] = Place(f"{name}_{kind}" if taken else name, kind, target, value, line, fixed)

    lines = [line if len(line) <= _LONGEST_LINE else "" for line in script.splitlines()]
    code = _code(lines)
    writes = _written(code)
    for number, line in enumerate(lines, 1):
        for option, value in _directives(line):
            add("option", option, value, number)
    for number, line in enumerate(code, 1):
        assigned = _ASSIGNED.match(line)
        if assigned and writes.get(assigned[2]) == 1 and not _GIVEN.fullmatch(assigned[2]):
            add("env", assigned[2], assigned[4], number, fixed=True)
        for target, value in _DEFAULTED.findall(line):
            if not _GIVEN.fullmatch(target):
                add("argument" if target.isdigit() else "env", target, value, number)
    for number, line in enumerate(code, 1):
        for braced, plain, argument in _USED.findall(line):
            variable = braced or plain
            if argument:
                add("argument", argument, "", number)
            elif not _GIVEN.fullmatch(variable) and variable not in writes:
                add("env", variable, "", number)
    return sorted(found.values(), key=lambda place: place.line)


def opened(script: str, variables: Sequence[str]) -> str:
    """Return the script with these variables taken from the environment, with the present value as the default."""
    lines = []
    for line in script.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        assigned = _ASSIGNED.match(body) if len(body) <= _LONGEST_LINE else None
        if assigned is None or assigned[2] not in variables:
            lines.append(line)
        else:
            lines.append(f"{assigned[1]}${{{assigned[2]}:-{assigned[4]}}}{line[len(body) :]}")
    return "".join(lines)


def fixed(script: str) -> dict[str, Assignment]:
    """Return the variables that a shell script always sets itself, without a use of the value from outside."""
    found: dict[str, Assignment] = {}
    used: set[str] = set()
    depth = 0
    for number, line in enumerate(_code(script.splitlines()), 1):
        for command in _commands(line):
            if _CLOSES.match(command):
                depth = max(0, depth - 1)
            if depth == 0:
                for assignment in _assignments(command, number, used):
                    found.setdefault(assignment.variable, assignment)
            used |= {braced or plain for braced, plain, _ in _USED.findall(command)} - found.keys()
            if _OPENS.match(command) and not re.search(r"(?:^|\s)(?:\}|fi|done|esac)\s*$", command):
                depth += 1
    return found


def reads_arguments(script: str) -> bool:
    """Return whether a shell script can read its arguments."""
    return any(
        re.search(r"\$(?:\{?[1-9@*]|\{[#!]?[1-9@*])|\bshift\b|\bgetopts?\b|BASH_ARGV|\bfor\s+\w+\s*(?:;|do|$)", line)
        for line in _code(script.splitlines())
    )


def _assignments(command: str, line: int, used: set[str]) -> Iterator[Assignment]:
    """Yield the assignments at the beginning of a command, unless they use the value that the variable had."""
    if loop := _LOOP.match(command):
        variable = loop[1] or loop[2]
        if variable not in used:
            yield Assignment(variable, line, "...")
        return
    rest = re.sub(rf"^{_DECLARING}", "", command)
    if rest.startswith("env "):
        rest = re.sub(r"^env\s+(?:-\S+\s+)*", "", rest)
    while one := _SET.match(rest):
        variable, added, value = one.groups()
        if not added and variable not in used and not re.search(rf"\b{variable}\b", value):
            yield Assignment(variable, line, value)
        rest = rest[one.end() :].lstrip()


def _commands(line: str) -> Iterator[str]:
    """Yield the commands of a line that do not depend on the end of another one."""
    for part in re.split(r";;?", line):
        command = re.sub(r"^(?:(?:then|do|else|elif)\s+|[({]\s+(?=\S))*", "", part.strip())
        # What follows && or || may not run.
        yield re.split(r"&&|\|\|", command)[0].strip()


def _code(lines: Sequence[str]) -> list[str]:
    """Return the lines without comments, texts in which the shell replaces nothing, and documents after `<<`."""
    found: list[str] = []
    ends = ""
    for line in lines:
        if ends:
            found.append("")
            ends = "" if line.strip() == ends else ends
            continue
        if len(line) > _LONGEST_LINE or re.match(r"\s*#", line):
            found.append("")
            continue
        if document := _HEREDOC.search(line):
            ends = document[2]
        # A text in single quotes that is a whole value stays, since it is a literal.
        found.append(re.sub(r"(\s)#.*$", r"\1", re.sub(r"(^|[^=])'[^']*'", r"\1''", line)))
    return found


def _written(code: Sequence[str]) -> Mapping[str, int]:
    """Return how often the lines set each variable."""
    writes: dict[str, int] = {}
    for line in code:
        names = Counter(assigned or looped for assigned, looped in _WRITTEN.findall(line))
        for name, times in names.items():
            # X=${X:-1} takes the value from outside.
            if not re.search(rf"\b{name}=[\"']?\$\{{{name}:?-", line):
                writes[name] = writes.get(name, 0) + times
    return writes


def _directives(line: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a line `#SBATCH` that could be tuned, with their values."""
    if (match := _DIRECTIVE.match(line)) is None:
        return
    for long, short, value in _ASKED.findall(re.sub(r"\s#.*$", "", match[1])):
        option = long or _SHORT.get(short, "")
        if _OPTION.fullmatch(option):
            yield option, value
