"""`auto`: which algorithm suits a problem, and why. Imports no algorithm.

The choice depends on the problem and on the two options alone, so it stays the same for as long as a study lives. What
is behind it was measured on functions of 5 to 20 parameters on grids, continua and choices:

- Up to 300 trials `gp` was ahead of all others on three of four, and with noise in batches of 64 of `ga` on two of
  four, for some hundredths of a second a suggestion, which grow to a few tenths at 500 trials; with two objectives it
  takes seconds.
- At 1,000 to 2,000 trials `cmaes` and `ga` get far for a thousandth of a second. Of these `cmaes` was ahead under
  noise, and on most functions when trials come one by one; `ga` was ahead with 50 at once, and by far where parameters
  depend on others, which `cmaes` cannot see.
- `tpe` was ahead on one of these functions, at 10 to 100 milliseconds a suggestion; it is not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.core.errors import JsonValue
from service.core.problem import Problem

# Of so few configurations a model has nothing to predict.
_TINY = 20
# Trials, and trials at once, for which a model's suggestions come quickly enough; and with several objectives.
_MOST_TRIALS, _MOST_AT_ONCE = 2000, 128
_MOST_TRIALS_OF_SEVERAL, _MOST_AT_ONCE_OF_SEVERAL = 500, 32
# From so many at once most children of `cmaes` would come from an old generation.
_MANY_AT_ONCE = 16


@dataclass(frozen=True)
class Choice:
    """An algorithm by name, with its options and, where `auto` chose it, a sentence that says why."""

    name: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    reason: str = ""


def choose(problem: Problem, *, budget: int | None, parallelism: int | None) -> Choice:
    """The algorithm for a problem. `options` are those that differ from its defaults.

    `budget`: how many trials there will be, `parallelism`: how many run at once; None: not known, or without a limit.
    """
    size, at_once = problem.space.cardinality(), parallelism or 1
    several = len(problem.objectives) > 1
    if not problem.noisy and size is not None and size <= min(_TINY, budget or 0):
        return Choice("grid", {}, f"without noise, the budget is enough to measure each of {_count(size)} once")
    most = _MOST_TRIALS_OF_SEVERAL if several else _MOST_TRIALS
    most_at_once = _MOST_AT_ONCE_OF_SEVERAL if several else _MOST_AT_ONCE
    long = f"a budget of {budget} trials" if budget is not None and budget > most else None
    wide = f"{at_once} trials at once" if at_once > most_at_once else None
    if long is None and wide is None:
        of = f"{len(problem.objectives)} objectives" if several else "one objective"
        trials = f"a budget of {budget} trials" if budget is not None else "a budget that is not known"
        return Choice("gp", {}, f"with {of} and {trials}, a model of what was measured saves most of them")
    much = " and ".join(one for one in (long, wide) if one is not None)
    if several:
        return Choice("nsga2", {}, f"for {much}, a model of {len(problem.objectives)} objectives is too slow")
    reason = f"for {much}, a model would cost more time than it saves"
    if any(parameter.condition is not None for parameter in problem.space.parameters):
        return Choice("ga", {}, f"{reason}; parameters that depend on others suit a genetic algorithm")
    if at_once > _MANY_AT_ONCE and not problem.noisy:
        return Choice("ga", {}, f"{reason}; a genetic algorithm learns from each trial as it comes")
    options: dict[str, JsonValue] = {"population": min(at_once, 1000)} if at_once > _MANY_AT_ONCE else {}
    kind = "averages noise over whole generations" if problem.noisy else "adapts to the shape of the objective"
    return Choice("cmaes", options, f"{reason}; CMA-ES {kind}")


def _count(size: int) -> str:
    return "one configuration" if size == 1 else f"{size} configurations"
