"""The search space that the trials of an Optuna study show.

Optuna's objectives choose their parameters while they run. A trial therefore has some of the study's parameters, and
ranges may differ between trials. In Trimtab's space, each parameter is `optional` and has a range that contains those
of all trials. A parameter that appears only with certain values of another one is conditional on it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from trimtab.integrations.optuna import values as values_of
from trimtab.space import Bool, Categorical, Int, Parameter, Scalar

# A parameter with more values decides on no other parameter.
MOST_PARENT_VALUES = 32
# Conditions are looked for among so many parameters. The time grows with the square of their number.
MOST_COMPARED = 100


@dataclass(frozen=True)
class _Seen:
    """A trial as it is seen: its parameters in the order in which it asked for them, with the codes of their values.

    `is_whole`: the objective has asked for all that it needs, so a missing parameter is one that it does not need.
    """

    values: Mapping[str, Scalar]
    is_whole: bool


class SearchSpace:
    """The parameters of the trials that it has seen. The names are those of Optuna."""

    def __init__(self) -> None:
        self.latest: dict[str, BaseDistribution] = {}
        """The distribution of each parameter in the last trial that has it."""
        self._hulls: dict[str, BaseDistribution] = {}
        self._ended: dict[int, _Seen] = {}
        self._running: list[_Seen] = []

    def see(self, trials: Iterable[FrozenTrial]) -> None:
        """Add what these trials show. Trials that had ended when they were seen are not read again."""
        self._running = []
        for trial in trials:
            if trial.number in self._ended or trial.state is TrialState.WAITING:
                continue
            for name, distribution in trial.distributions.items():
                self.latest[name] = distribution
                known = self._hulls.get(name, distribution)
                self._hulls[name] = known if known == distribution else _hull(known, distribution)
            seen = _Seen(
                {name: values_of.encode(one, trial.params[name]) for name, one in trial.distributions.items()},
                is_whole=trial.state is TrialState.COMPLETE,
            )
            if trial.state.is_finished():
                self._ended[trial.number] = seen
            else:
                self._running.append(seen)

    def parameters(self, known: Mapping[str, Parameter], defaults: Mapping[str, Any]) -> list[Parameter]:
        """Return the parameters of the space.

        Args:
            known: the parameters of Trimtab's space by their names there. They keep their defaults, and the parents of
                their conditions as long as no trial contradicts them.
            defaults: the values of the default configuration, by Optuna's names.
        """
        made = {name: values_of.to_parameter(name, one) for name, one in self._hulls.items()}
        conditions = self._conditions(made, known)
        found = []
        for name, parameter in made.items():
            before = known.get(parameter.name)
            default = None if before is None else before.default
            if before is None and name in defaults:
                default = parameter.cast(values_of.encode(self._hulls[name], defaults[name]))
            when = conditions.get(name)
            found.append(replace(parameter, default=default, optional=True, when=when))
        return found

    def _conditions(
        self, made: Mapping[str, Parameter], known: Mapping[str, Parameter]
    ) -> dict[str, tuple[str, tuple[Scalar, ...]]]:
        """Return the parent of each conditional parameter, by its name in Trimtab, with the values that activate it."""
        trials = [*self._ended.values(), *self._running]
        if len(made) > MOST_COMPARED:
            return {}
        domains = {name: domain for name, one in made.items() if len(domain := _domain(one)) > 1}
        found = {}
        for name in made:
            with_it = [trial.values for trial in trials if name in trial.values]
            without = [trial.values for trial in trials if trial.is_whole and name not in trial.values]
            if not without:
                continue
            parents = [one for one in domains if one != name and all(_comes_first(one, name, each) for each in with_it)]
            explained = [
                (parent, values)
                for parent in parents
                if (values := _activating(parent, domains[parent], with_it, without)) is not None
            ]
            if explained:
                before = known.get(made[name].name)
                when = before.when if before is not None else None
                parent, values = min(
                    explained,
                    key=lambda one: (
                        not (isinstance(when, tuple) and when[0] == made[one[0]].name),
                        sum(one[0] not in trial for trial in without),
                        isinstance(made[one[0]], Int),
                    ),
                )
                found[name] = (made[parent].name, values)
        return found


def _activating(
    parent: str,
    domain: tuple[Scalar, ...],
    with_it: Iterable[Mapping[str, Scalar]],
    without: Iterable[Mapping[str, Scalar]],
) -> tuple[Scalar, ...] | None:
    """Return the values of `parent` with which a parameter may appear: all but those with which it never did.

    Return None if a value has both, so that something else decides.
    """
    on = {repr(trial[parent]) for trial in with_it}
    off = {repr(trial[parent]) for trial in without if parent in trial}
    values = tuple(value for value in domain if repr(value) not in off)
    return values if values and not on & off else None


def _comes_first(parent: str, name: str, values: Mapping[str, Scalar]) -> bool:
    """Return whether a trial that has the parameter `name` has asked for `parent` before."""
    for one in values:
        if one in (parent, name):
            return one == parent
    return False


def _domain(parameter: Parameter) -> tuple[Scalar, ...]:
    """Return the values of a parameter that can decide on another one; none if they are too many."""
    match parameter:
        case Bool():
            return (False, True)
        case Categorical(values=values) if len(values) <= MOST_PARENT_VALUES:
            return tuple(values)
        case Int(min=low, max=high, step=step) if (high - low) // (step or 1) < MOST_PARENT_VALUES:
            return tuple(range(low, high + 1, step or 1))
        case _:
            return ()


def _hull(first: BaseDistribution, second: BaseDistribution) -> BaseDistribution:
    """Return a distribution that contains both. Optuna allows other ranges, but no other kind and no other choices."""
    if isinstance(first, FloatDistribution) and isinstance(second, FloatDistribution):
        low, high = min(first.low, second.low), max(first.high, second.high)
        return FloatDistribution(low, high, log=first.log or second.log, step=_float_step(first, second))
    if isinstance(first, IntDistribution) and isinstance(second, IntDistribution):
        low, high = min(first.low, second.low), max(first.high, second.high)
        log = first.log or second.log
        steps = [one.step for one in (first, second) if not one.single()]
        step = math.gcd(*steps, abs(first.low - second.low)) if steps and not log else 1
        return IntDistribution(low, high, log=log, step=step)
    return first


def _float_step(first: FloatDistribution, second: FloatDistribution) -> float | None:
    """Return the step of the grid that contains both; None: only a continuum does."""
    steps = {one.step for one in (first, second) if not one.single()}
    step = steps.pop() if len(steps) == 1 else None
    if step is None:
        return None
    shift = (first.low - second.low) / step
    return step if abs(shift - round(shift)) < 1e-8 else None
