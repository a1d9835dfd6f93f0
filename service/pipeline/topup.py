"""Studies on agents: one trial more than may run is always waiting, so that no agent waits."""

from __future__ import annotations

from service.core.lifecycle import StudyState, TrialState
from service.pipeline import budget, queue
from service.pipeline.supply import supply
from service.studies import actions
from service.studies.models import Operation, Study
from service.studies.models.operation import UNFINISHED
from service.tenancy import access
from service.tenancy.principal import Principal


def top_up(principal: Principal, study: Study) -> None:
    """Bring a locked study to `parallelism` + 1 open trials, or start the operation that will.

    Completes the study when its space holds no more and every trial is done. Does nothing for ask/tell studies.
    """
    count = deficit(study)
    if count > 0:
        new = supply(principal, study, count, into=TrialState.REQUESTED, fixed={})
        if new.missing and not _is_computing(principal, study):
            operation = access.add(principal, Operation(study=study, count=new.missing, for_agents=True))
            queue.enqueue_on_commit(operation.id)
    complete_when_exhausted(study)


def deficit(study: Study) -> int:
    """How many open trials a locked study lacks and may have."""
    if study.parallelism is None or study.exhausted:
        return 0
    return budget.allowed(study, max(0, study.parallelism + 1 - study.open_count))


def complete_when_exhausted(study: Study) -> None:
    """Complete a locked study on agents that has measured all there is."""
    if study.component and study.exhausted and study.open_count == 0 and study.state == StudyState.ACTIVE:
        actions.step_study(study, StudyState.COMPLETED, "Every configuration of the space has been measured.")


def _is_computing(principal: Principal, study: Study) -> bool:
    return access.rows(Operation, principal).filter(study_id=study.pk, state__in=UNFINISHED).exists()
