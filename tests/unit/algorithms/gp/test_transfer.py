"""The results of earlier studies in `gp`: a part of the mean, which counts as far as it agrees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.stats import spearmanr

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.algorithms.gp.algorithm import GpAlgorithm
from service.algorithms.gp.fits import Ensemble
from service.algorithms.gp.posterior import Posterior
from service.core.encoding import FloatArray
from service.core.lesson import Lesson
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, OrdinalParameter, Space
from service.core.trial import TrialRecord
from tests.benchmarks import transfer

PROBLEM = Problem.build(
    Space.build([FloatParameter("x", 0.0, 1.0), OrdinalParameter("block", (1, 2, 4, 8, 16))]),
    [Objective("seconds", "minimize")],
    noisy=False,
)
# For each block, the best x and what it costs more than the best block.
BLOCKS = {1: (0.1, 0.6), 2: (0.4, 0.3), 4: (0.7, 0.0), 8: (0.9, 0.1), 16: (0.3, 0.5)}


def seconds(one: Configuration) -> float:
    """A function with its minimum, 1, at x = 0.7 and block = 4."""
    best, cost = BLOCKS[int(one["block"])]
    return 1.0 + 8.0 * (float(one["x"]) - best) ** 2 + cost


def some(count: int, seed: int = 0) -> list[Configuration]:
    random = np.random.default_rng(seed)
    return [{"x": float(random.random()), "block": int(random.choice(list(BLOCKS)))} for _ in range(count)]


def lesson(*, misleading: bool = False) -> Lesson:
    """A system with the same shape that takes ten times as long; or one that is good where this one is bad."""
    values = [10.0 * seconds(one) for one in some(30)]
    return Lesson("earlier", some(30), [-value for value in values] if misleading else values)


def records(configurations: Sequence[Configuration], first: int = 1) -> list[TrialRecord]:
    return [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": seconds(one)}, number)
        for number, one in enumerate(configurations, first)
    ]


def create(*lessons: Lesson) -> GpAlgorithm:
    algorithm: Algorithm = registry.create("gp", PROBLEM, seed=4, options={})
    assert isinstance(algorithm, GpAlgorithm)
    algorithm.learn(lessons)
    return algorithm


def ensemble(configurations: Sequence[Configuration], *lessons: Lesson) -> Ensemble:
    algorithm = create(*lessons)
    algorithm.update(records(configurations))
    (found,) = algorithm._known().objectives
    return found


def share(found: Ensemble) -> float:
    """The weight of the members that use an earlier study."""
    pairs = zip(found.members, found.weights, strict=True)
    return sum(weight for member, weight in pairs if member.trend is not None)


def test_it_begins_where_the_earlier_study_was_best() -> None:
    algorithm = create(lesson())
    (first,) = algorithm.suggest(1, cursor=0).configurations
    assert seconds(first) < 1.05
    # Then comes the start design, so that a misleading study is found out.
    algorithm.update(records([first]))
    (plain,) = create().suggest(1, cursor=0).configurations
    assert algorithm.suggest(1, cursor=0).configurations == (plain,)


def test_few_results_of_its_own_are_enough_to_rank_the_others() -> None:
    others = some(40, seed=2)
    truth = np.array([seconds(one) for one in others])
    agreement = []
    for algorithm in (create(lesson()), create()):
        algorithm.update(records(some(4, seed=3)))
        prediction = algorithm.predict(others)
        assert prediction is not None
        agreement.append(float(spearmanr(prediction.mean, truth).statistic))
    assert agreement[0] > agreement[1] + 0.3


def test_a_misleading_study_soon_counts_for_little() -> None:
    tried = some(10, seed=1)
    assert share(ensemble(tried[:1], lesson(misleading=True))) > 0.4
    found = ensemble(tried, lesson(misleading=True))
    assert share(found) < 0.25
    # Where it was better, nothing is expected to be worse.
    assert all(member.trend.slope == 0.0 for member in found.members if member.trend is not None)


def test_of_several_studies_those_count_that_agree() -> None:
    found = ensemble(some(10, seed=1), lesson(misleading=True), lesson())
    weights: dict[float, float] = {}
    for member, weight in zip(found.members, found.weights, strict=True):
        slope = 0.0 if member.trend is None else round(member.trend.slope, 6)
        weights[slope] = weights.get(slope, 0.0) + weight
    assert weights[max(weights)] > 0.9
    assert max(weights) > 0.5
    assert abs(sum(found.weights) - 1.0) < 1e-9


def test_the_posterior_with_a_trend_is_botorchs() -> None:
    rows: FloatArray = np.random.default_rng(5).random((7, 2))
    for member in ensemble(some(6, seed=1), lesson()).members:
        with torch.no_grad():
            theirs = member.model.posterior(torch.from_numpy(rows))
        mean, deviation = Posterior(member.model, rows[:0]).predict(rows)
        np.testing.assert_allclose(mean, theirs.mean[:, 0].numpy(), atol=1e-6)
        np.testing.assert_allclose(deviation, theirs.variance[:, 0].sqrt().numpy(), atol=1e-4)


def test_the_sensitivities_include_the_earlier_study() -> None:
    algorithm = create(lesson())
    algorithm.update(records([{"x": 0.2, "block": 4}, {"x": 0.7, "block": 4}]))
    total = {name: one.together.value for name, one in algorithm.sensitivities()["seconds"].items()}
    assert total["block"] > 0.05


def test_a_stored_state_gives_the_same_suggestions() -> None:
    one, other = create(lesson()), create(lesson())
    one.update(records(some(8, seed=1)))
    first = one.suggest(2, cursor=0)
    other.load(one.dump())
    for trial in records(some(8, seed=1)):
        other.update([trial])
    assert other.suggest(2, cursor=0) == first


def test_a_search_on_measured_tables_is_shorter() -> None:
    """The patterns of one workload, with and without another job on the same file server."""
    source, target = "hotspots", "hotspots-fixed-noise"
    trials = {"learn": 0, "alone": 0}
    for seed in (1, 2):
        known = transfer.lesson(source, target, seed, trials=20)
        first = transfer.leaders(known, target)
        trials["learn"] += transfer.search(target, 8, seed, first, [known])[1].trials
        trials["alone"] += transfer.search(target, 8, seed)[1].trials
    assert trials["learn"] < trials["alone"]
