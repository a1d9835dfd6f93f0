"""Live trials as agents report them: pairs of blocks and the journal, and what follows for the study.

`core/live.py` has the form in which the search reads them.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from service.core.errors import InvalidInput
from service.core.live import LiveRecord, Ratio
from service.core.space import Configuration, Space

# The ends of live trials after which the candidate's value is known, and that which breaks a guard.
KEEP, HARM, GUARD = "keep", "harm", "guard"
# The deviation of a mean is at least so large, and that of a pair is so large while nothing is known.
_LEAST_DEVIATION, _USUAL_DEVIATION = 0.005, 0.2
# Fewer degrees of freedom say too little of a deviation, and the logarithm of a ratio is at most so large.
_LEAST_FREEDOM, _LARGEST = 3, 50.0
DECISIONS = (KEEP, HARM, "futile", "most", GUARD, "budget", "window", "stopped", "carry_over")


@dataclass(frozen=True, slots=True)
class Pair:
    """One block with the candidate and one with the incumbent.

    `candidate` and `incumbent` are the means of the logarithm of the objective, and the two mappings the means of other
    metrics. `load` is the mean of the budget's metric `of` in a second. `began` is in seconds since 1970 by the agent's
    clock.
    """

    candidate_first: bool
    candidate: float
    incumbent: float
    load: float = 0.0
    candidate_metrics: Mapping[str, float] = field(default_factory=dict)
    incumbent_metrics: Mapping[str, float] = field(default_factory=dict)
    began: float = 0.0

    @property
    def effect(self) -> float:
        """The logarithm of the ratio candidate/incumbent of the objective."""
        return self.candidate - self.incumbent


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the agent's journal, whose hash covers all entries before it."""

    time: float
    kind: str
    text: str
    hash: str

    def hash_after(self, before: str) -> str:
        """Return the hash that the entry must have after one with the hash `before`."""
        return hashlib.sha256(f"{before}\n{self.time:.6f}\n{self.kind}\n{self.text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class LiveResult:
    """The result of a live trial, as its agent sent it.

    `effect` is the logarithm of the ratio candidate/incumbent of the objective, with an interval that is valid at every
    look; None without a pair, or without an end. `cost` is what was lost, by the name of the budget. `rolled_back`: the
    agent has taken the settings of the study back on all instances.
    """

    decision: str
    pairs: tuple[Pair, ...] = ()
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    deviation: float = 0.0
    cost: Mapping[str, float] = field(default_factory=dict)
    incumbent: Configuration = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    kept: bool = False
    rolled_back: bool = False
    audit: tuple[Entry, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON from which `from_json` makes an equal result."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LiveResult:
        """Return the result that `to_json` has written."""
        pairs = tuple(Pair(**one) for one in data["pairs"])
        return cls(
            **{
                **data,
                "pairs": pairs,
                "audit": tuple(Entry(**one) for one in data["audit"]),
                "instances": tuple(data["instances"]),
            }
        )

    def broken_link(self) -> int | None:
        """Return the place of the first journal entry whose hash does not follow from those before; None: all do."""
        before = ""
        for place, entry in enumerate(self.audit):
            if entry.hash != entry.hash_after(before):
                return place
            before = entry.hash
        return None

    def ratios(self, objective: str, usual: float = 0.0) -> dict[str, Ratio]:
        """Return the ratio candidate/incumbent of the objective and of each metric that is above 0 in all its blocks.

        `usual`: the deviation of a pair in earlier trials, for a result with a single pair.
        """
        names = {name for one in self.pairs for name in one.candidate_metrics} - {objective}
        found: dict[str, Ratio] = {}
        for name in sorted(names):
            values = [(one.candidate_metrics.get(name), one.incumbent_metrics.get(name)) for one in self.pairs]
            known = [(a, b) for a, b in values if a is not None and b is not None]
            if known and all(a > 0 and b > 0 for a, b in known):
                found[name] = _ratio([math.log(a / b) for a, b in known], usual)
        if self.effect is not None and self.pairs:
            own = _ratio([one.effect for one in self.pairs], usual)
            # The effect is robust against single pairs, in contrast to their mean.
            found[objective] = Ratio(self.effect, own.deviation)
        return found

    def before(self, metric: str) -> float | None:
        """Return the mean of a metric under the incumbent; None if it is unknown."""
        values = [one.incumbent_metrics[metric] for one in self.pairs if metric in one.incumbent_metrics]
        return statistics.fmean(values) if values else None

    def squares(self) -> tuple[float, int]:
        """Return the sum of squared differences between the pairs' effects and their mean, with its freedom."""
        effects = [one.effect for one in self.pairs]
        if len(effects) < 2:
            return 0.0, 0
        mean = statistics.fmean(effects)
        return sum((one - mean) ** 2 for one in effects), len(effects) - 1


@dataclass(frozen=True, slots=True)
class LiveOutcome:
    """The part of a live trial that algorithms and verdicts use.

    `incumbent`: the settings with which the candidate was compared. `ratios`: of each metric, mean and deviation of the
    logarithm of the ratio candidate/incumbent. `limits`: of each guarded metric, the logarithm of the ratio that its
    guard allowed, and `next_limits` the same for the settings in force since. `guard`: the metric of the guard that the
    candidate has broken. `pairs`: how many there were. `planned`: what was expected of the trial before it began.
    """

    decision: str = ""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    kept: bool = False
    incumbent: Configuration = field(default_factory=dict)
    ratios: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    next_limits: Mapping[str, float] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    guard: str = ""
    planned: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON from which `from_json` makes an equal outcome."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LiveOutcome:
        """Return the outcome that `to_json` has written."""
        ratios = {name: (mean, deviation) for name, (mean, deviation) in data["ratios"].items()}
        return cls(**{**data, "ratios": ratios, "instances": tuple(data["instances"])})

    @property
    def is_settled(self) -> bool:
        """True if the candidate has been in force, so that something is known of it."""
        return bool(self.pairs or self.guard)

    def record(self, space: Space, candidate: Configuration) -> LiveRecord:
        """Return the outcome as the search reads it."""
        before = as_configuration(space, self.incumbent)
        return LiveRecord(
            candidate=as_configuration(space, {**self.incumbent, **candidate}),
            incumbent=before,
            ratios={name: Ratio(mean, deviation) for name, (mean, deviation) in self.ratios.items()},
            limits=self.limits,
            broken=self.guard,
            kept=self.kept,
        )


def _ratio(values: Sequence[float], usual: float) -> Ratio:
    """Return mean and deviation of the mean of logarithms of ratios, of which there is at least one."""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    # Few values may be alike by chance.
    spread = max(spread, usual or _USUAL_DEVIATION) if len(values) < 4 else spread
    return Ratio(statistics.fmean(values), max(_LEAST_DEVIATION, spread / math.sqrt(len(values))))


def limits_of(guards: Sequence[Mapping[str, Any]], usual: Mapping[str, float]) -> dict[str, float]:
    """Return the logarithm of the ratio that guards allow of each metric; negative for one that must not fall.

    `usual`: the means of metrics under the settings in force. Of several guards of a metric, the strictest counts. A
    limit that is not known yet, or that the settings in force already break, is left out.
    """
    found: dict[str, float] = {}
    for guard in guards:
        metric, known = guard["metric"], usual.get(guard["metric"], 0.0)
        if "above_control" in guard:
            limit = math.log(guard["above_control"]) if guard["above_control"] > 0 else 0.0
        elif "below_control" in guard:
            limit = math.log(guard["below_control"]) if guard["below_control"] > 0 else 0.0
        elif "above" in guard and known > 0 and guard["above"] > known:
            limit = math.log(guard["above"] / known)
        elif "below" in guard and known > guard["below"] > 0:
            limit = math.log(guard["below"] / known)
        else:
            continue
        before = found.get(metric)
        if limit and (before is None or abs(limit) < abs(before)):
            found[metric] = limit
    return found


def deviation_of(squares: float, freedom: int) -> float:
    """Return the standard deviation of the effect in one pair; 0 while too few pairs are known."""
    return math.sqrt(squares / freedom) if freedom >= _LEAST_FREEDOM and squares > 0 else 0.0


def scaled(baseline: Mapping[str, float], chain: Mapping[str, float], ratios: Mapping[str, float]) -> dict[str, float]:
    """Return values in the user's unit: those at the study's start, times the ratios of kept steps and of this one."""
    return {
        name: baseline[name] * math.exp(max(-_LARGEST, min(_LARGEST, chain.get(name, 0.0) + ratio)))
        for name, ratio in ratios.items()
        if name in baseline
    }


def summed(chain: Mapping[str, float], ratios: Mapping[str, float]) -> dict[str, float]:
    """Return the ratios to the study's start after a further kept step."""
    return {name: chain.get(name, 0.0) + ratios.get(name, 0.0) for name in {*chain, *ratios}}


def same_settings(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Return whether two sets of settings agree in all parameters that both have."""
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def as_configuration(space: Space, settings: Mapping[str, Any]) -> Configuration:
    """Return settings that an agent has read as a configuration.

    A system may have a value that the space does not contain. The nearest end of a range, or the default, stands for it
    then: a search begins near it, and never sets it again.
    """
    found: Configuration = space.default()
    for parameter in space.parameters:
        if parameter.name not in settings:
            continue
        value = settings[parameter.name]
        try:
            found[parameter.name] = parameter.cast(value)
        except InvalidInput:
            if isinstance(value, int | float) and not isinstance(value, bool) and parameter.grid() is None:
                low, high = (getattr(parameter, name, None) for name in ("min", "max"))
                if low is not None and high is not None:
                    found[parameter.name] = min(max(type(low)(value), low), high)
    return space.prune(found)
