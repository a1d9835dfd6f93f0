"""What is tuned may take fewer values than a study's space has. Agents tell that, of which this room knows nothing: who
asks for a space says how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from service.studies.specs import StudySpec
from service.tenancy.principal import Principal

SpaceCheck: TypeAlias = Callable[[Principal, StudySpec, Mapping[str, str]], None]
"""Raises InvalidInput where what a study tunes does not take all values of some parameters of its space: those that are
named, each with its field in what was asked for."""


def takes_all(principal: Principal, spec: StudySpec, places: Mapping[str, str]) -> None:
    """Lets every space through."""


def places_of(spec: StudySpec) -> dict[str, str]:
    """The fields of a spec's parameters, by name."""
    return {name: f"space[{index}]" for index, name in enumerate(spec.space.names())}
