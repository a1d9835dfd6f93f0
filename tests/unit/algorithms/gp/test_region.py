from __future__ import annotations

import numpy as np

from service.algorithms.gp.region import Region
from service.core.encoding import Encoding
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
    for row in np.vstack([region.vary(rows, random, (-2.0, 0.0)), region.pool(rows[:3], 64, random)]):
        configuration = space.validate(region.settle(row))
        assert configuration["count"] == 4
        assert configuration["algorithm"] == "forest"
        assert configuration["x"] == 0.3


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
