"""Production jobs as trials: what the ends of the jobs of a pair mean, as they are reported or as time goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.db.models import Q

from service.core.lifecycle import TrialState
from service.live import job_judgement
from service.live.models import JobPair, LiveStudy, PairState
from service.live.system import state_of
from service.matching import jobs
from service.matching.jobs import Report
from service.matching.models import ConsideredRecord, Decision, ReportedJob
from service.policies import job_pairs
from service.policies.job_pairs import End, Run
from service.studies.change import Deleted, Work, changing
from service.studies.isolated import isolated
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal

# A pair whose second job has not come by then has no second job.
SECOND_COMES = timedelta(days=1)
# A report that has not come by then, counted from the end of the time limit, is lost.
REPORT_COMES = timedelta(days=7)


def report(principal: Principal, reports: Sequence[Report]) -> None:
    """Store jobs that have ended (`matching.jobs.report`), and what they mean for live studies. Raises InvalidInput."""
    jobs.report(principal, reports)
    named = [one.submission for one in reports]
    pairs = access.rows(JobPair, principal).filter(Q(first__in=named) | Q(second__in=named), state=PairState.OPEN)
    for study_id in sorted(set(pairs.values_list("study_id", flat=True))):
        # A report is stored already, so that an error here must not make the agent repeat it.
        isolated(partial(_learn, principal, study_id), principal.tenant_id, study_id)


def _learn(principal: Principal, study_id: int) -> None:
    with suppress(Deleted), changing(principal, study_id, "live.jobs") as work:
        close_pairs(work)


def close_pairs(work: Work) -> None:
    """Close the pairs of a study whose jobs have ended or will not come, and end its trial if they decide it."""
    rows = access.rows(JobPair, work.principal).filter(study_id=work.study.pk, state=PairState.OPEN)
    pairs = list(rows.order_by("pk"))
    state = state_of(work.principal, work.study)
    ends = _ends(work.principal, state, [one for pair in pairs for one in (pair.first, pair.second) if one])
    closed = [pair for pair in pairs if _close(work, pair, ends)]
    if not closed:
        return
    work.revise()
    work.detail = {"pairs": [{"pair": one.number, "state": one.state, "cost": one.cost} for one in closed]}
    trial = access.rows(Trial, work.principal).filter(study_id=work.study.pk, state=TrialState.ACTIVE).first()
    if trial is not None:
        work.target = f"trial/{trial.number}"
        job_judgement.judge(work, trial, state)


def _ends(principal: Principal, state: LiveStudy, named: Sequence[str]) -> Mapping[str, tuple[ReportedJob, str]]:
    """Return the report of each submission, and what was done there about the record of a study."""
    rows = access.rows(ReportedJob, principal).filter(submission__in=named)
    found = {row.pk: row for row in rows}
    considered = access.rows(ConsideredRecord, principal).filter(job_id__in=found, record_id=state.record_id or 0)
    done = dict(considered.values_list("job_id", "decision"))
    return {row.submission: (row, done.get(key, "")) for key, row in found.items()}


def _close(work: Work, pair: JobPair, ends: Mapping[str, tuple[ReportedJob, str]]) -> bool:
    """Close a pair if both of its jobs have ended or will not come, and return whether it is closed."""
    first = _run(work, pair, ends, is_first=True)
    second = _run(work, pair, ends, is_first=False)
    if first is None or second is None:
        return False
    tried, usual = (first, second) if pair.candidate_first else (second, first)
    found = job_pairs.meaning(tried, usual, nodes=pair.nodes, limit=pair.limit_seconds)
    pair.state = PairState.VOID if found.effect is None else PairState.COUNTED
    pair.broken, pair.cost, pair.ended_at = found.broken, found.cost, work.time
    pair.candidate = tried.seconds if tried.end in (End.COMPLETED, End.FAILED) else None
    pair.incumbent = usual.seconds if usual.end in (End.COMPLETED, End.FAILED) else None
    access.save(work.principal, pair, "state", "broken", "cost", "ended_at", "candidate", "incumbent")
    return True


def _run(work: Work, pair: JobPair, ends: Mapping[str, tuple[ReportedJob, str]], *, is_first: bool) -> Run | None:
    """Return how a job of a pair has ended; None if that is not known yet."""
    name, since = (pair.first, pair.began_at) if is_first else (pair.second, pair.second_at)
    if not name or since is None:
        return Run(End.UNUSED) if work.time - pair.began_at > SECOND_COMES else None
    if name not in ends:
        late = work.time - since > REPORT_COMES + timedelta(seconds=pair.limit_seconds)
        return Run(End.LOST) if late else None
    row, done = ends[name]
    if not row.confirmed:
        return Run(End.LOST)
    wanted = Decision.EXPLORED if is_first == pair.candidate_first else Decision.APPLIED
    return Run(End(row.end), row.seconds) if done == wanted else Run(End.UNUSED)
