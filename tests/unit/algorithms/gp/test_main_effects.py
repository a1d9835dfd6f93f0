"""The main effects of parameters."""

from __future__ import annotations

import numpy as np
import torch

from service.algorithms import registry
from service.algorithms.gp.main_effects import Effects
from service.algorithms.gp.models import Layout
from service.core.encoding import Encoding, FloatArray
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, CategoricalParameter, FloatParameter, IntParameter, Space
from service.core.trial import TrialRecord

EFFECTS = Effects((1,), (0, 2), (2, 3))
VARIANCES = np.array([1.0, 2.0, 3.0])


def covariances(rows: FloatArray) -> FloatArray:
    points = torch.from_numpy(rows)
    return EFFECTS.covariances_with(points, torch.from_numpy(VARIANCES))(points).numpy()


def test_the_effects_of_levels_have_the_sum_0() -> None:
    rows = np.array([[flag, 0.5, choice] for flag in (0.0, 1.0) for choice in (0.0, 0.5, 1.0)])
    found = covariances(rows)
    np.testing.assert_allclose(np.diagonal(found), 6.0)
    # Only the numeric parameter's effect is left, which is the same in all rows.
    np.testing.assert_allclose(found.mean(0), 1.0)


def test_the_gradient_is_that_of_the_covariances() -> None:
    random = np.random.default_rng(1)
    points, rows = torch.from_numpy(random.random((5, 3))), torch.from_numpy(random.random((4, 3)))
    effects = Effects((0, 1, 2), (), ())
    function = effects.covariances_with(points, torch.from_numpy(VARIANCES))
    assert torch.autograd.gradcheck(function, rows.requires_grad_())


def test_correlations_of_pairs_give_the_covariances() -> None:
    random = np.random.default_rng(1)
    rows = np.stack([random.integers(0, 2, 9), random.random(9), random.integers(0, 3, 9) / 2], 1)
    left, right = np.repeat(rows, 9, 0), np.tile(rows, (9, 1))
    np.testing.assert_allclose(EFFECTS.correlations(left, right) @ VARIANCES, covariances(rows).ravel())


def test_many_levels_have_the_covariances_of_few_points() -> None:
    random = np.random.default_rng(1)
    effects = Effects((1,), (0, 2), (2, 10_000))
    rows = np.stack([random.integers(0, 2, 6), random.random(6), random.integers(0, 10_000, 6) / 9_999], 1)
    points = rows[:4]
    left, right = np.repeat(rows, 4, 0), np.tile(points, (6, 1))
    known = effects.covariances_with(torch.from_numpy(points), torch.from_numpy(VARIANCES))
    np.testing.assert_allclose(known(torch.from_numpy(rows)).ravel(), effects.correlations(left, right) @ VARIANCES)
    assert len(effects._levels_of(torch.from_numpy(points)).codes) <= 2 + 4


def test_drawn_effects_have_the_covariances() -> None:
    rows = np.array([[0.0, 0.1, 0.0], [1.0, 0.4, 0.5], [1.0, 0.9, 1.0]])
    features = EFFECTS.drawn(VARIANCES, 40_000, np.random.default_rng(1))(rows)
    np.testing.assert_allclose(features @ features.T, covariances(rows), atol=0.02)


def test_all_parameters_that_vary_have_main_effects_unless_there_is_one() -> None:
    one = Space.build([FloatParameter("x", 0, 1), IntParameter("only", 3, 3)])
    more = Space.build([*one.parameters, BoolParameter("f"), CategoricalParameter("c", ("a", "b", "c"))])
    assert Layout.of(Encoding(one)).effects is None
    assert Layout.of(Encoding(more)).effects == Effects((0,), (2, 3), (2, 3))


def test_a_suggestion_changes_many_flags_of_which_little_is_known() -> None:
    """Only the first of 40 flags has an effect. After 12 trials the effects of the others are hardly known."""
    space = Space.build([BoolParameter(f"f{place}") for place in range(40)])
    problem = Problem.build(space, [Objective("seconds", "minimize")], noisy=True)
    first = registry.create("random", problem, seed=1, options={}).suggest(12, cursor=0).configurations
    history = [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": 7.0 if one["f0"] else 10.0}, revision=number)
        for number, one in enumerate(first, 1)
    ]
    algorithm = registry.create("gp", problem, seed=1, options={})
    algorithm.update(history)
    (suggested,) = algorithm.suggest(1, cursor=0).configurations
    assert suggested["f0"]
    changed = [sum(suggested[name] != one[name] for name in space.names()) for one in first if one["f0"]]
    assert min(changed) >= 5
