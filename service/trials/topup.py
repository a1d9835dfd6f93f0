"""Studies on agents: one trial more than may run is always waiting, so that no agent waits."""

from __future__ import annotations

import logging

from django.db import Error as DatabaseError

from service.core.errors import TrimtabError
from service.core.lifecycle import StudyState, TrialState
from service.studies import actions
from service.studies.models import Operation, Study
from service.studies.models.operation import UNFINISHED
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget, ending, messages
from service.trials.quotas import meter
from service.trials.supply import supply

NO_ROOM = "Fewer trials run at once than could: the tenant's limits leave no room for more."

log = logging.getLogger(__name__)


def top_up(principal: Principal, study: Study) -> None:
    """Bring a locked study to `parallelism` + 1 open trials, or start the operation that will.

    Where its tenant has room for fewer it gets those, and says so if it could run more; the sweep looks again. Ends
    the search when its space holds no more and every trial is done. Does nothing for ask/tell studies.
    """
    wanted = deficit(study)
    count = meter.room(principal, wanted) if wanted > 0 else 0
    _tell_of_room(study, count < wanted and study.open_count + count < (study.parallelism or 0))
    if count > 0:
        try:
            new = supply(principal, study, count, into=TrialState.REQUESTED, fixed={})
        except DatabaseError:
            raise
        except Exception as error:  # whatever ails the algorithm, the report that led here must count
            log.exception("the algorithm of study %s failed", study.name)
            pause_for(study, error)
            return
        # The final check begins when the worker that determines the best configuration tops the study up.
        costly = new.missing and study.final_check is None and not _is_computing(principal, study)
        if costly and meter.has_worker_time(principal):
            operation = access.add(principal, Operation(study=study, count=new.missing, for_agents=True))
            messages.send_on_commit(operation.id)
    if _is_exhausted(study):
        ending.end_search(principal, study, ending.EXHAUSTED)
        # The final check's trials, if there is one.
        top_up(principal, study)


def pause_for(study: Study, error: Exception | str) -> None:
    """Pause a locked study on agents whose algorithm failed: by itself it would fail again and again."""
    message = error if isinstance(error, str) else describe(error)
    actions.step_study(study, StudyState.PAUSED, f"No suggestion could be computed: {message}")


def describe(error: Exception) -> str:
    """An error in a sentence for users."""
    return error.message if isinstance(error, TrimtabError) else f"{type(error).__name__}: {error}"


def deficit(study: Study) -> int:
    """How many open trials a locked study lacks and may have."""
    if study.parallelism is None or (study.exhausted and study.final_check is None):
        return 0
    return budget.allowed(study, max(0, study.parallelism + 1 - study.open_count))


def _tell_of_room(study: Study, lacking: bool) -> None:
    """Say on a locked study that its tenant's limits hold it up, or no longer."""
    if study.state == StudyState.ACTIVE and lacking != (study.state_reason == NO_ROOM):
        actions.stamp(study)
        study.state_reason = NO_ROOM if lacking else ""


def _is_exhausted(study: Study) -> bool:
    """Whether a locked study on agents has measured all there is."""
    searching = study.state == StudyState.ACTIVE and study.final_check is None
    return bool(study.component) and searching and study.exhausted and study.open_count == 0


def _is_computing(principal: Principal, study: Study) -> bool:
    return access.rows(Operation, principal).filter(study_id=study.pk, state__in=UNFINISHED).exists()
