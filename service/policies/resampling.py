"""Whether a configuration is measured again (thesis chapter 5), before the algorithm is asked for a new one."""

from __future__ import annotations

import bisect
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from service.core.encoding import Encoding
from service.core.errors import InvalidInput, JsonValue
from service.core.lifecycle import TrialState
from service.core.options import Option, complete
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.noise import FloatArray, believe, surroundings

Predict = Callable[[Sequence[Configuration]], Prediction | None]

_NORMAL_95 = 1.96
# Algorithms, too, suggest what has FAILED a second time, but no third time.
_MOST_FAILURES = 2


@dataclass(slots=True)
class Candidate:
    """A configuration, with the values of its completed trials in their order, times the objective's sign.

    `order`: how many configurations were measured before it. `broken`: how many of its trials broke the outcome
    constraints. `closed`: it cannot work, was stopped for being bad, or fails again and again: it is left alone.
    """

    configuration: Configuration
    order: int
    values: list[float] = field(default_factory=list)
    broken: int = 0
    failures: int = 0
    closed: bool = False


class Resampling(ABC):
    """Decides whether a configuration is measured again. Not thread-safe; it is the caller's own.

    The same seed, options, history and pending trials give the same answer. The `start` first configurations are left
    alone (algorithm 5): as many different ones as possible are to be tried, and the algorithm may come back to them.
    """

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        """`options` are complete and valid, as `validate` makes them; `budget`: trials of the search, if limited."""
        self.problem = problem
        self.seed = seed
        self.options = options
        self.budget = budget
        self.start = start
        self.done = 0
        self.measured: dict[str, Candidate] = {}
        self._sign = float(problem.signs()[0])

    def update(self, finished: Sequence[TrialRecord]) -> None:
        """Learn from trials that finished, each passed exactly once. The final check's are no part of the search."""
        metric = self.problem.metrics[0]
        for trial in finished:
            if trial.origin == "check":
                continue
            key = self.problem.space.key(trial.configuration)
            if trial.state == TrialState.FAILED:
                if key in self.measured:
                    self.measured[key].failures += 1
                    self.measured[key].closed |= self.measured[key].failures >= _MOST_FAILURES
                    self.learn(key, self.measured[key], trial)
                continue
            self.done += 1
            one = self.measured.setdefault(key, Candidate(trial.configuration, len(self.measured)))
            value = trial.metrics.get(metric, math.nan)
            if trial.state != TrialState.COMPLETED:
                one.closed = True
            elif math.isfinite(value):
                one.values.append(self._sign * value)
                one.broken += not self.problem.acceptable(trial.metrics)
            self.learn(key, one, trial)

    def learn(self, key: str, one: Candidate, trial: TrialRecord) -> None:  # noqa: B027 - a policy may have nothing to note
        """Note what a trial of the configuration `one`, which has it already, means for the policy."""

    def again(self, *, pending: Sequence[TrialRecord], predict: Predict) -> Configuration | None:
        """The configuration to measure again; None: let the algorithm suggest one.

        Args:
            pending: trials that wait for a result, asked for just now ones included.
            predict: what the algorithm expects of configurations.
        """
        waiting: dict[str, int] = {}
        for trial in pending:
            key = self.problem.space.key(trial.configuration)
            waiting[key] = waiting.get(key, 0) + 1
        return self.choose(waiting, predict)

    @abstractmethod
    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        """As `again`; `waiting`: how many trials of a configuration are pending, by its key."""

    def number(self, option: str) -> float:
        """An option's value."""
        return float(str(self.options[option]))


class Never(Resampling):
    """No configuration is measured again but by the algorithm's own choice."""

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        return None


class _InTurn(Resampling):
    """Each configuration that the algorithm suggests is measured until it is known well enough, then left.

    What is enough is decided whenever a trial of it ends. It is taken up again when the algorithm comes back to it.
    """

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        super().__init__(problem, seed=seed, options=options, budget=budget, start=start)
        # Those that need more, by key, with how often they are to be measured in all.
        self._wanted: dict[str, int] = {}

    def learn(self, key: str, one: Candidate, trial: TrialRecord) -> None:
        known = key in self._wanted
        if trial.origin == "replicate" and not known:
            return
        wanted = 0
        if one.order >= self.start and one.values and not one.closed:
            wanted = self.wanted(one)
        if wanted > len(one.values):
            self._wanted[key] = wanted
        elif known:
            del self._wanted[key]

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        for key, wanted in self._wanted.items():
            one = self.measured[key]
            if len(one.values) + waiting.get(key, 0) < wanted:
                return one.configuration
        return None

    @abstractmethod
    def wanted(self, one: Candidate) -> int:
        """How often a configuration, which was measured at least once, is to be measured in all, as far as is known."""


