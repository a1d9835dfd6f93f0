"""Keeps the copy of each study's results by which lists of studies are sorted (`StudySummary`) up to date."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now

from service.results.analysis import Analysis, analyse
from service.studies import notifications
from service.studies.change import Deleted, read
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
    """Write the summary of one study, unless summing it up has to wait. One that was deleted meanwhile has none."""
    try:
        study = read(principal, study_id).study
    except Deleted:
        return
    try:
        analysis = analyse(principal, study, may_lag=True)
    except (InterfaceError, OperationalError):
        # The database is at fault, not the study: the next sweep tries again.
        raise
    except Exception:
        # A study that cannot be analysed must not keep the others from it.
        log.exception("study %s of tenant %d cannot be summarised", study.name, study.tenant_id)
        analysis = None
    if analysis is not None and analysis.behind:
        # A later sweep writes it: what is said to be of this revision must be.
        return
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
        notifications.notify_lists(principal, "studies")


def _objectives(study: Study, analysis: Analysis) -> list[dict[str, Any]]:
    """How far each has come; the gain and the interval that holds it with 95 % are the final check's, where there was
    one."""
    found: list[dict[str, Any]] = []
    for progress in analysis.objectives:
        told = {name: getattr(progress, name) for name in ("metric", "goal", "unit", "default", "best", "gain")}
        found.append({**told, "low": progress.gain_low, "high": progress.gain_high})
    if found and study.verdict is not None:
        found[0] |= {name: study.verdict[name] for name in ("gain", "low", "high")}
    return found
