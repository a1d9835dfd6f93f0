"""The check of a study's space against its component, which may accept fewer values than the space has.

Only agents know which values a component accepts, and this package does not import `service.fleet`. So the caller
passes the check as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from service.studies.specs import StudySpec
from service.tenancy.principal import Principal

SpaceCheck: TypeAlias = Callable[[Principal, StudySpec, Mapping[str, str]], None]
"""Raises InvalidInput if the component of a study does not accept all values of one of the named parameters.

The last argument maps each name to the field of the request that gives the parameter.
"""


def takes_all(principal: Principal, spec: StudySpec, places: Mapping[str, str]) -> None:
    """Accept every space."""


def places_of(spec: StudySpec) -> dict[str, str]:
    """Return the field of each parameter of a spec, by name."""
    return {name: f"space[{index}]" for index, name in enumerate(spec.space.names())}
