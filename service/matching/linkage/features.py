"""From a job to the features that are compared [robert-2021, table 7.2].

Lengths are bounded, because a job comes from a request: the rest of a longer text is not compared.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from service.core.errors import InvalidInput
from service.matching.linkage.job import Job

LONGEST_NAME = 128
LONGEST_COMMAND_LINE = 4096
MOST_WORDS = 256
MOST_TOKENS = 32
LONGEST_TOKEN = 64

# Pairs of an option and its values, sorted by the option; the option "" has the arguments before the first option.
Options: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

_SEPARATORS = re.compile(r"[/_\-.0-9]+")
_QUOTES = re.compile(r"['\"\\]")
_BLANK = " \t\r\n"
_PART = re.compile(r"""[^ \t\r\n'"\\]+|'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_WORD = re.compile(f"(?:{_PART.pattern})+", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_ASSIGNMENT = re.compile(r"-*[A-Za-z_][\w.-]*=")


class Moment(NamedTuple):
    """A time in UTC as places on circles; `day` and `weekday` begin at 0, `days` is the length of the month."""

    second: int
    minute: int
    hour: int
    day: int
    days: int
    weekday: int


class Features(NamedTuple):
    """A job as it is compared. `tokens` are the parts of the program's path, in their order."""

    user: str
    name: str
    program: str
    tokens: tuple[str, ...]
    options: Options
    moment: Moment
    nodes: int


def features(job: Job) -> Features:
    """Return what is compared of a job.

    Raises:
        InvalidInput: `submitted_at` has no time zone.
    """
    path, options = command(job.command_line, job.program)
    return Features(
        job.user, cleaned(job.name), cleaned(job.program), tokens(path), options, moment(job), max(job.nodes, 0)
    )


def cleaned(name: str) -> str:
    """Return the letters and digits of a name in lower case."""
    lower = name[:LONGEST_NAME].lower()
    return lower if lower.isalnum() else "".join(filter(str.isalnum, lower))


def tokens(path: str) -> tuple[str, ...]:
    """Return the parts of a path between `/`, `_`, `-`, `.` and digits.

    Digits only separate: versions and time stamps differ between runs of one application, and as rare words they would
    weigh more than its name.
    """
    return tuple(token[:LONGEST_TOKEN] for token in _SEPARATORS.split(path) if token)[:MOST_TOKENS]


def command(line: str, program: str) -> tuple[str, Options]:
    """Return the path of the program in a command line, and its options.

    The path is the first word with a slash whose last part is `program`; otherwise the first word with a slash;
    otherwise the first word. Words that begin with `-` and assignments are not paths. The words after the path are its
    options; the words before it belong to a launcher, such as mpirun or sbatch, and are not compared.
    """
    words = _words(line[:LONGEST_COMMAND_LINE])
    if not words:
        return "", ()
    paths = [
        place for place, word in enumerate(words) if "/" in word and word[0] != "-" and not _ASSIGNMENT.match(word)
    ]
    ending = "/" + program
    place = next((place for place in paths if words[place].endswith(ending)), paths[0] if paths else 0)
    return words[place], _options(words[place + 1 :])


def _words(line: str) -> list[str]:
    words = line.split()
    if _QUOTES.search(line):
        # A line with a quote that is not closed is compared as it is written.
        unquoted = _unquoted(line)
        words = words if unquoted is None else unquoted
    return words[:MOST_WORDS]


def _unquoted(line: str) -> list[str] | None:
    """Return the words of a line as a shell does, without empty ones; None if a quote is not closed.

    This is shlex.split(), which takes a millisecond for a long line.
    """
    words, end = [], 0
    for found in _WORD.finditer(line):
        if line[end : found.start()].strip(_BLANK):
            return None
        words.append("".join(map(_plain, _PART.findall(found[0]))))
        end = found.end()
    return None if line[end:].strip(_BLANK) else [word for word in words if word]


def _plain(part: str) -> str:
    match part[0]:
        case "'":
            return part[1:-1]
        case '"':
            return _ESCAPED.sub(r"\1", part[1:-1])
        case "\\":
            return part[1:]
    return part


def _options(words: list[str]) -> Options:
    """Return the values of each option: the text after `=`, or the next words up to the next option."""
    found: dict[str, list[str]] = {}
    key = ""
    for word in words:
        if _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            found.setdefault(name, []).append(value)
            key = ""
        elif word[0] == "-" and not (word[1:2].isdigit() or word[1:2] == "."):
            key = word
            found.setdefault(key, [])
        else:
            found.setdefault(key, []).append(word)
    return tuple(sorted((key, tuple(values)) for key, values in found.items()))


def moment(job: Job) -> Moment:
    """Return the time of a job's submission as places on circles.

    Raises:
        InvalidInput: it has no time zone.
    """
    if job.submitted_at.tzinfo is None:
        raise InvalidInput("submitted_at", job.submitted_at.isoformat(), "a time with its time zone")
    time = job.submitted_at.astimezone(UTC)
    days = _days(time.year, time.month)
    return Moment(time.second, time.minute, time.hour, time.day - 1, days, time.weekday())


@lru_cache(1024)
def _days(year: int, month: int) -> int:
    return monthrange(year, month)[1]
