"""How every study begins."""

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
    """The configuration to measure first, whatever the algorithm: the default, against which gains are judged.

    None where no parameter was given a default (a derived one means nothing to the user), where the default breaks a
    constraint, or where it has not the fixed values. It is the caller's to hand out, once in a study; algorithms that
    use history then see it as a trial.
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
    """The configurations with which an algorithm begins, before it learns: `count` distinct ones of a design.

    `name` is one of `registry.START_DESIGNS`; `fixed` are values that all of them must have. Fewer where constraints
    or a small space leave no more. The algorithm hands out, in this order, those that are not measured or pending yet.

    Raises InvalidInput as `Algorithm.suggest` does.
    """
    sizes = {option.name for option in registry.describe(name).options} & {"size", "block"}
    algorithm = registry.create(name, problem, seed=seed, options={size: max(count, 2) for size in sizes})
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
