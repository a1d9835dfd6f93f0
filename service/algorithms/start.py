"""The first configurations of a study."""

from __future__ import annotations

from collections.abc import Mapping

from service.algorithms import registry
from service.algorithms.base import NOTHING_FIXED
from service.core.parameters import identity
from service.core.problem import Problem
from service.core.space import Configuration, Scalar, Space

# A sequence may repeat itself in a small space.
_ATTEMPTS = 5


def default_first(space: Space, fixed: Mapping[str, Scalar] | None = None) -> Configuration | None:
    """Return the default configuration, which every study measures first because gains are relative to it.

    The result is None if no parameter has a given default (a derived default means nothing to the user), if the default
    breaks a constraint, or if it does not have the fixed values. The caller hands it out once in a study; algorithms
    that use history then see it as a trial.
    """
    if not space.has_explicit_default:
        return None
    default = space.default()
    for name, value in (fixed or {}).items():
        if name not in default or identity(default[name]) != identity(value):
            return None
    return default if space.feasible(default) else None


def start_design(
    name: str, problem: Problem, count: int, seed: int, fixed: Mapping[str, Scalar] = NOTHING_FIXED
) -> list[Configuration]:
    """Return `count` distinct configurations of a design, with which an algorithm begins before it learns.

    `name` is one of `registry.START_DESIGNS`; `fixed` are values that all of them must have. There are fewer if the
    constraints or a small space leave no more. The algorithm hands out, in this order, the configurations that are
    neither measured nor pending.

    Raises InvalidInput as `Algorithm.suggest` does.
    """
    known = {option.name for option in registry.describe(name).options}
    options: dict[str, object] = {size: max(count, 2) for size in known & {"size", "block"}}
    if "centred" in known:
        # [robert-2021, definition 6] puts each configuration into the centre of its cell.
        options["centred"] = True
    algorithm = registry.create(name, problem, seed=seed, options=options)
    found: dict[str, Configuration] = {}
    cursor = 0
    for _ in range(_ATTEMPTS):
        batch = algorithm.suggest(count - len(found), cursor=cursor, fixed=fixed)
        cursor = batch.cursor
        for configuration in batch.configurations:
            found.setdefault(problem.space.key(configuration), configuration)
        if len(found) == count or batch.exhausted or algorithm.uses_history:
            break
    return list(found.values())