class Static(_InTurn):
    """Each configuration n times (algorithm 6, whose `<= n` measures once too often)."""

    def wanted(self, one: Candidate) -> int:
        return int(self.number("n"))


class Sedr(_InTurn):
    """Standard error dynamic resampling (5.3.2): until the 95 % interval is a small enough share of the mean.

    Algorithm 7 as printed goes on once the interval is below the threshold; it has to stop there, as its text says. The
    n under the root of its interval is that of the configuration's samples.
    """

    def wanted(self, one: Candidate) -> int:
        return _unless_narrow(one.values, self.number("threshold"))


class Thesis(_InTurn):
    """The thesis' own method (5.4), each of its three parts with a switch.

    `bounded`: at most 10 % of the budget for one configuration. `dynamic_interval`: the interval may be
    max(0.99**n, 0.1) of the mean after n trials in all, otherwise `threshold`. `filter`: after two measurements, only
    what has a median of at most max(0.99**n, 0.5) times that of all other measurements.

    The filter's formula is meant for positive values to be minimised. Of positive values to be maximised the median has
    to be that much larger: that of all others, divided by the share. Where values have both signs, or are negative and
    to be minimised, ratios say nothing: the median then has to be within half that share of the others, from the best
    half at first to the best quarter.
    """

    # Without a budget, that of the thesis.
    _BUDGET = 100

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        super().__init__(problem, seed=seed, options=options, budget=budget, start=start)
        self._sorted: list[float] = []

    def learn(self, key: str, one: Candidate, trial: TrialRecord) -> None:
        value = self._sign * trial.metrics.get(self.problem.metrics[0], math.nan)
        if trial.state == TrialState.COMPLETED and math.isfinite(value):
            bisect.insort(self._sorted, value)
        super().learn(key, one, trial)

    def wanted(self, one: Candidate) -> int:
        count = len(one.values)
        if count >= 2:
            if self.options["bounded"] and count >= max(2, (self.budget or self._BUDGET) // 10):
                return count
            if self.options["filter"] and not self._promising(one.values):
                return count
        share = max(0.99**self.done, 0.1) if self.options["dynamic_interval"] else self.number("threshold")
        return _unless_narrow(one.values, share)

    def _promising(self, values: Sequence[float]) -> bool:
        others = self._sorted.copy()
        for value in values:
            del others[bisect.bisect_left(others, value)]
        if not others:
            return True
        share = max(0.99**self.done, 0.5)
        mine, middle = statistics.median(values), statistics.median(others)
        # Values are times the sign: those to be maximised are negative here.
        if self._sign > 0 and self._sorted[0] > 0:
            return mine <= share * middle
        if self._sign < 0 and self._sorted[-1] < 0:
            return mine <= middle / share
        return mine <= others[int(share / 2 * (len(others) - 1))]


def _unless_narrow(values: Sequence[float], share: float) -> int:
    """Twice at least; then once more unless the 95 % interval of the mean (5.3.2) is at most that share of it."""
    if len(values) < 2:
        return 2
    interval = 2 * _NORMAL_95 * statistics.stdev(values) / math.sqrt(len(values))
    return len(values) + (interval > share * abs(statistics.fmean(values)))


class Adaptive(Resampling):
    """Measures again where that is worth more than a new configuration: expected value of information.

    What a study is for is the configuration that it recommends in the end. The worth of r more measurements of one
    configuration is by how much they can be expected to improve the expected value of what would be recommended (the
    knowledge gradient; Frazier, Powell and Dayanik 2008), and is compared per measurement, with the best r (KG(*),
    Frazier and Powell 2010), since a single noisy measurement often changes nothing. Of new configurations the same is
    asked for a sample of the space.

    What a replicate tells is worth as much later, while what is new shows the algorithm where to go. So where there is
    a budget, replicates wait: it is counted how many would in turn be worth more than anything new, and they begin when
    no more than so many trials are left. Then what is recommended gets more and more certain until the end.

    The beliefs are the algorithm's posterior; without one, those of `noise.believe`, in which a new configuration is
    like the latest ones were.
    """

    # Replicates of one configuration that are looked at together.
    _DEPTHS = (1, 2, 3, 5, 8)
    _CONTENDERS = 24
    _NEAR, _EVERYWHERE = 48, 48
    _LATEST = 15
    # More would take too long: configurations that are compared, or counted, and replicates that wait.
    _MOST_COMPARED, _MOST_COUNTED, _MOST_WAITING = 250, 5000, 100

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        super().__init__(problem, seed=seed, options=options, budget=budget, start=start)
        self._encoding = Encoding(problem.space)
        self._rows: dict[str, FloatArray] = {}

    def learn(self, key: str, one: Candidate, trial: TrialRecord) -> None:
        if key not in self._rows:
            self._rows[key] = self._encoding.encode([one.configuration])[0]

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        contenders = self._contenders()
        if len(contenders) < 2 or len(self.measured) < self.start:
            return None
        left = None if self.budget is None else max(self.budget - self.done - sum(waiting.values()), 1)
        if left is not None and left > self._MOST_WAITING:
            return None
        middles = np.array([statistics.median(one.values) for _, one in contenders])
        kept = np.argsort(middles, kind="stable")[: self._MOST_COMPARED]
        around = surroundings(np.array([self._rows[contenders[place][0]] for place in kept]), middles[kept])
        beliefs, places = believe([contenders[place][1].values for place in kept], around, self._CONTENDERS)
        contenders = [contenders[kept[place]] for place in places]
        predicted = predict([one.configuration for _, one in contenders])
        if predicted is None:
            mean, deviation, noise = beliefs.mean, beliefs.deviation, beliefs.noise
            fresh_mean, fresh_deviation = np.array([self._latest()]), np.array([beliefs.spread])
        else:
            mean, deviation, noise = predicted.mean, predicted.deviation, predicted.noise
            best = [contenders[place][1].configuration for place in np.argsort(mean, kind="stable")[:4]]
            fresh = predict(self._sample(best))
            assert fresh is not None
            fresh_mean, fresh_deviation = fresh.mean, fresh.deviation
        if noise <= 0:
            return None
        # What is on its way will be known: it takes from the uncertainty, wherever the mean will go.
        asked = np.array([waiting.get(key, 0) for key, _ in contenders], dtype=float)
        deviation = deviation * (noise / np.hypot(noise, np.sqrt(asked) * deviation))
        lowest = np.sort(mean)
        others = np.where(mean == lowest[0], lowest[1], lowest[0])
        deepest = self._DEPTHS[-1] if left is None else left

        def worth(place: int) -> float:
            return _worth(float(mean[place] - others[place]), float(deviation[place]), noise, deepest)

        new = 0.0
        if len(self.measured) < self._size:
            gaps = zip(fresh_mean - lowest[0], fresh_deviation, strict=True)
            new = max(_worth(float(gap), float(unsure), noise, deepest) for gap, unsure in gaps)
        elif left is None:
            return None
        worths = np.array([worth(place) for place in range(len(contenders))])
        chosen = int(np.argmax(worths))
        threshold = new / self.number("eagerness")
        wanted = 0
        place = chosen
        while worths[place] > threshold and wanted < (left or 1):
            wanted += 1
            deviation[place] *= noise / math.hypot(noise, deviation[place])
            worths[place] = worth(place)
            place = int(np.argmax(worths))
        return contenders[chosen][1].configuration if wanted >= (left or 1) else None

    def _contenders(self) -> list[tuple[str, Candidate]]:
        """What may be recommended: of what kept the outcome constraints, if anything did."""
        found = [(key, one) for key, one in self.measured.items() if one.values and not one.closed]
        return [(key, one) for key, one in found if 2 * one.broken < len(one.values)] or found

    @cached_property
    def _size(self) -> float:
        """How many configurations there are; infinite where that is not easily told."""
        everything = self.problem.space.enumerate(self._MOST_COUNTED)
        return math.inf if everything is None else len(everything)

    def _latest(self) -> float:
        """What the configurations were worth that were suggested last."""
        latest = [one.values for one in list(self.measured.values())[-self._LATEST :] if one.values]
        latest = latest or [one.values for one in self.measured.values() if one.values]
        return statistics.median(statistics.median(values) for values in latest)

    def _sample(self, best: Sequence[Configuration]) -> list[Configuration]:
        """New configurations from all over the space, and others close to the best; those where there are none."""
        rng = np.random.default_rng([self.seed % 2**64, self.done])
        near = self._encoding.encode(best)[rng.integers(len(best), size=self._NEAR)]
        moved = rng.random(near.shape) < max(2 / near.shape[1], 0.3)
        near = near + moved * rng.normal(0.0, 0.15, near.shape)
        everywhere = rng.random((self._EVERYWHERE, near.shape[1]))
        found = self._encoding.decode(np.vstack([near, everywhere]))
        new = [one for one in found if self.problem.space.key(one) not in self.measured]
        return [one for one in new if self.problem.space.feasible(one)] or list(best)


def _worth(gap: float, deviation: float, noise: float, deepest: int) -> float:
    """The knowledge gradient per measurement, at the depth where it is largest.

    `gap`: how much more the mean is than that of the best other configuration.
    """
    found = 0.0
    for depth in Adaptive._DEPTHS:
        if depth > deepest:
            break
        # Without squares, which of the smallest numbers are 0, and of the largest none.
        change = deviation * (deviation / math.hypot(deviation, noise / math.sqrt(depth))) if deviation > 0 else 0.0
        if change > 0:
            z = -abs(gap) / change
            loss = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) + 0.5 * z * math.erfc(-z / math.sqrt(2))
            found = max(found, change * loss / depth)
    return found


