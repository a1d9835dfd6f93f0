"""`auto`: the choice of the algorithm that suits a problem, with the reason. This module imports no algorithm.

The choice depends only on the problem, the budget and the number of trials at once, so it does not change during a
study. It follows from measurements on functions of 5 to 20 parameters on grids, continua and choices:

- With up to 300 trials `gp` was better than all others on three of four functions, and with noise in batches of 64 it
  was better than `ga` on two of four. A suggestion takes some hundredths of a second, at 500 trials a few tenths, and
  with two objectives seconds.
- With 1,000 to 2,000 trials `cmaes` and `ga` give good results for a thousandth of a second per suggestion. Under noise
  `cmaes` was better, and also on most functions with one trial at a time. With 50 trials at once `ga` was better, and
  far better if parameters depend on others, which `cmaes` cannot model.
- `tpe` was the best on one of these functions, at 10 to 100 milliseconds per suggestion; it is not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.core.errors import JsonValue
from service.core.problem import Problem
from service.core.reasons import Reason

# With at most this many configurations, a model is of no use.
_TINY = 20
# Limits on trials and on trials at once for which a model's suggestions are fast enough; then for several objectives.
_MOST_TRIALS, _MOST_AT_ONCE = 2000, 128
_MOST_TRIALS_OF_SEVERAL, _MOST_AT_ONCE_OF_SEVERAL = 500, 32
# With more trials at once than this, most draws of `cmaes` would come from an old generation.
_MANY_AT_ONCE = 16


@dataclass(frozen=True)
class Choice:
    """An algorithm by name, with its options and, if `auto` chose it, a clause with the reason."""

    name: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    reason: str = ""


def choose(problem: Problem, *, budget: int | None, parallelism: int | None, timed: bool = False) -> Choice:
    """Return the algorithm for a problem, with the options that differ from their defaults.

    `budget`: the number of trials. `parallelism`: the number of trials at once. None: unknown or unlimited. `timed`:
    whether time or node-hours are limited; a budget of trials takes precedence.
    """
    size, at_once = problem.space.cardinality(), parallelism or 1
    several = len(problem.objectives) > 1
    if not problem.noisy and size is not None and size <= min(_TINY, budget or 0):
        text = f"without noise, the budget is enough to measure each of {_count(size)} once"
        return Choice("grid", {}, Reason(text, "grid_fits", configurations=size))
    most = _MOST_TRIALS_OF_SEVERAL if several else _MOST_TRIALS
    most_at_once = _MOST_AT_ONCE_OF_SEVERAL if several else _MOST_AT_ONCE
    long = f"a budget of {budget} trials" if budget is not None and budget > most else None
    wide = f"{at_once} trials at once" if at_once > most_at_once else None
    if long is None and wide is None:
        if timed and budget is None and not several and not problem.context:
            text = "with one objective and a budget of time, a model of what was measured saves most trials"
            return Choice("gp", {"per_second": True}, Reason(f"{text} and prefers quick ones", "model_saves_time"))
        of = f"{len(problem.objectives)} objectives" if several else "one objective"
        trials = f"a budget of {budget} trials" if budget is not None else "a budget that is not known"
        text = f"with {of} and {trials}, a model of what was measured saves most of them"
        return Choice("gp", {}, Reason(text, "model_saves", objectives=len(problem.objectives), trials=budget))
    much = " and ".join(one for one in (long, wide) if one is not None)
    # Clients name only what makes a model too slow.
    sizes: dict[str, JsonValue] = {"trials": budget if long else None, "at_once": at_once if wide else None}
    if several:
        text = f"for {much}, a model of {len(problem.objectives)} objectives is too slow"
        return Choice("nsga2", {}, Reason(text, "model_slow", objectives=len(problem.objectives), **sizes))
    reason = f"for {much}, a model would cost more time than it saves"
    if any(parameter.condition is not None for parameter in problem.space.parameters):
        text = f"{reason}; parameters that depend on others suit a genetic algorithm"
        return Choice("ga", {}, Reason(text, "ga_depends", **sizes))
    if at_once > _MANY_AT_ONCE and not problem.noisy:
        text = f"{reason}; a genetic algorithm learns from each trial as it comes"
        return Choice("ga", {}, Reason(text, "ga_at_once", **sizes))
    options: dict[str, JsonValue] = {"population": min(at_once, 1000)} if at_once > _MANY_AT_ONCE else {}
    kind = "averages noise over whole generations" if problem.noisy else "adapts to the shape of the objective"
    text = f"{reason}; CMA-ES {kind}"
    return Choice("cmaes", options, Reason(text, "cmaes_averages" if problem.noisy else "cmaes_adapts", **sizes))


def _count(size: int) -> str:
    return "one configuration" if size == 1 else f"{size} configurations"
