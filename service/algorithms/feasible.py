"""The feasible configurations from which an ask may draw, or the error that says why there are none."""

from __future__ import annotations

from collections.abc import Mapping

from service.core.errors import InvalidInput, shorten
from service.core.feasibility import FeasibleSet, feasible_set
from service.core.space import Scalar, Space


def feasible_part(space: Space, fixed: Mapping[str, Scalar]) -> FeasibleSet:
    """Return the feasible configurations with the fixed values.

    Raises InvalidInput (field `fixed.<name>`) for a value that no configuration can have. With the code
    `no_feasible_configuration` the constraints rule out every configuration. With `no_feasible_configuration_found`
    none was found, and a feasible default would help.
    """
    found = feasible_set(space.restrict(fixed))
    if found.existence == "known":
        return found
    constraints = "; ".join(constraint.text for constraint in space.constraints)
    if fixed:
        field, value = "fixed", ", ".join(f"{name} = {one!r}" for name, one in fixed.items())
    else:
        field, value = "constraints", constraints
    shown = shorten(constraints, 300)
    if found.existence == "none":
        allowed = "constraints that some configuration meets"
        problem = f"leaves no feasible configuration: every configuration breaks the constraints ({shown})"
        raise InvalidInput(field, value, allowed, problem=problem, code="no_feasible_configuration")
    allowed = "defaults that meet the constraints, from which the search can begin"
    problem = f"may leave feasible configurations, but none was found in {found.tries} tries ({shown})"
    raise InvalidInput(field, value, allowed, problem=problem, code="no_feasible_configuration_found")
