"""The summaries of studies (`StudySummary`): copies of their results by which lists of studies are sorted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from django.db import InterfaceError, OperationalError
from django.db.models.functions import Now

from service.core.context import context_words
from service.logger import Logger
from service.matching import records
from service.results.analysis import Analysis, analyse
from service.studies import listen_notify
from service.studies.change import Deleted, read
from service.studies.models import Study, StudySummary
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tuner.verdict import ContextRow, Level, Verdict

# The most studies and seconds of one sweep: other work waits for its end.
_MOST = 500
_SECONDS = 0.5

logger = Logger(__name__)


def refresh() -> None:
    """Write the summaries that are missing or old, the oldest first. Runs every two seconds; safe to run twice."""
    until = time.monotonic() + _SECONDS
    for tenant_id, study_id in access.across("old_summaries", _MOST):
        summarise(Principal.system(tenant_id), study_id)
        if time.monotonic() > until:
            break


def summarise(principal: Principal, study_id: int) -> None:
    """Write the summary of one study, unless its analysis has to wait or the study was deleted."""
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
        # One study that cannot be analysed must not stop the sweep.
        logger.exception("a study cannot be summarised", study=study.name, tenant=study.tenant_id)
        analysis = None
    if analysis is not None and analysis.behind:
        # A later sweep writes the summary: its numbers must belong to its revision.
        return
    objectives = [] if analysis is None else _objectives(analysis)
    first: dict[str, Any] = objectives[0] if objectives else {}
    alone = analysis is not None and len(analysis.objectives) == 1 and len(analysis.best) == 1
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
                configuration=dict(analysis.best[0].params) if analysis is not None and alone else None,
                best=first.get("best"),
                gain=first.get("gain"),
                made_at=Now(),
            ),
        )
        if analysis is not None and revision == study.revision == analysis.revision:
            # The final check has already stored its verdict. A gain that needed no check is known only here.
            records.settle(principal, study, _proof(analysis.verdict))
        listen_notify.notify_lists(principal, "studies")


def _proof(verdict: Verdict | None) -> records.Proof | None:
    """Return the gain that a verdict proves, if it proves one."""
    if verdict is None or verdict.level is not Level.PROVEN:
        return None
    assert verdict.gain is not None
    assert verdict.low is not None
    assert verdict.high is not None
    return records.Proof(verdict.configuration, verdict.gain, verdict.low, verdict.high)


def _objectives(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the progress of each objective as JSON, with the interval of the gain and what else is in a verdict."""
    verdict, words = analysis.verdict, ""
    if analysis.contexts:
        verdict, words = _leading(analysis.contexts)
    more = ("text", "runs", "default_runs", "trials", "measured", "doubtful")
    known = (
        {"level": None} if verdict is None else {"level": str(verdict.level)} | {n: getattr(verdict, n) for n in more}
    )
    found: list[dict[str, Any]] = []
    for progress in analysis.objectives:
        shown = {name: getattr(progress, name) for name in ("metric", "goal", "unit", "default", "best", "gain")}
        interval = {"low": progress.gain_low, "high": progress.gain_high}
        if words and verdict is not None:
            shown |= {"default": verdict.default, "best": verdict.value, "gain": verdict.gain}
            interval = {"low": verdict.low, "high": verdict.high}
            known["text"] = f"{words}: {verdict.text}"
        found.append({**shown, **interval, **known})
    return found


def _leading(rows: Sequence[ContextRow]) -> tuple[Verdict | None, str]:
    """Return the verdict that stands for a study with a context in a list, and its context in words.

    It is the largest of the gains that are known best: of the proven ones, or else of the provisional ones.
    """
    order = list(Level)
    known = [(row.verdict, context_words(row.context)) for row in rows if row.verdict is not None]
    return min(known, key=lambda one: (order.index(one[0].level), -(one[0].gain or 0.0)), default=(None, ""))
