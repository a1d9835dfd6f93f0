"""The answer to drift of a configuration's values: new measurements, and less weight for old ones.

Only studies with a context are watched: their settings are in use while the system changes. A configuration that is
measured often, such as the default or the one in use, shows the change (`policies/drift.py`). All trials of its context
up to then are stale from now on. They count for a configuration only if it has no newer ones, and little in the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.algorithms.start import default_first
from service.core.context import context_words
from service.core.lifecycle import StudyState, TrialState
from service.core.metrics import limited
from service.core.reasons import Reason
from service.core.space import Configuration
from service.policies import drift
from service.studies import actions
from service.studies.change import Work
from service.studies.models import Trial
from service.studies.specs import DriftRecord
from service.tenancy import access
from service.trials import budget
from service.trials.models import DesignerState
from service.trials.quotas import meter

# So many new measurements of the drifting configuration, and as many of the default.
AGAIN = 3
# The latest values of one configuration at which is looked.
_MOST_VALUES = 200


def look(work: Work, trials: Sequence[Trial]) -> None:
    """Look for drift in the configurations of trials that have just finished, and act on the first one found."""
    spec, study = work.spec, work.study
    if not spec.problem.context or not spec.problem.noisy or study.final_check is not None:
        return
    if study.state not in (StudyState.ACTIVE, StudyState.PAUSED):
        return
    for trial in trials:
        configuration = spec.present(trial.params)
        if trial.state == TrialState.COMPLETED and configuration is not None and _drifts(work, configuration):
            _note(work, configuration)
            return


def _drifts(work: Work, configuration: Configuration) -> bool:
    """Return whether the values of a configuration since the last known change show another one."""
    spec, metric = work.spec, work.spec.problem.metrics[0]
    key = actions.configuration_key(work.study, configuration)
    known = access.rows(Trial, work.principal).filter(study_id=work.study.pk, key=key, state=TrialState.COMPLETED)
    latest = list(known.order_by("-revision", "-number").values_list("number", "metrics", "doubt")[:_MOST_VALUES])
    values = [
        limited(metrics)[metric]
        for number, metrics, doubt in reversed(latest)
        if not doubt and not spec.is_stale(number, configuration)
    ]
    return drift.alarm(values) is not None


def _note(work: Work, configuration: Configuration) -> None:
    """Make the trials of the context stale, and request new ones of this configuration and of the default."""
    spec, study = work.spec, work.study
    context = spec.problem.context.of(configuration)
    record = DriftRecord(context, study.next_number - 1, work.time.isoformat())
    # The context's earlier record is contained in the new one. A new version makes every process learn again.
    others = tuple(one for one in spec.drifts if one.context != context)
    changed = replace(spec, drifts=(*others, record), space_version=spec.space_version + 1)
    study.spec, study.space_version = changed.stored(), changed.space_version
    access.save(work.principal, study, "spec", "space_version")
    access.rows(DesignerState, work.principal).filter(study_id=study.pk).delete()
    work.tuner = None
    study.cursor, study.exhausted = 0, False
    work.revise()
    words = context_words(context)
    text = f"The system has changed with {words} before trial {study.next_number}: it is measured again."
    reason = Reason(text, "drift", context=words, trial=study.next_number)
    study.explain(reason)
    work.action, work.target = "study.drift", ""
    work.detail = {**record.to_json(), "configuration": configuration}
    default = default_first(spec.problem.within(context).space)
    again = [configuration] * AGAIN
    if default is not None and default != configuration:
        again = [one for pair in zip([default] * AGAIN, again, strict=True) for one in pair]
    room = meter.room(work.principal, budget.allowed(work, len(again)))
    again = again[:room]
    repeats = [reason] * len(again)
    actions.add_trials(work, again, state=TrialState.REQUESTED, origin="replicate", repeats=repeats)
