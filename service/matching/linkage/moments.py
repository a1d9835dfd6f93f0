"""Similarities of times: distances on the circle, looked up in tables."""

from __future__ import annotations

import numpy as np

from service.matching.linkage.features import Moment
from service.matching.linkage.ragged import Floats, Ints
from service.matching.linkage.score import Weights

# Days of months of 28 to 31 days; a day's place on the circle depends on its month's length.
_DAYS = [(day, days) for days in (28, 29, 30, 31) for day in range(days)]
_DAY_CODES = {pair: code for code, pair in enumerate(_DAYS)}


def _circle(places: Floats) -> Floats:
    """Return 1 - half the Euclidean distance of each pair of places, which are shares of the circle of radius 1."""
    found: Floats = 1 - np.abs(np.sin(np.pi * (places[:, None] - places[None, :])))
    return found


_SIXTIETHS = _circle(np.arange(60) / 60)
_HOURS = _circle(np.arange(24) / 24)
_WEEKDAYS = _circle(np.arange(7) / 7)
_DAYS_APART = _circle(np.array([day / days for day, days in _DAYS]))


def codes(moment: Moment) -> tuple[int, int, int]:
    """Return the time within the hour, the hour of the week, and the day of the month as codes."""
    return (
        moment.minute * 60 + moment.second,
        moment.hour * 7 + moment.weekday,
        _DAY_CODES[moment.day, moment.days],
    )


class Moments:
    """Similarities of times; the night lasts from its first hour until the last one begins, in UTC."""

    def __init__(self, night: tuple[int, int]) -> None:
        begin, end = night
        is_night = [(hour - begin) % 24 < (end - begin) % 24 for hour in range(24)]
        self._night = np.equal.outer(is_night, is_night).astype(np.float64)

    def tables(self, moment: Moment, weights: Weights) -> tuple[Floats, Floats, Floats]:
        """Return the weighted similarity to each code of each kind that `codes` returns.

        Three tables of sums replace six: a look-up for each of a million records costs about 1 ms.
        """
        within = weights.minute * _SIXTIETHS[moment.minute][:, None] + weights.second * _SIXTIETHS[moment.second]
        hours = weights.hour * _HOURS[moment.hour] + weights.night * self._night[moment.hour]
        week = hours[:, None] + weights.weekday * _WEEKDAYS[moment.weekday]
        day = weights.day * _DAYS_APART[_DAY_CODES[moment.day, moment.days]]
        return within.ravel(), week.ravel(), day

    def similarities(self, moment: Moment, within: Ints, week: Ints, day: Ints) -> tuple[Floats, ...]:
        """Return the similarities of second, minute, hour, day, weekday and night to times given by their codes."""
        (minute, second), (hour, weekday) = np.divmod(within, 60), np.divmod(week, 7)
        return (
            _SIXTIETHS[moment.second, second],
            _SIXTIETHS[moment.minute, minute],
            _HOURS[moment.hour, hour],
            _DAYS_APART[_DAY_CODES[moment.day, moment.days], day],
            _WEEKDAYS[moment.weekday, weekday],
            self._night[moment.hour, hour],
        )
