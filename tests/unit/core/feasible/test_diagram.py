import math
import time
from random import Random

import numpy as np
import pytest
from scipy.stats import chisquare

from service.core.errors import InvalidInput
from service.core.feasible.diagram import Diagram
from service.core.feasible.finite import Finite
from service.core.feasible.plan import INACTIVE
from service.core.feasible.work import TooLarge
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    Space,
)


def diagram_of(space: Space) -> Diagram:
    return Diagram(space.parameters, space.constraints, {})


def configurations(space: Space, diagram: Diagram, rows: np.ndarray) -> list[Configuration]:
    """The configurations of rows; a value that no constraint concerns is the first one."""
    found = []
    for row in rows.tolist():
        ranks = {name: max(rank, 0) for name, rank in zip(diagram.names, row, strict=True) if rank != INACTIVE}
        found.append({name: space[name].value_at(ranks[name]) for name in space.names() if name in ranks})
    return found


class Spaces:
    """Random spaces whose constraints have everything that the language has."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def space(self) -> Space:
        """Return a space; the constraints may leave nothing."""
        while True:
            parameters: list[Parameter] = []
            for index in range(self.random.randint(2, 5)):
                parameters.append(self.parameter(f"p{index}", parameters))
            texts = [one.name for one in parameters if isinstance(one, CategoricalParameter)]
            numbers = [one.name for one in parameters if one.name not in texts]
            if not numbers:
                continue
            try:
                return Space.build(
                    parameters, [self.constraint(numbers, texts) for _ in range(self.random.randint(1, 3))]
                )
            except InvalidInput:  # a constraint without a name
                continue

    def parameter(self, name: str, earlier: list[Parameter]) -> Parameter:
        condition = None
        if earlier and self.random.random() < 0.25:
            parent = self.random.choice(earlier)
            size = parent.size()
            assert size is not None
            values: list[Scalar] = [parent.value_at(rank) for rank in {self.random.randrange(size) for _ in range(2)}]
            condition = Condition(parent.name, tuple(values))
        least = self.random.randint(-3, 3)
        return self.random.choice(
            [
                IntParameter(name, least, least + self.random.randint(0, 6), condition=condition),
                IntParameter(name, least, least + self.random.randint(0, 6), condition=condition),
                BoolParameter(name, condition=condition),
                IntParameter(name, 1, 64, factor=2.0, condition=condition),
                FloatParameter(name, 0, 1, step=0.25, condition=condition),
                CategoricalParameter(name, ("a", "b", "c"), condition=condition),
                OrdinalParameter(name, (4, 1, True, 2.5), condition=condition),
            ]
        )

    def number(self, names: list[str], depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.25:
            constant = str(self.random.choice([0, 1, 2, 3, 5, 8, 0.5, 2.5]))
            return self.random.choice(names) if self.random.random() < 0.75 else constant
        if kind < 0.9:
            operation = self.random.choice(["+", "-", "*", "*", "+", "//", "%", "/"])
            return f"({self.number(names, depth - 1)} {operation} {self.number(names, depth - 1)})"
        if kind < 0.93:
            return f"(-{self.number(names, depth - 1)})"
        return f"({self.number(names, depth - 1)} ** {self.random.choice(['2', self.random.choice(names)])})"

    def comparison(self, names: list[str]) -> str:
        kind = self.random.random()
        if kind < 0.6:
            test = self.random.choice(["<", "<=", ">", ">=", "==", "==", "!="])
            return f"{self.number(names, 2)} {test} {self.number(names, 2)}"
        if kind < 0.75:
            return f"{self.number(names, 1)} <= {self.number(names, 1)} < {self.number(names, 1)}"
        if kind < 0.85:
            return f"{self.number(names, 1)} in [1, 2, {self.random.choice(names)}]"
        return f"{self.random.choice(names)} <= {self.random.choice(names)} <= {self.random.choice(names)}"

    def constraint(self, names: list[str], texts: list[str]) -> str:
        def one() -> str:
            of_text = bool(texts) and self.random.random() < 0.2
            return f'{self.random.choice(texts)} == "a"' if of_text else self.comparison(names)

        kind = self.random.random()
        if kind < 0.6:
            return one()
        if kind < 0.75:
            return f"{one()} or {one()}"
        if kind < 0.85:
            return f"{one()} and {one()}"
        if kind < 0.95 or len(texts) < 2:
            return f"not ({one()} or {one()})"
        return f"{texts[0]} != {texts[1]}"


@pytest.mark.parametrize("seed", range(6))
def test_has_each_feasible_configuration_once_whatever_the_constraints(seed: int) -> None:
    spaces = Spaces(seed)
    for _ in range(30):
        space = spaces.space()
        assert space.lattice is not None
        wanted = [one for _, one in space.lattice.walk(0) if one is not None]
        diagram = diagram_of(space)
        assert diagram.count == len(wanted), space
        if not wanted:
            continue
        rows = diagram.rows()
        assert sorted(map(repr, configurations(space, diagram, rows))) == sorted(map(repr, wanted)), space
        by_index = diagram.at(range(len(wanted)))
        assert sorted(by_index.tolist()) == sorted(rows.tolist())
        assert Finite(space.parameters, space.constraints).table(10_000) is not None
        assert space.enumerate(10_000) == wanted
        random = np.random.default_rng(seed)
        for some in (
            diagram.draw(random.random((20, len(diagram.names)))),
            diagram.nearest(rows[:5] + 1),
            diagram.near(rows[0], {diagram.names[0]}, 50, random),
        ):
            for one in configurations(space, diagram, some):
                space.validate(one)


def products(count: int, most: int, product: int) -> Space:
    names = [f"x{index}" for index in range(count)]
    return Space.build([IntParameter(name, 1, most) for name in names], [f"{' * '.join(names)} == {product}"])


@pytest.mark.parametrize(
    ("space", "count"),
    [
        (products(2, 4096, 4096), 13),
        (products(3, 512, 512), math.comb(11, 2)),
        (products(2, 10**6, 10**6), 49),
        (products(6, 2**20, 2**20), math.comb(25, 5)),
        (
            Space.build(
                [IntParameter("LS", 1, 4096), IntParameter("WPT", 1, 4096)],
                ["4096 % LS == 0", "(4096 // LS) % WPT == 0"],
            ),
            91,
        ),
        # As many as there are ways to put 300 or fewer things into 12 boxes.
        (
            Space.build(
                [IntParameter(f"x{n}", 0, 300) for n in range(12)],
                ["+".join(f"x{n}" for n in range(12)) + " <= 300"],
            ),
            math.comb(312, 12),
        ),
        (
            Space.build([IntParameter(f"x{n}", 200, 8000) for n in range(8)], [f"x{n} <= x{n + 1}" for n in range(7)]),
            math.comb(7808, 8),
        ),
        (Space.build([IntParameter(f"x{n}", 1, 300) for n in range(4)], ["x0 < x1 < x2 < x3"]), math.comb(300, 4)),
        (Space.build([IntParameter(f"x{n}", 1, 300) for n in range(4)], ["x3 > x2 > x1 > x0"]), math.comb(300, 4)),
        (Space.build([IntParameter("n", 1, 2**40), IntParameter("m", 1, 2**40)], ["n * m < 0"]), 0),
    ],
    ids=["two factors", "three", "million", "six", "divisors", "budget", "order", "strict", "falling", "none"],
)
def test_counts_the_spaces_of_kernels_and_process_grids(space: Space, count: int) -> None:
    started = time.thread_time()
    diagram = diagram_of(space)
    assert diagram.count == pytest.approx(count, rel=1e-12)
    # Far less than a second; the bound is for a machine that is busy.
    assert time.thread_time() - started < 20
    if count:
        for one in configurations(
            space, diagram, diagram.draw(np.random.default_rng(0).random((30, len(diagram.names))))
        ):
            space.validate(one)


def test_draws_are_uniform() -> None:
    space = products(3, 512, 512)
    diagram = diagram_of(space)
    drawn = diagram.draw(np.random.default_rng(1).random((5500, 3)))
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 55
    assert chisquare(counts).pvalue > 1e-4


def test_draws_on_a_logarithmic_scale_have_the_shares_of_the_scale() -> None:
    space = Space.build([IntParameter("n", 1, 8, log=True), IntParameter("m", 1, 2)], ["n + m != 3"])
    # Without constraints n has the share log((n + 1) / n) / log(9).
    drawn = space.finite.components[0].diagram
    assert drawn is not None
    rows = drawn.draw(np.random.default_rng(1).random((4000, 2)))
    values, counts = np.unique(rows[:, drawn.names.index("n")], return_counts=True)
    shares = np.log((values + 2) / (values + 1))
    shares[:2] /= 2.0  # n == 1 goes with m == 1 alone, n == 2 with m == 2
    assert chisquare(counts, counts.sum() * shares / shares.sum()).pvalue > 1e-4


def test_near_rows_differ_in_the_free_parameters_alone() -> None:
    diagram = diagram_of(products(3, 512, 512))
    row = np.array([7, 7, 7])
    near = diagram.near(row, {"x0", "x2"}, 100, np.random.default_rng(0))
    assert len(near) == 7
    fixed = diagram.names.index("x1")
    assert set(near[:, fixed].tolist()) == {7}
    assert len(diagram.near(row, {"x0", "x2"}, 3, np.random.default_rng(0))) == 3


def test_nearest_rows_keep_what_they_can() -> None:
    diagram = diagram_of(products(2, 4096, 4096))
    assert diagram.nearest(np.array([[63, 0], [60, 0], [4095, 4095]])).tolist() == [[63, 63], [63, 63], [4095, 0]]


def test_a_space_without_structure_is_too_large() -> None:
    names = [f"x{n}" for n in range(8)]
    space = Space.build([IntParameter(name, 1, 5000) for name in names], [f"{' % '.join(names)} == 1"])
    with pytest.raises(TooLarge):
        diagram_of(space)


def test_many_parameters_and_long_constraints_take_a_bounded_time() -> None:
    names = [f"x{n}" for n in range(60)]
    every = " + ".join(names)
    space = Space.build([IntParameter(name, 0, 3) for name in names], [f"{every} <= 40", f"{every} != 7"] * 4)
    started = time.thread_time()
    assert diagram_of(space).count > 1e20
    assert time.thread_time() - started < 30
