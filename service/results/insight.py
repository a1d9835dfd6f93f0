"""The insight of a study: what its trials say about its parameters.

A worker computes the insight, and the service keeps it until there are more trials. A read requests the computation if
the insight is missing or old. The insight is derived from stored results, so a computation that is lost or made twice
costs only time: a reader that still waits requests it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

from django.db.models import F, Q
from django.db.models.functions import Now

from service.core.lifecycle import StudyState, TrialState
from service.core.prospects import Prospect
from service.core.sensitivity import Sensitivities
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.logger import Logger
from service.results.analysis import analyse
from service.results.models import StudyInsight
from service.studies import change
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import messages, topup, tuners
from service.trials.method import method_of, runs_in_request
from service.tuner.importance import FEWEST, Insight, Predict, by_process, insight
from service.tuner.tuner import Tuner

# While a study runs, the insight is computed again when the number of trials has grown by this factor. So the total
# cost stays small.
_GROWTH = 1.1
# After this time a message or a worker counts as lost.
_LOST = timedelta(seconds=120)
# The most trials that a forest learns from.
_MOST_READ = 10_000

logger = Logger(__name__)


def read(principal: Principal, study: Study) -> StudyInsight:
    """Return the stored insight, and request a computation if more trials have finished. `asked_at` then says when."""
    known = access.rows(StudyInsight, principal).filter(study_id=study.pk).first()
    if not _is_due(study, known):
        return known or StudyInsight(study=study, asked_at=None)
    if known is None:
        known = StudyInsight(study=study)
        access.add_missing(principal, known)
        asked = True
    else:
        waiting = access.rows(StudyInsight, principal).filter(
            Q(asked_at=None) | Q(asked_at__lt=Now() - _LOST), study_id=study.pk
        )
        asked = bool(waiting.update(asked_at=Now(), claimed_at=None))
    if asked:
        messages.send_insight(principal.tenant_id, study.pk)
    return access.rows(StudyInsight, principal).get(study_id=study.pk)


def compute(tenant_id: int, study_id: int) -> None:
    """Compute the insight of a study if it is requested and no other worker computes it."""
    principal = Principal.system(tenant_id)
    wanted = access.rows(StudyInsight, principal).filter(study_id=study_id, asked_at__isnull=False)
    if not wanted.filter(Q(claimed_at=None) | Q(claimed_at__lt=Now() - _LOST)).update(claimed_at=Now()):
        return
    found = change.read(principal, study_id)
    study = found.study
    # After a failure the previous `data` stays.
    changes: dict[str, object] = {
        "finished": study.finished_count,
        "space_version": study.space_version,
        "error": "",
    }
    problem = spec_of(study).problem
    try:
        verdict = analyse(principal, study).verdict
        best = None if verdict is None else verdict.configuration
        if runs_in_request(study):
            tuner = Tuner(problem, method_of(spec_of(study)))
            tuner.update(_trials(principal, study))
            computed = _insight(tuner, best, None, *by_process(problem, tuner.finished))
        else:
            with tuners.borrowed(found) as (learner, _):
                tuner = learner.tuner
                shares, prospects = tuner.sensitivities(), tuner.prospects()
                if not shares:
                    shares, prospects = by_process(problem, tuner.finished)
                computed = _insight(tuner, best, tuner.predict, shares, prospects)
        changes["data"] = asdict(computed)
    except Exception as reason:  # every error of the forest or the algorithm is reported to the reader
        logger.exception("the insight failed", study=study.name)
        changes["error"] = topup.describe(reason)
    access.rows(StudyInsight, principal).filter(study_id=study_id).update(**changes, asked_at=None, claimed_at=None)


def _insight(
    tuner: Tuner,
    best: Configuration | None,
    predict: Predict | None,
    shares: Sensitivities,
    prospects: Sequence[Prospect],
) -> Insight:
    """Return the insight around the configuration that the verdict recommends, otherwise the algorithm's own best."""
    recommended = tuner.recommend() if best is None else None
    best = best if recommended is None else recommended.configuration
    return insight(tuner.problem, tuner.finished, predict, shares, best, prospects)


def _trials(principal: Principal, study: Study) -> list[TrialRecord]:
    """Return the completed trials inside the present space: every n-th one if there are more than _MOST_READ."""
    step = 1 + study.trial_count // _MOST_READ
    found = access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.COMPLETED)
    chosen = found.annotate(place=F("number") % step).filter(place=0).order_by("number")
    trials = [
        TrialRecord(number, params, TrialState.COMPLETED, metrics or {})
        for number, params, metrics in chosen.values_list("number", "params", "metrics")
    ]
    return tuners.within(spec_of(study), trials)


def _is_due(study: Study, known: StudyInsight | None) -> bool:
    if study.finished_count < FEWEST:
        return False
    if known is None or known.asked_at is not None or known.space_version != study.space_version:
        return True
    over = study.state in (StudyState.COMPLETED, StudyState.ABORTED) and study.active_count == 0
    return study.finished_count > known.finished * (1.0 if over else _GROWTH)
