"""Sweeps that keep studies going when messages, workers or callers are lost. They run every two seconds; running one
twice does no harm."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least, Now

from service.core.lifecycle import OperationState, check_step
from service.logger import Logger
from service.notices import delivery
from service.planning import sample_data
from service.results import summaries
from service.studies.change import Deleted, changing
from service.studies.isolated import isolated
from service.studies.models import Operation, Study
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget, ending, messages, topup
from service.workers import losses
from service.workers.compute import next_due

logger = Logger(__name__)

_FIRST_WAIT = timedelta(seconds=2)
_LONGEST_WAIT = timedelta(seconds=30)
# The same condition as in across.forgotten_operations.
_OVERDUE = Q(
    state=OperationState.PENDING,
    enqueued_at__lt=Now() - Least(Greatest(_FIRST_WAIT, F("enqueued_at") - F("created_at")), _LONGEST_WAIT),
)


def sweep() -> None:
    """Look once for everything that was left unfinished. A step that fails is logged, and the others go on."""
    for step in (
        mark_stale,
        requeue_lost,
        send_forgotten,
        end_late_studies,
        top_up_hungry_studies,
        sample_data.measure,
        continue_rollouts,
        summaries.refresh,
        delivery.send_due,
    ):
        try:
            step()
        except (InterfaceError, OperationalError):
            raise  # without the database no step can do anything
        except Exception:  # each study is isolated already, so this is a defect of the step itself
            logger.exception("a step of the sweep failed, the others go on", step=step.__name__)


def mark_stale() -> None:
    """Mark operations whose worker is silent as STALE. If the worker beats again, they are RUNNING again."""
    check_step("operation", OperationState.RUNNING, OperationState.STALE)
    silence = timedelta(seconds=settings.TRIMTAB_OPERATION_STALE_SECONDS)
    for tenant_id, operation_id in access.across("silent_operations", silence):
        silent = access.rows(Operation, Principal.system(tenant_id)).filter(
            id=operation_id, state=OperationState.RUNNING, heartbeat_at__lt=Now() - silence
        )
        isolated(partial(silent.update, state=OperationState.STALE), tenant_id)


def requeue_lost() -> None:
    """Give operations of workers that stay silent to another worker, a bounded number of times.

    A worker that replaces a dead one does so at once (losses.py). This finds those that nothing replaces.
    """
    silence = timedelta(seconds=settings.TRIMTAB_OPERATION_REQUEUE_SECONDS)
    lost = Q(state=OperationState.STALE, heartbeat_at__lt=Now() - silence)
    for tenant_id, study_id, operation_id in access.across("lost_operations", silence):
        end = f"has given no sign of life for {silence.total_seconds():g} s"
        losses.lose(tenant_id, study_id, operation_id, lost, end)


def send_forgotten() -> None:
    """Send the messages of operations that no worker took again, because they may be lost.

    The workers may also just be busy. The wait doubles each time, so that messages do not pile up.
    """
    for tenant_id, study_id in access.across("forgotten_operations", _FIRST_WAIT, _LONGEST_WAIT):
        isolated(partial(_send_again, Principal.system(tenant_id), study_id), tenant_id, study_id)


def _send_again(principal: Principal, study_id: int) -> None:
    due = next_due(principal, study_id)
    rows = access.rows(Operation, principal)
    if due is not None and rows.filter(_OVERDUE, id=due.id).update(enqueued_at=Now()):
        slow = access.rows(Study, principal).filter(pk=study_id, slow=True).exists()
        messages.send_slow(due.id) if slow else messages.send(due.id)


def end_late_studies() -> None:
    """End the search of studies whose time budget is over: nothing new starts, and what runs may still finish."""
    for tenant_id, study_id in access.across("late_studies"):
        isolated(partial(_end_search, Principal.system(tenant_id), study_id), tenant_id, study_id)


def _end_search(principal: Principal, study_id: int) -> None:
    with suppress(Deleted), changing(principal, study_id, "study.end_search") as work:
        reason = budget.over(work)
        if reason is not None and work.study.state in ending.OPEN_ENDED:
            work.detail = {"reason": reason}
            ending.end_search(work, reason)
            topup.top_up(work)


def top_up_hungry_studies() -> None:
    """Start suggestions for studies on agents that have too few open trials and no operation under way."""
    for tenant_id, study_id in access.across("hungry_studies"):
        isolated(partial(_top_up, Principal.system(tenant_id), study_id), tenant_id, study_id)


def _top_up(principal: Principal, study_id: int) -> None:
    with suppress(Deleted), changing(principal, study_id, "study.top_up") as work:
        if topup.deficit(work) > 0:
            topup.top_up(work)


def continue_rollouts() -> None:
    """Add the trials of roll-outs that are due: the next stage, or a check of kept settings."""
    for tenant_id, study_id in access.across("due_rollouts"):
        isolated(partial(_roll_out, Principal.system(tenant_id), study_id), tenant_id, study_id)


def _roll_out(principal: Principal, study_id: int) -> None:
    with suppress(Deleted), changing(principal, study_id, "study.roll_out") as work:
        topup.top_up(work)
