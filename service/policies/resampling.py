"""Policies that measure a configuration again before the algorithm suggests a new one [robert-2021, chapter 5]."""

from __future__ import annotations

import bisect
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from service.core.encoding import Encoding
from service.core.errors import InvalidInput, JsonValue
from service.core.feasibility import feasible_set
from service.core.lifecycle import TrialState
from service.core.options import Option, complete
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.reasons import Reason
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.noise import believe, surroundings

Predict = Callable[[Sequence[Configuration]], Prediction | None]

_NORMAL_95 = 1.96
# Like the algorithms, policies try a configuration that has FAILED a second time, but not a third time.
_MOST_FAILURES = 2


@dataclass(slots=True)
class Candidate:
    """A candidate for replicates: a configuration with the values of its completed trials, times the objective's sign.

    `order`: the number of configurations that were measured before it. `broken`: the number of its trials that broke
    the outcome constraints. `closed`: it gets no replicates: it cannot work, was pruned or has failed too often.
    """

    configuration: Configuration
    order: int
    values: list[float] = field(default_factory=list)
    broken: int = 0
    failures: int = 0
    closed: bool = False


class Resampling(ABC):
    """Decides whether a configuration is measured again. An instance is not thread-safe; each caller has its own.

    The same seed, options, history and pending trials give the same decision. While the first `start` configurations
    are measured there are no replicates, so that as many different ones as possible are tried [robert-2021,
    section 5.3].
    """

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        """`options` are those of `validate`; `budget`: the number of trials of the search, if limited."""
        self.problem = problem
        self.seed = seed
        self.options = options
        self.budget = budget
        self.start = start
        self.done = 0
        self.measured: dict[str, Candidate] = {}
        # Why `again` has chosen its latest answer, for people.
        self.reason = ""
        self._sign = float(problem.signs()[0])

    def update(self, finished: Sequence[TrialRecord]) -> None:
        """Learn from finished trials, each passed exactly once. Trials of the final check are ignored."""
        metric = self.problem.metrics[0]
        for trial in finished:
            if trial.origin == "check":
                continue
            # The budget does not count measurements that users add.
            self.done += trial.is_of_search
            key = self.problem.space.key(trial.configuration)
            if trial.state == TrialState.FAILED:
                if key in self.measured:
                    self.measured[key].failures += 1
                    self.measured[key].closed |= self.measured[key].failures >= _MOST_FAILURES
                    self.learn(key, self.measured[key], trial)
                continue
            one = self.measured.setdefault(key, Candidate(trial.configuration, len(self.measured)))
            value = trial.metrics.get(metric, math.nan)
            if trial.state != TrialState.COMPLETED:
                one.closed = True
            elif math.isfinite(value):
                one.values.append(self._sign * value)
                one.broken += not self.problem.acceptable(trial.metrics)
            self.learn(key, one, trial)

    def learn(self, key: str, one: Candidate, trial: TrialRecord) -> None:  # noqa: B027 - a policy may have nothing to note
        """Update the policy's own state after a trial of the configuration `one`, which already includes the trial."""

    def again(
        self, *, pending: Sequence[TrialRecord], predict: Predict, left: int | None = None
    ) -> Configuration | None:
        """Return the configuration to measure again; None if the algorithm should suggest one.

        Args:
            pending: trials without a result, including those of the present ask.
            predict: the algorithm's predictions for configurations.
            left: the number of trials after which the search ends, if that is earlier than the end of the budget, and
                even if the start is not over.
        """
        waiting: dict[str, int] = {}
        for trial in pending:
            key = self.problem.space.key(trial.configuration)
            waiting[key] = waiting.get(key, 0) + 1
        if left is None:
            return self.choose(waiting, predict)
        budget, start = self.budget, self.start
        end = self.done + len(pending) + left
        self.budget, self.start = end if budget is None else min(end, budget), 0
        try:
            return self.choose(waiting, predict)
        finally:
            self.budget, self.start = budget, start

    @abstractmethod
    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        """Return the result of `again`; `waiting`: the number of pending trials of a configuration, by its key."""

    @property
    def unsettled(self) -> Collection[str]:
        """Return the keys of configurations that are known to need another measurement."""
        return ()

    def number(self, option: str) -> float:
        """Return an option's value."""
        return float(str(self.options[option]))


