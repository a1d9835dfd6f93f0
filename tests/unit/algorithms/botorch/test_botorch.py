from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch import optim
from botorch.acquisition.multi_objective import logei
from botorch.optim import optimize_mixed

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.algorithms.botorch import acquisition, models, options
from service.algorithms.botorch.models import Coordinates, Scale
from service.algorithms.gp.region import Region
from service.core.encoding import Encoding
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    Space,
)
from service.core.trial import TrialRecord
from tests.marks import slow_cases

SECONDS = Objective("seconds", "minimize")
RATE = Objective("rate", "maximize")
DEAR = "AdditiveMapSaasSingleTaskGP"
FEW: Mapping[str, object] = {"mc_samples": 16, "num_restarts": 1, "raw_samples": 32}
MIXED = Problem.build(
    Space.build(
        [
            FloatParameter("x", 0, 1),
            IntParameter("n", 1, 100),
            CategoricalParameter("a", ("p", "q", "r")),
            BoolParameter("huge"),
            IntParameter("pages", 1, 9, condition=Condition("huge", (True,))),
        ],
        ["n <= 90 or x < 0.5"],
    ),
    [SECONDS],
)
LINE = Problem.build(Space.build([FloatParameter("x", 0, 1)]), [SECONDS])


def seconds(one: Configuration) -> float:
    pages = float(one.get("pages", 4))
    choice = {"p": 0.0, "q": 2.0, "r": 1.0}[str(one.get("a", "p"))]
    return 5 + 3 * (float(one["x"]) - 0.3) ** 2 + (float(one.get("n", 50)) / 100 - 0.6) ** 2 + choice + pages / 10


def completed(configurations: Sequence[Configuration], **more: float) -> list[TrialRecord]:
    return [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": seconds(one), **more}, number)
        for number, one in enumerate(configurations, start=1)
    ]


def drawn(problem: Problem, count: int) -> tuple[Configuration, ...]:
    return registry.create("random", problem, seed=1, options={}).suggest(count, cursor=0).configurations


def create(problem: Problem, trials: Sequence[TrialRecord] = (), **given: object) -> Algorithm:
    algorithm = registry.create("botorch", problem, seed=3, options={**FEW, **given})
    algorithm.update(trials)
    return algorithm


def test_the_names_are_those_of_botorch() -> None:
    assert tuple(models.MODELS) == options.MODELS
    assert set(acquisition.FUNCTIONS) == {*options.FOR_ONE_OBJECTIVE, *options.FOR_SEVERAL_OBJECTIVES}
    assert all(hasattr(optim, name) or hasattr(optimize_mixed, name) for name in options.OPTIMIZERS)


@pytest.mark.parametrize("given", [
    {},
    *({"model": name} for name in options.MODELS[1:] if name != DEAR),
    *({"acquisition": name} for name in options.FOR_ONE_OBJECTIVE[1:]),
    *({"optimizer": name} for name in ("optimize_acqf", "optimize_acqf_discrete")),
    *({"input_transform": "Warp", "model": name} for name in options.WARPED if name != DEAR),
    *slow_cases(
        "fits hundreds of kernels; the other classes go the same way",
        {"model": DEAR},
        {"input_transform": "Warp", "model": DEAR},
    ),
], ids=lambda given: ", ".join(given.values()))  # fmt: skip
def test_the_chosen_classes_compute_the_suggestion(given: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "service.algorithms.gp.model_based")
    algorithm = create(MIXED, completed(drawn(MIXED, 8)), **given)
    running = [TrialRecord(9, drawn(MIXED, 9)[-1], TrialState.ACTIVE, {})]
    (one,) = algorithm.suggest(1, cursor=0, pending=running).configurations
    assert MIXED.space.validate(one) == one
    optimizer = given.get("optimizer", "optimize_acqf_mixed_alternating")
    function = given.get("acquisition", "qLogNoisyExpectedImprovement")
    model = given.get("model", "SingleTaskGP")
    assert caplog.messages == [f"maximising optimizer={optimizer} acquisition={function} model={model}"]


@pytest.mark.parametrize(
    ("problem", "chosen"),
    [
        (LINE, ("optimize_acqf", "qLogNoisyExpectedImprovement")),
        (replace(LINE, noisy=False), ("optimize_acqf", "qLogExpectedImprovement")),
        (
            Problem.build(Space.build([IntParameter("x", 0, 30)]), [SECONDS, RATE]),
            ("optimize_acqf_discrete", "qLogNoisyExpectedHypervolumeImprovement"),
        ),
    ],
)
def test_defaults_depend_on_the_problem(
    problem: Problem, chosen: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "service.algorithms.gp.model_based")
    create(problem, completed(drawn(problem, 7), rate=1.0)).suggest(1, cursor=0)
    assert caplog.messages == [f"maximising optimizer={chosen[0]} acquisition={chosen[1]} model=SingleTaskGP"]


