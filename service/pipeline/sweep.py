"""What keeps a study going when messages, workers or callers are lost. Runs every two seconds; safe to run twice."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least, Now

from service.core.errors import NotFound
from service.core.lifecycle import OperationState, StudyState, check_step
from service.pipeline import budget, ending, queue, topup
from service.pipeline.compute import fail_locked, next_due
from service.studies import actions
from service.studies.models import Operation, Study
from service.studies.models.operation import UNFINISHED
from service.tenancy import access
from service.tenancy.principal import Principal

MOST_ATTEMPTS = 3
_FIRST_WAIT = timedelta(seconds=2)
_LONGEST_WAIT = timedelta(seconds=30)

log = logging.getLogger(__name__)


def sweep() -> None:
    """Go once over everything that may have been left lying."""
    mark_stale()
    requeue_lost()
    enqueue_forgotten()
    end_late_studies()
    top_up_hungry_studies()


def mark_stale() -> None:
    """Mark operations whose worker has not been heard of for a while. A worker that beats again is RUNNING again."""
    check_step("operation", OperationState.RUNNING, OperationState.STALE)
    silence = timedelta(seconds=settings.TRIMTAB_OPERATION_STALE_SECONDS)
    access.system_rows(Operation).filter(state=OperationState.RUNNING, heartbeat_at__lt=Now() - silence).update(
        state=OperationState.STALE
    )


def requeue_lost() -> None:
    """Give operations of workers that stayed silent to another worker, a bounded number of times."""
    silence = timedelta(seconds=settings.TRIMTAB_OPERATION_REQUEUE_SECONDS)
    lost = Q(state=OperationState.STALE, heartbeat_at__lt=Now() - silence)
    for found in access.system_rows(Operation).filter(lost):
        principal = Principal.system(found.tenant_id)
        with access.work(principal):
            try:
                study = actions.lock_by_id(principal, found.study_id)
            except NotFound:
                continue
            operation = access.rows(Operation, principal).select_for_update().filter(lost, id=found.id).first()
            if operation is None:
                continue
            if operation.attempt >= MOST_ATTEMPTS:
                message = (
                    f"{operation.attempt} workers were lost while they computed it, the last was {operation.worker}."
                )
                fail_locked(principal, study, operation, "worker_lost", message)
                continue
            check_step("operation", OperationState.STALE, OperationState.PENDING)
            operation.state = OperationState.PENDING
            operation.enqueued_at = study.database_time
            access.save(principal, operation, "state", "enqueued_at")
            actions.conclude(principal, study, "operation.requeue", f"operation/{operation.id}")
            queue.enqueue_on_commit(operation.id)


def enqueue_forgotten() -> None:
    """Enqueue again what no worker took: the message may be lost.

    Or every worker is busy: the wait doubles each time, so that messages do not pile up.
    """
    wait = Least(Greatest(_FIRST_WAIT, F("enqueued_at") - F("created_at")), _LONGEST_WAIT)
    overdue = Q(state=OperationState.PENDING, enqueued_at__lt=Now() - wait)
    studies: set[int] = set()
    for operation in access.system_rows(Operation).filter(overdue).select_related("study").order_by("created_at"):
        if operation.study_id in studies:
            continue
        studies.add(operation.study_id)
        due = next_due(Principal.system(operation.tenant_id), operation.study)
        if due is not None and access.system_rows(Operation).filter(overdue, id=due.id).update(enqueued_at=Now()):
            queue.enqueue(due.id)


def end_late_studies() -> None:
    """End the search of studies whose time budget is over: nothing new starts, what runs may still finish."""
    late = access.system_rows(Study).filter(deadline__lt=Now(), state__in=(StudyState.ACTIVE, StudyState.PAUSED))
    for tenant_id, study_id in late.values_list("tenant_id", "pk"):
        principal = Principal.system(tenant_id)
        with access.work(principal):
            try:
                study = actions.lock_by_id(principal, study_id)
            except NotFound:
                continue
            reason = budget.over(study)
            if reason is not None and study.state in ending.OPEN_ENDED:
                ending.end_search(principal, study, reason)
                topup.top_up(principal, study)
                actions.conclude(principal, study, "study.end_search", detail={"reason": reason})


def top_up_hungry_studies() -> None:
    """Start suggestions for studies on agents that have too few open trials and no operation under way."""
    hungry = (
        access.system_rows(Study)
        .filter(state=StudyState.ACTIVE, exhausted=False)
        .exclude(component="")
        .filter(parallelism__gte=F("requested_count") + F("active_count"))
        .exclude(pk__in=access.system_rows(Operation).filter(state__in=UNFINISHED).values("study_id"))
    )
    for tenant_id, study_id in hungry.values_list("tenant_id", "pk"):
        principal = Principal.system(tenant_id)
        with access.work(principal):
            try:
                study = actions.lock_by_id(principal, study_id)
            except NotFound:
                continue
            if topup.deficit(study) > 0:
                topup.top_up(principal, study)
                if study.changed:
                    actions.conclude(principal, study, "study.top_up")