class Never(Resampling):
    """Measures no configuration again; the algorithm itself may still suggest one again."""

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        return None


class _InTurn(Resampling):
    """Measures each configuration that the algorithm suggests until it is known well enough.

    The decision follows the end of each of its trials. Measurements resume if the algorithm suggests it again.

    The search comes back to a configuration of the start design [robert-2021, section 5.3] when it has the best median
    of all after the start. A single lucky run of the start design could otherwise be recommended.
    """

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        super().__init__(problem, seed=seed, options=options, budget=budget, start=start)
        # The configurations that need more measurements, by key, with their total numbers.
        self._wanted: dict[str, int] = {}
        # The medians of the configurations that may be measured again, and the key of the best.
        self._medians: dict[str, float] = {}
        self._leader: str | None = None

    def learn(self, key: str, one: Candidate, trial: TrialRecord) -> None:
        self._rank(key, one)
        if trial.origin != "replicate" or key in self._wanted:
            self._decide(key)
        leader = self._leader
        is_over = len(self.measured) >= self.start
        if is_over and leader is not None and leader != key and self.measured[leader].order < self.start:
            self._decide(leader)

    def _rank(self, key: str, one: Candidate) -> None:
        if one.values and not one.closed:
            self._medians[key] = statistics.median(one.values)
        else:
            self._medians.pop(key, None)
        if self._leader in (None, key):
            self._leader = min(self._medians, key=self._medians.__getitem__, default=None)
        elif key in self._medians and self._medians[key] < self._medians[str(self._leader)]:
            self._leader = key

    def _decide(self, key: str) -> None:
        """Note how many measurements a configuration needs in total, if it needs more."""
        one = self.measured[key]
        is_due = one.order >= self.start or (key == self._leader and len(self.measured) >= self.start)
        wanted = self.wanted(one) if is_due and one.values and not one.closed else 0
        if wanted > len(one.values):
            self._wanted[key] = wanted
        else:
            self._wanted.pop(key, None)

    @property
    def unsettled(self) -> Collection[str]:
        return self._wanted.keys()

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        for key, wanted in self._wanted.items():
            one = self.measured[key]
            runs = len(one.values) + waiting.get(key, 0)
            if runs < wanted:
                text = f"The resampling policy wants {wanted} runs of this configuration, which has {runs} so far."
                self.reason = Reason(text, "repeat_runs", wanted=wanted, runs=runs)
                return one.configuration
        return None

    @abstractmethod
    def wanted(self, one: Candidate) -> int:
        """Return the total number of measurements that a configuration with at least one measurement needs so far."""


class Static(_InTurn):
    """Measures each configuration n times [robert-2021, algorithm 6]. The printed `<= n` is once too often."""

    def wanted(self, one: Candidate) -> int:
        return int(self.number("n"))


class Sedr(_InTurn):
    """Standard error dynamic resampling: measures until the 95 % interval is a small enough share of the mean.

    The source is [robert-2021, section 5.3.2, algorithm 7]. The printed algorithm continues when the interval is below
    the threshold, but as its text says it has to stop then. The n under the root of its interval is the configuration's
    number of samples.
    """

    def wanted(self, one: Candidate) -> int:
        return _unless_narrow(one.values, self.number("threshold"))


class Thesis(_InTurn):
    """The method of [robert-2021, section 5.4], with a switch for each of its three parts.

    `bounded`: at most 10 % of the budget for one configuration. `dynamic_interval`: the interval may be
    max(0.99**n, 0.1) of the mean after n trials in total, otherwise `threshold`. `filter`: after two measurements, only
    a configuration whose median is at most max(0.99**n, 0.5) times the median of all other measurements continues.

    The filter's formula suits positive values that are minimised. For positive values that are maximised, the median
    has to be at least the median of all others divided by that share. If values have both signs, or are negative and
    minimised, ratios are meaningless: the median then has to be in the best part of the others, whose size is half that
    share: the best half at first, the best quarter later.
    """

    # Without a budget, the budget in [robert-2021] is assumed.
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
        # Values are times the sign, so values that are maximised are negative here.
        if self._sign > 0 and self._sorted[0] > 0:
            return mine <= share * middle
        if self._sign < 0 and self._sorted[-1] < 0:
            return mine <= middle / share
        return mine <= others[int(share / 2 * (len(others) - 1))]


