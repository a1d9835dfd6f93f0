"""Functions to minimise, over spaces that resemble those of computer systems. All are synthetic.

Most continuous functions are standard ones. Their boxes are moved, so that no optimum is in the centre or in a corner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Space,
)

Function = Callable[[Configuration], float]
Vector = Sequence[float]

_HARTMANN_WEIGHTS = (1.0, 1.2, 3.0, 3.2)
_HARTMANN_SCALES = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_HARTMANN_CENTRES = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)
_SHEKEL_CENTRES = ((4, 4, 4, 4), (1, 1, 1, 1), (8, 8, 8, 8), (6, 6, 6, 6), (3, 7, 3, 7), (2, 9, 2, 9), (5, 5, 3, 3))
_SHEKEL_WIDTHS = (0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3)


def branin(x: Vector) -> float:
    """Three equal minima, of 0.397887."""
    bend = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


def hartmann(x: Vector) -> float:
    """Six dimensions matter, whatever the length of x; the minimum is -3.322368."""
    parts = (
        weight * math.exp(-sum(s * (v - c) ** 2 for s, v, c in zip(scales, x[:6], centres, strict=True)))
        for weight, scales, centres in zip(_HARTMANN_WEIGHTS, _HARTMANN_SCALES, _HARTMANN_CENTRES, strict=True)
    )
    return -sum(parts)


def ackley(x: Vector) -> float:
    """Waves in a funnel; the minimum is 0."""
    radius = math.sqrt(sum(v * v for v in x) / len(x))
    waves = sum(math.cos(2 * math.pi * v) for v in x) / len(x)
    return 20 + math.e - 20 * math.exp(-0.2 * radius) - math.exp(waves)


def rosenbrock(x: Vector) -> float:
    """A curved valley; the minimum is 0."""
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def levy(x: Vector) -> float:
    """Waves on a slope; the minimum is 0."""
    w = [1 + (v - 1) / 4 for v in x]
    middle = sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
    return math.sin(math.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)


def styblinski(x: Vector) -> float:
    """Two valleys in each dimension; the minimum is 0."""
    return sum(0.5 * (v**4 - 16 * v**2 + 5 * v) + 39.16616570377142 for v in x)


def griewank(x: Vector) -> float:
    """Small waves in a wide bowl; the minimum is 0."""
    waves = math.prod(math.cos(v / math.sqrt(place)) for place, v in enumerate(x, 1))
    return sum(v * v for v in x) / 4000 - waves + 1


def rastrigin(x: Vector) -> float:
    """Large waves in a bowl; the minimum is 0."""
    return sum(v * v - 10 * math.cos(2 * math.pi * v) + 10 for v in x)


def dixon(x: Vector) -> float:
    """A valley whose dimensions follow each other; the minimum is 0."""
    return (x[0] - 1) ** 2 + sum(place * (2 * b * b - a) ** 2 for place, (a, b) in enumerate(pairwise(x), 2))


def zakharov(x: Vector) -> float:
    """A plate; the minimum is 0."""
    slope = sum(0.5 * place * v for place, v in enumerate(x, 1))
    return sum(v * v for v in x) + slope**2 + slope**4


def shekel(x: Vector) -> float:
    """Seven narrow holes; the minimum is -10.402941."""
    return -sum(
        1 / (sum((v - c) ** 2 for v, c in zip(x, centre, strict=True)) + width)
        for centre, width in zip(_SHEKEL_CENTRES, _SHEKEL_WIDTHS, strict=True)
    )


def michalewicz(x: Vector) -> float:
    """Steep valleys; the minimum in five dimensions is -4.687658."""
    return -sum(math.sin(v) * math.sin(place * v * v / math.pi) ** 20 for place, v in enumerate(x, 1))


def box(function: Callable[[Vector], float], count: int, low: float, high: float) -> tuple[Space, Function]:
    """Return a continuous function over a box."""
    space = Space.build([FloatParameter(f"x{place}", low, high) for place in range(count)])
    return space, lambda configuration: function([float(configuration[name]) for name in space.names()])


def stepped(function: Callable[[Vector], float], floats: int, ints: int, low: int, high: int) -> tuple[Space, Function]:
    """Return a function over a box of which some dimensions are integers."""
    parts: list[Parameter] = [FloatParameter(f"x{place}", low, high) for place in range(floats)]
    parts += [IntParameter(f"n{place}", low, high) for place in range(ints)]
    space = Space.build(parts)
    return space, lambda configuration: function([float(configuration[name]) for name in space.names()])


def server() -> tuple[Space, Function]:
    """Return a small tuning problem: each algorithm has its own best rate, the best share moves with the block size."""
    offsets = {"lz": (0.8, -2.0), "hash": (0.0, -1.0), "sort": (0.3, 0.5), "tree": (1.2, -0.5)}
    blocks = (4, 16, 64, 256, 1024)
    space = Space.build(
        [
            FloatParameter("rate", 1e-3, 10, log=True),
            FloatParameter("share", 0, 1),
            IntParameter("threads", 1, 16),
            OrdinalParameter("block", blocks),
            CategoricalParameter("algorithm", tuple(offsets)),
            BoolParameter("huge"),
        ]
    )

    def cost(configuration: Configuration) -> float:
        offset, rate = offsets[str(configuration["algorithm"])]
        block = blocks.index(int(configuration["block"]))
        wrong = bool(configuration["huge"]) != (configuration["algorithm"] in ("hash", "tree"))
        return (
            offset
            + (math.log10(float(configuration["rate"])) - rate) ** 2
            + 4 * (float(configuration["share"]) - 0.3 - 0.1 * block) ** 2
            + 0.5 * ((int(configuration["threads"]) - 11) / 5) ** 2
            + 0.15 * (block - 3) ** 2
            + 0.4 * wrong
        )

    return space, cost


def mixed(seed: int, floats: int, ints: int, choices: int, flags: int) -> tuple[Space, Function]:
    """Return a random function of parameters of all kinds: bowls, pairs that depend on each other, and a choice each.

    The parameters differ in their influence by a factor of ten or more.
    """
    random = np.random.default_rng([seed, 77])
    parts: list[Parameter] = [FloatParameter(f"x{place}", 0, 1) for place in range(floats)]
    parts += [IntParameter(f"n{place}", 1, 256, log=True) for place in range(ints)]
    parts += [CategoricalParameter(f"c{place}", ("a", "b", "c", "d")) for place in range(choices)]
    parts += [BoolParameter(f"f{place}") for place in range(flags)]
    space = Space.build(parts)
    numeric, count = floats + ints, floats + ints + choices + flags
    weights = np.exp(random.uniform(math.log(0.1), math.log(2), count))
    centres = random.uniform(0.1, 0.9, numeric)
    levels = [np.append(0.0, random.uniform(0.3, 1.0, 3))[random.permutation(4)] for _ in range(choices)]
    wanted = random.random(flags) < 0.5
    pairs = [tuple(random.choice(numeric, 2, replace=False)) for _ in range(numeric // 2)]

    def cost(configuration: Configuration) -> float:
        at = [float(configuration[f"x{place}"]) for place in range(floats)]
        at += [math.log(int(configuration[f"n{place}"])) / math.log(256) for place in range(ints)]
        away = np.array(at) - centres
        chosen = ["abcd".index(str(configuration[f"c{place}"])) for place in range(choices)]
        total = float(weights[:numeric] @ (4 * away**2))
        total += sum(float((away[a] + away[b]) ** 2) for a, b in pairs)
        total += sum(float(weights[numeric + place] * levels[place][one]) for place, one in enumerate(chosen))
        wrong = [bool(configuration[f"f{place}"]) != wanted[place] for place in range(flags)]
        return total + float(weights[numeric + choices :] @ (0.5 * np.array(wrong, dtype=float)))

    return space, cost


def conditional(seed: int, branches: int, each: int) -> tuple[Space, Function]:
    """Return a function in which a choice activates parameters of its own; each branch has another best value."""
    random = np.random.default_rng([seed, 78])
    names = tuple("abcdef"[:branches])
    parts: list[Parameter] = [CategoricalParameter("engine", names), FloatParameter("load", 0, 1)]
    for name in names:
        when = Condition("engine", (name,))
        parts += [FloatParameter(f"{name}{place}", 0, 1, condition=when) for place in range(each)]
    offsets = dict(zip(names, random.permutation(np.linspace(0.0, 0.6, branches)), strict=True))
    centres = {name: random.uniform(0.15, 0.85, each) for name in names}
    weights = {name: np.exp(random.uniform(math.log(0.3), math.log(3), each)) for name in names}
    load = float(random.uniform(0.2, 0.8))
    space = Space.build(parts)

    def cost(configuration: Configuration) -> float:
        name = str(configuration["engine"])
        at = np.array([float(configuration[f"{name}{place}"]) for place in range(each)])
        total = float(offsets[name]) + float(weights[name] @ (at - centres[name]) ** 2)
        return total + 2 * (float(configuration["load"]) - load) ** 2

    return space, cost


def compiler(seed: int, count: int, relevant: int) -> tuple[Space, Function]:
    """Return a function of many flags: some help, some harm, most do nothing, and some pairs work only together."""
    random = np.random.default_rng([seed, 79])
    space = Space.build([BoolParameter(f"f{place}") for place in range(count)])
    chosen = random.permutation(count)[:relevant]
    effects = random.choice([-1.0, 1.0], relevant) * np.exp(random.normal(math.log(0.1), 0.8, relevant))
    pairs = [tuple(random.choice(relevant, 2, replace=False)) for _ in range(relevant // 2)]
    together = random.normal(0, 0.15, len(pairs))

    def cost(configuration: Configuration) -> float:
        on = np.array([bool(configuration[f"f{place}"]) for place in chosen], dtype=float)
        both = np.array([on[a] * on[b] for a, b in pairs])
        return float(effects @ on + together @ both)

    return space, cost


def grid(seed: int, sizes: Sequence[int]) -> tuple[Space, Function]:
    """Return a function on a small grid, like a cache whose effect ends once everything fits into it."""
    random = np.random.default_rng([seed, 80])
    space = Space.build([OrdinalParameter(f"o{place}", tuple(range(size))) for place, size in enumerate(sizes)])
    knees, weights = random.uniform(0.3, 0.9, len(sizes)), random.uniform(0.2, 1.0, len(sizes))
    costs = random.uniform(0.05, 0.4, len(sizes))

    def cost(configuration: Configuration) -> float:
        at = np.array([int(configuration[f"o{place}"]) / (size - 1) for place, size in enumerate(sizes)])
        short = np.maximum(knees - at, 0.0) / knees
        return float(weights @ short**1.5 + costs @ at + 0.5 * short[0] * short[-1])

    return space, cost