@dataclass(frozen=True)
class Entry:
    """A policy by name. `needs_prediction`: it gains from an algorithm that predicts."""

    name: str
    doc: str
    implementation: type[Resampling]
    options: tuple[Option, ...] = ()
    needs_prediction: bool = False
    most_objectives: int | None = 1


_THRESHOLD = Option(
    "threshold", "float", 0.1, "Width of the 95 % interval, as a share of the mean.", min=1e-4, max=10.0
)
_ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("none", "Nothing is measured again unless the algorithm suggests it.", Never, most_objectives=None),
        Entry(
            "static",
            "Every configuration is measured equally often.",
            Static,
            (Option("n", "int", 2, "How often, in all.", min=1, max=1000),),
            most_objectives=None,
        ),
        Entry("sedr", "Until the interval of the mean is narrow enough.", Sedr, (_THRESHOLD,)),
        Entry(
            "thesis",
            "Bounded, with an interval that narrows, for promising configurations only.",
            Thesis,
            (
                Option("bounded", "bool", True, "At most a tenth of the budget for one configuration."),
                Option("dynamic_interval", "bool", True, "The interval narrows as the study goes on."),
                Option("filter", "bool", True, "Only what is better than most is measured more than twice."),
                Option("threshold", "float", 0.1, "The interval where it does not narrow.", min=1e-4, max=10.0),
            ),
        ),
        Entry(
            "adaptive",
            "Where a replicate is worth more than a new configuration.",
            Adaptive,
            (Option("eagerness", "float", 1.0, "Above 1 it replicates more, below 1 less.", min=0.01, max=100.0),),
            needs_prediction=True,
        ),
    )
}


def names() -> tuple[str, ...]:
    """All policies."""
    return tuple(_ENTRIES)


def describe(name: str, where: str = "resampling") -> Entry:
    """What is known of a policy. Raises InvalidInput (`<where>.name`)."""
    if name not in _ENTRIES:
        raise InvalidInput(f"{where}.name", name, "one of " + ", ".join(_ENTRIES))
    return _ENTRIES[name]


def validate(
    name: str, options: Mapping[str, object], problem: Problem, where: str = "resampling"
) -> dict[str, JsonValue]:
    """All options of a policy. Raises InvalidInput (`<where>.name`, `<where>.options.<option>`)."""
    entry = describe(name, where)
    if entry.most_objectives is not None and len(problem.objectives) > entry.most_objectives:
        able = ", ".join(one.name for one in _ENTRIES.values() if one.most_objectives is None)
        raise InvalidInput(f"{where}.name", name, f"for several objectives one of {able}")
    return complete(name, entry.options, options, f"{where}.options")


def create(
    name: str, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
) -> Resampling:
    """A new policy; `options` as `validate` makes them."""
    return describe(name).implementation(problem, seed=seed, options=options, budget=budget, start=start)