def _unless_narrow(values: Sequence[float], share: float) -> int:
    """Return at least 2, or one more than the present number unless the mean's 95 % interval is at most that share."""
    if len(values) < 2:
        return 2
    interval = 2 * _NORMAL_95 * statistics.stdev(values) / math.sqrt(len(values))
    return len(values) + (interval > share * abs(statistics.fmean(values)))


class Closing(Resampling):
    """Measures the best configuration again in the last trials of the budget.

    Luck has helped the best of many noisy values. With noise of 2 to 20 %, the value expected of a
    configuration that was measured once was too good in 32 % of 600 simulated studies of `auto`
    (tests/benchmarks/coverage.py). The closing trials measure the best so far a second time, then the default, from
    which the gain follows, and then both until they have `_ENOUGH` runs. If they show that another one is better, they
    go on with that one. A single run of the default may be a slow one: measuring it again before the best has enough
    runs halves the error of the gain and does not change the recommended configurations (tests/benchmarks/README.md).
    """

    # The share of the budget that is kept for closing, and its limits in trials.
    _SHARE, _LEAST, _MOST = 0.15, 3, 12
    _ENOUGH, _AT_FIRST = 4, 2
    # Limits for speed on the number of configurations that are compared, and that are evaluated closely.
    _MOST_COMPARED, _CONTENDERS = 250, 24

    def __init__(
        self, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
    ) -> None:
        super().__init__(problem, seed=seed, options=options, budget=budget, start=start)
        self._encoding = Encoding(problem.space)
        self._default = problem.space.key(problem.space.default())

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        if not self._is_closing(waiting):
            return None
        found = self._contenders()
        if len(found) < 2:
            return None
        contenders, known, _ = self._shortlist(found, predict)
        return self._close(contenders, known, waiting)

    def _left(self, waiting: Mapping[str, int]) -> int | None:
        """Return how many trials of the budget are left; None without a budget."""
        return None if self.budget is None else max(self.budget - self.done - sum(waiting.values()), 1)

    def _is_closing(self, waiting: Mapping[str, int]) -> bool:
        left = self._left(waiting)
        if left is None or self.budget is None or len(self.measured) < self.start:
            return False
        return left <= min(max(round(self._SHARE * self.budget), self._LEAST), self._MOST)

    def _close(
        self, contenders: Sequence[tuple[str, Candidate]], known: Prediction, waiting: Mapping[str, int]
    ) -> Configuration | None:
        """Return the best contender or the default while it has too few runs; None if both have enough."""
        best = contenders[int(known.best()[0])]
        default = self.measured.get(self._default)
        for enough in (self._AT_FIRST, self._ENOUGH):
            for key, one in (best, (self._default, default)):
                if one is not None and not one.closed and 0 < len(one.values) < enough - waiting.get(key, 0):
                    self.reason = self._closing_reason(key)
                    return one.configuration
        return None

    def _closing_reason(self, key: str) -> Reason:
        if key == self._default:
            text = "The search ends with repeats: more runs of the default make the gain more certain."
            return Reason(text, "repeat_default")
        text = "The search ends with repeats: luck may have helped the best configuration, so it is measured again."
        return Reason(text, "repeat_best")

    def _contenders(self) -> list[tuple[str, Candidate]]:
        """Return the candidates for a recommendation; only acceptable ones if there are any."""
        found = [(key, one) for key, one in self.measured.items() if one.values and not one.closed]
        return [(key, one) for key, one in found if 2 * one.broken < len(one.values)] or found

    def _shortlist(
        self, contenders: Sequence[tuple[str, Candidate]], predict: Predict
    ) -> tuple[list[tuple[str, Candidate]], Prediction, float | None]:
        """Return the best contenders and what is known of them, by the model if there is one.

        The recommendation follows the same order, so that what will be recommended is measured again. The last value
        is the standard deviation of the values of configurations; None with a model.
        """
        middles = np.array([statistics.median(one.values) for _, one in contenders])
        kept = np.argsort(middles, kind="stable")[: self._MOST_COMPARED]
        compared = [contenders[place] for place in kept]
        configurations = [one.configuration for _, one in compared]
        predicted = predict(configurations)
        if predicted is not None:
            best = predicted.best()[: self._CONTENDERS]
            return [compared[place] for place in best], predicted.at(best), None
        around = surroundings(self._encoding.encode(configurations), middles[kept])
        beliefs, places = believe([one.values for _, one in compared], around, self._CONTENDERS)
        known = Prediction(beliefs.mean, beliefs.deviation, beliefs.noise)
        return [compared[place] for place in places], known, beliefs.spread