@pytest.mark.parametrize("given", [
    {"reference_point": "9, 0"}, {"acquisition": "qLogNParEGO"}, {"model": "EnsembleMapSaasSingleTaskGP"},
])  # fmt: skip
def test_several_objectives_and_an_outcome_constraint(
    given: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    problem = Problem.build(MIXED.space, [SECONDS, RATE], outcome_constraints=["memory_mb <= 50"])
    trials = [
        replace(trial, metrics={**trial.metrics, "rate": 9 * float(trial.configuration["x"]), "memory_mb": number * 9})
        for number, trial in enumerate(completed(drawn(problem, 8)))
    ]
    (one,) = create(problem, trials, **given).suggest(1, cursor=0).configurations
    assert problem.space.validate(one) == one
    assert not caplog.records
    assert logei._C is None, "BoTorch has compiled a kernel"


@pytest.mark.parametrize(
    ("problem", "given", "field", "allowed"),
    [
        (MIXED, {"model": "SingleTask"}, "model", "one of " + ", ".join(options.MODELS)),
        (MIXED, {"acquisition": "EI"}, "acquisition", "one of qLogNoisyExpectedImprovement, qLogExpectedImprovement"),
        (MIXED, {"optimizer": "adam"}, "optimizer", "one of " + ", ".join(options.OPTIMIZERS)),
        (MIXED, {"acquisition": "qLogNParEGO"}, "acquisition", "one of the functions for one objective: qLogNoisy"),
        (
            Problem.build(MIXED.space, [SECONDS, RATE]),
            {"acquisition": "qLogExpectedImprovement"},
            "acquisition",
            "one of the functions for 2 objectives: qLogNoisyExpectedHypervolumeImprovement, qLogNParEGO",
        ),
        (
            Problem.build(MIXED.space, [SECONDS], outcome_constraints=["memory_mb <= 1"]),
            {"acquisition": "qUpperConfidenceBound"},
            "acquisition",
            "one of qLogNoisyExpectedImprovement, qLogExpectedImprovement",
        ),
        (
            LINE,
            {"model": "EnsembleMapSaasSingleTaskGP", "input_transform": "Warp"},
            "model",
            "one of SingleTaskGP, MixedSingleTaskGP",
        ),
        (
            Problem.build(Space.build([BoolParameter("huge"), IntParameter("n", 1, 1)]), [SECONDS]),
            {"input_transform": "Warp"},
            "input_transform",
            "none",
        ),
        (LINE, {"model": "MixedSingleTaskGP"}, "model", "one of SingleTaskGP, AdditiveMapSaasSingleTaskGP"),
    ],
)
def test_options_that_are_refused(problem: Problem, given: dict[str, object], field: str, allowed: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.validate("botorch", given, problem)
    assert caught.value.data["field"] == f"algorithm.options.{field}"
    assert str(caught.value.data["allowed"]).startswith(allowed)


def test_suggestions_are_repeatable_and_leave_torch_unchanged() -> None:
    torch.manual_seed(5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    trials = completed(drawn(MIXED, 8))
    first = create(MIXED, trials)
    predicted = first.predict(drawn(MIXED, 3))
    assert predicted is not None
    answer = first.suggest(2, cursor=6)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(6)
    assert create(MIXED, list(reversed(trials))).suggest(2, cursor=6) == answer


def test_a_model_sees_the_configuration_that_a_row_stands_for() -> None:
    region = Region(Encoding(MIXED.space), {})
    inputs = Coordinates(region, axes=True)
    rows = torch.tensor([
        [0.2, 0.5, 0.4, 0.1, 0.9, 1.0],
        [0.2, 0.5, 0.5, 0.0, 0.2, 0.0],
        [0.2, 0.5, 0.6, 0.8, 0.5, 0.0],
    ], dtype=torch.float64, requires_grad=True)  # fmt: skip
    seen = inputs(rows)
    # Without huge pages their number does not count; the middle choice has an axis of its own.
    assert torch.equal(seen[0], seen[1])
    assert seen[2, -4:].tolist() == pytest.approx([1.0, 0.0, 0.5**0.5, 0.0])
    (slope,) = torch.autograd.grad(seen[:, :4].sum(), rows)
    assert slope[:, 0].tolist() == [1, 1, 1]
    assert slope[:, 4].tolist() == [0, 0, 1]
    assert Coordinates(region, axes=False)(rows).shape == rows.shape


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("transform", options.OUTCOME_TRANSFORMS)
def test_scales_are_monotone_and_have_an_inverse(sign: float, transform: str) -> None:
    values = sign * np.array([0.5, 8.0, 120.0])
    scale = Scale.of(values, sign, transform)
    outcomes = scale.apply(values)
    assert (np.diff(outcomes) * sign < 0).all()
    again, deviations = scale.restore(outcomes, np.full(3, 0.1))
    assert again == pytest.approx(values)
    assert (deviations > 0).all()
    if transform == "Log":
        assert outcomes.std() == pytest.approx(1.0)
        assert deviations / abs(values) == pytest.approx(deviations[0] / abs(values[0]))
        assert not Scale.of(np.array([-1.0, 1.0]), sign, "Log").log


@pytest.mark.parametrize("transform", ["Standardize", "Log"])
def test_predictions_have_the_unit_of_the_objective(transform: str) -> None:
    """Two runs each, with an error of 0.3 that the model infers."""
    problem = Problem.build(LINE.space, [RATE])
    random, trials = np.random.default_rng(0), []
    for number, x in enumerate(np.repeat(np.linspace(0, 1, 12), 2), start=1):
        metrics = {"rate": 40.0 - 9 * (x - 0.4) ** 2 + 0.3 * random.normal()}
        trials.append(TrialRecord(number, {"x": float(x)}, TrialState.COMPLETED, metrics, number))
    found = create(problem, trials, outcome_transform=transform).predict([{"x": 0.4}, {"x": 0.95}])
    assert found is not None
    assert found.mean == pytest.approx([-40.0, -(40 - 9 * 0.55**2)], abs=0.3)
    assert 0.15 < found.noise < 0.6
    assert (found.deviation < 0.4).all()
    assert create(problem).predict([{"x": 0.4}]) is None


def test_a_warp_straightens_a_parameter() -> None:
    """The outcome is linear in the tenth power of x, so nearly all of the change is near the end."""
    rows = np.linspace(0, 1, 25)[:, None]
    outcomes = rows[:, 0] ** 10
    outcomes = (outcomes - outcomes.mean()) / outcomes.std()
    region = Region(Encoding(LINE.space), {})
    warped = models.fitted("SingleTaskGP", rows, outcomes, region, noisy=False, warped=True)
    with torch.no_grad():
        middle, near = warped.input_transform(torch.tensor([[0.5], [0.9]], dtype=torch.double))[:, 0].tolist()
    assert middle < 0.2
    assert near - middle > 0.3


def test_an_outcome_constraint_keeps_suggestions_away() -> None:
    problem = Problem.build(LINE.space, [SECONDS], outcome_constraints=["memory_mb <= 500"], noisy=False)
    trials = [
        TrialRecord(number, {"x": x}, TrialState.COMPLETED, {"seconds": x, "memory_mb": 1000 - 1000 * x}, number)
        for number, x in enumerate((0.02, 0.15, 0.3, 0.4, 0.7, 0.8, 0.95), start=1)
    ]
    ((one),) = create(problem, trials, mc_samples=64).suggest(1, cursor=0).configurations
    assert 0.45 < float(one["x"]) < 0.6


def test_pruned_and_infeasible_trials_count_as_bad() -> None:
    trials = [
        TrialRecord(number, {"x": number / 12}, TrialState.COMPLETED, {"seconds": 1 + number / 12}, number)
        for number in range(4, 12)
    ]
    trials.append(TrialRecord(12, {"x": 0.05}, TrialState.INFEASIBLE, {}, 12))
    trials.append(TrialRecord(13, {"x": 0.2}, TrialState.PRUNED, {"seconds": 0.1}, 13))
    found = create(replace(LINE, noisy=False), trials).predict([{"x": 0.05}, {"x": 0.2}, {"x": 1 / 3}])
    assert found is not None
    assert found.mean[0] > 1.6
    assert found.mean[1] > found.mean[2]


def test_values_without_a_usable_scale_give_a_random_suggestion(caplog: pytest.LogCaptureFixture) -> None:
    trials = [
        TrialRecord(number, {"x": number / 9}, TrialState.COMPLETED, {"seconds": (-1) ** number * 1.7e308}, number)
        for number in range(1, 8)
    ]
    algorithm = create(LINE, trials)
    with np.errstate(all="ignore"):
        (one,) = algorithm.suggest(1, cursor=0).configurations
        assert algorithm.predict([{"x": 0.5}]) is None
    assert LINE.space.validate(one) == one
    assert "the next suggestion is random" in caplog.text


@pytest.mark.slow("nine steps of a search; a single suggestion of each class shows the way")
def test_the_search_approaches_the_optimum() -> None:
    algorithm = create(replace(MIXED, noisy=False), trials := completed(drawn(MIXED, 12)))
    best = min(trial.metrics["seconds"] for trial in trials)
    for number in range(13, 21):
        (one,) = algorithm.suggest(1, cursor=0).configurations
        algorithm.update([TrialRecord(number, one, TrialState.COMPLETED, {"seconds": seconds(one)}, number)])
        best = min(best, seconds(one))
    assert best < 5.3
