"""The algorithms by name, with the facts about them that callers need before the import of an implementation.

Only `create` imports an implementation, because SciPy, Optuna, BoTorch and `cmaes` take up to seconds to import.

`auto` is not an algorithm but stands for the one that suits the problem. `resolve` returns that algorithm with its
options and the reason, without an import. Callers that need the cost, the use of history or the options pass the
resolved name to `describe`. `create` resolves the name itself and returns the chosen algorithm:

    chosen = registry.resolve("auto", problem, {}, budget=100, parallelism=4)
    registry.describe(chosen.name).cost
    registry.create(chosen.name, problem, seed=seed, options=chosen.options)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import MappingProxyType

from service.algorithms.auto import Choice, choose
from service.algorithms.base import Algorithm, Cost
from service.algorithms.botorch import options as botorch
from service.algorithms.entry import Entry
from service.algorithms.installed import installed
from service.core.errors import InvalidInput, JsonValue
from service.core.options import Option, complete
from service.core.pareto import reference_point
from service.core.problem import Problem

AUTO = "auto"
DEFAULT = AUTO
NO_OPTIONS: Mapping[str, object] = MappingProxyType({})

# Names of the designs with which an algorithm may begin (`start.start_design`).
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
    doc="Design of the first configurations, before the algorithm learns.",
    choices=START_DESIGNS,
)
_SIZE = Option(
    name="size",
    type="int",
    default=None,
    doc="Number of configurations that are chosen jointly. The default is twice the number of parameters plus two, "
    "within 10 to 100. Each later configuration is the best addition to the measured ones.",
    min=2,
    max=1000,
)
_INITIAL = Option(
    name="initial", type="int", default=10, doc="Number of configurations in the start design.", min=1, max=1000
)
_LENGTHSCALE = Option(
    name="lengthscale",
    type="float",
    default=None,
    doc="Distance over which configurations are similar, if each parameter's range is 1. The default is 0.3 times the "
    "square root of the number of parameters.",
    min=0.01,
    max=100,
)

_FILLING = Option(
    name="initial",
    type="int",
    default=None,
    doc="Number of space-filling trials before the first model. The default is 6, or 4 for one parameter.",
    min=1,
    max=1000,
)
_REFERENCE_POINT = Option(
    name="reference_point",
    type="text",
    default=None,
    doc="Values of the objectives that are just no longer of interest, such as '120, 4096'. The default is a "
    "little beyond the worst of the Pareto set.",
)

# Options of `gp`; service/algorithms/gp/algorithm.py reads them.
GP_OPTIONS: tuple[Option, ...] = (
    _FILLING,
    Option(
        name="threads", type="int", default=1, doc="Number of threads for linear algebra in a worker.", min=1, max=64
    ),
    Option(
        name="per_second",
        type="bool",
        default=False,
        doc="Divide the expected improvement by the time that the trial is expected to take. Useful if trials differ "
        "much in time and the budget is one of hours; `auto` then takes it for a single objective.",
    ),
    Option(
        name="multi_objective",
        type="text",
        default=None,
        doc="Method for several objectives: `hypervolume` improves the volume up to a reference point, `scalarise` "
        "improves a random weighting for each suggestion. The default is `hypervolume`, and `scalarise` for more than "
        "four objectives.",
        choices=("hypervolume", "scalarise"),
    ),
    _REFERENCE_POINT,
)

# Options of the heuristics; service/algorithms/classic/{genetic,annealing,nsga2}.py read them.
GA_OPTIONS: tuple[Option, ...] = (
    _INITIAL,
    START_DESIGN,
    Option(
        name="population",
        type="int",
        default=20,
        doc="Number of individuals that can be parents.",
        min=2,
        max=10_000,
    ),
    Option(
        name="elitism",
        type="int",
        default=20,
        doc="Number of best individuals that stay in the population. The other members are the latest individuals.",
        min=0,
        max=10_000,
    ),
    Option(
        name="selection",
        type="text",
        default="tournament",
        doc="Selection of parents: the best of random subsets, or at random in proportion to fitness.",
        choices=("tournament", "roulette"),
    ),
    Option(name="tournament", type="int", default=5, doc="Number of members of each random subset.", min=1, max=10_000),
    Option(
        name="crossover",
        type="text",
        default="double",
        doc="Crossover of two parents: with one cut, two cuts, `points` cuts, or each value from either parent.",
        choices=("single", "double", "points", "uniform"),
    ),
    Option(name="points", type="int", default=3, doc="Number of cuts of the crossover `points`.", min=1, max=1000),
    Option(
        name="mutation",
        type="float",
        default=0.2,
        doc="Probability that a child moves to a neighbouring configuration.",
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
        doc="Initial temperature. At 1, a step that is worse by the spread of the start design's values is accepted "
        "with probability 1 / e.",
        min=0,
    ),
    Option(
        name="cooling",
        type="text",
        default="exponential",
        doc="Temperature after it was lowered k times: T0 * decay^k, T0 / (1 + rate * k), or "
        "T0 / (1 + rate * log(1 + k)).",
        choices=("exponential", "linear", "logarithmic"),
    ),
    Option(name="decay", type="float", default=0.95, doc="Decay of the exponential cooling.", min=0, max=1),
    Option(
        name="steps",
        type="int",
        default=1,
        doc="Number of steps at each temperature, before it is lowered once.",
        min=1,
        max=10_000,
    ),
    Option(
        name="rate",
        type="float",
        default=None,
        doc="Rate of the linear or logarithmic cooling. The default is 0.1 for linear and 1 for logarithmic.",
        min=0,
    ),
    Option(
        name="restart",
        type="text",
        default="none",
        doc="Restart at the initial temperature: never, at random, or below a threshold of the temperature.",
        choices=("none", "random", "threshold"),
    ),
    Option(name="restarts", type="int", default=3, doc="Maximum number of restarts.", min=0, max=1_000_000),
    Option(
        name="restart_chance",
        type="float",
        default=0.05,
        doc="Probability of a random restart at each step.",
        min=0,
        max=1,
    ),
    Option(
        name="restart_below",
        type="float",
        default=0.1,
        doc="Threshold of a restart, relative to the initial temperature.",
        min=0,
        max=1,
    ),
)
NSGA2_OPTIONS: tuple[Option, ...] = (
    _INITIAL,
    START_DESIGN,
    Option(
        name="population",
        type="int",
        default=32,
        doc="Number of members of each island's population. [martinez-alvarez-2015, section 5] uses 32.",
        min=2,
        max=1000,
    ),
    Option(name="mutation", type="float", default=0.05, doc="Probability that a gene mutates.", min=0, max=1),
    Option(
        name="coding",
        type="text",
        default="value",
        doc="Genes: `value` has one gene for each parameter, which mutates to a neighbouring value. `binary` has one "
        "gene for each bit of the value's number, as in [martinez-alvarez-2015, section 4.1].",
        choices=("value", "binary"),
    ),
    Option(
        name="islands",
        type="int",
        default=1,
        doc="Number of populations that evolve in parallel. Each needs at least about a hundred trials to be useful.",
        min=1,
        max=1000,
    ),
    Option(
        name="migration",
        type="int",
        default=5,
        doc="Number of generations after which half of the islands send their first front to another island.",
        min=1,
        max=10_000,
    ),
)

_ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name=AUTO,
            doc="The algorithm that suits the space, budget, noise, objectives and parallelism; in most studies `gp`.",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.auto:choose",
            options=(
                Option(
                    name="budget",
                    type="int",
                    default=None,
                    doc="Number of trials. The default is the study's budget.",
                    min=1,
                    max=10_000_000,
                ),
                Option(
                    name="parallelism",
                    type="int",
                    default=None,
                    doc="Number of trials at once. The default is the study's parallelism.",
                    min=1,
                    max=100_000,
                ),
            ),
        ),
        Entry(
            name="gp",
            doc="Bayesian optimisation with Gaussian processes and noisy log expected improvement. Needs the fewest "
            "trials. [letham-2019] [ament-2023]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.gp.algorithm:GpAlgorithm",
            options=GP_OPTIONS,
            opening="sobol",
        ),
        Entry(
            name="botorch",
            doc="Bayesian optimisation with a model, acquisition function and optimiser of BoTorch, by their names; "
            "for experts, at a multiple of the cost of `gp`. [balandat-2020]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.botorch.algorithm:Botorch",
            options=(_FILLING, *botorch.OPTIONS, _REFERENCE_POINT),
            opening="sobol",
            check=botorch.check,
        ),
        Entry(
            name="smbo",
            doc="Sequential model-based optimisation with an isotropic Gaussian process, scored over the whole grid; "
            "for comparison with `gp`. [robert-2021, section 3.3.2]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.classic.smbo:Smbo",
            options=(
                _INITIAL,
                START_DESIGN,
                Option(
                    name="model",
                    type="text",
                    default="gp",
                    doc="Model of the measurements: a Gaussian process, or a random forest, which suits many "
                    "categorical parameters. [hutter-2011]",
                    choices=("gp", "forest"),
                ),
                Option(
                    name="acquisition",
                    type="text",
                    default="ei",
                    doc="Acquisition function: expected improvement, or maximum probability of improvement.",
                    choices=("ei", "mpi"),
                ),
            ),
            most_objectives=1,
        ),
        Entry(
            name="cmaes",
            doc="CMA-ES with margins for grids and choices; for many trials. [hamano-2025]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.classic.cmaes:Cmaes",
            options=(
                replace(
                    _INITIAL,
                    default=None,
                    doc="Number of configurations in the start design. The default is one population.",
                ),
                START_DESIGN,
                Option(
                    name="population",
                    type="int",
                    default=None,
                    doc="Number of configurations in a generation. The default is 4 plus three times the logarithm of "
                    "the number of parameters.",
                    min=4,
                    max=1000,
                ),
                Option(
                    name="sigma",
                    type="float",
                    default=0.3,
                    doc="Standard deviation of the first generation, if each parameter's range is 1.",
                    min=0.01,
                    max=1.0,
                ),
            ),
            most_objectives=1,
        ),
        Entry(
            name="tpe",
            doc="Tree-structured Parzen estimator (Optuna, extra `tpe` of the service); for many trials, many "
            "parameters and several objectives. [bergstra-2011]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.classic.tpe:Tpe",
            needs="optuna",
            extra="tpe",
            options=(
                _INITIAL,
                START_DESIGN,
                Option(
                    name="candidates",
                    type="int",
                    default=24,
                    doc="Number of draws from the density of good configurations; the most promising one is used.",
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
            implementation="service.algorithms.designs.sequences:Random",
        ),
        Entry(
            name="sobol",
            doc="A scrambled Sobol sequence, which fills the space evenly with any number of trials.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.designs.sequences:Sobol",
        ),
        Entry(
            name="lhs",
            doc="A sequence of Latin hypercubes, each of which covers every parameter's range evenly.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.designs.sequences:LatinHypercube",
            options=(
                Option(
                    name="block",
                    type="int",
                    default=32,
                    doc="Number of configurations in one hypercube; ideally the number of trials.",
                    min=2,
                    max=4096,
                ),
                Option(
                    name="centred",
                    type="bool",
                    default=False,
                    doc="Put each configuration into the centre of its cell, not at a random place in it.",
                ),
            ),
        ),
        Entry(
            name="grid",
            doc="Every configuration of the grid once, in order. Then the space is exhausted.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.designs.sequences:Grid",
            options=(
                Option(
                    name="levels",
                    type="int",
                    default=5,
                    doc="Number of evenly spaced values of a parameter without a grid, both ends included.",
                    min=2,
                    max=10_000,
                ),
            ),
        ),
        Entry(
            name="ga",
            doc="Genetic algorithm: each new configuration is a child of two good ones. Cheap to compute. "
            "[robert-2021, section 3.3.1]",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.classic.genetic:Genetic",
            options=GA_OPTIONS,
            most_objectives=1,
        ),
        Entry(
            name="sa",
            doc="Simulated annealing: a random walk that accepts worse configurations less and less often. Cheap to "
            "compute. [robert-2021, section 3.3.3]",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.classic.annealing:Annealing",
            options=SA_OPTIONS,
            most_objectives=1,
        ),
        Entry(
            name="nsga2",
            doc="NSGA-II with islands, which evolves the Pareto set of several objectives; for many trials, many at "
            "once. [deb-2002a]",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.classic.nsga2:Nsga2",
            options=NSGA2_OPTIONS,
        ),
        Entry(
            name="factorial",
            doc="A full factorial: all combinations of a few levels of each parameter, in random order.",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.designs.joint:Factorial",
            options=(
                replace(
                    _SIZE,
                    default=64,
                    doc="Maximum number of combinations; it limits the number of levels of each parameter.",
                ),
            ),
        ),
        Entry(
            name="fractional",
            doc="A fraction of the factorial with two or three levels and a given resolution, in random order. "
            "[box-1961]",
            cost=Cost.CHEAP,
            uses_history=True,
            implementation="service.algorithms.designs.joint:Fractional",
            options=(
                replace(
                    _SIZE,
                    max=4096,
                    doc="Maximum number of combinations; the resolution is reduced if necessary. The default is the "
                    "number that the resolution needs.",
                ),
                Option(name="levels", type="int", default=2, doc="Number of levels of each parameter.", min=2, max=3),
                Option(
                    name="resolution",
                    type="int",
                    default=None,
                    doc="3: main effects are distinct from each other. 4: they are also distinct from interactions of "
                    "two parameters. 5: these interactions are distinct from each other too. The default is the "
                    "highest resolution that the size allows, or 4.",
                    min=3,
                    max=5,
                ),
            ),
        ),
        Entry(
            name="maximin",
            doc="A Latin hypercube whose points are far from each other. [johnson-1990]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs.joint:Maximin",
            options=(_SIZE,),
        ),
        Entry(
            name="minimax",
            doc="A Latin hypercube that is near to every configuration. [johnson-1990]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs.joint:Minimax",
            options=(_SIZE,),
        ),
        Entry(
            name="d-optimal",
            doc="The most informative configurations for a Gaussian process (maximum entropy). [shewry-1987]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs.joint:DOptimal",
            options=(_SIZE, _LENGTHSCALE),
        ),
        Entry(
            name="i-optimal",
            doc="The configurations that leave a Gaussian process the least variance over the space (IMSE). "
            "[sacks-1989]",
            cost=Cost.COSTLY,
            uses_history=True,
            implementation="service.algorithms.designs.joint:IOptimal",
            options=(_SIZE, _LENGTHSCALE),
        ),
        Entry(
            name="shuffled-grid",
            doc="The grid in random order, once or several times, for a table of exhaustive measurements.",
            cost=Cost.CHEAP,
            uses_history=False,
            implementation="service.algorithms.designs.shuffled:ShuffledGrid",
            options=(
                Option(
                    name="replicates",
                    type="int",
                    default=None,
                    doc="Number of measurements of each configuration, each pass in a new order. The default is no "
                    "limit, and one without noise.",
                    min=1,
                    max=10_000,
                ),
                Option(
                    name="sample",
                    type="int",
                    default=None,
                    doc="Number of random configurations to measure instead of all.",
                    min=1,
                    max=1_000_000,
                ),
                Option(
                    name="levels",
                    type="int",
                    default=5,
                    doc="Number of evenly spaced values of a parameter without a grid, both ends included.",
                    min=2,
                    max=10_000,
                ),
            ),
        ),
    )
}


@cache
def _installed() -> Mapping[str, Entry]:
    """Return the algorithms of other installed packages."""
    return installed(_ENTRIES)


def _entries() -> Mapping[str, Entry]:
    return {**_ENTRIES, **_installed()}


def names() -> tuple[str, ...]:
    """Return the names of all algorithms."""
    return tuple(_entries())


def describe(name: str) -> Entry:
    """Return the entry of an algorithm without importing it. Raises InvalidInput (field `algorithm.name`)."""
    entry = _entries().get(name)
    if entry is None:
        raise InvalidInput("algorithm.name", name, "one of " + ", ".join(_entries()))
    return entry


def validate(name: str, options: Mapping[str, object], problem: Problem) -> dict[str, JsonValue]:
    """Return all options of the algorithm with exact values, and with defaults for options that are not given.

    Raises InvalidInput: `algorithm.name` for an unknown algorithm or one that cannot handle that many objectives,
    `algorithm.options.<name>` for an unknown option, a value out of range, or a value that does not suit the problem.
    """
    entry = describe(name)
    if entry.most_objectives is not None and len(problem.objectives) > entry.most_objectives:
        able = [one.name for one in _entries().values() if one.most_objectives is None]
        allowed = f"one of the algorithms for {len(problem.objectives)} objectives: {', '.join(able)}"
        raise InvalidInput("algorithm.name", name, allowed, problem="handles a single objective only")
    found = complete(name, entry.options, options, "algorithm.options")
    if isinstance(point := found.get("reference_point"), str):
        reference_point(problem, point)
    entry.check(problem, found)
    return found


def resolve(
    name: str,
    problem: Problem,
    options: Mapping[str, object] = NO_OPTIONS,
    *,
    budget: int | None = None,
    parallelism: int | None = None,
    timed: bool = False,
) -> Choice:
    """Return the algorithm for `name` with all of its options: the choice of `auto`, or else the named algorithm.

    `budget` (trials) and `parallelism` (trials at once) are the caller's values; options of the same names take
    precedence. `timed`: whether time is the budget where no number of trials is. The same arguments give the same
    choice. Raises InvalidInput as `validate` does.
    """
    found = validate(name, options, problem)
    if name != AUTO:
        return Choice(name, found)
    given = {"budget": budget, "parallelism": parallelism}
    wanted = {key: value for key, value in found.items() if isinstance(value, int)}
    chosen = choose(problem, **{**given, **wanted}, timed=timed)
    return replace(chosen, options=validate(chosen.name, chosen.options, problem))


def create(name: str, problem: Problem, *, seed: int, options: Mapping[str, object]) -> Algorithm:
    """Return a new algorithm, for `auto` the chosen one. Raises InvalidInput as `validate` and `check_installed` do."""
    chosen = resolve(name, problem, options)
    entry = describe(chosen.name)
    entry.check_installed()
    module, _, class_name = entry.implementation.partition(":")
    algorithm: type[Algorithm] = getattr(import_module(module), class_name)
    return algorithm(problem, seed=seed, options=chosen.options)