class Adaptive(Closing):
    """Measures again if that is worth more than a new configuration, by the expected value of information.

    The purpose of a study is the configuration that it recommends in the end. The worth of r more measurements of a
    configuration is the expected improvement of the recommended configuration's expected value: the knowledge gradient
    [frazier-2008]. It is compared per measurement, with the best r (KG(*)) [frazier-2010], because a single noisy
    measurement often changes nothing. The worth of new configurations is computed for a sample of the space.

    A replicate's information keeps its worth, but a new configuration guides the algorithm. With a budget, replicates
    therefore wait: the policy counts how many in a row would be worth more than any new configuration, and starts them
    when only that many trials are left. From then on the recommendation becomes more and more certain. The last trials
    are those of `Closing`.

    The beliefs are the algorithm's posterior or, without one, those of `noise.believe`, in which a new configuration is
    assumed to be like the latest ones.
    """

    # The numbers of replicates of one configuration that are evaluated together.
    _DEPTHS = (1, 2, 3, 5, 8)
    _NEAR, _EVERYWHERE = 48, 48
    _LATEST = 15
    # Limits for speed: on configurations that are counted, and on waiting replicates.
    _MOST_COUNTED, _MOST_WAITING = 5000, 100

    def choose(self, waiting: Mapping[str, int], predict: Predict) -> Configuration | None:
        contenders = self._contenders()
        if len(contenders) < 2 or len(self.measured) < self.start:
            return None
        left = self._left(waiting)
        if left is not None and left > self._MOST_WAITING:
            return None
        contenders, known, spread = self._shortlist(contenders, predict)
        mean, deviation, noise = known.mean, known.deviation, known.noise
        if spread is not None:
            fresh_mean, fresh_deviation = np.array([self._latest()]), np.array([spread])
        else:
            best = [contenders[place][1].configuration for place in np.argsort(mean, kind="stable")[:4]]
            fresh = predict(self._sample(best))
            assert fresh is not None
            fresh_mean, fresh_deviation = fresh.mean, fresh.deviation
        if self._is_closing(waiting) and (again := self._close(contenders, known, waiting)) is not None:
            return again
        if noise <= 0 or len(contenders) < 2:
            return None
        # Pending trials will reduce the uncertainty, wherever the mean moves.
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
        if wanted < (left or 1):
            return None
        text = "The resampling policy expects more of another run of this configuration than of a new one."
        self.reason = Reason(text, "repeat_worth")
        return contenders[chosen][1].configuration

    @cached_property
    def _size(self) -> float:
        """Return the number of configurations of the space; infinite if it is expensive to find."""
        everything = self.problem.space.enumerate(self._MOST_COUNTED)
        return math.inf if everything is None else len(everything)

    def _latest(self) -> float:
        """Return the typical value of the latest suggestions."""
        latest = [one.values for one in list(self.measured.values())[-self._LATEST :] if one.values]
        latest = latest or [one.values for one in self.measured.values() if one.values]
        return statistics.median(statistics.median(values) for values in latest)

    def _sample(self, best: Sequence[Configuration]) -> list[Configuration]:
        """Return new configurations from the whole space and others close to the best; the latter if none are new."""
        rng = np.random.default_rng([self.seed % 2**64, self.done])
        near = self._encoding.encode(best)[rng.integers(len(best), size=self._NEAR)]
        moved = rng.random(near.shape) < max(2 / near.shape[1], 0.3)
        near = near + moved * rng.normal(0.0, 0.15, near.shape)
        everywhere = rng.random((self._EVERYWHERE, near.shape[1]))
        space = self.problem.space
        if space.constraints and (feasible := feasible_set(space)).existence == "known":
            # Constraints may leave nothing of these.
            found = [*self._encoding.decode(near), *feasible.spread(everywhere[:, : len(space.parameters)])]
        else:
            found = self._encoding.decode(np.vstack([near, everywhere]))
        new = [one for one in found if self.problem.space.key(one) not in self.measured]
        return [one for one in new if self.problem.space.feasible(one)] or list(best)


