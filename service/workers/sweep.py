"""Sweeps that keep studies going when messages, workers or callers are lost. They run every two seconds; running one
twice does no harm."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least, Now

from service.core.lifecycle import OperationState, check_step
from service.notices import delivery
from service.results import summaries
from service.studies.change import Deleted, changing
from service.studies.isolated import isolated
from service.studies.models import Operation
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget, ending, messages, topup
from service.workers import losses
from service.workers.compute import next_due

_FIRST_WAIT = timedelta(seconds=2)
_LONGEST_WAIT = timedelta(seconds=30)
# The same condition as in across.forgotten_operations.
_OVERDUE = Q(
    state=OperationState.PENDING,
    enqueued_at__lt=Now() - Least(Greatest(_FIRST_WAIT, F("enqueued_at") - F("created_at")), _LONGEST_WAIT),
)


def sweep() -> None:
    """Look once for everything that was left unfinished."""
    mark_stale()
    requeue_lost()
    send_forgotten()
    end_late_studies()
    top_up_hungry_studies()
    summaries.refresh()
    delivery.send_due()


def mark_stale() -> None:
    """Mark operations whose worker is silent as STALE. If the worker beats again, they are RUNNING again."""
    check_step("operation", OperationState.RUNNING, OperationState.STALE)
    silence = timedelta(seconds=settings.TRIMTAB_OPERATION_STALE_SECONDS)
    for tenant_id, operation_id in access.across("silent_operations", silence):
        silent = access.rows(Operation, Principal.system(tenant_id)).filter(
            id=operation_id, state=OperationState.RUNNING, heartbeat_at__lt=Now() - silence
        )
        silent.update(state=OperationState.STALE)


def requeue_lost() -> None:
    """Give operations of workers that stay silent to another worker, a bounded number of times.

    A worker that replaces a dead one does so at once (losses.py). This finds those that nothing replaces.
    """
    silence = timedelta(seconds=settings.TRIMTAB_OPERATION_REQUEUE_SECONDS)
    lost = Q(state=OperationState.STALE, heartbeat_at__lt=Now() - silence)
    for tenant_id, study_id, operation_id in access.across("lost_operations", silence):
        losses.lose(tenant_id, study_id, operation_id, lost, counts=True)


def send_forgotten() -> None:
    """Send the messages of operations that no worker took again, because they may be lost.

    The workers may also just be busy. The wait doubles each time, so that messages do not pile up.
    """
    for tenant_id, study_id in access.across("forgotten_operations", _FIRST_WAIT, _LONGEST_WAIT):
        principal = Principal.system(tenant_id)
        due = next_due(principal, study_id)
        if due is not None and access.rows(Operation, principal).filter(_OVERDUE, id=due.id).update(enqueued_at=Now()):
            messages.send(due.id)


def end_late_studies() -> None:
    """End the search of studies whose time budget is over: nothing new starts, and what runs may still finish."""
    for tenant_id, study_id in access.across("late_studies"):
        principal = Principal.system(tenant_id)
        with (
            isolated(tenant_id, study_id),
            suppress(Deleted),
            changing(principal, study_id, "study.end_search") as work,
        ):
            reason = budget.over(work)
            if reason is not None and work.study.state in ending.OPEN_ENDED:
                work.detail = {"reason": reason}
                ending.end_search(work, reason)
                topup.top_up(work)


def top_up_hungry_studies() -> None:
    """Start suggestions for studies on agents that have too few open trials and no operation under way."""
    for tenant_id, study_id in access.across("hungry_studies"):
        principal = Principal.system(tenant_id)
        with isolated(tenant_id, study_id), suppress(Deleted), changing(principal, study_id, "study.top_up") as work:
            if topup.deficit(work) > 0:
                topup.top_up(work)
