"""What a job asks of sbatch, whichever way it says so. The administrator's policy is about this."""

import re
import shlex
from collections.abc import Iterator, Sequence

# The options that a policy is about: long name, and short form.
CONTROLLED = {"partition": "p", "account": "A", "qos": "q", "nodes": "N", "time": "t"}
# Short forms that take a value, in the same word or the next; all others stand alone.
_WITH_VALUE = "aAbBcCdDeFGiJLmMnNopqStwx"
# sbatch also reads the directives of other schedulers.
_FOREIGN = re.compile(r"#(PBS|BSUB|LSF)\b")
# sbatch's own forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes[:seconds]
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?")
_NODES = re.compile(r"(?:\d+-)?(\d+)([km]?)", re.IGNORECASE)


class UnreadableOptionError(ValueError):
    """Options that cannot be told apart with certainty. `str()` says which, and what to write instead."""


def asked(options: Sequence[str], directives: Sequence[str]) -> list[tuple[str, str]]:
    """Every option that the items of a command line and the lines of a script name, with its value ("" for a flag).

    A shortened name counts as each controlled option that it may stand for; other names come as they are written.

    Raises:
        UnreadableOptionError: what sbatch would read cannot be told with certainty.
    """
    words = list(options)
    for line in directives:
        if _FOREIGN.match(line):
            raise UnreadableOptionError(f"{line!r} is another scheduler's directive: write it as #SBATCH --NAME=VALUE")
        if line.startswith("#SBATCH"):
            try:
                words += shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:
                raise UnreadableOptionError(f"{line!r} has a quotation mark that is not closed") from None
    return list(_read(iter(words)))


def _read(words: Iterator[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, separator, value = word[2:].partition("=")
            found = [long for long in CONTROLLED if long.startswith(name)]
            if found and not separator:
                value = next(words, "")
            yield from ((long, value) for long in found or [name])
        elif len(word) > 1 and word[0] == "-" and word[1] in _WITH_VALUE:
            value = word[2:].removeprefix("=") or next(words, "")
            long = next((long for long, short in CONTROLLED.items() if short == word[1]), word[1])
            yield long, value
        elif len(word) == 2 and word[0] == "-" and word[1].isalpha():
            yield word[1], ""
        else:
            raise UnreadableOptionError(f"{word!r} is not one option of sbatch: write --NAME=VALUE")


def seconds(text: str) -> float | None:
    """The length of time that an option of sbatch means; None where it is none, or no limit."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, first, second, third = (
        int(part) if part else None for part in match.group("days", "first", "second", "third")
    )
    if days is not None:
        total = days * 86400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    elif third is not None:
        total = (first or 0) * 3600 + (second or 0) * 60 + third
    else:
        total = (first or 0) * 60 + (second or 0)
    # sbatch takes 0 for no limit
    return float(total) or None


def most_nodes(text: str) -> int | None:
    """The greatest number of nodes that --nodes allows a job; None where it cannot be told."""
    match = _NODES.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]
