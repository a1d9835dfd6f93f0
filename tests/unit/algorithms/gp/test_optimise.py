"""BoTorch's optimisers on a function whose top is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from service.algorithms.gp import optimise
from service.algorithms.gp.optimise import Search, best_of, isolated, maximised
from service.algorithms.gp.region import Region
from service.core.encoding import Encoding, FloatArray
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    Space,
)

MIXED = Space.build(
    [
        FloatParameter("x", -2, 5),
        IntParameter("n", 1, 100),
        IntParameter("wide", 0, 10**9),
        CategoricalParameter("algorithm", ("a", "b", "c")),
        BoolParameter("huge"),
    ]
)


class Peak(AcquisitionFunction):
    """Largest at one row."""

    def __init__(self, top: FloatArray) -> None:
        torch.nn.Module.__init__(self)
        self._top = torch.from_numpy(top)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - the name in BoTorch
        return -(X.squeeze(-2) - self._top).square().sum(-1)


def found_in(space: Space, top: FloatArray, incumbents: FloatArray, search: Search | None = None) -> FloatArray:
    region, random = Region(Encoding(space), {}), np.random.default_rng(0)
    with isolated(0):
        pool = region.pool(incumbents, 1024, random)
        return maximised(Peak(top), region, pool, search or Search(), random)


def test_a_search_of_a_mixed_space_finds_the_top() -> None:
    encoding = Encoding(MIXED)
    top = MIXED.validate({"x": 1.2345, "n": 77, "wide": 123456789, "algorithm": "b", "huge": True})
    rows = found_in(MIXED, encoding.encode([top])[0], encoding.encode([MIXED.default()]))
    (found,) = encoding.decode(rows[:1])
    assert [found[name] for name in ("n", "algorithm", "huge")] == [77, "b", True]
    assert abs(float(found["x"]) - 1.2345) < 1e-2
    assert abs(int(found["wide"]) - 123456789) < 10**6
    distance = ((rows - encoding.encode([top])) ** 2).sum(1)
    assert (np.diff(distance) >= 0.0).all(), "the best is first"


def test_fixed_values_stay_as_they_are() -> None:
    encoding = Encoding(MIXED)
    region, random = Region(encoding, {"x": 0.3, "n": 4}), np.random.default_rng(0)
    top = encoding.encode([{"x": 4.0, "n": 90, "wide": 10**8, "algorithm": "c", "huge": True}])[0]
    with isolated(0):
        rows = maximised(Peak(top), region, region.pool(np.zeros((0, 5)), 64, random), Search(), random)
    for row in rows[:20]:
        found = MIXED.validate(region.settle(row))
        assert (found["x"], found["n"]) == (0.3, 4)
    assert [region.settle(rows[0])[name] for name in ("algorithm", "huge")] == ["c", True]


def test_a_search_climbs_to_the_edge_of_a_constraint() -> None:
    space = Space.build([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)], ["x + y <= 1"])
    rows = found_in(space, np.array([0.9, 0.7]), np.zeros((0, 2)))
    region = Region(Encoding(space), {})
    found = region.settle(rows[0])
    assert abs(float(found["x"]) - 0.6) < 0.05
    assert float(found["x"]) + float(found["y"]) > 0.99
    assert all(space.feasible(region.settle(row)) for row in rows)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (Space.build([FloatParameter("x", 0, 1)]), "optimize_acqf"),
        (MIXED, "optimize_acqf_mixed_alternating"),
    ],
)
def test_the_search_is_by_the_optimiser_of_botorch_that_suits_the_space(
    space: Space, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def watched(name: str) -> Callable[..., Any]:
        real = getattr(optimise, name)

        def call(*given: Any, **options: Any) -> Any:
            called.append(name)
            return real(*given, **options)

        return call

    for name in ("optimize_acqf", "optimize_acqf_mixed_alternating", "optimize_acqf_discrete"):
        monkeypatch.setattr(optimise, name, watched(name))
    dimension = Encoding(space).dimension
    found_in(space, np.full(dimension, 0.5), np.zeros((0, dimension)))
    assert called == [expected]
    best_of(Peak(np.full(1, 0.5)), np.linspace(0, 1, 5)[:, None], Search())
    assert called == [expected, "optimize_acqf_discrete"]


def test_the_state_of_torch_is_restored() -> None:
    torch.manual_seed(3)
    threads, before = torch.get_num_threads(), torch.random.get_rng_state()
    with isolated(1, threads + 1):
        first = torch.rand(2)
        assert torch.get_num_threads() == threads + 1
    with isolated(1):
        assert torch.equal(torch.rand(2), first)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), before)
