"""Rules that end a search [robert-2021, section 3.4], alone or combined with "any" and "all"."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.encoding import Encoding
from service.core.errors import InvalidInput, JsonValue
from service.core.estimates import mean
from service.core.lifecycle import TrialState
from service.core.options import Option, complete
from service.core.problem import Problem
from service.core.reasons import Reason, joined
from service.core.space import Configuration
from service.core.trial import TrialRecord

# Limits on the depth of nested rules, and on the number of rules in one list.
_DEEPEST, _MOST_RULES = 8, 32


class History:
    """The results of a search so far, in the order in which trials finished.

    An instance is not thread-safe; each caller has its own. FAILED trials, where the machine was at fault, and trials
    of the final check are left out. `trials` is the number of all others.

    An iteration is a trial that the algorithm or a user has suggested. A replicate of a resampling policy is not
    an iteration, because it only measures the value of an earlier one better [robert-2021, section 5.3].

    `unsettled` holds the keys of configurations that the resampling policy is about to measure again. Rules judge the
    iterations of all other configurations.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.trials = 0
        self.unsettled: Collection[str] = ()
        # The key of each iteration, and of those that have a value.
        self._keys: list[str] = []
        self._measured: list[str] = []
        # By key: the configuration, the medians of its values and of its acceptable ones, and these values.
        self._configurations: dict[str, Configuration] = {}
        self._middles: dict[str, float] = {}
        self._medians: dict[str, float] = {}
        self._values: dict[str, list[float]] = {}
        self._acceptable: dict[str, list[float]] = {}

    def update(self, finished: Sequence[TrialRecord]) -> None:
        """Add finished trials, each passed exactly once."""
        metric, sign = self.problem.metrics[0], float(self.problem.signs()[0])
        for trial in finished:
            if trial.state == TrialState.FAILED or trial.origin == "check":
                continue
            self.trials += 1
            key = self.problem.space.key(trial.configuration)
            is_iteration = trial.origin != "replicate"
            if is_iteration:
                self._configurations[key] = trial.configuration
                self._keys.append(key)
            value = sign * trial.metrics.get(metric, math.nan)
            if trial.state != TrialState.COMPLETED or not math.isfinite(value):
                continue
            if is_iteration:
                self._measured.append(key)
            self._values.setdefault(key, []).append(value)
            self._middles[key] = statistics.median(self._values[key])
            if self.problem.acceptable(trial.metrics):
                self._acceptable.setdefault(key, []).append(value)
                self._medians[key] = statistics.median(self._acceptable[key])

    def keys(self) -> list[str]:
        """Return a text for each iteration that identifies its configuration."""
        return [key for key in self._keys if key not in self.unsettled]

    def configurations(self) -> list[Configuration]:
        """Return the configuration of each iteration."""
        return [self._configurations[key] for key in self.keys()]

    def values(self) -> list[float]:
        """Return the median of the first objective, times its sign, of the configuration of each measured iteration."""
        return [self._middles[key] for key in self._measured if key not in self.unsettled]

    def bests(self) -> list[float]:
        """Return `values`, but with infinity for a configuration whose trials have all broken an outcome constraint."""
        return [self._medians.get(key, math.inf) for key in self._measured if key not in self.unsettled]

    def default(self) -> float | None:
        """Return the median of the default's acceptable values, times the objective's sign; None without one."""
        return self._medians.get(self.problem.space.key(self.problem.space.default()))


@dataclass(frozen=True)
class Progress:
    """The progress of a search.

    `seconds`: wall time since the first trial. `node_hours`: the node-hours that the trials used. `remaining`: the
    expected remaining improvement of the first objective. `noise`: the standard deviation of one measurement. Both are
    None without a model.
    """

    history: History
    seconds: float
    node_hours: float
    remaining: float | None = None
    noise: float | None = None


class StoppingRule(ABC):
    """Decides when a search ends. A rule is immutable and depends only on the progress."""

    @property
    @abstractmethod
    def needs_prediction(self) -> bool:
        """Return whether the rule uses `Progress.remaining` and `Progress.noise`."""

    @abstractmethod
    def reason(self, progress: Progress) -> str | None:
        """Return the reason to end the search, as a sentence; None if it continues."""

    @abstractmethod
    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `parse` makes an equal rule."""


Options = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Kind:
    """A rule by name. `needs_prediction`: it uses the algorithm's predictions."""

    name: str
    doc: str
    options: tuple[Option, ...]
    reason: Callable[[Progress, Options], str | None]
    needs_prediction: bool = False
    single_objective: bool = True


@dataclass(frozen=True, eq=False)
class Rule(StoppingRule):
    """One of the rules by name."""

    kind: Kind
    options: Options

    @property
    def needs_prediction(self) -> bool:
        return self.kind.needs_prediction

    def reason(self, progress: Progress) -> str | None:
        return self.kind.reason(progress, self.options)

    def to_json(self) -> dict[str, JsonValue]:
        return {"rule": self.kind.name, **self.options}


