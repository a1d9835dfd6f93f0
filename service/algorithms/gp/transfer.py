"""The weights with which processes count that use the results of earlier studies.

A process without a trend competes with those that have the trend of an earlier study. The evidence of the new study's
own measurements decides, so that a study of another system soon does not count. [feurer-2018] weighs processes by how
well they rank the measurements; the evidence needs no sampling, and few measurements are enough for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp, softmax

from service.algorithms.gp.fits import Ensemble, Fits, Kind, Process
from service.algorithms.gp.models import Prior
from service.algorithms.gp.runs import Runs
from service.algorithms.gp.trend import Source

# The prior probability that no earlier study says anything.
_UNRELATED = 0.5
# Processes with smaller weights cost more time than they are worth.
_LEAST = 0.01


def weighted(
    alone: Ensemble, fits: Fits, runs: Runs, kind: Kind, others: Sequence[Prior], sources: Sequence[Source]
) -> Ensemble:
    """Return an ensemble with the processes of `alone` and as many for each source.

    Args:
        alone: the processes of the `runs` without a source, of this `kind` and with these `others` as priors.
    """
    given = (alone.members[0].scale.offset,)
    ensembles = [alone]
    for source in sources:
        own = replace(kind, name=f"{kind.name} after {source.key}", given=given, source=source)
        ensembles.append(fits.ensemble(runs, own, others))
    shares = np.array([_UNRELATED, *[(1.0 - _UNRELATED) / len(sources)] * len(sources)])
    evidence = [logsumexp([member.evidence for member in one.members]) for one in ensembles]
    weights = softmax(np.log(shares) + evidence)
    weights[weights < _LEAST] = 0.0
    members: list[Process] = []
    found: list[float] = []
    for ensemble, weight in zip(ensembles, weights / weights.sum(), strict=True):
        if weight > 0.0:
            members += ensemble.members
            found += [float(weight) / len(ensemble.members)] * len(ensemble.members)
    return Ensemble(tuple(members), tuple(found))
