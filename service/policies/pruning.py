"""Policies that stop running trials early, by their running time or by intermediate measurements.

Their source is [robert-2021, section 6.3.2]. Only a trial's own running time counts, without its time in a queue. The
value of a stopped trial is a bound.
"""

from __future__ import annotations

import bisect
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from service.core.errors import InvalidInput, JsonValue
from service.core.estimates import mean
from service.core.lifecycle import TrialState
from service.core.options import Option, complete
from service.core.problem import Problem
from service.core.reasons import Reason
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies import noise

# A comparison with fewer other trials is not reliable.
_LEAST_OTHERS = 4


@dataclass(frozen=True, slots=True)
class Step:
    """An intermediate measurement: the first objective's value, and the trial's running time at that moment."""

    step: int
    value: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A running trial. `seconds`: its own running time; `measurements`: in the order of their steps."""

    number: int
    configuration: Configuration
    seconds: float
    measurements: Sequence[Step] = ()


class Pruning(ABC):
    """Decides whether a running trial is stopped. An instance is not thread-safe; each caller has its own.

    The same finished trials and the same running trial give the same decision. `start`: the number of trials of the
    start design, which policies that compare trials do not stop.
    """

    def __init__(self, problem: Problem, *, options: Mapping[str, object], start: int) -> None:
        """`options` are complete and valid, as `validate` makes them."""
        self.problem = problem
        self.options = options
        self.start = start
        self.sign = float(problem.signs()[0])
        self.finished = 0

    def update(self, finished: Sequence[TrialRecord], steps: Mapping[int, Sequence[Step]]) -> None:
        """Learn from finished trials, each passed exactly once; `steps`: their measurements by trial number."""
        for trial in finished:
            self.finished += trial.state != TrialState.FAILED
            self.learn(trial, steps.get(trial.number, ()))

    @abstractmethod
    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        """Learn from one finished trial."""

    @abstractmethod
    def prune(self, running: Running) -> str | None:
        """Return the reason to stop the trial, as a sentence; None if it continues."""

    def number(self, option: str) -> float:
        """Return an option's value."""
        return float(str(self.options[option]))


class Limit(Pruning):
    """Stops a trial at a fixed limit of the running time."""

    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        pass

    def prune(self, running: Running) -> str | None:
        most = self.number("seconds")
        if running.seconds <= most:
            return None
        return Reason(f"It ran for longer than {most:g} s.", "ran_too_long", seconds=most)


class Default(Pruning):
    """Stops a trial that takes longer than the default configuration."""

    def __init__(self, problem: Problem, *, options: Mapping[str, object], start: int) -> None:
        super().__init__(problem, options=options, start=start)
        self._key = problem.space.key(problem.space.default())
        self._seconds: list[float] = []

    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        is_default = self.problem.space.key(trial.configuration) == self._key
        if is_default and trial.state == TrialState.COMPLETED and trial.seconds is not None:
            self._seconds.append(trial.seconds)

    def prune(self, running: Running) -> str | None:
        if not self._seconds or self.problem.space.key(running.configuration) == self._key:
            return None
        most = self.number("factor") * statistics.median(self._seconds)
        if running.seconds <= most:
            return None
        return Reason(f"It ran for longer than the default's {most:.4g} s.", "ran_longer_than_default", seconds=most)


class Estimator(Pruning):
    """Stops a trial that takes longer than an estimate over earlier trials, once the start design has ended.

    A pruned trial counts with at least its running time. Without pruned trials, the estimate would fall with each one.
    """

    def __init__(self, problem: Problem, *, options: Mapping[str, object], start: int) -> None:
        super().__init__(problem, options=options, start=start)
        self._seconds: list[float] = []
        self._at_least: list[float] = []
        self._most: float | None = None

    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        if trial.seconds is not None and trial.state in (TrialState.COMPLETED, TrialState.PRUNED):
            (self._seconds if trial.state == TrialState.COMPLETED else self._at_least).append(trial.seconds)
            self._most = None

    def prune(self, running: Running) -> str | None:
        if self.finished < self.start or not self._seconds:
            return None
        name = str(self.options["estimator"])
        if self._most is None:
            self._most = noise.estimate(name, self._seconds, {"q": self.options["q"]}, self._at_least)
        most = self._most
        if running.seconds <= most:
            return None
        text = f"It ran for longer than the {name} of {most:.4g} s."
        return Reason(text, "ran_longer_than_estimate", estimator=name, seconds=most)


