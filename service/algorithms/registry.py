"""The designers by name, with what must be known of them before any is imported: torch costs seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from service.algorithms.base import Cost, Designer
from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.problem import Problem


@dataclass(frozen=True)
class Entry:
    """A designer: `implementation` is `module:Class`, imported by `create` alone."""

    name: str
    doc: str
    cost: Cost
    uses_history: bool
    implementation: str
    options: tuple[Option, ...] = ()
    most_objectives: int | None = None


# Options of `gp`; service/algorithms/gp/designer.py reads them.
GP_OPTIONS: tuple[Option, ...] = (
    Option(
        name="initial",
        type="int",
        default=None,
        doc="Space-filling trials before the first model; by default 6, or 4 for one parameter.",
        min=1,
        max=1000,
    ),
    Option(name="threads", type="int", default=1, doc="Threads for linear algebra in a worker.", min=1, max=64),
)

_ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name="gp",
            doc="Bayesian optimisation: Gaussian processes and log expected improvement with noise. Fewest trials.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.gp.designer:GpDesigner",
            options=GP_OPTIONS,
        ),
        Entry(
            name="random",
            doc="Independent uniform draws.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.doe:Random",
        ),
        Entry(
            name="sobol",
            doc="A scrambled Sobol sequence: fills the space evenly, however many trials there will be.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.doe:Sobol",
        ),
        Entry(
            name="lhs",
            doc="Latin hypercubes, one after the other: in each, every parameter's range is covered evenly.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.doe:LatinHypercube",
            options=(
                Option(
                    name="block",
                    type="int",
                    default=32,
                    doc="Configurations in one hypercube: best as many as there will be trials.",
                    min=2,
                    max=4096,
                ),
            ),
        ),
        Entry(
            name="grid",
            doc="Every configuration of the grid once, in order; then the space is exhausted.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.doe:Grid",
            options=(
                Option(
                    name="levels",
                    type="int",
                    default=5,
                    doc="Values of a parameter without a grid of its own, evenly spaced, both ends included.",
                    min=2,
                    max=10_000,
                ),
            ),
        ),
    )
}


def names() -> tuple[str, ...]:
    """All designers."""
    return tuple(_ENTRIES)


def describe(name: str) -> Entry:
    """What is known of a designer without importing it. Raises InvalidInput (field `algorithm.name`)."""
    entry = _ENTRIES.get(name)
    if entry is None:
        raise InvalidInput("algorithm.name", name, "one of " + ", ".join(_ENTRIES))
    return entry


def validate(name: str, options: Mapping[str, object], problem: Problem) -> dict[str, JsonValue]:
    """All options of the designer, exact, with defaults for those not given.

    Raises InvalidInput: `algorithm.name` for an unknown designer, or one that cannot have so many objectives;
    `algorithm.options.<name>` for an unknown option or a value out of range.
    """
    entry = describe(name)
    if entry.most_objectives is not None and len(problem.objectives) > entry.most_objectives:
        able = [one.name for one in _ENTRIES.values() if one.most_objectives is None]
        raise InvalidInput("algorithm.name", name, f"for {len(problem.objectives)} objectives: {', '.join(able)}")
    return complete(name, entry.options, options, "algorithm.options")


def create(name: str, problem: Problem, *, seed: int, options: Mapping[str, object]) -> Designer:
    """A new designer. Raises InvalidInput as `validate` does."""
    complete = validate(name, options, problem)
    module, _, class_name = describe(name).implementation.partition(":")
    designer: type[Designer] = getattr(import_module(module), class_name)
    return designer(problem, seed=seed, options=complete)
