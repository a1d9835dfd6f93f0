"""The insight of a study: what its trials say about the parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.space import Params, Scalar


@dataclass(frozen=True)
class Curve:
    """The expected value of an objective at each level of a parameter, and its standard deviation."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]


@dataclass(frozen=True)
class Effect:
    """The effect of a parameter on an objective."""

    parameter: str
    importance: float
    """The share of the variance that the parameter explains alone, from 0 to 1."""
    deviation: float
    """The standard deviation of the importance."""
    levels: tuple[Scalar, ...]
    """The values of the parameter for the points of the curves."""
    average: Curve
    """The average over all values of the other parameters."""
    slice: Curve
    """The values with the other parameters as in the best configuration."""


@dataclass(frozen=True)
class Surface:
    """The joint effect of two parameters, with the others as in the best configuration."""

    first: str
    second: str
    importance: float
    """The share of the variance beyond what each of them explains alone."""
    first_levels: tuple[Scalar, ...]
    second_levels: tuple[Scalar, ...]
    mean: tuple[tuple[float, ...], ...]
    """A row for each level of `first`."""


@dataclass(frozen=True)
class ObjectiveInsight:
    """The insight into one objective."""

    metric: str
    configurations: int
    """The number of configurations that the model has learned from."""
    explained: float
    """The share of the variance of unseen configurations that the model explains; 0 or less: none."""
    best: Params
    effects: tuple[Effect, ...]
    """The most important parameter is the first."""
    surfaces: tuple[Surface, ...]


@dataclass(frozen=True)
class Insight:
    """The insight of a study."""

    finished: int
    """The number of finished trials when it was computed."""
    objectives: tuple[ObjectiveInsight, ...]
    """The objectives with enough different results."""


def insight_from_json(finished: int, data: Mapping[str, Any]) -> Insight:
    """Return the insight in the JSON form of the service."""
    return Insight(finished, tuple(map(_objective, data["objectives"])))


def _objective(data: Mapping[str, Any]) -> ObjectiveInsight:
    return ObjectiveInsight(
        metric=data["metric"],
        configurations=data["configurations"],
        explained=data["explained"],
        best=dict(data["best"]),
        effects=tuple(map(_effect, data["effects"])),
        surfaces=tuple(map(_surface, data["surfaces"])),
    )


def _effect(data: Mapping[str, Any]) -> Effect:
    return Effect(
        parameter=data["parameter"],
        importance=data["importance"],
        deviation=data["deviation"],
        levels=tuple(data["levels"]),
        average=_curve(data["average"]),
        slice=_curve(data["slice"]),
    )


def _curve(data: Mapping[str, Any]) -> Curve:
    return Curve(tuple(data["mean"]), tuple(data["deviation"]))


def _surface(data: Mapping[str, Any]) -> Surface:
    return Surface(
        first=data["first"],
        second=data["second"],
        importance=data["importance"],
        first_levels=tuple(data["first_levels"]),
        second_levels=tuple(data["second_levels"]),
        mean=tuple(map(tuple, data["mean"])),
    )
