"""Change windows: the times of a week in which a live system may be changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from service.core.errors import InvalidInput

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ALLOWED_DAYS = "days such as mon-fri, or mon,wed,sat"
_ALLOWED_HOURS = 'hours such as "09:00-17:00"'
# A window that opens on one of seven days opens again within this time.
_LONGEST_CLOSED = 8


@dataclass(frozen=True, slots=True)
class Window:
    """A change window: from `begin` to `end` on each of `days` (0 is Monday) in the time zone `zone`.

    A window whose end is not after its begin ends on the next day; its day is the one on which it begins.
    """

    days: tuple[int, ...]
    begin: time
    end: time
    zone: str = "UTC"

    @classmethod
    def parse(cls, field: str, days: object, hours: object, zone: object) -> Window:
        """Return the window that these texts describe. Raises InvalidInput."""
        begin, end = _hours(f"{field}.hours", hours)
        return cls(_days(f"{field}.days", days), begin, end, _zone(f"{field}.zone", zone))

    def to_json(self) -> dict[str, str]:
        """Return the texts from which `parse` makes an equal window."""
        days = ",".join(DAYS[day] for day in self.days)
        if len(self.days) > 2 and self.days == tuple(range(self.days[0], self.days[-1] + 1)):
            days = f"{DAYS[self.days[0]]}-{DAYS[self.days[-1]]}"
        return {"days": days, "hours": f"{self.begin:%H:%M}-{self.end:%H:%M}", "zone": self.zone}

    def seconds_left(self, now: datetime) -> float:
        """Return how many seconds the window is still open; 0 while it is closed."""
        for back in (0, 1):
            opened, closed = self._on(now, -back)
            if opened is not None and closed is not None and opened <= now < closed:
                return (closed - now).total_seconds()
        return 0.0

    def opens_at(self, now: datetime) -> datetime:
        """Return when the window opens next, in its time zone; `now` while it is open."""
        if self.seconds_left(now):
            return now
        for ahead in range(_LONGEST_CLOSED):
            opened, _ = self._on(now, ahead)
            if opened is not None and opened > now:
                return opened
        raise AssertionError("a window has at least one day")

    def _on(self, now: datetime, days: int) -> tuple[datetime | None, datetime | None]:
        """Return begin and end of the window of a day, so many days from the present one; None on other days."""
        zone = _zone_info(self.zone)
        day = now.astimezone(zone).date() + timedelta(days=days)
        if day.weekday() not in self.days:
            return None, None
        until = day if self.end > self.begin else day + timedelta(days=1)
        return datetime.combine(day, self.begin, zone), datetime.combine(until, self.end, zone)


def _days(field: str, value: object) -> tuple[int, ...]:
    found: set[int] = set()
    for part in str(value).lower().replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise InvalidInput(field, value, _ALLOWED_DAYS)
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        found.update(day % 7 for day in range(begin, end + 1 if end >= begin else end + 8))
    return tuple(sorted(found))


def _hours(field: str, value: object) -> tuple[time, time]:
    match = re.fullmatch(r"(\d{1,2}):(\d\d) ?- ?(\d{1,2}):(\d\d)", str(value))
    if match is None:
        raise InvalidInput(field, value, _ALLOWED_HOURS)
    numbers = [int(one) for one in match.groups()]
    # The end of a day is written as 24:00.
    if numbers[2:] == [24, 0]:
        numbers[2] = 0
    try:
        begin, end = time(numbers[0], numbers[1]), time(numbers[2], numbers[3])
    except ValueError:
        raise InvalidInput(field, value, _ALLOWED_HOURS) from None
    return begin, end


def _zone(field: str, value: object) -> str:
    try:
        _zone_info(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(field, value, "a time zone such as UTC or Europe/Paris") from None
    return str(value)


def _zone_info(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)
