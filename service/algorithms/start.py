"""How every study begins."""

from __future__ import annotations

from collections.abc import Mapping

from service.core.parameters import identity
from service.core.space import Configuration, Scalar, Space


def default_first(space: Space, fixed: Mapping[str, Scalar] | None = None) -> Configuration | None:
    """The configuration to measure first, whatever the designer: the default, against which gains are judged.

    None where no parameter was given a default (a derived one means nothing to the user), where the default breaks a
    constraint, or where it has not the fixed values. It is the caller's to hand out, once in a study; designers that
    use history then see it as a trial.
    """
    if not space.has_explicit_default:
        return None
    default = space.default()
    for name, value in (fixed or {}).items():
        if name not in default or identity(default[name]) != identity(value):
            return None
    return default if space.feasible(default) else None
