"""The main effects of flags and choices."""

from __future__ import annotations

import numpy as np

from service.algorithms import registry
from service.algorithms.gp.effects import Effects
from service.algorithms.gp.models import Layout
from service.core.encoding import Encoding
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, CategoricalParameter, FloatParameter, Space
from service.core.trial import TrialRecord

EFFECTS = Effects((0, 2), (2, 3))


def test_the_correlations_of_levels_have_the_sum_0() -> None:
    rows = np.array([[flag, 0.5, choice] for flag in (0.0, 1.0) for choice in (0.0, 0.5, 1.0)])
    variances = np.array([2.0, 3.0])
    features = EFFECTS.features(rows, variances)
    covariance = features @ features.T
    np.testing.assert_allclose(np.diagonal(covariance), 5.0)
    np.testing.assert_allclose(covariance.sum(0), 0.0, atol=1e-12)
    left, right = np.repeat(rows, 6, 0), np.tile(rows, (6, 1))
    np.testing.assert_allclose(EFFECTS.correlations(left, right) @ variances, covariance.ravel())


def test_only_spaces_of_many_flags_and_choices_have_main_effects() -> None:
    few = Space.build([BoolParameter(f"f{place}") for place in range(7)] + [FloatParameter("x", 0, 1)])
    many = Space.build([*few.parameters, CategoricalParameter("c", ("a", "b", "c"))])
    assert Layout.of(Encoding(few)).effects is None
    assert Layout.of(Encoding(many)).effects == Effects((0, 1, 2, 3, 4, 5, 6, 8), (2,) * 7 + (3,))


def test_a_suggestion_changes_many_flags_of_which_little_is_known() -> None:
    """Of 40 flags, only the first has an effect. After 12 trials the effects of the others are hardly known."""
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
