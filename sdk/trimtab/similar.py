"""A start that earlier studies teach: the best configurations of those whose default run was most alike.

Studies of the same component, for other applications, are compared by the metrics of their default configuration:
counters say how an application uses the system. The best configurations of the nearest ones are measured early.
"""

import math
import statistics
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.space import Scalar
    from trimtab.spec import StudySpec
    from trimtab.study import Study
    from trimtab.trial import Trial

NEAREST = 3
# The latest ones. Each costs a call for its trials.
_MOST_STUDIES = 50


@dataclass(frozen=True)
class Neighbour:
    """An earlier study, how far the metrics of its default are from those of the present study, and its best."""

    study: str
    distance: float
    """0 if they are the same; 1 if the metrics differ by as much as they do among all studies, on average."""
    params: "Mapping[str, Scalar]"


def check(spec: "StudySpec") -> None:
    """Raise InvalidInput (`similar`) for a study that has no best configuration, or no component."""
    if len(spec.objectives) != 1 or spec.context:
        raise InvalidInput.of("similar", None, "a study with one objective and without a context")
    if spec.execution is None:
        raise InvalidInput.of("similar", None, "a study of a component: earlier studies of the same one are compared")


def neighbours(study: "Study", earlier: "Iterable[Study]", *, count: int = NEAREST) -> list[Neighbour]:
    """Return the earlier studies whose default run was most like that of the study, the nearest first.

    Only studies with the same objective and a recommended configuration count. The list is empty before the study's
    default has a result, and if no earlier study has one.

    Raises:
        InvalidInput: as `check` does.
    """
    check(study.spec)
    own = default_metrics(study)
    if not own:
        return []
    known: dict[str, tuple[Mapping[str, float], Mapping[str, Scalar]]] = {}
    for one in earlier:
        if len(known) == _MOST_STUDIES:
            break
        if one.name == study.name or one.spec.objectives != study.spec.objectives or one.spec.context:
            continue
        found = default_metrics(one)
        best = one.recommendation if found else None
        if best is not None:
            known[one.name] = (found, best.params)
    away = distances(own, [metrics for metrics, _ in known.values()])
    order = sorted(zip(away, known.items(), strict=True), key=lambda pair: (pair[0], pair[1][0]))
    return [Neighbour(name, distance, params) for distance, (name, (_, params)) in order[:count]]


def enqueue_best(study: "Study", found: Sequence[Neighbour]) -> "list[Trial]":
    """Have the best configurations of these studies measured; return their trials.

    Values of parameters that the study does not have are left out, and parameters without a value have their default.
    A configuration that the space does not allow is left out, and so is one that was enqueued before.
    """
    names = {one.name for one in study.spec.space}
    trials: list[Trial] = []
    seen: list[dict[str, Scalar]] = []
    for one in found:
        params = {name: value for name, value in one.params.items() if name in names}
        if params in seen:
            continue
        seen.append(params)
        request_id = uuid.uuid5(uuid.NAMESPACE_URL, f"similar/{study.name}/{one.study}").hex
        try:
            trials += study.enqueue(params, request_id=request_id)
        except InvalidInput:
            continue
    return trials


def default_metrics(study: "Study") -> dict[str, float]:
    """Return the means of the metrics over the runs of a study's default; empty before the first one."""
    trials = study.trials(["COMPLETED"])
    default = next((one.params for one in trials if one.origin == "default"), None)
    runs = [one.metrics for one in trials if one.params == default]
    common = set.intersection(*(set(one) for one in runs)) if runs else set()
    return {name: statistics.fmean(one[name] for one in runs) for name in sorted(common)}


def distances(own: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> list[float]:
    """Return how far other metrics are from one's own: the root of the mean square over the metrics that all have.

    Each metric counts by its logarithm, in units of its standard deviation over all. A metric that is the same
    everywhere does not count.
    """
    names = [name for name in own if all(name in one for one in others)]
    total = [0.0] * len(others)
    counted = 0
    for name in names:
        value, *rest = (_logarithm(one[name]) for one in (own, *others))
        spread = statistics.pstdev([value, *rest])
        if spread > 0.0:
            counted += 1
            total = [known + ((one - value) / spread) ** 2 for known, one in zip(total, rest, strict=True)]
    return [math.sqrt(one / max(counted, 1)) for one in total]


def _logarithm(value: float) -> float:
    """Return the logarithm of 1 + value; with the sign of the value, since a metric may be negative."""
    return math.copysign(math.log1p(abs(value)), value)
