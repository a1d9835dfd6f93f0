from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.sampling.normal import SobolQMCNormalSampler

from service.algorithms import registry
from service.algorithms.gp.closed_form import Conditioned
from service.algorithms.gp.models import Layout, Points, Prior, surrogate
from service.algorithms.gp.multi import LogHypervolumeImprovement
from service.algorithms.gp.posterior import Posterior
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, IntParameter, Space
from service.core.trial import TrialRecord

SPACE = Space.build([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1), FloatParameter("z", 0, 1)])
TWO = Problem.build(SPACE, [Objective("seconds", "minimize"), Objective("rate", "maximize")], noisy=False)


def measure(one: Configuration) -> dict[str, float]:
    """The Pareto set is y = 0.2, z = 0.7, for any x: seconds from 1 to 4 and rates from 10 to 40."""
    x, y, z = (float(one[name]) for name in "xyz")
    off = (y - 0.2) ** 2 + (z - 0.7) ** 2
    return {"seconds": 1.0 + 3.0 * x**2 + 4.0 * off, "rate": 10.0 + 30.0 * x - 60.0 * off, "memory_mb": 100.0 * x}


def run(problem: Problem, trials: int, name: str = "gp", seed: int = 0, **options: Any) -> list[TrialRecord]:
    algorithm = registry.create(name, problem, seed=seed, options=options)
    history: list[TrialRecord] = []
    cursor = 0
    for number in range(1, trials + 1):
        batch = algorithm.suggest(1, cursor=cursor)
        cursor = batch.cursor
        (one,) = batch.configurations
        history.append(TrialRecord(number, one, TrialState.COMPLETED, measure(one), number))
        algorithm.update(history[-1:])
    return history


def volume(history: list[TrialRecord]) -> float:
    """Return the share of seconds 1 to 5 and rates 0 to 40 that the trials dominate."""
    points = sorted((one.metrics["seconds"], one.metrics["rate"]) for one in history)
    covered, highest = 0.0, 0.0
    for (seconds, rate), (following, _) in zip(points, [*points[1:], (5.0, 0.0)], strict=True):
        highest = max(highest, rate)
        covered += max(min(following, 5.0) - min(seconds, 5.0), 0.0) * highest
    return covered / (4.0 * 40.0)


def test_the_volume_grows_faster_than_by_random_draws_and_weightings() -> None:
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("hypervolume", "gp", {}),
        ("scalarise", "gp", {"multi_objective": "scalarise"}),
        ("random", "random", {}),
    ]
    volumes = {name: volume(run(TWO, 25, algorithm, **options)) for name, algorithm, options in cases}
    everything = volume(
        [
            TrialRecord(0, {"x": x, "y": 0.2, "z": 0.7}, TrialState.COMPLETED, measure({"x": x, "y": 0.2, "z": 0.7}))
            for x in np.linspace(0, 1, 500)
        ]
    )
    assert volumes["hypervolume"] > volumes["scalarise"] > volumes["random"]
    assert volumes["hypervolume"] > 0.9 * everything


@pytest.mark.parametrize("objectives", [2, 3])
def test_hypervolume_improvement_matches_the_estimate_of_botorch(
    objectives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # BoTorch would compile a C++ kernel first. That takes a minute, and its lock stays if the test is killed.
    monkeypatch.setattr("botorch.acquisition.multi_objective.logei._load_attempted", True)
    random = np.random.default_rng(1)
    layout = Layout((0, 1), ())
    prior = Prior.of(layout, noisy=True)
    rows, at = random.random((7, 2)), random.random((8, 2))
    theta = np.log([0.5, 0.7, 1.0, 0.02])
    columns = [np.sin(3 * rows[:, 0] + place) + rows[:, 1] * (1 - place) for place in range(objectives)]
    points = [Points.single(rows, column) for column in columns]
    models = [surrogate(layout, prior, theta, one, Conditioned(layout, theta, one).mean) for one in points]
    reference = np.array([min(column) for column in columns])
    ours = LogHypervolumeImprovement(
        [Posterior(model, rows) for model in models],
        known=np.zeros((0, objectives)),
        reference=reference,
        draws=256,
        random=np.random.default_rng(0),
    )
    theirs = qLogNoisyExpectedHypervolumeImprovement(
        ModelListGP(*models),
        ref_point=torch.from_numpy(reference),
        X_baseline=torch.from_numpy(rows),
        sampler=SobolQMCNormalSampler(torch.Size([512]), seed=0),
        prune_baseline=False,
    )
    given = torch.from_numpy(at)[:, None].requires_grad_(True)
    value = ours(given)
    with torch.no_grad():
        expected = theirs(given)
    np.testing.assert_allclose(value.exp().detach().numpy(), expected.exp().numpy(), rtol=0.25, atol=0.01)

    (gradient,) = torch.autograd.grad(value.sum(), given)
    for column in range(2):
        step = torch.zeros(2)
        step[column] = 1e-6
        with torch.no_grad():
            numeric = (ours(given + step) - ours(given - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, 0, column].numpy(), numeric.numpy(), rtol=1e-3, atol=1e-4)


def test_the_search_stays_within_the_reference_point() -> None:
    # More than 2 seconds is of no interest: x is at most 0.577.
    late = run(TWO, 22, reference_point="2.0, 5")[12:]
    assert all(one.metrics["seconds"] < 2.1 for one in late)
    xs = sorted(float(one.configuration["x"]) for one in late)
    assert xs[-1] - xs[0] > 0.3


@pytest.mark.parametrize("text", ["", "fast", "1", "1, 2, 3", "1, nan", "1 inf"])
def test_a_reference_point_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.validate("gp", {"reference_point": text}, TWO)
    assert caught.value.data["field"] == "algorithm.options.reference_point"
    assert "seconds, rate" in str(caught.value.data["allowed"])


def test_outcome_constraints_hold_for_several_objectives() -> None:
    problem = Problem.build(SPACE, TWO.objectives, noisy=False, outcome_constraints=["memory_mb <= 50"])
    late = run(problem, 22)[12:]
    assert sum(problem.acceptable(one.metrics) for one in late) >= 8
    # With x = 0.5 it is 25 at best.
    assert max(one.metrics["rate"] for one in late if problem.acceptable(one.metrics)) > 18


def test_five_objectives_are_weighted_and_trials_in_every_state_are_survived() -> None:
    problem = Problem.build(
        Space.build([IntParameter("x", 0, 9), IntParameter("y", 0, 9)]),
        [Objective(f"f{index}", "minimize") for index in range(5)],
    )
    algorithm = registry.create("gp", problem, seed=0, options={"initial": 4})
    history = []
    for number in range(12):
        x, y = number % 4 * 3, number // 4 * 4
        metrics = {f"f{index}": math.hypot(x - index, y - 2 * index) for index in range(5)}
        state = [TrialState.COMPLETED, TrialState.PRUNED, TrialState.FAILED, TrialState.INFEASIBLE][number % 7 % 4]
        history.append(TrialRecord(number, {"x": x, "y": y}, state, metrics, number))
    algorithm.update(history)
    running = [TrialRecord(20, {"x": 5, "y": 5}, TrialState.ACTIVE, {})]
    assert len(algorithm.suggest(2, cursor=0, pending=running).configurations) == 2
    assert algorithm.predict([{"x": 1, "y": 1}]) is None
    assert not algorithm.predictions([{"x": 1, "y": 1}]), "weightings take the place of the objectives' models"
