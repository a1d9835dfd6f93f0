"""The final check: the gain of the best configuration over the default, with its interval.

A search finds lucky configurations as well as good ones. After the search, its best configuration and the default are
therefore measured again, in rounds (`policies/check_rounds.py`). With several objectives, members of the Pareto set
take the place of the best configuration (`policies/members.py`).
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.problem import Objective
from service.policies.check_interval import Comparison, Pair
from service.policies.check_rounds import (
    MOST_VOID,
    Round,
    Turn,
    begun,
    cause,
    fails,
    failures,
    finished,
    further,
    is_hopeless,
    measured,
    next_turns,
)
from service.policies.noise import gain_interval

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
        "Maximum number of trials of the default and of the best configurations together, in whole rounds.",
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
# A look before the last round is possible from this round on, and its intervals may miss the truth less often than the
# level allows, by this factor.
_FIRST_LOOK, _STRICTER = 6, 0.6
# The least rounds of an agent: they give an interval at a level of 95 %.
_ROUNDS_OF_MACHINE = 4
# An objective in one of these units, or without a unit but with such a name, is a time; less time is "faster".
_TIMES = ("s", "ms", "us", "ns", "sec", "second", "seconds", "minutes", "hours", "time", "latency", "duration")

# A unit of a rate ends in "per time". Without a unit, the metric's name decides; a hit rate is no rate in time.
_PER_TIME = re.compile(r"(?:/|\bper )\s*(?:s|sec|second|min|minute|h|hour|ms|us|ns)$")
_RATES = frozenset(
    ("throughput", "bandwidth", "rate", "qps", "rps", "tps", "ops", "iops", "hz", "mbps", "gbps", "flops")
)
_NO_RATES = frozenset(("hit", "miss", "error", "success", "failure", "win", "pass", "cache", "acceptance"))


@dataclass(frozen=True)
class CheckResult:
    """The result of the check over `n` trials: the `gain` as a share of the default's value, from `low` to `high`.

    All three are zero if too few trials worked. `default` and `value` are the medians of the `default_runs` runs of the
    default and of the `runs` runs of the best configuration, in the objective's unit; None without a run. Results that
    earlier versions have stored lack some of them. `known` says whether enough trials worked, and `acceptable` whether
    the best configuration met the outcome constraints in more than half of its runs. `failing` says that the best
    configuration fails more often than the default.

    `rounds` of the check were complete. Other processes disturbed `doubtful` runs of `disturbed` rounds; on average
    they took `share` of the CPUs in those. `certain` says whether the gain would also be above zero on a quiet machine.
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
    doubtful: int = 0
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

    def most_machines(self, sides: int) -> int:
        """Return how many agents may take part: each of them then has the rounds that a comparison needs."""
        return max(1, self.max_trials // sides // _ROUNDS_OF_MACHINE)

    def turns(
        self,
        rounds: Sequence[Round],
        sides: int,
        seed: int,
        count: int,
        *,
        most_open: int | None = None,
        first: int | None = None,
    ) -> list[Turn]:
        """Return up to `count` next runs, in their order; none while the open ones are enough, or if the check is over.

        Args:
            rounds: all rounds of the check, in the order of their numbers.
            sides: the number of sides. The default is the first.
            seed: the study's seed, which decides the order of the sides in each round.
            most_open: how many rounds may be open at once; None: any number.
            first: the number of the next new round; by default the one after the last.
        """
        used = self.used(rounds, sides)
        if not used:
            return []
        new = self._further(rounds, used, sides)
        return next_turns(rounds, used, sides=sides, seed=seed, count=count, new=new, most_open=most_open, first=first)

    def is_over(self, rounds: Sequence[Round], sides: int) -> bool:
        """Return whether the check ends before its trials are used up."""
        used = _used(rounds, sides)
        return 0 not in used or len(used) == 1 or is_hopeless(rounds) or self._is_narrow(rounds, sides)

    def used(self, rounds: Sequence[Round], sides: int) -> list[int]:
        """Return the sides that are measured further; none if the check is over."""
        return [] if self.is_over(rounds, sides) else _used(rounds, sides)

    def comparisons(self, rounds: Sequence[Round], sides: int) -> list[list[Comparison] | None]:
        """Return the gains of each side after the default in all objectives, with intervals that hold at once.

        The gains of a side are None if it has too few runs.
        """
        return self._compared(rounds, sides, is_look=self._is_narrow(rounds, sides))

    def _compared(self, rounds: Sequence[Round], sides: int, *, is_look: bool) -> list[list[Comparison] | None]:
        """Return what `comparisons` does. A look before the last one has a higher level than it states.

        Otherwise the intervals of checks that end early would hold too rarely, because a check ends where its interval
        is narrow by chance.
        """
        objectives = _objectives(rounds)
        level = self._level(rounds, sides, is_look=is_look)
        found = []
        for pair in (Pair.of(rounds, side, level) for side in range(1, sides)):
            each = [pair.compare(place, level) for place in range(objectives)]
            kept = [one for one in each if one is not None]
            found.append(kept if kept and len(kept) == objectives else None)
        return found

    def pair(self, rounds: Sequence[Round], side: int, sides: int) -> Pair:
        """Return the runs from which the gain of a side in `comparisons` follows."""
        return Pair.of(rounds, side, self._level(rounds, sides, is_look=self._is_narrow(rounds, sides)))

    def _level(self, rounds: Sequence[Round], sides: int, *, is_look: bool) -> float:
        level = self.level_of_each(sides - 1, max(_objectives(rounds), 1))
        return 1 - _STRICTER * (1 - level) if is_look else level

    def _further(self, rounds: Sequence[Round], used: Sequence[int], sides: int) -> int:
        """Return how many new rounds may begin.

        They are those that fit into the trials. Void rounds count as well, but the machine's fault alone does not make
        a gain unknown: a few of them are replaced if the level needs it.
        """
        fit = further(rounds, used, self.max_trials)
        void = sum(one.is_void for one in rounds)
        if not 0 < void <= MOST_VOID:
            return fit
        needed = self.rounds(sides - 1, max(_objectives(rounds), 1))
        return max(fit, needed - (len(rounds) - void)) if needed * sides <= self.max_trials else fit

    def _is_narrow(self, rounds: Sequence[Round], sides: int) -> bool:
        """Return whether the intervals are narrow enough to end the check before its last round."""
        used = _used(rounds, sides)
        complete = sum(one.has(*used) for one in rounds)
        if complete < _FIRST_LOOK or not self._further(rounds, used, sides):
            return False
        found = self._compared(rounds, sides, is_look=True)
        compared = [found[side - 1] for side in used if side]
        return bool(compared) and all(
            each is not None and all(one.gain.high - one.gain.low <= self.width for one in each) for each in compared
        )

    def result(self, rounds: Sequence[Round], objective: Objective) -> CheckResult:
        """Return the result of the check of one configuration."""
        sign = 1.0 if objective.goal == "minimize" else -1.0
        pair = self.pair(rounds, 1, 2)
        [comparisons] = self.comparisons(rounds, 2)
        compared = None if comparisons is None else comparisons[0]
        # Without a gain, the values of incomplete rounds are all that is known.
        sides = (pair.before, pair.after) if compared else (measured(rounds, 0), measured(rounds, 1))
        default, value = (sign * statistics.median(run.values[0] for run in runs) if runs else None for runs in sides)
        # A disturbance is no excuse for a broken constraint.
        every = measured(rounds, 1)
        found = CheckResult(
            "",
            *(0.0, 0.0, 0.0) if compared is None else (compared.gain.estimate, compared.gain.low, compared.gain.high),
            begun(rounds),
            default,
            known=compared is not None,
            acceptable=mostly_acceptable(sum(run.broken for run in every), len(every)),
            value=value,
            runs=len(sides[1]),
            default_runs=len(sides[0]),
            rounds=pair.rounds,
            disturbed=pair.disturbed_rounds,
            doubtful=len(pair.disturbed),
            share=pair.share,
            certain=compared is None or compared.certain,
            failing=failures(rounds, 1) > failures(rounds, 0) + 1,
        )
        return replace(found, text=self._text(found, rounds, objective))

    def _text(self, found: CheckResult, rounds: Sequence[Round], objective: Objective) -> str:
        if found.failing:
            failed = f"{failures(rounds, 1)} of {finished(rounds, 1)} runs"
            return f"no gain to use: in the final check, the best configuration failed in {failed}{cause(rounds, 1)}"
        if not found.known:
            return f"no measurable gain: {self._why_unknown(found, rounds)}"
        if not found.acceptable:
            every = measured(rounds, 1)
            broken = f"{sum(run.broken for run in every)} of {len(every)} runs"
            return f"no gain to use: {broken} of the final check broke an outcome constraint"
        if found.low <= 0:
            text = "the default is better" if found.high < 0 else "no measurable gain"
        else:
            text = f"{word_for(objective)} by {percent_text(found.gain)} %"
        text += interval_text(found.low, found.high, self.level)
        if not found.disturbed:
            return text
        which = f"{found.disturbed} of {found.rounds} rounds"
        if not found.better or found.certain:
            return f"{text}; {which} were disturbed"
        taken = f"{100 * (found.share or 0.0):.0f} %"
        return f"{text} while other processes took {taken} of the CPUs in {which}; not proven for a quiet machine"

    def _why_unknown(self, found: CheckResult, rounds: Sequence[Round]) -> str:
        if not rounds:
            return "nothing was compared with the default"
        if fails(rounds, 0):
            failed = f"{failures(rounds, 0)} of {finished(rounds, 0)} runs"
            return f"the default failed in {failed} of the final check{cause(rounds, 0)}"
        needed, every = self.rounds(1, 1), max(len(rounds), self.max_trials // 2)
        said = f"{found.rounds} of the {every} rounds of the final check were complete: {needed} are needed"
        return f"{said}; the machine failed the last {MOST_VOID}{cause(rounds)}" if is_hopeless(rounds) else said


def _used(rounds: Sequence[Round], sides: int) -> list[int]:
    """Return the sides that do not fail too often."""
    return [side for side in range(sides) if not fails(rounds, side)]


def _objectives(rounds: Sequence[Round]) -> int:
    """Return the number of objectives; 0 before the first value."""
    return max((len(run.values) for one in rounds for run in one.runs.values()), default=0)


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


def slows(objective: Objective) -> bool:
    """Return whether waiting for a CPU makes the objective worse in proportion: a time, or a rate to maximise."""
    if word_for(objective) == "faster":
        return True
    if objective.goal == "minimize":
        return False
    unit = objective.unit.lower()
    if unit:
        return unit in _RATES or bool(_PER_TIME.search(unit))
    words = set(re.split(r"[_.:/-]", objective.metric.lower()))
    return bool(words & _RATES) and not words & _NO_RATES
