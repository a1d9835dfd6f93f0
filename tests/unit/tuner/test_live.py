"""The next candidate of a live study."""

from __future__ import annotations

import math

import pytest

from service.core.live import LiveRecord, Ratio
from service.core.parameters import BoolParameter, CategoricalParameter, FloatParameter, IntParameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.tuner import live

SPACE = Space.build(
    [
        FloatParameter("a", 0.0, 1.0, default=0.5),
        IntParameter("n", 1, 64, default=8, log=True),
        FloatParameter("b", 0.0, 1.0, default=0.5),
        BoolParameter("flag", default=False),
        CategoricalParameter("kind", ("x", "y", "z"), default="x"),
    ],
    ["a + b <= 1.2"],
)
PROBLEM = Problem.build(SPACE, [Objective("ms", "minimize")])
START = SPACE.default()
WIDE = {"ms": math.log(100.0)}


def record(effect: float, *, kept: bool = False, broken: str = "", **changes: object) -> LiveRecord:
    ratios = {"ms": Ratio(effect, 0.01)}
    candidate: Configuration = {**START, **changes}  # type: ignore[dict-item]
    return LiveRecord(candidate, START, ratios, {"ms": math.log(1.2)}, broken=broken, kept=kept)


def suggest(records: list[LiveRecord], problem: Problem = PROBLEM, **changes: object) -> Configuration | None:
    arguments = {"step": 0.15, "limits": {}, "seed": 1, **changes}
    found = live.suggest(problem, records, **arguments)  # type: ignore[arg-type]
    return None if found is None else found.configuration


def test_a_candidate_is_near_and_feasible_and_the_same_again() -> None:
    for seed in range(5):
        found = suggest([], limits=WIDE, seed=seed)
        assert found is not None
        assert found != START
        assert SPACE.feasible(found)
        changed = [name for name in START if found[name] != START[name]]
        assert 1 <= len(changed) <= 3, "at most 60 % of the parameters change at once"
        assert abs(float(found["a"]) - 0.5) <= 0.15
        assert abs(math.log(float(found["n"]) / 8)) <= 0.15 * math.log(64) + math.log(1.1)
        assert found == suggest([], limits=WIDE, seed=seed)


def test_what_is_far_from_everything_known_is_not_safe() -> None:
    """A flag and a choice have no small step, so that their effect cannot be known to be small."""
    for seed in range(5):
        found = suggest([], seed=seed)
        assert found is not None
        assert (found["flag"], found["kind"]) == (False, "x")


def test_the_search_leaves_a_direction_that_was_worse() -> None:
    records = [record(0.15, a=0.55), record(-0.05, a=0.45)]
    found = suggest(records)
    assert found is not None
    assert float(found["a"]) <= 0.52
    again = [*records, record(0.18, a=0.56, broken="ms")]
    found = suggest(again)
    assert found is not None
    assert abs(float(found["a"]) - 0.5) <= 0.15 * 0.6


def test_a_kept_candidate_is_the_next_center() -> None:
    records = [record(-0.1, kept=True, a=0.6)]
    found = suggest(records)
    assert found is not None
    assert abs(float(found["a"]) - 0.6) <= 0.15 * 1.3


def test_a_maximised_objective_is_guarded_below() -> None:
    problem = Problem.build(SPACE, [Objective("ms", "maximize")])
    up, down = record(0.1, a=0.55), record(-0.15, a=0.45)
    found = suggest([up, down], problem)
    assert found is not None
    assert float(found["a"]) >= 0.48


def test_another_guarded_metric_counts() -> None:
    """The memory of everything that has moved was far above its limit, so that the safe region is small."""
    memory = {"memory": Ratio(1.0, 0.01), "ms": Ratio(-0.1, 0.01)}
    limits = {"memory": math.log(1.1)}
    far = LiveRecord({**START, "a": 0.6}, START, memory, limits, broken="memory")
    found = live.suggest(PROBLEM, [far], step=0.15, limits=limits, seed=1)
    assert found is None or abs(float(found.configuration["a"]) - 0.5) < 0.05


def test_nothing_is_tried_if_nothing_is_safe() -> None:
    space = Space.build([BoolParameter("flag", default=False)])
    problem = Problem.build(space, [Objective("ms", "minimize")])
    assert live.suggest(problem, [], step=0.15, limits={}, seed=1) is None
    tolerant = live.suggest(problem, [], step=0.15, limits=WIDE, seed=1)
    assert tolerant is not None
    assert tolerant.configuration == {"flag": True}
    assert tolerant.expected == pytest.approx(0.0, abs=1e-3)
    assert tolerant.worst > 0.2
