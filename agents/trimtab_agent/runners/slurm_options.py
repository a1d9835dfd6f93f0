"""The options of a Slurm job in all their forms, which the administrator's policy limits."""

import re
import shlex
from collections.abc import Iterator, Sequence

# The options that a policy limits: long name and short form.
CONTROLLED = {"partition": "p", "account": "A", "qos": "q", "nodes": "N", "time": "t"}
# Short forms with a value in the same word or the next one. The others have no value.
_WITH_VALUE = "aAbBcCdDeFGiJLmMnNopqStwx"
# sbatch also reads the directives of other schedulers.
_FOREIGN = re.compile(r"#(PBS|BSUB|LSF)\b")
# sbatch's own forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes[:seconds]
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?")
_NODES = re.compile(r"(?:\d+-)?(\d+)([km]?)", re.IGNORECASE)


class UnreadableOptionError(ValueError):
    """The options cannot be read with certainty. `str(error)` names the option and its correct form."""


def asked(options: Sequence[str], directives: Sequence[str]) -> list[tuple[str, str]]:
    """Return every option on a command line and in the lines of a script, with its value ("" for a flag).

    A shortened name counts as each controlled option that it may stand for. Other names are returned as written.

    Raises:
        UnreadableOptionError: it is not certain how sbatch would read the options.
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
    """Return the time in an option of sbatch, in seconds; None if it is malformed or unlimited."""
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
    # 0 means no limit for sbatch
    return float(total) or None


def most_nodes(text: str) -> int | None:
    """Return the greatest number of nodes that a value of --nodes allows; None if it is malformed."""
    match = _NODES.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[match[2].lower()]
