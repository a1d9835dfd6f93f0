"""Numbers with units, as programs print them and as people write them: `16.0 ms`, `1,234.5`, `12 MiB`, `5 min 3 s`.

It imports the standard library alone, because the supervisor of a trial reads metrics with it.

A comma, an underscore or an apostrophe separates groups of three digits, and a point separates decimals. What could
mean two numbers, such as `1.234,5`, is refused: a wrong number would be worse than none.
"""

import math
import re
from collections.abc import Iterator, Mapping

_TIME: Mapping[str, float] = {
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}


def _units() -> Iterator[tuple[str, tuple[str, float]]]:
    """Yield each unit with its kind, and its size in the first unit of the kind."""
    for name, size in _TIME.items():
        yield name, ("time", size)
    plain: dict[str, tuple[str, float]] = dict.fromkeys(("byte", "bytes", "Byte", "Bytes"), ("bytes", 1.0))
    plain |= {f"{prefix}B": ("bytes", size) for prefix, size in _PREFIXES.items()}
    plain |= {f"{prefix}{end}": ("bytes", size) for prefix, size in _BINARY.items() for end in ("B", "")}
    for word in ("bit", "bits"):
        plain |= {f"{prefix}{word}": ("bits", size) for prefix, size in {**_PREFIXES, **_BINARY}.items()}
    for name, (kind, size) in plain.items():
        yield name, (kind, size)
        yield f"{name}/s", (f"{kind} per second", size)
    for prefix, size in _PREFIXES.items():
        yield f"{prefix}bps", ("bits per second", size)
        yield f"{prefix}Bps", ("bytes per second", size)
        yield f"{prefix}Hz", ("frequency", size)
        for word in ("FLOPS", "FLOP/s", "Flops", "Flop/s", "flops", "flop/s"):
            yield prefix + word, ("operations of floating-point numbers per second", size)
    yield "%", ("percent", 1.0)


_UNITS: Mapping[str, tuple[str, float]] = dict(_units())
_PER_SECOND = re.compile(r"\s*(?:/|\bper\b)\s*s(?:ec(?:ond)?)?", re.IGNORECASE)
_PER_OPERATION = re.compile(r"\s*(?:/|\bper\b)\s*(?:op(?:eration)?|iter(?:ation)?|call|req(?:uest)?|query)")
# Events per second. A prefix is read before these words alone; another word begins with a small letter.
_RATE = re.compile(
    r"(?P<prefix>[kKMG]?)\s*(?i:(?P<what>i?ops?|operations?|req(?:uest)?s?|transactions?|queries|query|events?"
    r"|msgs?|messages?|rows?|records?|items?|keys|tokens?|samples?)/s|(?P<short>iops|tps|qps|rps|fps))"
    r"|(?P<other>(?!\w*(?:bytes?|bits?|ib|b)/)[a-z]{3,})/s"
)
# The units of times in files that people write.
TIMES: Mapping[str, float] = {"": 1.0, **{name: _TIME[name] for name in ("s", "m", "min", "h", "d")}}