@dataclass(frozen=True, eq=False)
class Combined(StoppingRule):
    """Ends the search when any or when all of its rules would."""

    word: str
    rules: tuple[StoppingRule, ...]

    @property
    def needs_prediction(self) -> bool:
        return any(rule.needs_prediction for rule in self.rules)

    def reason(self, progress: Progress) -> str | None:
        found = [rule.reason(progress) for rule in self.rules]
        reasons = [reason for reason in found if reason is not None]
        if self.word == "any":
            return reasons[0] if reasons else None
        return joined(reasons) if len(reasons) == len(found) else None

    def to_json(self) -> dict[str, JsonValue]:
        return {self.word: [rule.to_json() for rule in self.rules]}


def names() -> tuple[str, ...]:
    """Return the names of all rules except combinations."""
    return tuple(_KINDS)


def describe(name: str, where: str = "stopping") -> Kind:
    """Return the kind of a rule. Raises InvalidInput (`<where>.rule`)."""
    if name not in _KINDS:
        raise InvalidInput(f"{where}.rule", name, "one of " + ", ".join(_KINDS))
    return _KINDS[name]


def parse(data: object, problem: Problem, where: str = "stopping") -> StoppingRule:
    """Return the rule that the JSON describes: {"rule": name, option: value, ...}, {"any": [...]} or {"all": [...]}.

    Raises InvalidInput with the path of the field at fault: `stopping.any[1].trials`.
    """
    return _parse(data, problem, where, _DEEPEST)


def _parse(data: object, problem: Problem, where: str, deepest: int) -> StoppingRule:
    if not isinstance(data, Mapping):
        raise InvalidInput(where, data, 'an object such as {"rule": "best_improvement", "trials": 15}')
    for word in ("any", "all"):
        if word not in data:
            continue
        rules = data[word]
        if len(data) > 1 or not isinstance(rules, Sequence) or isinstance(rules, str):
            raise InvalidInput(f"{where}.{word}", rules, "a list of rules without other keys")
        if not 1 <= len(rules) <= _MOST_RULES:
            raise InvalidInput(f"{where}.{word}", len(rules), f"1 to {_MOST_RULES} rules")
        if deepest == 0:
            allowed = f"rules that are nested at most {_DEEPEST} levels deep"
            raise InvalidInput(f"{where}.{word}", rules, allowed, problem="is nested too deeply")
        parsed = [_parse(rule, problem, f"{where}.{word}[{index}]", deepest - 1) for index, rule in enumerate(rules)]
        return Combined(word, tuple(parsed))
    name = data.get("rule")
    if not isinstance(name, str):
        raise InvalidInput(f"{where}.rule", name, "one of " + ", ".join(_KINDS))
    kind = describe(name, where)
    if kind.single_objective and len(problem.objectives) > 1:
        able = ", ".join(one.name for one in _KINDS.values() if not one.single_objective)
        allowed = f"one of the rules for several objectives: {able}"
        raise InvalidInput(f"{where}.rule", name, allowed, problem="handles a single objective only")
    given = {key: value for key, value in data.items() if key != "rule"}
    options = complete(name, kind.options, given, where)
    for option in kind.options:
        if options[option.name] is None:
            raise InvalidInput(f"{where}.{option.name}", None, option.allowed())
    return Rule(kind, options)


def _number(options: Options, name: str) -> float:
    return float(str(options[name]))


def _trials(progress: Progress, options: Options) -> str | None:
    done = progress.history.trials
    if done < _number(options, "trials"):
        return None
    return Reason(f"{done} trials are done.", "trials_done", trials=done)


def node_hours_used(most: float) -> Reason:
    """Return the reason to end a search that has used its node-hours."""
    return Reason(f"{most:g} node-hours are used.", "node_hours_used", hours=most)


def _seconds(progress: Progress, options: Options) -> str | None:
    most = _number(options, "seconds")
    return Reason(f"{most:g} s have passed.", "seconds_passed", seconds=most) if progress.seconds >= most else None


def _node_hours(progress: Progress, options: Options) -> str | None:
    most = _number(options, "hours")
    return node_hours_used(most) if progress.node_hours >= most else None


def _reference(progress: Progress, options: Options) -> str | None:
    value = _number(options, "value")
    goal = float(progress.history.problem.signs()[0]) * value
    reached = min(progress.history.bests(), default=math.inf) <= goal
    return Reason(f"The reference of {value:g} is reached.", "reference_reached", value=value) if reached else None


def _default_share(progress: Progress, options: Options) -> str | None:
    history, percent = progress.history, _number(options, "percent")
    default = history.default()
    if default is None or min(history.bests(), default=math.inf) > default - percent / 100 * abs(default):
        return None
    text = f"The best is at least {percent:g} % better than the default."
    return Reason(text, "better_than_default", percent=percent)


def _best_improvement(progress: Progress, options: Options) -> str | None:
    return _improvement("best", progress.history.bests(), min, options)


