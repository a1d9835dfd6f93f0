from __future__ import annotations

import numpy as np

from service.algorithms.gp.candidates import Region, search
from service.core.encoding import Encoding, FloatArray
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Space,
)

CONDITIONAL = Space.build(
    [
        FloatParameter("depth", 0, 1, condition=Condition("algorithm", ("tree", "forest"))),
        CategoricalParameter("algorithm", ("hash", "tree", "forest")),
        IntParameter("count", 1, 9, condition=Condition("algorithm", ("forest",))),
        BoolParameter("fair", condition=Condition("count", (3, 4, 5))),
        IntParameter("log", 1, 4096, log=True),
        OrdinalParameter("block", (4, 16, 64)),
    ]
)


class Peak:
    """Largest at one row."""

    def __init__(self, top: FloatArray) -> None:
        self._top = top

    def score(self, rows: FloatArray) -> FloatArray:
        return np.asarray(-((rows - self._top) ** 2).sum(1), dtype=np.float64)

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.score(rows), -2.0 * (rows - self._top)


def test_candidate_rows_match_the_encoding_of_their_configurations() -> None:
    encoding = Encoding(CONDITIONAL)
    random = np.random.default_rng(0)
    region = Region(encoding, {})
    rows = region.spread(random.random((300, 6)))
    for found in (rows, region.vary(rows, random, (-3.0, 0.0))):
        again = encoding.encode(encoding.decode(found))
        # A grid of 4,096 values is finer than what is kept level by level.
        coarse = [place for place in range(encoding.dimension) if place != 4]
        np.testing.assert_allclose(found[:, coarse], again[:, coarse], atol=1e-12)
        np.testing.assert_allclose(found, again, atol=0.1)
    assert len({tuple(one) for one in encoding.decode(rows)}) >= 4, "every set of active parameters is drawn"


def test_fixed_values_hold_in_all_rows() -> None:
    space = Space.build([*CONDITIONAL.parameters, FloatParameter("x", 0.1, 0.7)])
    region = Region(Encoding(space), {"count": 4, "x": 0.3})
    random = np.random.default_rng(0)
    rows = region.spread(random.random((100, 7)))
    top = Encoding(space).encode([space.default()])[0]
    found, _ = search(Peak(top), region, rows[:3], random)
    for row in np.vstack([region.vary(rows, random, (-2.0, 0.0)), found]):
        configuration = space.validate(region.settle(row))
        assert configuration["count"] == 4
        assert configuration["algorithm"] == "forest"
        assert configuration["x"] == 0.3


def test_a_search_finds_the_top() -> None:
    space = Space.build(
        [
            FloatParameter("x", -2, 5),
            IntParameter("n", 1, 100),
            IntParameter("wide", 0, 10**9),
            CategoricalParameter("algorithm", ("a", "b", "c")),
            BoolParameter("huge"),
        ]
    )
    encoding = Encoding(space)
    top = space.validate({"x": 1.2345, "n": 77, "wide": 123456789, "algorithm": "b", "huge": True})
    region = Region(encoding, {})
    rows, values = search(
        Peak(encoding.encode([top])[0]), region, encoding.encode([space.default()]), np.random.default_rng(0)
    )
    assert (np.diff(values) <= 0.0).all()
    found = region.settle(rows[0])
    assert [found[name] for name in ("n", "algorithm", "huge")] == [77, "b", True]
    assert abs(float(found["x"]) - 1.2345) < 1e-2
    assert abs(int(found["wide"]) - 123456789) < 10**6


def test_a_search_climbs_to_the_edge_of_a_constraint() -> None:
    space = Space.build([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)], ["x + y <= 1"])
    region = Region(Encoding(space), {})
    rows, _ = search(Peak(np.array([0.9, 0.7])), region, np.zeros((0, 2)), np.random.default_rng(0))
    found = region.settle(rows[0])
    assert space.feasible(found)
    assert abs(float(found["x"]) - 0.6) < 0.05
    assert float(found["x"]) + float(found["y"]) > 0.99
    assert all(space.feasible(region.settle(row)) for row in rows)


def test_small_regions_are_listed_whole() -> None:
    space = Space.build([IntParameter("n", 1, 200), IntParameter("m", 1, 200)], ["n * m <= 400"])
    whole = Region(Encoding(space), {}).whole()
    assert whole is not None
    assert {(one["n"], one["m"]) for one in whole[0]} == {
        (n, m) for n in range(1, 201) for m in range(1, 201) if n * m <= 400
    }
    assert whole[1].shape == (len(whole[0]), 2)
    assert Region(Encoding(Space.build([IntParameter("n", 1, 50_001)])), {}).whole() is None
    assert Region(Encoding(Space.build([FloatParameter("x", 0, 1)])), {}).whole() is None
    fixed = Region(Encoding(Space.build([FloatParameter("x", 0, 1), BoolParameter("b")])), {"x": 0.25}).whole()
    assert fixed is not None
    assert fixed[0] == [{"x": 0.25, "b": False}, {"x": 0.25, "b": True}]