_SIGN = r"(?P<sign>[-+])?\s*"
_DIGITS = r"(?P<whole>\d+(?:(?P<mark>[,_'\u2019\u00a0\u2009\u202f])\d{3}(?:(?P=mark)\d{3})*)?)?(?:\.(?P<part>\d*))?"
_NUMBER = re.compile(rf"{_SIGN}{_DIGITS}(?P<power>[eE][-+]?\d+)?\s*(?P<unit>.*)", re.ASCII | re.DOTALL)
_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-zµμ]+)\s*(?:,\s*|and\s+)?", re.ASCII)
_CLOCK = re.compile(rf"{_SIGN}(?:(\d+):)?(\d+):([0-5]\d(?:\.\d+)?)", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\s*(nan|inf|infinity|∞)", re.IGNORECASE)


class QuantityError(ValueError):
    """The text is no quantity in this unit. `str(error)` says why."""


def parse(text: str, unit: str = "") -> float:
    """Return the number in a text, in a unit.

    Args:
        text: a number that may have a unit, or a time such as `5 min 3 s`, `0m1.5s` or `1:02:03`.
        unit: the unit of the result. Without it, times are in seconds, sizes in bytes and other numbers as written. A
            number without a unit is in this unit already.

    Raises:
        QuantityError: the text is not one finite number, or its unit does not fit.
    """
    # Some programs print a minus sign that is not the one of ASCII.
    plain = (text.strip().rstrip(",;").rstrip().strip("\"'") or text.strip()).replace("\u2212", "-")
    if _NOT_FINITE.fullmatch(plain):
        raise QuantityError(f"{_short(text)} is not a finite number")
    value, found = _time(plain) or _number(plain, text, unit)
    if not found or found == unit:
        return _finite(value, text)
    kind, size = _unit(found) or ("", 1.0)
    if not unit:
        return _finite(value * size, text)
    wanted, wanted_size = _unit(unit) or (unit, 1.0)
    if found == "k" and not wanted.startswith(("bytes", "bits", "time")):
        return _finite(value * size, text)
    if wanted != kind:
        raise QuantityError(f"{_short(text)} has the unit {found}, which is not one of {unit}")
    # One division of exact sizes keeps 16 ms in ms at 16.
    return _finite(value * (size / wanted_size), text)


def seconds(text: str) -> float:
    """Return a time in seconds; a number without a unit is in seconds.

    Raises:
        QuantityError: the text is no time.
    """
    return parse(text, "s")


def _unit(name: str) -> tuple[str, float] | None:
    """Return the kind of a unit, and its size in the first unit of the kind; None if it is not known."""
    if name == "k":  # as in `IOPS=12.3k`; M and G can mean two numbers
        return "a number", 1e3
    name = _PER_SECOND.sub("/s", name)
    if known := _UNITS.get(name) or _UNITS.get(_PER_OPERATION.sub("", name)):
        return known
    rate = _RATE.fullmatch(name)
    if rate is None:
        return None
    what = (rate["what"] or rate["short"] or rate["other"]).lower()
    return f"{what.rstrip('s')} per second", _PREFIXES[rate["prefix"] or ""]


def _time(text: str) -> tuple[float, str] | None:
    """Return a time of several parts in seconds; None for another text."""
    if clock := _CLOCK.fullmatch(text):
        sign, hours, minutes, rest = clock.groups()
        if hours is None or int(minutes) < 60:
            total = 3600 * int(hours or 0) + 60 * int(minutes) + float(rest)
            return (-total if sign == "-" else total), "s"
        return None
    sign, body = (text[0], text[1:].lstrip()) if text[:1] in ("-", "+") else ("", text)
    total, last, count, place = 0.0, math.inf, 0, 0
    while part := _PART.match(body, place):
        size = _TIME.get(part[2])
        if size is None or size >= last:
            return None
        total, last, count, place = total + float(part[1]) * size, size, count + 1, part.end()
    if count < 2 or place < len(body):
        return None
    return (-total if sign == "-" else total), "s"


def _number(plain: str, text: str, unit: str) -> tuple[float, str]:
    """Return a number as it is written, and its unit."""
    match = _NUMBER.fullmatch(plain)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"{_short(text)} is not a number")
    found = match["unit"].strip()
    if found and found != unit and _unit(found) is None:
        if not re.match(r"[A-Za-zµμ%/]", found):
            raise QuantityError(
                f"{_short(text)} is not a number: a comma separates groups of three digits, and a point decimals"
            )
        raise QuantityError(f"{_short(text)} is not a number with a known unit, such as ms, s, MiB or MB/s")
    whole = re.sub(r"\D", "", match["whole"] or "")
    sign = "-" if match["sign"] == "-" else ""
    return float(f"{sign}{whole or 0}.{match['part'] or 0}{match['power'] or ''}"), found


def _finite(value: float, text: str) -> float:
    if not math.isfinite(value):
        raise QuantityError(f"{_short(text)} is not a finite number")
    return value


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