def _mean_improvement(progress: Progress, options: Options) -> str | None:
    return _improvement("average", progress.history.values(), mean, options)


def _median_improvement(progress: Progress, options: Options) -> str | None:
    return _improvement("median", progress.history.values(), statistics.median, options)


def _improvement(
    word: str, values: Sequence[float], summary: Callable[[Sequence[float]], float], options: Options
) -> str | None:
    threshold, trials = _number(options, "threshold"), int(_number(options, "trials"))
    if len(values) <= trials:
        return None
    before, now = summary(values[:-trials]), summary(values)
    # No configuration was acceptable until recently, or none is yet.
    if math.isinf(before):
        return None
    if before > now and before - now >= threshold * abs(before):
        return None
    text = f"The {word} has improved by less than {100 * threshold:g} % over {trials} trials."
    return Reason(text, "hardly_improves", of=word, percent=100 * threshold, trials=trials)


def _count_movement(progress: Progress, options: Options) -> str | None:
    least, trials = int(_number(options, "threshold")), int(_number(options, "trials"))
    last = progress.history.keys()[-trials:]
    if len(last) < trials or len(set(last)) >= least:
        return None
    text = f"The last {trials} trials were of {len(set(last))} configurations."
    return Reason(text, "few_configurations", trials=trials, configurations=len(set(last)))


def _distance_movement(progress: Progress, options: Options) -> str | None:
    """Compare the distances between consecutive trials in the unit cube, as shares of its diagonal."""
    threshold, trials = _number(options, "threshold"), int(_number(options, "trials"))
    last = progress.history.configurations()[-max(trials, 2) :]
    if len(last) < max(trials, 2):
        return None
    rows = Encoding(progress.history.problem.space).encode(last)
    steps = np.sqrt((np.diff(rows, axis=0) ** 2).sum(1) / max(rows.shape[1], 1))
    if float(steps.max()) >= threshold:
        return None
    return Reason(f"The last {trials} trials are close to each other.", "trials_are_close", trials=trials)


def _remaining(progress: Progress, options: Options) -> str | None:
    if progress.remaining is None or progress.noise is None:
        return None
    below = progress.remaining < _number(options, "factor") * progress.noise
    text = "The expected remaining gain is less than the noise of a measurement."
    return Reason(text, "gain_below_noise") if below else None


_PATIENCE = Option(
    "trials", "int", 15, "Number of trials over which the rule compares; replicates do not count.", min=1, max=1_000_000
)
_THRESHOLD = Option(
    "threshold", "float", 0.05, "Improvement as a share of the earlier value: 0.05 is 5 %.", min=0.0, max=10.0
)

_KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "trials",
            "Ends after a number of trials.",
            (Option("trials", "int", None, "Number of trials.", min=1, max=10**9),),
            _trials,
            single_objective=False,
        ),
        Kind(
            "seconds",
            "Ends after a wall time.",
            (Option("seconds", "float", None, "Seconds since the first trial.", min=1e-3, max=3.2e8),),
            _seconds,
            single_objective=False,
        ),
        Kind(
            "node_hours",
            "Ends after an amount of node-hours.",
            (Option("hours", "float", None, "Node-hours: nodes times hours.", min=1e-6, max=1e12),),
            _node_hours,
            single_objective=False,
        ),
        Kind(
            "reference",
            "Ends when a value is reached.",
            (Option("value", "float", None, "Value in the objective's unit."),),
            _reference,
        ),
        Kind(
            "default_share",
            "Ends when the best is better than the default by a percentage of its value.",
            (Option("percent", "float", 10.0, "Percentage of the default's value.", min=0.0, max=1e6),),
            _default_share,
        ),
        Kind("best_improvement", "Ends when the best improves too little.", (_THRESHOLD, _PATIENCE), _best_improvement),
        Kind(
            "mean_improvement",
            "Ends when the average of all trials improves too little.",
            (_THRESHOLD, _PATIENCE),
            _mean_improvement,
        ),
        Kind(
            "median_improvement",
            "Ends when the median of all trials improves too little.",
            (_THRESHOLD, _PATIENCE),
            _median_improvement,
        ),
        Kind(
            "count_movement",
            "Ends when there are too few different configurations.",
            (
                Option("threshold", "int", 2, "Number of configurations that is enough.", min=1, max=1_000_000),
                _PATIENCE,
            ),
            _count_movement,
            single_objective=False,
        ),
        Kind(
            "distance_movement",
            "Ends when configurations are close to each other.",
            (
                Option("threshold", "float", 0.05, "Distance as a share of the space's diagonal.", min=0.0, max=1.0),
                _PATIENCE,
            ),
            _distance_movement,
            single_objective=False,
        ),
        Kind(
            "remaining_improvement",
            "Ends when the remaining gain is less than the noise.",
            (
                Option(
                    "factor",
                    "float",
                    0.5,
                    "Limit as a multiple of the standard deviation of one measurement.",
                    min=0.0,
                    max=100.0,
                ),
            ),
            _remaining,
            needs_prediction=True,
        ),
    )
}
