"""Production jobs as trials: the end of a trial, as soon as its pairs decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from service.core.lifecycle import TrialState
from service.core.live_results import LiveResult, Pair
from service.core.live_results import deviation_of as deviation
from service.core.reasons import Reason
from service.live import results
from service.live.models import JobPair, LiveLease, LiveStudy, PairState
from service.live.system import settings_in_force, state_of
from service.matching import records
from service.policies import job_pairs
from service.policies.job_pairs import Judgement, Meaning
from service.studies.change import Work
from service.studies.models import Trial
from service.tenancy import access
from service.trials import tell

# The metric that a guard of jobs has, for people.
FAILURES = "job_end"


def judge(work: Work, trial: Trial, state: LiveStudy) -> None:
    """End a trial if its pairs decide it."""
    live, lease = work.spec.live, lease_of(work, trial)
    assert live is not None
    pairs = list(access.rows(JobPair, work.principal).filter(lease=lease.lease).order_by("number"))
    found = job_pairs.judge(
        [_meaning(one) for one in pairs],
        deviation=deviation(state.squares, state.freedom),
        min_gain=live.min_gain,
        least=live.pairs.least,
        most=live.pairs.most,
    )
    if found.decision:
        _end(work, trial, lease, state, pairs, found)


def lease_of(work: Work, trial: Trial) -> LiveLease:
    """Return the lease under which the pairs of a running trial are."""
    rows = access.rows(LiveLease, work.principal).filter(trial=trial, settled_at__isnull=True)
    return rows.order_by("-granted_at")[:1].get()


def _meaning(pair: JobPair) -> Meaning | None:
    if pair.state == PairState.OPEN:
        return None
    counts = pair.state == PairState.COUNTED and pair.candidate is not None and pair.incumbent is not None
    value = job_pairs.effect(pair.candidate, pair.incumbent) if counts else None  # type: ignore[arg-type]
    return Meaning(value, pair.broken, pair.cost)


def _end(
    work: Work, trial: Trial, lease: LiveLease, state: LiveStudy, pairs: Sequence[JobPair], found: Judgement
) -> None:
    """End a trial with what its pairs have shown, and give the record's jobs a candidate that was kept."""
    metric = work.spec.problem.objectives[0].metric
    low, high = found.evidence.interval()
    looked_at = tuple(_pair(one, metric) for one in pairs[: found.looked_at] if one.state == PairState.COUNTED)
    result = LiveResult(
        found.decision,
        pairs=looked_at,
        effect=found.evidence.effect if looked_at else None,
        low=low if math.isfinite(low) else None,
        high=high if math.isfinite(high) else None,
        deviation=found.evidence.deviation,
        cost={name: sum(one.cost for one in pairs) for name in (work.spec.live.budget if work.spec.live else {})},
        incumbent=settings_in_force(work.spec, state),
        kept=found.decision == "keep",
    )
    outcome, reason = "completed", ""
    if found.decision == job_pairs.GUARD:
        text = "A job has failed with the candidate, and the other one of its pair has not."
        outcome, reason = "infeasible", Reason(text, results.JOB_FAILED, metric=FAILURES)
    settled = results.settle(work, trial, str(lease.lease), outcome, reason, result)
    ended = {"completed": TrialState.COMPLETED, "infeasible": TrialState.INFEASIBLE}
    if result.kept and state.record_id is not None:
        ratio = results.ratio_text(result)
        text = f"Trial {trial.number} of live study {work.study.name!r} has kept its settings: {ratio}."
        kept = settings_in_force(work.spec, state_of(work.principal, work.study))
        values = {"effect": result.effect, "low": result.low, "high": result.high, "pairs": len(result.pairs)}
        said = Reason(text, "record_kept", trial=trial.number, study=work.study.name, **values)
        records.keep(work.principal, state.record_id, kept, work.study.name, trial.number, said)
    tell.finish(
        work,
        trial,
        ended.get(settled.outcome, TrialState.FAILED),
        metrics=settled.metrics or None,
        reason=settled.reason,
    )


def _pair(pair: JobPair, metric: str) -> Pair:
    """Return a pair that counts as the test reads it."""
    assert pair.candidate is not None
    assert pair.incumbent is not None
    return Pair(
        pair.candidate_first,
        job_pairs.effect(pair.candidate, 1.0),
        job_pairs.effect(pair.incumbent, 1.0),
        candidate_metrics={metric: pair.candidate},
        incumbent_metrics={metric: pair.incumbent},
        began=pair.began_at.timestamp(),
    )
