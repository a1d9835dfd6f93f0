"""The final check: the gain of the best configuration over the default, with its interval.

A search finds lucky configurations as well as good ones. After the search, its best configuration and the default are
therefore measured again, in turns, so that disturbances of the system affect both equally.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.problem import Objective
from service.policies.noise import gain_interval

Side = Literal["default", "best"]

# 32 trials are enough for the screening of 14 changes and for two comparisons (docs/explanation/final-check.md). Fewer
# than 16 leave too few for both parts.
USUAL_EFFECTS, LEAST_EFFECTS = 32, 16

_OPTIONS = (
    Option("width", "float", 0.05, "Width of the gain's interval at which the check ends.", min=0.001, max=10.0),
    Option(
        "max_trials",
        "int",
        20,
        "Maximum number of trials of the default and the best configuration together.",
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

    All three are zero if too few trials worked. `default` is the median of the default's values in the objective's
    unit; None without any, and in results that earlier versions have stored. `known`: enough trials worked.
    """

    text: str
    gain: float
    low: float
    high: float
    n: int
    default: float | None = None
    known: bool = True

    @property
    def proven(self) -> bool:
        """Return whether the whole interval of the gain is above zero."""
        return self.low > 0


@dataclass(frozen=True)
class FinalCheck:
    """The settings and rules of a check. `width`: the width of the gain's interval as a share of the default's value.

    `effects`: the maximum number of further trials that find which changes carry the gain (`policies/effects.py`). Only
    trials with a number above `after` belong to the check: a study may have had an earlier one. All values are times
    the objective's sign.
    """

    width: float = 0.05
    max_trials: int = 20
    level: float = 0.95
    effects: int = USUAL_EFFECTS
    after: int = 0

    @classmethod
    def parse(cls, data: object, where: str) -> FinalCheck:
        """Return the check that the JSON describes. Raises InvalidInput (`<where>.width`, ...)."""
        if not isinstance(data, Mapping):
            raise InvalidInput(where, data, 'an object such as {"width": 0.05, "max_trials": 20}')
        given = complete("the final check", _OPTIONS, data, where)
        check = cls(
            width=float(str(given["width"])),
            max_trials=int(str(given["max_trials"])),
            level=float(str(given["level"])),
            effects=int(str(given["effects"])),
        )
        if 0 < check.effects < LEAST_EFFECTS:
            raise InvalidInput(f"{where}.effects", check.effects, f"0, or {LEAST_EFFECTS} to 1000")
        # With fewer trials, not even the most different values can reach the level.
        least = next(n for n in count(8, 2) if gain_interval([2.0] * (n // 2), [1.0] * (n // 2), check.level))
        if check.max_trials < least:
            raise InvalidInput(
                f"{where}.max_trials", check.max_trials, f"{least} or more for a level of {check.level:g}"
            )
        return check

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `parse` makes an equal check."""
        return {"width": self.width, "max_trials": self.max_trials, "level": self.level, "effects": self.effects}

    def next(self, defaults: Sequence[float], bests: Sequence[float]) -> Side | None:
        """Return the side to measure next, given the values of both; None if the check is over.

        The sides take turns, and the order within each pair alternates, so that a slow drift of the system affects both
        equally.
        """
        if len(defaults) + len(bests) >= self.max_trials:
            return None
        gain = gain_interval(defaults, bests, self.level)
        if gain is not None and len(defaults) == len(bests) and gain.high - gain.low <= self.width:
            return None
        if len(defaults) == len(bests):
            return "default" if len(defaults) % 2 == 0 else "best"
        return "default" if len(defaults) < len(bests) else "best"

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