@dataclass(frozen=True, slots=True)
class _Curve:
    """A trial's reports: ascending steps, values times the objective's sign, and the best value up to each step."""

    steps: Sequence[int]
    values: Sequence[float]
    best: Sequence[float]

    @classmethod
    def of(cls, steps: Sequence[Step], sign: float) -> _Curve:
        finite = [one for one in steps if math.isfinite(one.value)]
        values = [sign * one.value for one in finite]
        return cls([one.step for one in finite], values, list(accumulate(values, min)))

    def best_until(self, step: int) -> float | None:
        """Return the best value up to a step; None if the trial did not reach it."""
        if not self.steps or self.steps[-1] < step:
            return None
        place = bisect.bisect_right(self.steps, step)
        return self.best[place - 1] if place else None

    def value_from(self, step: int) -> float | None:
        """Return the value at the first step from this one on."""
        place = bisect.bisect_left(self.steps, step)
        return self.values[place] if place < len(self.steps) else None


class Median(Pruning):
    """Stops a trial whose best value is worse than the median of others at the step [golovin-2017, section 3.2.2]."""

    def __init__(self, problem: Problem, *, options: Mapping[str, object], start: int) -> None:
        super().__init__(problem, options=options, start=start)
        self._curves: list[_Curve] = []

    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        if steps and trial.state in (TrialState.COMPLETED, TrialState.PRUNED):
            self._curves.append(_Curve.of(steps, self.sign))

    def prune(self, running: Running) -> str | None:
        curve = _Curve.of(running.measurements, self.sign)
        if not curve.steps or self.finished < self.start or curve.steps[-1] < self.number("min_step"):
            return None
        step = curve.steps[-1]
        others = [best for other in self._curves if (best := other.best_until(step)) is not None]
        if len(others) < _LEAST_OTHERS or curve.best[-1] <= statistics.median(others):
            return None
        text = f"At step {step} it was worse than the median of {len(others)} other trials."
        return Reason(text, "worse_than_median", step=step, trials=len(others))


class Asha(Pruning):
    """Asynchronous successive halving [li-2020]: at each rung only the best share continues.

    Rungs are at the steps min_step * reduction**k. A trial is compared with the finished trials at the highest rung
    that it has reached.
    """

    def __init__(self, problem: Problem, *, options: Mapping[str, object], start: int) -> None:
        super().__init__(problem, options=options, start=start)
        # The sorted values of the trials that reached a rung.
        self._rungs: dict[int, list[float]] = {}

    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        if trial.state not in (TrialState.COMPLETED, TrialState.PRUNED):
            return
        curve = _Curve.of(steps, self.sign)
        for rung in self._reached(curve):
            value = curve.value_from(rung)
            assert value is not None
            bisect.insort(self._rungs.setdefault(rung, []), value)

    def prune(self, running: Running) -> str | None:
        curve = _Curve.of(running.measurements, self.sign)
        rungs = self._reached(curve)
        if not rungs:
            return None
        reduction = int(self.number("reduction"))
        others, own = self._rungs.get(rungs[-1], []), curve.value_from(rungs[-1])
        assert own is not None
        count = len(others) + 1
        if count < reduction or bisect.bisect_left(others, own) < count // reduction:
            return None
        text = f"At step {rungs[-1]} it was not among the best 1 in {reduction}."
        return Reason(text, "not_among_best", step=rungs[-1], reduction=reduction)

    def _reached(self, curve: _Curve) -> list[int]:
        """Return the rungs that a trial has reached, ascending."""
        found, rung = [], int(self.number("min_step"))
        while curve.steps and rung <= curve.steps[-1]:
            found.append(rung)
            rung *= int(self.number("reduction"))
        return found


class Wilcoxon(Pruning):
    """Stops a trial that is significantly worse than the best trial by the signed-rank test [wilcoxon-1945].

    The policy suits steps that are repetitions or parts of a workload, each comparable with the same step of another
    trial. The best trial is the completed one with the best average.
    """

    def __init__(self, problem: Problem, *, options: Mapping[str, object], start: int) -> None:
        super().__init__(problem, options=options, start=start)
        self._best: dict[int, float] = {}

    def learn(self, trial: TrialRecord, steps: Sequence[Step]) -> None:
        curve = _Curve.of(steps, self.sign)
        if trial.state != TrialState.COMPLETED or not curve.steps:
            return
        if not self._best or mean(curve.values) < mean(list(self._best.values())):
            self._best = dict(zip(curve.steps, curve.values, strict=True))

    def prune(self, running: Running) -> str | None:
        curve = _Curve.of(running.measurements, self.sign)
        pairs = zip(curve.steps, curve.values, strict=True)
        # Halves prevent an overflow in the difference of the largest numbers.
        differences = [value / 2 - self._best[step] / 2 for step, value in pairs if step in self._best]
        if not differences or mean(differences) <= 0:
            return None
        p = signed_rank(differences)
        if p >= self.number("p"):
            return None
        text = f"It is worse than the best trial over {len(differences)} steps (p = {p:.2g})."
        return Reason(text, "worse_than_best", steps=len(differences), p=p)


