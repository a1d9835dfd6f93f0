"""Why a trial measures a configuration that another trial has measured, or measures now.

Without noise no configuration is measured twice. With noise a repeat is a decision, and each trial keeps its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Count, Min, Q

from service.core.lifecycle import TrialState
from service.core.reasons import Reason
from service.studies import actions
from service.studies.change import Work
from service.studies.models import Trial
from service.tenancy import access
from service.trials.method import bare_tuner
from service.tuner.suggestion import Suggestion

# Of a larger space nobody counts what has been measured.
_MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The earlier trials of a configuration: the number of the first one, and whether all of them have failed."""

    first: int
    has_failed: bool


def explained(work: Work, suggested: Sequence[Suggestion]) -> list[Suggestion]:
    """Return the suggestions, which the next trials measure in this order, with the reasons of repeats."""
    if not _may_repeat(work):
        return list(suggested)
    keys = [actions.configuration_key(work.study, one.configuration) for one in suggested]
    wanted = {key for key, one in zip(keys, suggested, strict=True) if one.origin == "suggested" and not one.reason}
    earlier = _earlier(work, wanted)
    found = []
    for number, (key, one) in enumerate(zip(keys, suggested, strict=True), start=work.study.next_number):
        if key in earlier and key in wanted and not one.reason:
            one = replace(one, reason=_reason(work, earlier[key]))
        earlier.setdefault(key, _Earlier(number, False))
        found.append(one)
    return found


def _may_repeat(work: Work) -> bool:
    problem, tuner = work.spec.problem, bare_tuner(work.spec)
    return problem.noisy and (tuner.uses_history or problem.space.cardinality() is not None)


def _earlier(work: Work, keys: set[str]) -> dict[str, _Earlier]:
    """Return what is known of these configurations, by their keys; only of those that have trials."""
    if not keys:
        return {}
    rows = access.rows(Trial, work.principal).filter(study_id=work.study.pk, key__in=keys)
    counted = rows.values("key").annotate(
        first=Min("number"), all=Count("pk"), failed=Count("pk", filter=Q(state=TrialState.FAILED))
    )
    return {one["key"]: _Earlier(one["first"], one["all"] == one["failed"]) for one in counted}


def _reason(work: Work, earlier: _Earlier) -> Reason:
    trial = earlier.first
    if earlier.has_failed:
        text = f"Trial {trial} of this configuration has failed, perhaps by a fault of the machine: it is tried again."
        return Reason(text, "repeat_failed", trial=trial)
    size = _measured_whole(work)
    if size is not None:
        text = f"All {size} configurations have been measured, this one first in trial {trial}. Only repeats are left."
        return Reason(text, "repeat_exhausted", size=size, trial=trial)
    tuner = bare_tuner(work.spec)
    algorithm = tuner.choice.name
    if not tuner.uses_history:
        text = f"{algorithm} draws without regard to earlier trials, and has drawn the one of trial {trial} again."
        return Reason(text, "repeat_drawn", algorithm=algorithm, trial=trial)
    text = f"{algorithm} expects more of another run of the configuration of trial {trial} than of a new one."
    return Reason(text, "repeat_chosen", algorithm=algorithm, trial=trial)


def _measured_whole(work: Work) -> int | None:
    """Return the number of configurations of the space if all of them have trials; None otherwise, or if unknown."""
    space = work.spec.problem.space
    size = space.feasible_count() if space.constraints else space.cardinality()
    if size is None or size > _MOST_COUNTED or size >= work.study.next_number:
        return None
    rows = access.rows(Trial, work.principal).filter(study_id=work.study.pk)
    return size if rows.values("key").distinct().count() >= size else None
