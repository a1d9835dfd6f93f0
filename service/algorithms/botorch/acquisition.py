"""BoTorch's acquisition functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qUpperConfidenceBound
from botorch.acquisition.multi_objective import logei
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.acquisition.multi_objective.parego import qLogNParEGO
from botorch.acquisition.objective import LinearMCObjective
from botorch.sampling.get_sampler import get_sampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from torch import Tensor

from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.pareto import non_dominated

# BoTorch would otherwise compile a kernel in C++ during the first suggestion for several objectives. That takes a
# minute of CPU, is made for the worker's own processor, and is kept in the home directory, which other machines may
# share. It saves at most a fifth of a suggestion's time.
logei._load_attempted = True

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


def _broken(place: int, limit: float) -> Callable[[Tensor], Tensor]:
    """Return the function by whose value, if positive, samples of the outputs break an outcome constraint."""
    return lambda samples: limit - samples[..., place]


def _number(options: Mapping[str, JsonValue], name: str) -> int:
    value = options[name]
    assert isinstance(value, int)
    return value
