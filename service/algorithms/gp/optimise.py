"""The search of an acquisition function's maximum in a region, with BoTorch's optimisers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, OptimizationGradientError
from botorch.optim.optimize import optimize_acqf, optimize_acqf_discrete
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating

from service.algorithms.gp.region import Region
from service.core.encoding import FloatArray
from service.core.feasibility import MOST_LISTED

CONTINUOUS, MIXED, DISCRETE = (
    one.__name__ for one in (optimize_acqf, optimize_acqf_mixed_alternating, optimize_acqf_discrete)
)
# Errors of this package and of BoTorch if a matrix is not positive definite or a function has no numbers. BoTorch's
# other errors mean a wrong call, which random suggestions must not hide.
NUMERICAL = (ArithmeticError, CandidateGenerationError, InputDataError, OptimizationGradientError)
# A search along continuous columns. More steps do not improve the suggestions, and a step that gains less than 1e-4 of
# the value is the last: with four outcome constraints, this halves the evaluations (84 to 47 on 28 histories) and loses
# 0.008 of the logarithm of the improvement on average.
_CONTINUOUS: dict[str, bool | float | int | str] = {"maxiter": 50, "factr": 1e-4 / np.finfo(np.float64).eps}
# With linear constraints BoTorch uses SciPy's SLSQP, one search after the other.
_CONTINUOUS_WITHIN: dict[str, bool | float | int | str] = {"maxiter": 50, "ftol": 1e-4, "batch_limit": 1}
# The steps of the relaxed searches for the starts of mixed searches, which are rounded afterwards. On 8 histories of 30
# and 150 trials, 8 steps lead to the same maxima as BoTorch's 100 with a third of the evaluations (68 and 197): further
# steps end in failed line searches, which BoTorch repeats from other starts.
_STEPS_OF_STARTS = 8
# Of the logarithm of an improvement.
_CLOSE = 1e-3
# How far a row that breaks constraints goes back to the feasible row from which its search began.
_BACK = (1.0 - 1e-6, 0.75, 0.5, 0.25, 0.1)
# The widths, in powers of ten, of the neighbourhoods in which the edge of the constraints is explored, and their draws.
_WIDTHS, _DRAWS = ((-2.5, -1.0), (-3.5, -2.0), (-4.5, -3.0)), 8


# The steps along parameters that constraints connect, the rows that climb, and the neighbours compared in each step.
_CLIMBS, _CLIMBERS, _NEIGHBOURS = 4, 4, 48


@dataclass(frozen=True)
class Search:
    """The effort of a search.

    `optimizer`: the name of one of BoTorch's optimisers; None: the one that suits the region. The best `restarts` of
    `raw_samples` rows of a Sobol sequence, and of as many neighbours of the incumbents, are the starts. A region with
    at most `most_listed` configurations is not searched: all of them are compared. `chunk`: the most rows at a time, so
    few that intermediate results stay in the processor's cache. In place of 4096, 512 save 40 % of the time for a grid
    of 50,000 rows after 500 trials, and cost or save up to a tenth after 20 and 60.
    """

    optimizer: str | None = None
    restarts: int = 8
    raw_samples: int = 1024
    most_listed: int = MOST_LISTED
    chunk: int = 512

    def optimizer_for(self, region: Region) -> str:
        """Return the name of the optimiser for a region that is not listed."""
        if not (region.smooth or region.stepped) or region.connected:
            # Steps along one parameter leave the feasible set.
            return DISCRETE
        return self.optimizer or (MIXED if region.stepped else CONTINUOUS)


@contextmanager
def isolated(seed: int, threads: int = 1) -> Iterator[None]:
    """Give torch a seed and some threads and hide BoTorch's warnings; afterwards restore the state of the process."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def best_of(acquisition: AcquisitionFunction, rows: FloatArray, search: Search) -> FloatArray:
    """Return the row, [1, d], of the largest value among `rows`, [p, d], p > 0."""
    best, _ = optimize_acqf_discrete(acquisition, q=1, choices=torch.from_numpy(rows), max_batch_size=search.chunk)
    return np.asarray(best.numpy())


def _scores(acquisition: AcquisitionFunction, rows: FloatArray, chunk: int) -> FloatArray:
    """Return the values, [b], of the acquisition function at b rows, [b, d]."""
    if not len(rows):
        return np.zeros(0)
    with torch.no_grad():
        parts = [acquisition(part[:, None]) for part in torch.split(torch.from_numpy(rows), chunk)]
    return np.asarray(torch.cat(parts).numpy())


