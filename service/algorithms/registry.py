"""The algorithms by name, with what must be known of them before any is imported: torch costs seconds.

`auto` is no algorithm: it stands for the one that suits the problem. `resolve` says which that is, with its options and
the reason, without importing it; whoever must know the cost, whether history is used or which options apply asks
`describe` of the resolved name. `create` resolves by itself, and returns the algorithm that was chosen:

    chosen = registry.resolve("auto", problem, {}, budget=100, parallelism=4)
    registry.describe(chosen.name).cost
    registry.create(chosen.name, problem, seed=seed, options=chosen.options)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType

from service.algorithms.auto import Choice, choose
from service.algorithms.base import Algorithm, Cost
from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.pareto import reference_point
from service.core.problem import Problem


@dataclass(frozen=True)
class Entry:
    """An algorithm: `implementation` is `module:Class`, imported by `create` alone.

    Cost and use of history of `auto` are the most that an algorithm of its choice has.
    """

    name: str
    doc: str
    cost: Cost
    uses_history: bool
    implementation: str
    options: tuple[Option, ...] = ()
    most_objectives: int | None = None
    opening: str = ""
    """The cheap algorithm whose suggestions a costly one begins with, for as long as its start design lasts."""


AUTO = "auto"
DEFAULT = AUTO
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})

# Names of the designs that an algorithm may begin with (`start.start_design`).
START_DESIGNS: tuple[str, ...] = (
    "random",
    "sobol",
    "lhs",
    "factorial",
    "fractional",
    "maximin",
    "minimax",
    "d-optimal",
    "i-optimal",
)

# Options that algorithms share.
START_DESIGN = Option(
    name="start_design",
    type="text",
    default="lhs",
    doc="The design of the first configurations, before anything is learned.",
    choices=START_DESIGNS,
)
_SIZE = Option(
    name="size",
    type="int",
    default=None,
    doc="Configurations chosen together; by default twice the number of parameters and two, within 10 to 100. "
    "Afterwards each is the best addition to those measured.",
    min=2,
    max=1000,
)
_INITIAL = Option(name="initial", type="int", default=10, doc="Configurations of the start design.", min=1, max=1000)
_LENGTHSCALE = Option(
    name="lengthscale",
    type="float",
    default=None,
    doc="How far a configuration tells of others, where each parameter's range is 1; by default 0.3 times the square "
    "root of the number of parameters.",
    min=0.01,
    max=100,
)

# Options of `gp`; service/algorithms/gp/algorithm.py reads them.
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
    Option(
        name="multi_objective",
        type="text",
        default=None,
        doc="With several objectives: the volume before a reference point, or a random weighting for each suggestion; "
        "by default the volume, or weightings where there are more than four.",
        choices=("hypervolume", "scalarise"),
    ),
    Option(
        name="reference_point",
        type="text",
        default=None,
        doc="What is just no longer of interest, a value for each objective: '120, 4096'; by default a little beyond "
        "the worst of the Pareto set.",
    ),
)

# Options of the heuristics; service/algorithms/{genetic,annealing,nsga2}.py read them.
GA_OPTIONS: tuple[Option, ...] = (
    _INITIAL,
    START_DESIGN,
    Option(name="population", type="int", default=20, doc="Individuals that can be parents.", min=2, max=10_000),
    Option(
        name="elitism",
        type="int",
        default=20,
        doc="So many of the best stay in the population for good; the others are those measured last.",
        min=0,
        max=10_000,
    ),
    Option(
        name="selection",
        type="text",
        default="tournament",
        doc="How parents are found: the best of random subsets, or with chances proportional to their fitness.",
        choices=("tournament", "roulette"),
    ),
    Option(name="tournament", type="int", default=5, doc="Members of each random subset.", min=1, max=10_000),
    Option(
        name="crossover",
        type="text",
        default="double",
        doc="Where parents are cut: at one place, at two, at `points`; or uniform, each value from either parent.",
        choices=("single", "double", "points", "uniform"),
    ),
    Option(name="points", type="int", default=3, doc="Cuts of the crossover `points`.", min=1, max=1000),
    Option(
        name="mutation",
        type="float",
        default=0.2,
        doc="The chance that a child moves to a neighbouring configuration.",
        min=0,
        max=1,
    ),
)
SA_OPTIONS: tuple[Option, ...] = (
    _INITIAL,
    START_DESIGN,
    Option(
        name="temperature",
        type="float",
        default=0.2,
        doc="The initial temperature. At 1, a step that is worse by the spread of the start is taken one time in e.",
        min=0,
    ),
    Option(
        name="cooling",
        type="text",
        default="exponential",
        doc="T after k steps: T0 * decay^k, T0 / (1 + rate * k), or T0 / (1 + rate * log(1 + k)).",
        choices=("exponential", "linear", "logarithmic"),
    ),
    Option(name="decay", type="float", default=0.95, doc="The decay of the exponential cooling.", min=0, max=1),
    Option(
        name="rate",
        type="float",
        default=None,
        doc="The rate of the other two; by default 0.1 for the linear cooling, 1 for the logarithmic.",
        min=0,
    ),
    Option(
        name="restart",
        type="text",
        default="none",
        doc="When the temperature goes back to the initial one: at random, or once it is below a threshold.",
        choices=("none", "random", "threshold"),
    ),
    Option(name="restarts", type="int", default=3, doc="At most so many restarts.", min=0, max=1_000_000),
    Option(
        name="restart_chance", type="float", default=0.05, doc="The chance of a random restart, a step.", min=0, max=1
    ),
    Option(
        name="restart_below",
        type="float",
        default=0.1,
        doc="The threshold of a restart, relative to the initial temperature.",
        min=0,
        max=1,
    ),
)
NSGA2_OPTIONS: tuple[Option, ...] = (
    _INITIAL,
    START_DESIGN,
    Option(name="population", type="int", default=16, doc="Members of each island's population.", min=2, max=1000),
    Option(name="mutation", type="float", default=0.05, doc="The chance that a gene mutates.", min=0, max=1),
    Option(
        name="islands",
        type="int",
        default=1,
        doc="Populations that evolve side by side; each needs a hundred trials or more to be of use.",
        min=1,
        max=1000,
    ),
    Option(
        name="migration",
        type="int",
        default=5,
        doc="Generations after which half of the islands send their first front to another one.",
        min=1,
        max=10_000,
    ),
)

_ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name=AUTO,
            doc="The algorithm that suits the size of the space, budget, noise, objectives and parallelism; mostly gp.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.auto:choose",
            options=(
                Option(
                    name="budget",
                    type="int",
                    default=None,
                    doc="How many trials there will be; by default as many as the study's budget.",
                    min=1,
                    max=10_000_000,
                ),
                Option(
                    name="parallelism",
                    type="int",
                    default=None,
                    doc="How many trials run at once; by default as many as the study's parallelism.",
                    min=1,
                    max=100_000,
                ),
            ),
        ),
        Entry(
            name="gp",
            doc="Bayesian optimisation: Gaussian processes and log expected improvement with noise. Fewest trials.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.gp.algorithm:GpAlgorithm",
            options=GP_OPTIONS,
            opening="sobol",
        ),
        Entry(
            name="smbo",
            doc="Surrogate-based search with an isotropic Gaussian process, scored over the whole grid; for comparison "
            "with gp.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.smbo:Smbo",
            options=(
                _INITIAL,
                START_DESIGN,
                Option(
                    name="acquisition",
                    type="text",
                    default="ei",
                    doc="Expected improvement, or the maximum probability of improvement.",
                    choices=("ei", "mpi"),
                ),
            ),
            most_objectives=1,
        ),
        Entry(
            name="cmaes",
            doc="CMA-ES with margins for grids and choices: many trials, few of them wasted on a model.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.cmaes:Cmaes",
            options=(
                replace(_INITIAL, default=None, doc="Configurations of the start design; by default one population."),
                START_DESIGN,
                Option(
                    name="population",
                    type="int",
                    default=None,
                    doc="Configurations of a generation; by default 4 and three times the logarithm of the parameters.",
                    min=4,
                    max=1000,
                ),
                Option(
                    name="sigma",
                    type="float",
                    default=0.3,
                    doc="Standard deviation of the first generation, where each parameter's range is 1.",
                    min=0.01,
                    max=1.0,
                ),
            ),
            most_objectives=1,
        ),
        Entry(
            name="tpe",
            doc="Tree-structured Parzen estimator (Optuna): many trials, many parameters, several objectives.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.tpe:Tpe",
            options=(
                _INITIAL,
                START_DESIGN,
                Option(
                    name="candidates",
                    type="int",
                    default=24,
                    doc="Draws from the density of good configurations, of which the most promising is taken.",
                    min=1,
                    max=1000,
                ),
            ),
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
        Entry(
            name="ga",
            doc="Genetic algorithm: each new configuration is a child of two good ones. Cheap to compute.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.genetic:Genetic",
            options=GA_OPTIONS,
            most_objectives=1,
        ),
        Entry(
            name="sa",
            doc="Simulated annealing: a random walk that takes steps to the worse ever more seldom. Cheap to compute.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.annealing:Annealing",
            options=SA_OPTIONS,
            most_objectives=1,
        ),
        Entry(
            name="nsga2",
            doc="NSGA-II with islands: evolves a Pareto set of several objectives. For many trials, many at once.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.nsga2:Nsga2",
            options=NSGA2_OPTIONS,
        ),
        Entry(
            name="factorial",
            doc="A full factorial: all combinations of a few levels of each parameter, in random order.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.designs:Factorial",
            options=(
                replace(
                    _SIZE, default=64, doc="At most so many combinations: each parameter has as many levels as fit."
                ),
            ),
        ),
        Entry(
            name="fractional",
            doc="A fraction of the factorial with two or three levels, by resolution, in random order.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.designs:Fractional",
            options=(
                replace(
                    _SIZE,
                    max=4096,
                    doc="At most so many combinations, for which the resolution is lowered if it must be; by default "
                    "as many as the resolution takes.",
                ),
                Option(name="levels", type="int", default=2, doc="Levels of each parameter.", min=2, max=3),
                Option(
                    name="resolution",
                    type="int",
                    default=None,
                    doc="3: main effects are told apart; 4: also from interactions of two; 5: those too. By default "
                    "the highest that the size allows, or 4.",
                    min=3,
                    max=5,
                ),
            ),
        ),
        Entry(
            name="maximin",
            doc="A Latin hypercube whose points are far from each other.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs:Maximin",
            options=(_SIZE,),
        ),
        Entry(
            name="minimax",
            doc="A Latin hypercube from which no configuration is far.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs:Minimax",
            options=(_SIZE,),
        ),
        Entry(
            name="d-optimal",
            doc="The most informative configurations for a Gaussian process (maximum entropy).",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs:DOptimal",
            options=(_SIZE, _LENGTHSCALE),
        ),
        Entry(
            name="i-optimal",
            doc="The configurations that leave a Gaussian process the least variance over the space (IMSE).",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs:IOptimal",
            options=(_SIZE, _LENGTHSCALE),
        ),
        Entry(
            name="shuffled-grid",
            doc="The grid in random order, once or several times over: for a table of exhaustive measurements.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.shuffled:ShuffledGrid",
            options=(
                Option(
                    name="replicates",
                    type="int",
                    default=None,
                    doc="How often each configuration is measured, each time in a new order; by default without end.",
                    min=1,
                    max=10_000,
                ),
                Option(
                    name="sample",
                    type="int",
                    default=None,
                    doc="So many configurations, drawn at random, in place of all.",
                    min=1,
                    max=1_000_000,
                ),
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
    """All algorithms."""
    return tuple(_ENTRIES)


def describe(name: str) -> Entry:
    """What is known of an algorithm without importing it. Raises InvalidInput (field `algorithm.name`)."""
    entry = _ENTRIES.get(name)
    if entry is None:
        raise InvalidInput("algorithm.name", name, "one of " + ", ".join(_ENTRIES))
    return entry


def validate(name: str, options: Mapping[str, object], problem: Problem) -> dict[str, JsonValue]:
    """All options of the algorithm, exact, with defaults for those not given.

    Raises InvalidInput: `algorithm.name` for an unknown algorithm, or one that cannot have so many objectives;
    `algorithm.options.<name>` for an unknown option or a value out of range.
    """
    entry = describe(name)
    if entry.most_objectives is not None and len(problem.objectives) > entry.most_objectives:
        able = [one.name for one in _ENTRIES.values() if one.most_objectives is None]
        raise InvalidInput("algorithm.name", name, f"for {len(problem.objectives)} objectives: {', '.join(able)}")
    found = complete(name, entry.options, options, "algorithm.options")
    if isinstance(point := found.get("reference_point"), str):
        reference_point(problem, point)
    return found


def resolve(
    name: str,
    problem: Problem,
    options: Mapping[str, object] = NO_OPTIONS,
    *,
    budget: int | None = None,
    parallelism: int | None = None,
) -> Choice:
    """The algorithm that `name` stands for, with all its options: for `auto` the one that it chooses, else itself.

    `budget` (trials) and `parallelism` (trials at once) are what the caller knows; the options of these names go first.
    The same arguments give the same choice. Raises InvalidInput as `validate` does.
    """
    found = validate(name, options, problem)
    if name != AUTO:
        return Choice(name, found)
    given = {"budget": budget, "parallelism": parallelism}
    wanted = {key: value for key, value in found.items() if isinstance(value, int)}
    chosen = choose(problem, **{**given, **wanted})
    return replace(chosen, options=validate(chosen.name, chosen.options, problem))


def create(name: str, problem: Problem, *, seed: int, options: Mapping[str, object]) -> Algorithm:
    """A new algorithm, for `auto` the one that it chooses. Raises InvalidInput as `validate` does."""
    chosen = resolve(name, problem, options)
    module, _, class_name = describe(chosen.name).implementation.partition(":")
    algorithm: type[Algorithm] = getattr(import_module(module), class_name)
    return algorithm(problem, seed=seed, options=chosen.options)