def signed_rank(differences: Sequence[float]) -> float:
    """Return the probability that differences without a trend are as positive as these, by the signed-rank test.

    It is exact for up to 30 nonzero differences and a normal approximation for more. Ties share their mean rank.
    """
    kept = sorted((one for one in differences if one != 0), key=abs)
    count = len(kept)
    if count == 0:
        return 1.0
    ranks = [0.0] * count
    begin = 0
    while begin < count:
        end = begin
        while end + 1 < count and abs(kept[end + 1]) == abs(kept[begin]):
            end += 1
        ranks[begin : end + 1] = [(begin + end) / 2 + 1] * (end + 1 - begin)
        begin = end + 1
    total = sum(rank for rank, one in zip(ranks, kept, strict=True) if one > 0)
    if count > 30:
        deviation = math.sqrt(sum(rank**2 for rank in ranks) / 4)
        return statistics.NormalDist().cdf((sum(ranks) / 2 - total + 0.5) / deviation)
    # `ways` counts the sign patterns for each sum. Ranks are doubled to make them integers.
    ways = {0: 1}
    for rank in ranks:
        more = dict(ways)
        for at, number in ways.items():
            more[at + int(2 * rank)] = more.get(at + int(2 * rank), 0) + number
        ways = more
    return sum(number for at, number in ways.items() if at >= 2 * total) / float(2**count)


@dataclass(frozen=True)
class Entry:
    """A policy by name. `needs_measurements`: it uses intermediate measurements."""

    name: str
    doc: str
    implementation: type[Pruning]
    options: tuple[Option, ...]
    needs_measurements: bool


_MIN_STEP = Option("min_step", "int", 1, "No trial is stopped before this step.", min=0, max=10**12)
_ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "default",
            "Stops a trial that takes longer than the default configuration. [robert-2021, section 6.3.2]",
            Default,
            (
                Option(
                    "factor", "float", 1.0, "Limit as a multiple of the default's running time.", min=0.01, max=1000.0
                ),
            ),
            False,
        ),
        Entry(
            "estimator",
            "Stops a trial that takes longer than an estimate over earlier trials. [robert-2021, section 6.3.2]",
            Estimator,
            (
                Option(
                    "estimator",
                    "text",
                    "median",
                    "Estimator of their running times.",
                    choices=("median", "mean", "quantile"),
                ),
                Option("q", "float", 0.75, "Share of the estimator `quantile`.", min=0.0, max=1.0),
            ),
            False,
        ),
        Entry(
            "limit",
            "Stops a trial that takes longer than a fixed time.",
            Limit,
            (Option("seconds", "float", None, "Maximum running time in seconds.", min=1e-3, max=1e9),),
            False,
        ),
        Entry(
            "median",
            "Stops a trial that is worse than the median of others at the same step. [golovin-2017]",
            Median,
            (_MIN_STEP,),
            True,
        ),
        Entry(
            "asha",
            "Asynchronous successive halving: at each rung the best share continues. [li-2020]",
            Asha,
            (
                Option(
                    "reduction",
                    "int",
                    3,
                    "One trial in this many continues; also the factor between rungs.",
                    min=2,
                    max=64,
                ),
                Option("min_step", "int", 1, "Step of the first rung.", min=1, max=10**12),
            ),
            True,
        ),
        Entry(
            "wilcoxon",
            "Stops a trial that is significantly worse than the best one, step by step. [wilcoxon-1945]",
            Wilcoxon,
            (Option("p", "float", 0.05, "Probability of a wrong stop at each test.", min=1e-6, max=0.5),),
            True,
        ),
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all policies."""
    return tuple(_ENTRIES)


def describe(name: str, where: str = "pruning") -> Entry:
    """Return the entry of a policy. Raises InvalidInput (`<where>.name`)."""
    if name not in _ENTRIES:
        raise InvalidInput(f"{where}.name", name, "one of " + ", ".join(_ENTRIES))
    return _ENTRIES[name]


def validate(
    name: str, options: Mapping[str, object], problem: Problem, where: str = "pruning"
) -> dict[str, JsonValue]:
    """Return all options of a policy.

    Raises InvalidInput: `<where>.name` for a policy that is unknown or that the study cannot have, and
    `<where>.options.<option>`.
    """
    entry = describe(name, where)
    if entry.needs_measurements and len(problem.objectives) > 1:
        able = ", ".join(one.name for one in _ENTRIES.values() if not one.needs_measurements)
        allowed = f"one of the policies for several objectives: {able}"
        raise InvalidInput(f"{where}.name", name, allowed, problem="handles a single objective only")
    known = complete(name, entry.options, options, f"{where}.options")
    for option in entry.options:
        if known[option.name] is None:
            raise InvalidInput(f"{where}.options.{option.name}", None, option.allowed())
    return known


def create(name: str, problem: Problem, *, options: Mapping[str, object], start: int) -> Pruning:
    """Return a new policy; `options` are those of `validate`."""
    return describe(name).implementation(problem, options=options, start=start)
