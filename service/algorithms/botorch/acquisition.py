"""BoTorch's acquisition functions and their optimisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.acquisition.multi_objective.parego import qLogNParEGO
from botorch.acquisition.objective import LinearMCObjective
from botorch.optim.optimize import optimize_acqf, optimize_acqf_discrete
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from botorch.sampling.get_sampler import get_sampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from torch import Tensor

from service.algorithms.gp.candidates import Region
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.pareto import non_dominated

FUNCTIONS: dict[str, Any] = {
    one.__name__: one
    for one in (
        qLogNoisyExpectedImprovement,
        qLogExpectedImprovement,
        qUpperConfidenceBound,
        qLogNoisyExpectedHypervolumeImprovement,
        qLogNParEGO,
    )
}
_CHUNK = 256


@dataclass(frozen=True)
class Known:
    """The facts of a study from which acquisition functions begin.

    `model` has an output for each of m objectives and then for each outcome constraint, which holds if the output is at
    least its limit in `limits`. `rows`: [r, d], the distinct measured rows. `expected`: [r, m], the expected outcomes
    of the objectives. `acceptable`: [r]. `reference`: [m], the outcomes where the hypervolume begins; None: inferred.
    """

    model: Any
    rows: FloatArray
    expected: FloatArray
    acceptable: Any
    limits: Sequence[float]
    reference: FloatArray | None


def acquisition(name: str, known: Known, running: FloatArray, options: Mapping[str, JsonValue], *, seed: int) -> Any:
    """Return the acquisition function of this name, with account of the running rows, [p, d]."""
    objectives = known.expected.shape[1]
    rows = torch.from_numpy(known.rows)
    samples = torch.Size([_number(options, "mc_samples")])
    given: dict[str, Any] = {
        "sampler": get_sampler(known.model.posterior(rows[:1]), samples, seed=seed),
        "X_pending": torch.from_numpy(running) if len(running) else None,
    }
    if known.limits:
        given["constraints"] = [_broken(objectives + place, limit) for place, limit in enumerate(known.limits)]
        if objectives == 1:
            weights = torch.tensor([1.0] + [0.0] * len(known.limits), dtype=rows.dtype)
            given["objective"] = LinearMCObjective(weights)
    if objectives > 1:
        given["objective"] = IdentityMCMultiOutputObjective(list(range(objectives)))
    acceptable = known.expected[known.acceptable] if known.acceptable.any() else known.expected
    match name:
        case "qUpperConfidenceBound":
            given["beta"] = options["beta"]
        case "qLogExpectedImprovement":
            # Without an acceptable configuration every outcome improves, so that only the constraints count.
            given["best_f"] = float(acceptable.max() if known.acceptable.any() else acceptable.min())
        case _:
            given |= {"X_baseline": rows, "prune_baseline": True}
    if name == "qLogNoisyExpectedHypervolumeImprovement":
        front = torch.from_numpy(acceptable[non_dominated(-acceptable)])
        reference = None if known.reference is None else torch.from_numpy(known.reference)
        given["ref_point"] = infer_reference_point(front) if reference is None else reference
    return FUNCTIONS[name](known.model, **given)


def optimizer_for(region: Region, options: Mapping[str, JsonValue], *, listed: bool) -> str:
    """Return the name of the optimiser: the chosen one, or the default. `listed`: the pool is the whole region."""
    chosen = options["optimizer"]
    free = region.smooth or region.stepped
    if chosen is not None and free:
        return str(chosen)
    if listed or not free:
        return "optimize_acqf_discrete"
    return "optimize_acqf_mixed_alternating" if region.stepped else "optimize_acqf"


def maximised(
    name: str, function: Any, region: Region, pool: FloatArray, options: Mapping[str, JsonValue]
) -> FloatArray:
    """Return rows of the region with large values of the function, the best first.

    `pool`: feasible rows, which are among the result. An optimised row may break constraints between parameters.
    """
    choices = torch.from_numpy(pool)
    if name == "optimize_acqf_discrete":
        found, _ = optimize_acqf_discrete(function, q=1, choices=choices, max_batch_size=_CHUNK)
        return np.asarray(found.numpy())
    restarts = min(_number(options, "num_restarts"), len(pool))
    with torch.no_grad():
        values = torch.cat([function(part[:, None]) for part in torch.split(choices, _CHUNK)])
    best = values.argsort(descending=True, stable=True)
    stepped = {place: levels for place, levels in enumerate(region.levels) if levels is not None}
    constant = {place: float(levels[0]) for place, levels in stepped.items() if len(levels) == 1}
    # Activity columns follow from the other columns.
    constant |= dict.fromkeys(range(len(region.levels), pool.shape[1]), 0.0)
    bounds = torch.tensor([[0.0], [1.0]], dtype=choices.dtype).repeat(1, pool.shape[1])
    shared: dict[str, Any] = {"q": 1, "num_restarts": restarts, "fixed_features": constant}
    if name == "optimize_acqf":
        start = choices[best[:restarts], None]
        found, value = optimize_acqf(function, bounds, batch_initial_conditions=start, return_best_only=False, **shared)
        found = found[:, 0]
    else:
        levels = {place: levels.tolist() for place, levels in stepped.items() if len(levels) > 1}
        found, value = optimize_acqf_mixed_alternating(
            function,
            bounds,
            discrete_dims={place: one for place, one in levels.items() if place not in region.categorical},
            cat_dims={place: one for place, one in levels.items() if place in region.categorical},
            raw_samples=_number(options, "raw_samples"),
            **shared,
        )
    optimised = region.exact(found.detach().numpy().copy())
    rows = np.vstack([optimised, pool])
    assert value is not None
    order = torch.cat([value.detach().reshape(-1), values]).argsort(descending=True, stable=True)
    return np.asarray(rows[order.numpy()])


def _broken(place: int, limit: float) -> Callable[[Tensor], Tensor]:
    """Return the function by whose value, if positive, samples of the outputs break an outcome constraint."""
    return lambda samples: limit - samples[..., place]


def _number(options: Mapping[str, JsonValue], name: str) -> int:
    value = options[name]
    assert isinstance(value, int)
    return value