def maximised(
    acquisition: AcquisitionFunction, region: Region, pool: FloatArray, search: Search, random: np.random.Generator
) -> FloatArray:
    """Return feasible rows of the region with large values of the acquisition function, the best first.

    `pool`: p > 0 feasible rows, which are among the result. BoTorch's optimiser of continua keeps the linear
    constraints between parameters. Rows that break others are moved back, and all are varied.
    """
    values = _scores(acquisition, pool, search.chunk)
    best = np.argsort(-values, kind="stable")[: search.restarts]
    if search.optimizer_for(region) == DISCRETE:
        rows = _feasible(acquisition, region, pool[best], pool[best], search.chunk, random)
        values = np.concatenate([_scores(acquisition, rows, search.chunk), values])
        return np.asarray(np.vstack([rows, pool])[np.argsort(-values, kind="stable")])
    stepped = {place: levels for place, levels in enumerate(region.levels) if levels is not None}
    constant = {place: float(levels[0]) for place, levels in stepped.items() if len(levels) == 1}
    # Activity columns follow from the other columns.
    constant |= dict.fromkeys(range(len(region.levels), pool.shape[1]), 0.0)
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).repeat(1, pool.shape[1])
    choices = {place: levels.tolist() for place, levels in stepped.items() if len(levels) > 1}
    for place, one in choices.items():
        bounds[:, place] = torch.tensor([one[0], one[-1]], dtype=torch.double)
    shared: dict[str, Any] = {"q": 1, "num_restarts": len(best), "fixed_features": constant}
    lines = [
        (torch.tensor(places), torch.tensor(factors, dtype=torch.double), least)
        for places, factors, least in region.inequalities
    ]
    if search.optimizer_for(region) == CONTINUOUS:
        start = torch.from_numpy(pool[best])[:, None]
        found, _ = optimize_acqf(
            acquisition,
            bounds,
            batch_initial_conditions=start,
            return_best_only=False,
            options=_CONTINUOUS_WITHIN if lines else _CONTINUOUS,
            inequality_constraints=lines or None,
            **shared,
        )
        found = found[:, 0]
    else:
        found, _ = optimize_acqf_mixed_alternating(
            acquisition,
            bounds,
            discrete_dims={place: one for place, one in choices.items() if place not in region.categorical},
            cat_dims={place: one for place, one in choices.items() if place in region.categorical},
            raw_samples=search.raw_samples,
            options={"tol": _CLOSE, "num_spray_points": 0, "maxiter_init": _STEPS_OF_STARTS},
            **shared,
        )
    rows = region.exact(found.detach().numpy().copy())
    if region.space.constraints:
        starts = pool[best]
        rows = _feasible(acquisition, region, starts, np.resize(rows, starts.shape), search.chunk, random)
    values = np.concatenate([_scores(acquisition, rows, search.chunk), values])
    return np.asarray(np.vstack([rows, pool])[np.argsort(-values, kind="stable")])


def _feasible(
    acquisition: AcquisitionFunction,
    region: Region,
    starts: FloatArray,
    found: FloatArray,
    chunk: int,
    random: np.random.Generator,
) -> FloatArray:
    """Return k feasible rows, [k, d], that are at least as good as the feasible `starts` from which `found` began."""
    rows, values = starts.copy(), _scores(acquisition, starts, chunk)

    def offer(others: FloatArray) -> None:
        """Replace each row by its counterpart in `others` if that is feasible and better."""
        places = np.flatnonzero(region.feasible(others))
        offered = _scores(acquisition, others[places], chunk)
        better = offered > values[places]
        rows[places[better]], values[places[better]] = others[places[better]], offered[better]

    offer(found)
    for part in _BACK:
        offer(region.exact(starts + part * (found - starts)))
    for widths in _WIDTHS:
        for _ in range(_DRAWS):
            offer(region.vary(rows, random, widths))
    for _ in range(_CLIMBS):
        before = values.copy()
        best = np.argsort(-values, kind="stable")[:_CLIMBERS]
        for place, others in zip(best, region.neighbours(rows[best], _NEIGHBOURS, random), strict=True):
            offered = _scores(acquisition, others, chunk)
            if len(others) and offered.max() > values[place]:
                rows[place], values[place] = others[offered.argmax()], offered.max()
        if (values == before).all():
            break
    return rows
