"""The closed forms of the fit and of the posterior, held to BoTorch's own figures for the same model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
)
from gpytorch.mlls import ExactMarginalLogLikelihood

from service.algorithms.gp.closed_form import Conditioned, Evidence
from service.algorithms.gp.fits import Ensemble, Fits, Kind
from service.algorithms.gp.main_effects import Effects
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.models import Active, Layout, Points, Prior, kernel_of, surrogate
from service.algorithms.gp.posterior import Posterior
from service.algorithms.gp.region import Region
from service.core.encoding import Encoding, FloatArray
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    Space,
)

LAYOUTS = [
    Layout((0, 1, 2), ()),
    Layout((0, 2), (1, 3)),
    Layout((), (1, 3)),
    Layout((0, 2), (1, 3), Effects((0,), (1, 2, 3), (3, 2, 3))),
]


def data(layout: Layout, count: int = 15) -> Points:
    """Means of one to three measurements, of which the last has a variance of its own."""
    random = np.random.default_rng(3)
    points = random.random((count, 4))
    for column in layout.categorical:
        points[:, column] = random.integers(0, 3, count) / 2
    if layout.effects is not None:
        points[:, 2] = random.integers(0, 2, count)
    outcomes = np.sin(5 * points[:, 0]) + points[:, 1] + 0.1 * random.normal(size=count)
    added = np.zeros(count)
    added[-1] = 0.3
    return Points(
        points, (outcomes - outcomes.mean()) / outcomes.std(), 1.0 / random.integers(1, 4, count), added, 7, 0.05
    )


def model_of(layout: Layout, prior: Prior, theta: FloatArray, points: Points) -> SingleTaskGP:
    return surrogate(layout, prior, theta, points, Conditioned(layout, theta, points).mean)


def thetas(prior: Prior, count: int) -> list[FloatArray]:
    random = np.random.default_rng(5)
    return [(prior.mean + 0.5 * random.normal(size=len(prior.mean))).clip(prior.low, prior.high) for _ in range(count)]


@pytest.mark.parametrize(
    ("layout", "noisy"), [*((layout, True) for layout in LAYOUTS), *((layout, False) for layout in LAYOUTS[:2])]
)
def test_evidence_is_botorchs_up_to_a_constant(layout: Layout, noisy: bool) -> None:
    prior = Prior.of(layout, noisy=noisy)
    points = data(layout)
    evidence = Evidence(points, layout, prior)
    ours, theirs = [], []
    for theta in thetas(prior, 4):
        # BoTorch adds no jitter of its own as long as the noise suffices.
        theta[-1] = np.log(0.01 if noisy else 9e-6)
        model = model_of(layout, prior, theta, points)
        model.train()
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        value = likelihood(model(*model.train_inputs), model.train_targets).item() * len(points.rows)
        # BoTorch's priors are densities of the values, ours of their logarithms, shifted so that the modes agree.
        theirs.append(value)
        # It knows nothing of a prior of the noise, nor of replicates.
        z = (theta[-1] - prior.mean[-1]) / prior.sd[-1]
        spread = points.degrees * theta[-1] + points.squares / np.exp(theta[-1])
        ours.append(evidence.value(theta)[0] + 0.5 * z * z + 0.5 * spread)
    assert np.ptp(np.array(ours) - np.array(theirs)) < 1e-3 * max(1.0, np.ptp(theirs))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_is_that_of_the_value(layout: Layout) -> None:
    prior = Prior.of(layout, noisy=True)
    points = data(layout)
    evidence = Evidence(points, layout, prior)
    (theta,) = thetas(prior, 1)
    theta[-1] = np.log(0.01)
    gradient = evidence.value(theta)[1]
    step = 1e-5 * np.eye(len(theta))
    numeric = [(evidence.value(theta + one)[0] - evidence.value(theta - one)[0]) / 2e-5 for one in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_three_kernels_agree(layout: Layout) -> None:
    """That of the fit, that of the posterior and GPyTorch's."""
    prior = Prior.of(layout, noisy=True)
    points = data(layout)
    (theta,) = thetas(prior, 1)
    rows = data(layout, 7).rows
    model = model_of(layout, prior, theta, points)
    given = torch.from_numpy(points.rows)
    with torch.no_grad():
        expected = model.covar_module(torch.from_numpy(rows), given).to_dense().numpy()
        found = kernel_of(model, given)(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(Conditioned(layout, theta, points).kernel(rows), expected, atol=1e-7)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def noisy_model(layout: Layout) -> tuple[SingleTaskGP, FloatArray]:
    """Return a model whose noise has the variance 0.01, and seven further rows."""
    prior = Prior.of(layout, noisy=True)
    theta = prior.mean.copy()
    theta[-1] = np.log(0.01)
    return model_of(layout, prior, theta, data(layout)), data(layout, 7).rows


@pytest.mark.parametrize("layout", LAYOUTS)
def test_predictions_are_botorchs(layout: Layout) -> None:
    model, rows = noisy_model(layout)
    mean, deviation = Posterior(model, rows[:2]).predict(rows)
    with torch.no_grad():
        theirs = model.posterior(torch.from_numpy(rows))
    np.testing.assert_allclose(mean, theirs.mean[:, 0].numpy(), atol=1e-5)
    np.testing.assert_allclose(deviation**2, theirs.variance[:, 0].numpy(), atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_run_removes_the_share_of_the_variance_that_botorch_says(layout: Layout) -> None:
    model, rows = noisy_model(layout)
    found = Posterior(model, rows[:0]).shares(rows, noise=0.01)
    with torch.no_grad():
        covariance = model(torch.from_numpy(rows)).covariance_matrix.numpy()
    expected = covariance[0, 1:] ** 2 / (covariance[0, 0] * (np.diagonal(covariance)[1:] + 0.01))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_second_prior_of_a_pair_is_botorchs() -> None:
    """Without categorical columns: BoTorch's density of a value has its mode where ours of the logarithm has it."""
    layout = Layout((0, 1, 2), ())
    _, short = Prior.pair(layout, noisy=True)
    kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=3)
    noise = get_gaussian_likelihood_with_lognormal_prior()
    for prior, own in (
        (kernel.lengthscale_prior, (short.mean[0], short.sd[0])),
        (noise.noise_covar.noise_prior, (short.mean[-1], short.sd[-1])),
    ):
        assert (prior.loc - prior.scale**2).item() == pytest.approx(own[0], abs=0.01)
        assert prior.scale.item() == pytest.approx(own[1])


def test_an_ensemble_is_unsure_where_its_members_disagree() -> None:
    random = np.random.default_rng(2)
    layout = Layout((0,), ())
    runs = Runs.of(
        np.linspace(0.0, 0.5, 8)[:, None], np.sin(12 * np.linspace(0.0, 0.5, 8)) + 0.1 * random.normal(size=8)
    )
    first, second = Prior.pair(layout, noisy=True)
    ensemble = Fits(layout).ensemble(runs, Kind("objective", "bent", first, robust=True), [second])
    far = np.array([[0.95]])
    single = [Ensemble((member,)).predict(far) for member in ensemble.members]
    mean, deviation = ensemble.predict(far)
    assert mean == pytest.approx(np.mean([one for one, _ in single]))
    assert deviation > np.sqrt(np.mean([one**2 for _, one in single]))
    assert ensemble.members[0].scale == ensemble.members[1].scale
    assert 0.0 < ensemble.noise() < 1.0


def test_a_fit_finds_which_columns_matter() -> None:
    random = np.random.default_rng(0)
    points = random.random((60, 4))
    outcomes = np.sin(6 * points[:, 0])
    layout = Layout((0, 1, 2, 3), ())
    prior = Prior.of(layout, noisy=True)
    theta, _ = Evidence(Points.single(points, outcomes), layout, prior).fit(prior.starts(layout), 100)
    assert theta[0] < theta[1:4].min() - 1.0
    assert np.exp(theta[-1]) < 1e-3


def test_a_fit_of_nonsense_is_finite() -> None:
    layout = Layout((0, 1, 2, 3), ())
    for noisy in (True, False):
        prior = Prior.of(layout, noisy=noisy)
        for rows, outcomes in (
            (np.full((1, 4), 0.5), np.zeros(1)),
            (np.full((5, 4), 0.5), np.arange(5.0)),
            (np.random.default_rng(0).random((5, 4)), np.zeros(5)),
        ):
            points = Points.single(rows, outcomes)
            theta, _ = Evidence(points, layout, prior).fit(prior.starts(layout), 50)
            assert np.isfinite(theta).all()
            mean, deviation = Posterior(model_of(layout, prior, theta, points), rows).predict(rows)
            assert np.isfinite(mean).all()
            assert (deviation > 0.0).all()


def test_the_layout_omits_constant_and_redundant_columns() -> None:
    space = Space.build(
        [
            BoolParameter("huge"),
            IntParameter("only", 3, 3),
            CategoricalParameter("algorithm", ("a", "b", "c")),
            FloatParameter("x", 0, 1, condition=Condition("algorithm", ("a",))),
            FloatParameter("y", 0, 1, condition=Condition("algorithm", ("a",))),
            FloatParameter("z", 0, 1, condition=Condition("algorithm", ("b",))),
        ]
    )
    layout = Layout.of(Encoding(space))
    assert layout.categorical == (2,)
    # huge, x, y and z. The algorithm's own column says which of x, y and z are active.
    assert layout.numeric == (0, 3, 4, 5)


def test_the_layout_has_one_activity_column_for_each_condition_on_a_number() -> None:
    space = Space.build(
        [
            IntParameter("threads", 0, 3),
            FloatParameter("x", 0, 1, condition=Condition("threads", (2, 3))),
            FloatParameter("y", 0, 1, condition=Condition("threads", (2, 3))),
            FloatParameter("z", 0, 1, condition=Condition("threads", (3,))),
        ]
    )
    assert Layout.of(Encoding(space)).numeric == (0, 1, 2, 3, 4, 6)


def test_the_layout_has_no_activity_column_for_a_condition_on_a_flag() -> None:
    space = Space.build([BoolParameter("huge"), FloatParameter("x", 0, 1, condition=Condition("huge", (True,)))])
    assert Layout.of(Encoding(space)).numeric == (0, 1)


def test_an_optimiser_cannot_move_inactive_columns() -> None:
    space = Space.build(
        [
            IntParameter("threads", 0, 3),
            FloatParameter("x", 0, 1, condition=Condition("threads", (2, 3))),
            FloatParameter("y", 0, 1),
        ]
    )
    rows = torch.tensor([[0.0, 0.7, 0.2, 1.0], [1.0, 0.7, 0.2, 0.0]], dtype=torch.double, requires_grad=True)
    moved = Active(Region(Encoding(space), {})).transform(rows)
    default = Encoding(space).encode([{}])[0, 1]
    np.testing.assert_allclose(moved.detach().numpy(), [[0.0, default, 0.2, 0.0], [1.0, 0.7, 0.2, 1.0]])
    (gradient,) = torch.autograd.grad(moved.sum(), rows)
    np.testing.assert_array_equal(gradient.numpy(), [[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
