"""Keeps the copy of each study's results by which lists of studies are sorted (`StudySummary`) up to date."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db.models.functions import Now

from service.core.errors import NotFound
from service.pipeline.analysis import Analysis, ObjectiveProgress, analyse
from service.studies import actions
from service.studies.models import Study, StudySummary
from service.tenancy import access
from service.tenancy.principal import Principal

# What one sweep may cost at most: others wait behind it.
_MOST = 500
_SECONDS = 0.5

log = logging.getLogger(__name__)


def refresh() -> None:
    """Write the summaries that are missing or old, the oldest first. Runs every two seconds; safe to run twice."""
    until = time.monotonic() + _SECONDS
    for tenant_id, study_id in access.across("old_summaries", _MOST):
        summarise(Principal.system(tenant_id), study_id)
        if time.monotonic() > until:
            break


def summarise(principal: Principal, study_id: int) -> None:
    """Write the summary of one study. One that was deleted meanwhile has none."""
    try:
        study = actions.read_by_id(principal, study_id)
    except NotFound:
        return
    try:
        analysis = analyse(principal, study)
    except Exception:
        # A study that cannot be analysed must not keep the others from it.
        log.exception("study %s of tenant %d cannot be summarised", study.name, study.tenant_id)
        analysis = None
    objectives = [] if analysis is None else _objectives(study, analysis)
    first: dict[str, Any] = objectives[0] if objectives else {}
    alone = analysis is not None and len(analysis.objectives) == 1 and len(analysis.best) == 1
    with access.work(principal):
        # Under the row's lock: the study may be about to be deleted.
        if not access.rows(Study, principal).select_for_update(no_key=True).filter(pk=study.pk).values_list("pk"):
            return
        access.put(
            principal,
            StudySummary(
                study_id=study.pk,
                revision=study.revision,
                objectives=objectives,
                configuration=dict(analysis.best[0].params) if analysis is not None and alone else None,
                best=first.get("best"),
                gain=first.get("gain"),
                made_at=Now(),
            ),
        )


def _objectives(study: Study, analysis: Analysis) -> list[dict[str, Any]]:
    """How far each has come; the first one's gain as expected, with the interval that holds it with 95 %, where one is
    known."""
    found: list[dict[str, Any]] = []
    for index, progress in enumerate(analysis.objectives):
        gain = (_expected_gain(study, analysis, progress) if index == 0 else None) or (progress.gain, None, None)
        told = {name: getattr(progress, name) for name in ("metric", "goal", "unit", "default", "best")}
        found.append({**told, **dict(zip(("gain", "low", "high"), gain, strict=True))})
    return found


def _expected_gain(study: Study, analysis: Analysis, progress: ObjectiveProgress) -> tuple[float, float, float] | None:
    """The final check's where there was one; else by what is expected of the best configuration, which takes the
    default's value for certain."""
    if study.verdict is not None:
        return study.verdict["gain"], study.verdict["low"], study.verdict["high"]
    expected, start = analysis.recommendation, progress.default
    if expected is None or expected.low is None or expected.high is None or start is None or start == 0:
        return None
    sign = 1 if progress.goal == "minimize" else -1
    gain, one, other = (sign * (start - value) / abs(start) for value in (expected.value, expected.low, expected.high))
    return (gain, min(one, other), max(one, other)) if one != other else None