def _worth(gap: float, deviation: float, noise: float, deepest: int) -> float:
    """Return the knowledge gradient per measurement, at the depth where it is largest.

    `gap`: the distance of the mean above the mean of the best other configuration.
    """
    found = 0.0
    for depth in Adaptive._DEPTHS:
        if depth > deepest:
            break
        # The formula avoids squares, which underflow for the smallest numbers and overflow for the largest.
        change = deviation * (deviation / math.hypot(deviation, noise / math.sqrt(depth))) if deviation > 0 else 0.0
        if change > 0:
            z = -abs(gap) / change
            loss = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) + 0.5 * z * math.erfc(-z / math.sqrt(2))
            found = max(found, change * loss / depth)
    return found


@dataclass(frozen=True)
class Entry:
    """A policy by name. `needs_prediction`: it is better with an algorithm that predicts."""

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
        Entry("none", "Measures a configuration again only if the algorithm suggests it.", Never, most_objectives=None),
        Entry("closing", "Measures the best configuration again in the last trials of the budget.", Closing),
        Entry(
            "static",
            "Measures every configuration equally often.",
            Static,
            (Option("n", "int", 2, "Total number of measurements.", min=1, max=1000),),
            most_objectives=None,
        ),
        Entry(
            "sedr",
            "Measures until the interval of the mean is narrow enough. [robert-2021, section 5.3.2]",
            Sedr,
            (_THRESHOLD,),
        ),
        Entry(
            "thesis",
            "Measures promising configurations until a narrowing interval is reached, within a bound. "
            "[robert-2021, section 5.4]",
            Thesis,
            (
                Option("bounded", "bool", True, "Spend at most a tenth of the budget on one configuration."),
                Option("dynamic_interval", "bool", True, "Narrow the interval as the study continues."),
                Option("filter", "bool", True, "Measure only better configurations than most more than twice."),
                Option("threshold", "float", 0.1, "The interval without `dynamic_interval`.", min=1e-4, max=10.0),
            ),
        ),
        Entry(
            "adaptive",
            "Measures again if a replicate is worth more than a new configuration. [frazier-2008]",
            Adaptive,
            (
                Option(
                    "eagerness",
                    "float",
                    1.0,
                    "Weight of replicates: above 1 there are more, below 1 fewer.",
                    min=0.01,
                    max=100.0,
                ),
            ),
            needs_prediction=True,
        ),
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all policies."""
    return tuple(_ENTRIES)


def describe(name: str, where: str = "resampling") -> Entry:
    """Return the entry of a policy. Raises InvalidInput (`<where>.name`)."""
    if name not in _ENTRIES:
        raise InvalidInput(f"{where}.name", name, "one of " + ", ".join(_ENTRIES))
    return _ENTRIES[name]


def validate(
    name: str, options: Mapping[str, object], problem: Problem, where: str = "resampling"
) -> dict[str, JsonValue]:
    """Return all options of a policy. Raises InvalidInput (`<where>.name`, `<where>.options.<option>`)."""
    entry = describe(name, where)
    if entry.most_objectives is not None and len(problem.objectives) > entry.most_objectives:
        able = ", ".join(one.name for one in _ENTRIES.values() if one.most_objectives is None)
        allowed = f"one of the policies for several objectives: {able}"
        raise InvalidInput(f"{where}.name", name, allowed, problem="handles a single objective only")
    return complete(name, entry.options, options, f"{where}.options")


def create(
    name: str, problem: Problem, *, seed: int, options: Mapping[str, object], budget: int | None, start: int
) -> Resampling:
    """Return a new policy; `options` are those of `validate`."""
    return describe(name).implementation(problem, seed=seed, options=options, budget=budget, start=start)
