"""Change windows in their time zone."""

from datetime import UTC, datetime

import pytest

from service.core.windows import Window

MON = datetime(2026, 11, 30, tzinfo=UTC)  # a Monday


def window(days: str, hours: str, zone: str = "UTC") -> Window:
    return Window.parse("window", days, hours, zone)


@pytest.mark.parametrize(
    ("made", "now", "left", "opens"),
    [
        (window("mon-fri", "09:00-17:00"), MON.replace(hour=8), 0, MON.replace(hour=9)),
        (window("mon-fri", "09:00-17:00"), MON.replace(hour=9), 8 * 3600, MON.replace(hour=9)),
        (window("mon-fri", "09:00-17:00"), MON.replace(hour=16, minute=59), 60, MON.replace(hour=16, minute=59)),
        (window("mon-fri", "09:00-17:00"), MON.replace(hour=17), 0, MON.replace(day=1, month=12, hour=9)),
        # In winter, Paris is one hour ahead.
        (window("mon", "09:00-17:00", "Europe/Paris"), MON.replace(hour=8), 8 * 3600, MON.replace(hour=8)),
        # A window over midnight belongs to the day on which it begins.
        (window("sun", "22:00-04:00"), MON.replace(hour=3), 3600, MON.replace(hour=3)),
        (window("mon", "22:00-04:00"), MON.replace(hour=3), 0, MON.replace(hour=22)),
        (window("mon", "00:00-24:00"), MON.replace(hour=12), 12 * 3600, MON.replace(hour=12)),
        # The day of a weekly window has just passed.
        (window("mon", "01:00-02:00"), MON.replace(hour=2), 0, MON.replace(month=12, day=7, hour=1)),
    ],
)
def test_when_a_window_is_open(made: Window, now: datetime, left: float, opens: datetime) -> None:
    assert made.seconds_left(now) == left
    assert made.opens_at(now) == opens


def test_a_window_is_as_long_as_its_day() -> None:
    """Two o'clock comes twice in the night in which summer ends."""
    night = window("sun", "00:00-06:00", "Europe/Paris")
    assert night.seconds_left(datetime(2026, 10, 24, 22, 0, tzinfo=UTC)) == 7 * 3600


@pytest.mark.parametrize(
    ("days", "numbers"),
    [("mon-fri", (0, 1, 2, 3, 4)), ("sat-mon", (0, 5, 6)), ("mon,wed", (0, 2)), ("Sun", (6,)), ("mon-sun", range(7))],
)
def test_days(days: str, numbers: object) -> None:
    found = window(days, "09:00-17:00")
    assert found.days == tuple(numbers)  # type: ignore[arg-type]
    assert Window.parse("window", **found.to_json()) == found
