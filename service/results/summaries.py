"""The summaries of studies (`StudySummary`): copies of their results by which lists of studies are sorted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now

from service.core.context import context_words
from service.logger import Logger
from service.matching import records
from service.results.analysis import Analysis, ObjectiveProgress, analyse
from service.results.trend import trend
from service.studies import listen_notify
from service.studies.change import Deleted, read
from service.studies.isolated import isolated
from service.studies.models import Study, StudySummary
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tuner.verdict import ContextRow, Level, Verdict

# The most studies and seconds of one sweep: other work waits for its end.
_MOST = 500
_SECONDS = 0.5

# The counts of a verdict that a summary holds.
_COUNTS = ("runs", "default_runs", "trials", "measured", "doubtful", "rounds", "disturbed_rounds")

logger = Logger(__name__)


def refresh() -> None:
    """Write the summaries that are missing or old, the oldest first. Runs every two seconds; safe to run twice."""
    until = time.monotonic() + _SECONDS
    for tenant_id, study_id in access.across("old_summaries", _MOST):
        part = partial(summarise, Principal.system(tenant_id), study_id)
        isolated(part, tenant_id, study_id, seconds=2 * settings.TRIMTAB_REQUEST_CPU_SECONDS)
        if time.monotonic() > until:
            break


def summarise(principal: Principal, study_id: int) -> None:
    """Write the summary of one study, unless its analysis has to wait or the study was deleted.

    A study that cannot be summarised gets an empty summary: otherwise it would be the first one of the next sweep, too.
    """
    try:
        study = read(principal, study_id).study
    except Deleted:
        return
    try:
        analyse_it = partial(analyse, principal, study, may_lag=True)
        analysis = access.limited(settings.TRIMTAB_REQUEST_CPU_SECONDS, analyse_it)
        _write(principal, study, analysis)
    except (InterfaceError, OperationalError):
        # The database is at fault, not the study: the next sweep tries again.
        raise
    except Exception:
        logger.exception("a study cannot be summarised", study=study.name, tenant=study.tenant_id)
        _write(principal, study, None)


def _write(principal: Principal, study: Study, analysis: Analysis | None) -> None:
    """Write the summary of an analysis; an empty one without it."""
    if analysis is not None and analysis.behind:
        # A later sweep writes the summary: its numbers must belong to its revision.
        return
    objectives = [] if analysis is None else _objectives(analysis)
    first: dict[str, Any] = objectives[0] if objectives else {}
    if first:
        first["trend"] = trend(principal, study)
    verdict = None if analysis is None else analysis.verdict
    with access.work(principal):
        # The lock on the study's row keeps a deletion out until the summary is written.
        locked = access.rows(Study, principal).select_for_update(no_key=True).filter(pk=study.pk)
        revision = locked.values_list("revision", flat=True).first()
        if revision is None:
            return
        access.put(
            principal,
            StudySummary(
                study_id=study.pk,
                revision=study.revision,
                objectives=objectives,
                configuration=None if verdict is None else dict(verdict.configuration),
                best=first.get("best"),
                gain=first.get("gain"),
                made_at=Now(),
            ),
        )
        if analysis is not None and revision == study.revision == analysis.revision:
            # The final check has already stored its verdict. A gain that needed no check is known only here.
            records.settle(principal, study, analysis.grounds.proof(analysis.verdict))
        listen_notify.notify_lists(principal, "studies")


def _objectives(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the progress of each objective as JSON, with the interval of the gain and what else is in a verdict."""
    verdict, words = analysis.verdict, ""
    if analysis.contexts:
        verdict, words = _leading(analysis.contexts)
    known = _of_verdict(verdict, words)
    if analysis.pareto_verdict is not None:
        known = {"level": str(analysis.pareto_verdict.level)}
    if len(analysis.objectives) > 1:
        known["front"] = len(analysis.best)
    found: list[dict[str, Any]] = []
    for progress in analysis.objectives:
        shown = {name: getattr(progress, name) for name in ("metric", "goal", "unit", "default", "best", "gain")}
        interval = {"low": progress.gain_low, "high": progress.gain_high}
        if words and verdict is not None:
            shown |= {"default": verdict.default, "best": verdict.value, "gain": verdict.gain}
            shown["context_words"] = words
            interval = {"low": verdict.low, "high": verdict.high}
        rows = {"contexts": [_of_row(progress, row) for row in analysis.contexts]} if analysis.contexts else {}
        found.append({**shown, **interval, **known, **rows})
    return found


def _of_row(progress: ObjectiveProgress, row: ContextRow) -> dict[str, Any]:
    """Return the verdict in one context as the progress of the objective."""
    verdict = row.verdict
    numbers = {"default": None, "best": None, "gain": None, "low": None, "high": None}
    if verdict is not None:
        numbers = {name: getattr(verdict, "value" if name == "best" else name) for name in numbers}
    return {
        "context": dict(row.context),
        "configuration": None if verdict is None else dict(verdict.configuration),
        **{name: getattr(progress, name) for name in ("metric", "goal", "unit")},
        **numbers,
        **_of_verdict(verdict, ""),
    }


def _of_verdict(verdict: Verdict | None, words: str) -> dict[str, Any]:
    """Return what a verdict says next to the numbers of its objective. `words`: the context of which it is."""
    if verdict is None:
        return {"level": None}
    compared = verdict.compared
    return {
        "level": str(verdict.level),
        "code": str(verdict.code),
        **{name: getattr(verdict, name) for name in _COUNTS},
        "text": f"{words}: {verdict.text}" if words else verdict.text,
        "conditions": [{"text": str(one), **one.data} for one in verdict.conditions],
        "advice": verdict.advice,
        "compared": None if compared is None else {**asdict(compared), "configuration": dict(compared.configuration)},
    }


def _leading(rows: Sequence[ContextRow]) -> tuple[Verdict | None, str]:
    """Return the verdict that stands for a study with a context in a list, and its context in words.

    It is the largest of the gains that are known best: of the proven ones, or else of the provisional ones.
    """
    order = list(Level)
    known = [(row.verdict, context_words(row.context)) for row in rows if row.verdict is not None]
    return min(known, key=lambda one: (order.index(one[0].level), -(one[0].gain or 0.0)), default=(None, ""))
