"""The trials of studies on agents: one more than may run is always waiting, so that no agent waits."""

from __future__ import annotations

from django.db import Error as DatabaseError

from service.core.errors import TrimtabError
from service.core.lifecycle import StudyState, TrialState
from service.core.reasons import Reason
from service.logger import Logger
from service.notices import notices
from service.studies import actions
from service.studies.change import Snapshot, Work
from service.studies.models import Operation, Study
from service.studies.models.operation import UNFINISHED
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget, ending, messages, rollouts
from service.trials.quotas import meter
from service.trials.supply import supply

NO_ROOM = Reason("Fewer trials run at once than could: the tenant's limits leave no room for more.", "no_room")

logger = Logger(__name__)


def top_up(work: Work) -> None:
    """Bring the study to `parallelism` + 1 open trials, or start the operation that will.

    Where its tenant has room for fewer it gets those, and says so if it could run more; the sweep tries again. Ends
    the search when its space holds no more and every trial is done. Does nothing for ask/tell studies.
    """
    study, principal = work.study, work.principal
    rollouts.add_due(work)
    wanted = deficit(work)
    count = meter.room(principal, wanted) if wanted > 0 else 0
    _note_room(study, count < wanted and study.open_count + count < (study.parallelism or 0))
    if count > 0:
        try:
            new = supply(work, count, into=TrialState.REQUESTED, fixed={})
        except DatabaseError:
            raise
        except Exception as error:  # a fault of the algorithm must not undo the report that led here
            logger.exception("the algorithm failed", study=study.name)
            pause_for(work, error)
            return
        # The final check begins when the worker that determines the best configuration tops the study up.
        costly = new.missing and study.final_check is None and not _is_computing(principal, study)
        if costly and meter.has_worker_time(principal):
            operation = access.add(principal, Operation(study=study, count=new.missing, for_agents=True))
            messages.send_on_commit(operation.id, slow=study.slow)
    if _is_exhausted(study):
        ending.end_search(work, ending.EXHAUSTED if work.spec.live is None else ending.NOTHING_SAFE)
        if study.rollout is None:
            # The final check's trials, if there is one.
            top_up(work)


def pause_for(work: Work, error: Exception | str) -> None:
    """Pause a study on agents whose algorithm failed, because it would fail again and again."""
    message = error if isinstance(error, str) else describe(error)
    reason = Reason(f"No suggestion could be computed: {message}", "no_suggestion", message=message)
    actions.step_study(work, StudyState.PAUSED, reason)
    notices.study_failed(work)


def describe(error: Exception) -> str:
    """Return an error as a sentence for users."""
    return error.message if isinstance(error, TrimtabError) else f"{type(error).__name__}: {error}"


def deficit(found: Snapshot) -> int:
    """Return how many open trials a study lacks and may have."""
    study = found.study
    if study.parallelism is None or (study.exhausted and study.final_check is None):
        return 0
    wanted = study.parallelism + 1 if study.final_check is None else ending.trials_at_once(found)
    if found.spec.live is not None:
        # The next candidate follows from what the last one has found.
        wanted = 1
    return budget.allowed(found, max(0, wanted - study.open_count))


def _note_room(study: Study, lacking: bool) -> None:
    """Say on the study that its tenant's limits hold it up, or remove that again."""
    if study.state == StudyState.ACTIVE and lacking != (study.state_reason == NO_ROOM):
        study.explain(NO_ROOM if lacking else "")


def _is_exhausted(study: Study) -> bool:
    """Return whether a study on agents has measured its whole space."""
    searching = study.state == StudyState.ACTIVE and study.final_check is None
    return bool(study.component) and searching and study.exhausted and study.open_count == 0


def _is_computing(principal: Principal, study: Study) -> bool:
    return access.rows(Operation, principal).filter(study_id=study.pk, state__in=UNFINISHED).exists()
