"""The final check: the gain of the best configuration over the default, with its interval.

A search finds lucky configurations as well as good ones. After the search, its best configuration and the default are
therefore measured again, in turns, so that disturbances of the system affect both equally. With several objectives,
members of the Pareto set take the place of the best configuration (`policies/members.py`).
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count
from typing import Any, TypeAlias

from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.problem import Objective
from service.policies.noise import Gain, gain_interval

# A row for each trial, with the value of each objective, times the objective's sign.
Values: TypeAlias = Sequence[Sequence[float]]

# The most members of a Pareto set that a check compares with the default.
MOST_MEMBERS = 8

# 32 trials are enough for the screening of 14 changes and for two comparisons (docs/explanation/final-check.md). Fewer
# than 16 leave too few for both parts.
USUAL_EFFECTS, LEAST_EFFECTS = 32, 16

_OPTIONS = (
    Option("width", "float", 0.05, "Width of the gain's interval at which the check ends.", min=0.001, max=10.0),
    Option(
        "max_trials",
        "int",
        20,
        "Maximum number of trials of the default and of the best configurations together.",
        min=8,
        max=10_000,
    ),
    Option("level", "float", 0.95, "Confidence level of the gain's interval.", min=0.5, max=0.999),
    Option(
        "effects",
        "int",
        USUAL_EFFECTS,
        f"Maximum number of trials that find which changes carry a proven gain: 0, or {LEAST_EFFECTS} or more.",
        min=0,
        max=1000,
    ),
)
# An objective in one of these units, or without a unit but with such a name, is a time; less time is "faster".
_TIMES = ("s", "ms", "us", "ns", "sec", "second", "seconds", "minutes", "hours", "time", "latency", "duration")


@dataclass(frozen=True)
class CheckResult:
    """The result of the check over `n` trials: the `gain` as a share of the default's value, from `low` to `high`.

    All three are zero if too few trials worked. `default` and `value` are the medians of the `default_runs` runs of the
    default and of the `runs` runs of the best configuration, in the objective's unit; None without a run. Results that
    earlier versions have stored lack some of them. `known` says whether enough trials worked, and `acceptable` whether
    the best configuration met the outcome constraints in more than half of its runs. `failing` says that the best
    configuration fails more often than the default.

    `rounds` of the check were complete, and other processes disturbed `disturbed` of them; on average they took `share`
    of the CPUs in those. `certain` says whether the gain would also be above zero on a quiet machine.
    """

    text: str
    gain: float
    low: float
    high: float
    n: int
    default: float | None = None
    known: bool = True
    acceptable: bool = True
    value: float | None = None
    runs: int = 0
    default_runs: int = 0
    rounds: int = 0
    disturbed: int = 0
    share: float | None = None
    certain: bool = True
    failing: bool = False

    @property
    def better(self) -> bool:
        """Return whether the whole interval of the gain is above zero, and the gain may be used."""
        return self.low > 0 and self.acceptable and not self.failing

    @property
    def proven(self) -> bool:
        """Return whether the gain is above zero also on a quiet machine."""
        return self.better and self.certain

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `from_json` makes an equal result."""
        return {"trials": self.n} | {name: getattr(self, name) for name in _STORED}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CheckResult:
        """Return the result that `to_json` has made, now or in an earlier version."""
        return cls(n=data["trials"], **{name: data[name] for name in _STORED if name in data})


_STORED = tuple(one.name for one in fields(CheckResult) if one.name != "n")


def mostly_acceptable(broken: int, runs: int) -> bool:
    """Return whether more than half of the runs met the outcome constraints, which `broken` of them broke."""
    return 2 * broken < max(runs, 1)


