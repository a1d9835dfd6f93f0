"""The insight of a study: what its trials say about its parameters.

A worker computes the insight, and the service keeps it until there are more trials. A read requests the computation if
the insight is missing or old. The insight is derived from stored results, so a computation that is lost or made twice
costs only time: a reader that still waits requests it again. Readers of a study without a whole insight get each part
when it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import F, Q
from django.db.models.functions import Now

from service.core.errors import JsonValue, took_too_long
from service.core.lifecycle import StudyState, TrialState
from service.core.metrics import limited
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.logger import Logger
from service.platform import deadlines
from service.results.analysis import analyse
from service.results.models import StudyInsight
from service.results.penalty_advice import advice_on
from service.studies import change
from service.studies.existing import while_exists
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.trials import messages, topup, tuners
from service.trials.method import method_of, runs_in_request
from service.tuner.importance import FEWEST, Insight, Process, by_process, insights
from service.tuner.tuner import Tuner

# While a study runs, the insight is computed again when the number of trials has grown by this factor. So the total
# cost stays small.
_GROWTH = 1.1
# After this time a message or a worker counts as lost.
LOST = timedelta(seconds=120)
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
            Q(asked_at=None) | Q(asked_at__lt=Now() - LOST), study_id=study.pk
        )
        asked = bool(waiting.update(asked_at=Now(), claimed_at=None))
    if asked:
        messages.send_insight(principal.tenant_id, study.pk)
    return access.rows(StudyInsight, principal).get(study_id=study.pk)


def compute(tenant_id: int, study_id: int) -> bool:
    """Compute the insight of a study if it is requested and no other worker computes it; whether that was so."""
    principal = Principal.system(tenant_id)
    wanted = access.rows(StudyInsight, principal).filter(study_id=study_id, asked_at__isnull=False)
    if not wanted.filter(Q(claimed_at=None) | Q(claimed_at__lt=Now() - LOST)).update(claimed_at=Now()):
        return False
    tenants.serve(tenant_id, slow=True)
    known = access.rows(StudyInsight, principal).filter(study_id=study_id).first()
    found = change.read(principal, study_id)
    study = found.study
    end = partial(_end, principal, study)
    is_whole = known is not None and known.data is not None and not known.data.get("missing")
    # A whole insight stays until the next one is whole.
    keep = None if is_whole else partial(_keep, principal, study)
    seconds = settings.TRIMTAB_OPERATION_CPU_SECONDS
    try:
        with while_exists(principal, study_id) as caller:
            give_up = partial(_give_up, end, seconds)
            computed = access.limited(seconds, partial(_compute, principal, found, keep), caller, give_up)
        end(data=computed, error="")
    except (InterfaceError, OperationalError):
        raise  # the reader that waits requests it again
    except deadlines.Unwanted:
        logger.info("the insight of a study that was deleted was ended", study=study.name)
    except Exception as error:  # every error of the forest or the algorithm is reported to the reader
        logger.exception("the insight failed", study=study.name)
        end(error=topup.describe(took_too_long(seconds) if isinstance(error, deadlines.Exceeded) else error))
    return True


def _give_up(end: Callable[..., None], seconds: float) -> None:
    """Report that the computation does not end at its deadline, and let this process be replaced."""
    try:
        end(error=took_too_long(seconds).message)
    finally:
        deadlines.end_process()


def _end(principal: Principal, study: Study, **changes: object) -> None:
    """Store what was computed, or the error. After an error the previous `data` stays."""
    access.rows(StudyInsight, principal).filter(study_id=study.pk).update(
        **changes,
        finished=study.finished_count,
        space_version=study.space_version,
        asked_at=None,
        claimed_at=None,
    )


def _keep(principal: Principal, study: Study, data: JsonValue) -> None:
    """Store the parts that are computed, and say that the computation goes on."""
    access.rows(StudyInsight, principal).filter(study_id=study.pk).update(
        data=data,
        error="",
        finished=study.finished_count,
        space_version=study.space_version,
        asked_at=Now(),
        claimed_at=Now(),
    )


def _compute(
    principal: Principal, found: change.Snapshot, keep: Callable[[JsonValue], None] | None
) -> dict[str, JsonValue]:
    """Return the data of an insight as plain JSON: that of the models, the space's size, and how to report penalties.

    `keep` gets the data before, each time that a part is computed.
    """
    analysis = analyse(principal, found.study)
    best = None if analysis.verdict is None else analysis.verdict.configuration
    advice = advice_on(found.study, analysis.penalties)
    space = spec_of(found.study).problem.space
    size, feasible = space.cardinality(), space.feasible_count()
    general: dict[str, JsonValue] = {
        # As text, because a number may be larger than those of JavaScript.
        "space": {
            "size": None if size is None else str(size),
            "feasible": None if feasible is None else str(feasible),
        },
        "penalties": None if advice is None else asdict(advice),
    }
    data = general
    for part in _parts(principal, found, best):
        data = {**asdict(part), **general}
        if part.missing and keep is not None:
            keep(data)
    return data


def _parts(principal: Principal, found: change.Snapshot, best: Configuration | None) -> Iterator[Insight]:
    """Yield the insight around the configuration that the verdict recommends, otherwise the algorithm's own best."""
    study = found.study
    problem = spec_of(study).problem
    if runs_in_request(study):
        tuner = Tuner(problem, method_of(spec_of(study)))
        tuner.update(_trials(principal, study))
        best = _recommended(tuner) if best is None else best
        yield from insights(problem, tuner.finished, best, partial(by_process, problem, tuner.finished))
        return
    with tuners.borrowed(found) as (learner, _):
        tuner = learner.tuner
        best = _recommended(tuner) if best is None else best
        yield from insights(tuner.problem, tuner.finished, best, partial(_by_algorithm, tuner))


def _by_algorithm(tuner: Tuner) -> Process:
    """Return what the algorithm's own process has learned, or a process that is fitted to the same trials."""
    process = Process(tuner.sensitivities(), tuner.prospects())
    if not process.sensitivities:
        process = by_process(tuner.problem, tuner.finished)
    return replace(process, predict=tuner.predict)


def _recommended(tuner: Tuner) -> Configuration | None:
    found = tuner.recommend()
    return None if found is None else found.configuration


def _trials(principal: Principal, study: Study) -> list[TrialRecord]:
    """Return the completed trials inside the present space: every n-th one if there are more than _MOST_READ."""
    step = 1 + study.trial_count // _MOST_READ
    found = access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.COMPLETED)
    chosen = found.annotate(place=F("number") % step).filter(place=0).order_by("number")
    trials = [
        TrialRecord(number, params, TrialState.COMPLETED, limited(metrics or {}))
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
