"""The results of earlier studies as knowledge of a new one: which runs are taken, and how they are stored.

They are copied when the study is created, so that its suggestions do not change with the earlier study, or end with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from service.algorithms import registry
from service.core.errors import InvalidInput
from service.core.lesson import Lesson
from service.core.lifecycle import TrialState
from service.core.space import Configuration, Space
from service.core.trial import trusted
from service.studies.models import Study, Trial
from service.studies.specs import DEFAULT_ALGORITHM, StudySpec, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.models import StudyLessons

MOST_RUNS = 300
# The configurations of one earlier study take at most so many bytes.
_MOST_BYTES = 1_000_000
_ONE_OBJECTIVE = "false for studies with several objectives, whose models do not learn from others"


def lessons(principal: Principal, spec: StudySpec, studies: Sequence[Study]) -> Mapping[str, Lesson]:
    """Return the results of each earlier study from which a new study of this spec learns, by name.

    `studies`: those of `spec.start_from`, in this order. The result is empty if `auto` has chosen an algorithm that
    does not learn from other studies. Raises InvalidInput (`start_from[<n>].learn`) for an algorithm that does not, and
    with the code `other_objective` for a study of another metric or direction, or if either has several objectives.
    """
    found: dict[str, Lesson] = {}
    for index, (entry, study) in enumerate(zip(spec.start_from, studies, strict=True)):
        if entry.learn:
            _check(f"start_from[{index}].learn", spec, study)
            found[study.name] = _lesson(principal, spec, study)
    return found if _learns(spec) else {}


def store(principal: Principal, study: Study, learned: Sequence[Lesson]) -> None:
    """Store the lessons of a new study."""
    if learned:
        access.add(principal, StudyLessons(study=study, lessons=[asdict(one) for one in learned]))


def _check(field: str, spec: StudySpec, study: Study) -> None:
    if spec.algorithm != DEFAULT_ALGORITHM and not _learns(spec):
        able = ", ".join(name for name in registry.names() if registry.describe(name).learns_from_studies)
        raise InvalidInput(field, True, f"false for {spec.algorithm}, or one of the algorithms {able}")
    own, other = (one.problem.objectives for one in (spec, spec_of(study)))
    if max(len(own), len(other)) > 1:
        raise InvalidInput(field, True, _ONE_OBJECTIVE, code="other_objective")
    if (own[0].metric, own[0].goal) != (other[0].metric, other[0].goal):
        allowed = f"false, or a study that has the objective to {own[0].goal} {own[0].metric}"
        problem = f"does not suit: {study.name} has the objective to {other[0].goal} {other[0].metric}"
        raise InvalidInput(field, True, allowed, problem=problem, code="other_objective")


def _learns(spec: StudySpec) -> bool:
    return registry.describe(spec.algorithm if spec.choice is None else spec.choice.name).learns_from_studies


def _lesson(principal: Principal, spec: StudySpec, study: Study) -> Lesson:
    """Return the completed runs of a study in the new space; runs outside of it are left out."""
    earlier, metric = spec_of(study), spec.problem.metrics[0]
    rows = access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.COMPLETED).order_by("number")
    runs: list[tuple[Configuration, float]] = []
    for trial in trusted(tuners.within(earlier, tuners.as_seen(list(rows)))):
        value = trial.metrics.get(metric, math.nan)
        configuration = spec.space.adopt({**earlier.whole_space.left, **trial.configuration})
        if configuration is not None and math.isfinite(value):
            runs.append((configuration, value))
    runs = chosen(spec.space, runs)
    return Lesson(study.name, [one for one, _ in runs], [value for _, value in runs])


def chosen(space: Space, runs: Sequence[tuple[Configuration, float]]) -> list[tuple[Configuration, float]]:
    """Return at most MOST_RUNS runs, in bounded space.

    If there are more, each configuration has the mean of its runs. If these are still too many, they are chosen at
    equal distances in the order of their values, because the best alone would not show what is worse.
    """
    longest = max((len(json.dumps(one)) for one, _ in runs), default=1)
    most = min(MOST_RUNS, max(_MOST_BYTES // longest, 1))
    if len(runs) <= most:
        return list(runs)
    groups: dict[str, list[tuple[Configuration, float]]] = {}
    for one, value in runs:
        groups.setdefault(space.key(one), []).append((one, value))
    means = [(group[0][0], math.fsum(value / len(group) for _, value in group)) for group in groups.values()]
    means.sort(key=lambda run: run[1])
    places = np.unique(np.linspace(0, len(means) - 1, most).round().astype(int))
    return [means[place] for place in places]