@dataclass(frozen=True, slots=True)
class Side:
    """The check's trials of one configuration: the default, the best one or a member of the Pareto set.

    `doubtful` are the values with a doubtful timing, and `values` the others. `failed` is the number of finished trials
    without a value, and `waiting` the number of those without a result. `broken` is the number of those with a value
    that broke an outcome constraint.
    """

    values: Values
    doubtful: Values = ()
    failed: int = 0
    waiting: int = 0
    broken: int = 0

    @property
    def runs(self) -> int:
        """Return the number of trials with a value."""
        return len(self.values) + len(self.doubtful)

    @property
    def acceptable(self) -> bool:
        """Return whether more than half of the runs met the outcome constraints."""
        return mostly_acceptable(self.broken, self.runs)

    @property
    def begun(self) -> int:
        """Return the number of all trials."""
        return self.runs + self.failed + self.waiting

    @property
    def fails(self) -> bool:
        """Return whether so many trials have failed that the configuration is not measured any more."""
        return self.failed > self.runs + 1


@dataclass(frozen=True)
class FinalCheck:
    """The settings and rules of a check. `width`: the width of the gain's interval as a share of the default's value.

    `effects`: the maximum number of further trials that find which changes carry the gain (`policies/screening.py`).
    Only trials with a number above `after` belong to the check: a study may have had an earlier one. All values are
    times the objective's sign.
    """

    width: float = 0.05
    max_trials: int = 20
    level: float = 0.95
    effects: int = USUAL_EFFECTS
    after: int = 0

    @classmethod
    def parse(cls, data: object, where: str, objectives: int = 1) -> FinalCheck:
        """Return the check that the JSON describes. Raises InvalidInput (`<where>.width`, ...).

        With several objectives, the check does not ask which changes matter: `effects` is 0.
        """
        if not isinstance(data, Mapping):
            raise InvalidInput(where, data, 'an object such as {"width": 0.05, "max_trials": 20}')
        if objectives > 1:
            data = {"effects": 0, **data}
        given = complete("the final check", _OPTIONS, data, where)
        check = cls(
            width=float(str(given["width"])),
            max_trials=int(str(given["max_trials"])),
            level=float(str(given["level"])),
            effects=int(str(given["effects"])),
        )
        if 0 < check.effects < LEAST_EFFECTS:
            raise InvalidInput(f"{where}.effects", check.effects, f"0, or {LEAST_EFFECTS} to 1000")
        if check.effects and objectives > 1:
            raise InvalidInput(f"{where}.effects", check.effects, "0 for a study with several objectives")
        least = max(8, 2 * check.rounds(1, objectives))
        if check.max_trials < least:
            several = f" and {objectives} objectives" if objectives > 1 else ""
            allowed = f"{least} or more for a level of {check.level:g}{several}"
            raise InvalidInput(f"{where}.max_trials", check.max_trials, allowed)
        return check

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `parse` makes an equal check."""
        return {"width": self.width, "max_trials": self.max_trials, "level": self.level, "effects": self.effects}

    def level_of_each(self, members: int, objectives: int) -> float:
        """Return the level of each gain's interval with which all of them hold at once (Bonferroni)."""
        return 1 - (1 - self.level) / (members * objectives)

    def rounds(self, members: int, objectives: int) -> int:
        """Return the least number of runs of each configuration with which the gains' intervals reach the level."""
        level = self.level_of_each(members, objectives)
        # With fewer runs, not even the most different values reach it.
        return next(n for n in count(1) if gain_interval([2.0] * n, [1.0] * n, level))

    def most_members(self, objectives: int) -> int:
        """Return how many members of a Pareto set the trials of the check are enough for."""
        numbers = range(MOST_MEMBERS, 1, -1)
        return next((n for n in numbers if (n + 1) * self.rounds(n, objectives) <= self.max_trials), 1)

    def turns(self, sides: Sequence[Side], count: int) -> list[int]:
        """Return the places of the sides to measure next, at most `count`; none if the check is over.

        The default is the first side. In each round, every side is measured once, and the order alternates between
        rounds, so that a slow drift of the system affects all equally. A doubtful or failed trial is repeated. A
        configuration that keeps failing is left out, unless it is the only one that is compared with the default.
        """
        used = [place for place, side in enumerate(sides) if place == 0 or not side.fails]
        used = used if len(used) > 1 else list(range(len(sides)))
        if self._is_narrow([sides[place] for place in used], len(sides) - 1):
            return []
        values = [len(side.values) + side.waiting for side in sides]
        found: list[int] = []
        while len(found) < min(count, self.max_trials - sum(side.begun for side in sides)):
            backward = min(values[place] for place in used) % 2 == 1
            order = used[::-1] if backward else used
            place = min(order, key=lambda place: (values[place], len(sides[place].doubtful)))
            found.append(place)
            values[place] += 1
        return found

    def gains(self, sides: Sequence[Side]) -> list[list[Gain] | None]:
        """Return the gains of each side after the default in all objectives, with intervals that hold at once.

        Doubtful timings count only if there are too few others. The gains are None if too few trials worked.
        """
        default, *others = sides
        return [
            self._gains(default.values, side.values, len(others))
            or self._gains([*default.values, *default.doubtful], [*side.values, *side.doubtful], len(others))
            for side in others
        ]

    def _gains(self, defaults: Values, values: Values, members: int) -> list[Gain] | None:
        if not defaults or not values:
            return None
        level = self.level_of_each(members, len(defaults[0]))
        pairs = zip(zip(*defaults, strict=True), zip(*values, strict=True), strict=True)
        gains = [gain_interval(before, after, level) for before, after in pairs]
        return [gain for gain in gains if gain is not None] or None

    def _is_narrow(self, sides: Sequence[Side], members: int) -> bool:
        """Return whether all sides have the same number of values, and the interval of each gain is narrow enough."""
        default, *others = sides
        if any(len(side.values) != len(default.values) for side in others):
            return False
        gains = [self._gains(default.values, side.values, members) for side in others]
        return all(found and all(gain.high - gain.low <= self.width for gain in found) for found in gains)

    def result(self, defaults: Sequence[float], bests: Sequence[float], objective: Objective) -> CheckResult:
        """Return the result that follows from the values."""
        n = len(defaults) + len(bests)
        gain = gain_interval(defaults, bests, self.level)
        sign = 1.0 if objective.goal == "minimize" else -1.0
        default = sign * statistics.median(defaults) if defaults else None
        if gain is None:
            why = "too few trials of the final check worked" if n else "nothing was compared with the default"
            return CheckResult(f"no measurable gain: {why}", 0.0, 0.0, 0.0, n, default, known=False)
        if gain.low <= 0:
            text = "the default is better" if gain.high < 0 else "no measurable gain"
        else:
            text = f"{word_for(objective)} by {percent_text(gain.estimate)} %"
        text += interval_text(gain.low, gain.high, self.level)
        return CheckResult(text, gain.estimate, gain.low, gain.high, n, default)


def interval_text(low: float, high: float, level: float) -> str:
    """Return the interval of a gain with its confidence level, in brackets."""
    return f" ({100 * level:g} %: {percent_text(low)} to {percent_text(high)})"


def percent_text(share: float) -> str:
    """Return percents with one decimal, whole ones from 100 % on, and more decimals just below 100 %.

    The console writes gains in the same way (`formatGain` in web/src/lib/format.ts), so that all numbers agree.
    """
    percent = 100 * share
    size = abs(percent)
    if size >= 100:
        return f"{percent:.0f}"
    if size >= 99.95:
        # 100 % would mean that nothing is left.
        digits = min(math.ceil(-math.log10(100 - size)), 4)
        return f"{math.copysign(min(size, 99.9999), percent):.{digits}f}"
    # Adding 0 turns -0 into 0.
    return f"{round(percent, 1) + 0.0:.1f}"


def word_for(objective: Objective) -> str:
    """Return the word for a gain: faster, lower or higher."""
    if objective.goal == "maximize":
        return "higher"
    words = [objective.unit] if objective.unit else re.split(r"[_.:/-]", objective.metric)
    return "faster" if any(word.lower() in _TIMES for word in words) else "lower"
