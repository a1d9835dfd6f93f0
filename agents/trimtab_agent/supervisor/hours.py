"""Hours of the week in which live trials may run, in the machine's own time zone. Standard library only."""

import re
import time
from collections.abc import Mapping
from typing import Any

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FORM = "HH:MM-HH:MM, with days in front of it if they matter, such as 'mon-fri 09:00-17:00'"
_PATTERN = re.compile(r"(?:([a-z]{3})(?:-([a-z]{3}))? )?(\d\d):(\d\d)-(\d\d):(\d\d)")
_DAY = 24 * 60


def parse(text: str) -> dict[str, Any]:
    """Return the days (0 is Monday), and begin and end in minutes after midnight.

    An end before the begin is on the next day.

    Raises:
        ValueError: the text has another form.
    """
    match = _PATTERN.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not of the form {FORM}")
    first, last = match[1] or "mon", match[2] or match[1] or "sun"
    if first not in DAYS or last not in DAYS:
        raise ValueError(f"{text!r} names no days. Use {', '.join(DAYS)}")
    begin, end = (60 * int(match[hour]) + int(match[hour + 1]) for hour in (3, 5))
    if begin >= _DAY or end > _DAY or begin == end or int(match[4]) > 59 or int(match[6]) > 59:
        raise ValueError(f"{text!r} has no time of a day from 00:00 to 24:00, or is empty")
    one, other = DAYS.index(first), DAYS.index(last)
    count = (other - one) % 7 + 1
    return {"days": sorted((one + day) % 7 for day in range(count)), "begin": begin, "end": end, "text": text}


def seconds_left(hours: Mapping[str, Any], now: float | None = None) -> float:
    """Return the seconds until the hours end; 0 outside of them."""
    day, minute, second = _moment(now)
    length = (hours["end"] - hours["begin"]) % _DAY or _DAY
    for back in (0, 1):
        if (day - back) % 7 in hours["days"]:
            since = minute - hours["begin"] + back * _DAY
            if 0 <= since < length:
                return float(60 * (length - since) - second)
    return 0.0


def seconds_until(hours: Mapping[str, Any], now: float | None = None) -> float:
    """Return the seconds until the hours begin; 0 within them."""
    if seconds_left(hours, now):
        return 0.0
    day, minute, second = _moment(now)
    return min(
        float(60 * (later * _DAY + hours["begin"] - minute) - second)
        for later in range(8)
        if (day + later) % 7 in hours["days"] and later * _DAY + hours["begin"] > minute
    )


def _moment(now: float | None) -> tuple[int, int, int]:
    """Return the day of the week, the minute of the day and the second."""
    moment = time.localtime(now)
    return moment.tm_wday, 60 * moment.tm_hour + moment.tm_min, moment.tm_sec
