"""The final check: is what the search found better than the default, and by how much?

A search finds the lucky as well as the good. So when it is over, its best configuration and the default are measured
anew, in turns, so that whatever else goes on in the system meets both alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.problem import Objective
from service.policies.noise import gain_interval

Side = Literal["default", "best"]

_OPTIONS = (
    Option("width", "float", 0.05, "The check ends when the interval of the gain is as narrow.", min=0.001, max=10.0),
    Option("max_trials", "int", 20, "Trials at most, of the default and the best together.", min=8, max=10_000),
    Option("level", "float", 0.95, "How sure the interval is to hold the gain.", min=0.5, max=0.999),
)
# An objective in one of these units, or without a unit and named after one, is a time: less of it is faster.
_TIMES = ("s", "ms", "us", "ns", "sec", "second", "seconds", "minutes", "hours", "time", "latency", "duration")


@dataclass(frozen=True)
class Verdict:
    """What the check says. `gain` is a share of the default's value; `low` to `high` holds it; over `n` trials.

    Zeros where too few trials worked to tell.
    """

    text: str
    gain: float
    low: float
    high: float
    n: int

    @property
    def proven(self) -> bool:
        """Whether the best is better than the default beyond doubt."""
        return self.low > 0


@dataclass(frozen=True)
class FinalCheck:
    """`width`: of the gain's interval, as a share of the default's value. Values are times the objective's sign."""

    width: float = 0.05
    max_trials: int = 20
    level: float = 0.95

    @classmethod
    def parse(cls, data: object, where: str) -> FinalCheck:
        """The check that the JSON describes. Raises InvalidInput (`<where>.width`, ...)."""
        if not isinstance(data, Mapping):
            raise InvalidInput(where, data, 'an object such as {"width": 0.05, "max_trials": 20}')
        given = complete("the final check", _OPTIONS, data, where)
        check = cls(float(str(given["width"])), int(str(given["max_trials"])), float(str(given["level"])))
        # Of fewer, not even the most different values could be told apart so surely.
        least = next(n for n in count(8, 2) if gain_interval([2.0] * (n // 2), [1.0] * (n // 2), check.level))
        if check.max_trials < least:
            raise InvalidInput(
                f"{where}.max_trials", check.max_trials, f"{least} or more for a level of {check.level:g}"
            )
        return check

    def to_json(self) -> dict[str, JsonValue]:
        """Plain JSON, from which `parse` makes an equal check."""
        return {"width": self.width, "max_trials": self.max_trials, "level": self.level}

    def next(self, defaults: Sequence[float], bests: Sequence[float]) -> Side | None:
        """What to measure next, by the values that there are of each; None: the check is over.

        In turns, and the one that was second is first the next time: a system that slowly gets faster or slower, too,
        meets both alike.
        """
        if len(defaults) + len(bests) >= self.max_trials:
            return None
        gain = gain_interval(defaults, bests, self.level)
        if gain is not None and len(defaults) == len(bests) and gain.high - gain.low <= self.width:
            return None
        if len(defaults) == len(bests):
            return "default" if len(defaults) % 2 == 0 else "best"
        return "default" if len(defaults) < len(bests) else "best"

    def verdict(self, defaults: Sequence[float], bests: Sequence[float], objective: Objective) -> Verdict:
        """What the values say of the gain."""
        n = len(defaults) + len(bests)
        gain = gain_interval(defaults, bests, self.level)
        if gain is None:
            why = "too few trials of the final check worked" if n else "nothing was compared with the default"
            return Verdict(f"no measurable gain: {why}", 0.0, 0.0, 0.0, n)
        if gain.low <= 0:
            worse = "the default is better" if gain.high < 0 else "no measurable gain"
            return Verdict(worse + self._interval(gain.low, gain.high), gain.estimate, gain.low, gain.high, n)
        text = f"{_better(objective)} by {_percent(gain.estimate)} %"
        return Verdict(text + self._interval(gain.low, gain.high), gain.estimate, gain.low, gain.high, n)

    def _interval(self, low: float, high: float) -> str:
        return f" ({100 * self.level:g} %: {_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    """Whole percents, with a digit more where that would hide everything."""
    percent = round(100 * share, 1)
    # Adding 0 makes -0 a plain 0.
    return f"{percent:.0f}" if abs(percent) >= 2 else f"{percent + 0.0:.1f}"


def _better(objective: Objective) -> str:
    if objective.goal == "maximize":
        return "higher"
    words = [objective.unit] if objective.unit else re.split(r"[_.:/-]", objective.metric)
    return "faster" if any(word.lower() in _TIMES for word in words) else "lower"
