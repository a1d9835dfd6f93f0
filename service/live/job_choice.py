"""Production jobs as trials: which job of a pair gets the candidate, and whether a new pair begins."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

from django.db.models import Q

from service.core.errors import InvalidInput
from service.core.lifecycle import StudyState, TrialState
from service.core.reasons import Reason
from service.core.space import Configuration
from service.live import job_closing, job_history, job_judgement, job_studies, leases, permission, plans
from service.live.models import JobPair, PairState, Plan
from service.live.system import Offered, state_of
from service.matching import records, submission
from service.matching.models import Record
from service.matching.submission import Submission
from service.policies import job_pairs
from service.policies.ledger import Pace
from service.studies import actions
from service.studies.change import Deleted, Work, changing
from service.studies.models import Trial
from service.studies.specs import LONGEST_SECONDS
from service.tenancy import access
from service.tenancy.pages import key_of
from service.tenancy.principal import Principal
from trimtab_components.pairs import MOST_EXPLORED, candidate_first

_SUBMISSION = re.compile(r"[0-9a-f]{32}")
_NO_STUDY = "live_no_study"


@dataclass(frozen=True, slots=True)
class Question:
    """A job that matches a record and asks for a place in a pair.

    `begin`: a new pair may begin with it. `share`: of matched jobs that may get a candidate where it was submitted.
    `limit`: its time limit in seconds, 0 without one.
    """

    record: str
    submission: str
    submitted: Submission
    begin: bool
    share: float
    limit: float


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a job in a pair; `study` is empty if it belongs to none, and `reason` says why.

    `candidate`: the job gets `params`, else the settings of the record. `waits`: the next job of its kind is the second
    one of the pair.
    """

    study: str = ""
    trial: int = 0
    candidate: bool = False
    params: Configuration = field(default_factory=dict)
    waits: bool = False
    reason: str = ""


def explore(principal: Principal, asked: Question) -> Place:
    """Return the place of a job in a pair. The same submission gets the same place again.

    Raises InvalidInput, NotFound (`record_not_found`).
    """
    _check(asked)
    record = records.get(principal, asked.record)
    found = job_studies.of_record(principal, record.pk)
    with suppress(Deleted):
        if found is not None:
            with changing(principal, found.study_id, "live.explore") as work:
                return _place(work, record, asked)
    return Place(reason=Reason(f"No live study explores the jobs of record {record.pk}.", _NO_STUDY))


def _check(asked: Question) -> None:
    if not _SUBMISSION.fullmatch(asked.submission):
        raise InvalidInput("submission", asked.submission, "32 hexadecimal digits in lower case")
    if key_of(asked.record) is None:
        raise InvalidInput("record", asked.record, "the id of a record")
    submission.check("job", asked.submitted)
    if not 0 < asked.share <= MOST_EXPLORED:
        raise InvalidInput("share", asked.share, f"a share above 0, at most {MOST_EXPLORED:g}")
    if not 0 <= asked.limit <= LONGEST_SECONDS:
        raise InvalidInput("limit_seconds", asked.limit, "a number of seconds from 0, at most ten years")


def _place(work: Work, record: Record, asked: Question) -> Place:
    """Return the place of a job, after a pair has begun with it or been completed by it."""
    principal, name = work.principal, asked.submission
    pairs = access.rows(JobPair, principal).filter(study_id=work.study.pk)
    known = pairs.filter(Q(first=name) | Q(second=name)).select_related("trial").first()
    if known is not None:
        return _told(work, record, known, known.trial, is_first=known.first == name)
    job_closing.close_pairs(work)
    trial = _trial(work)
    if work.study.state != StudyState.ACTIVE or trial is None:
        return Place(reason=Reason(f"Study {work.study.name!r} has no trial that may go on.", "live_no_trial"))
    if not job_studies.compares_with(work, record) or not record.may_match(asked.submitted.job.user):
        text = f"Record {record.pk} has other settings than study {work.study.name!r} compares with."
        return Place(reason=Reason(text, "live_record_changed", record=str(record.pk)))
    kind = job_history.key_of(principal.actor, asked.submitted, asked.limit)
    if trial.state == TrialState.ACTIVE:
        half = pairs.filter(
            trial=trial, state=PairState.OPEN, kind=kind, second="", began_at__gt=work.time - job_closing.SECOND_COMES
        )
        if (pair := half.order_by("pk").first()) is not None:
            pair.second, pair.second_at = name, work.time
            access.save(principal, pair, "second", "second_at")
            return _note(work, _told(work, record, pair, trial, is_first=False), asked)
    if not asked.begin:
        return Place(reason=Reason("No pair waits for a job of this kind.", "live_no_pair_waits"))
    return _begin(work, record, trial, kind, asked)


def _trial(work: Work) -> Trial | None:
    """Return the trial that runs or waits."""
    rows = access.rows(Trial, work.principal).filter(study_id=work.study.pk)
    return rows.filter(state__in=(TrialState.ACTIVE, TrialState.REQUESTED)).order_by("state", "number").first()


def _begin(work: Work, record: Record, trial: Trial, kind: str, asked: Question) -> Place:
    """Begin a pair with a job, or say why none may begin."""
    principal, nodes = work.principal, asked.submitted.job.nodes
    state = state_of(principal, work.study)
    if state.share != asked.share:
        state.share = asked.share
        access.put(principal, state)
        work.revise()
    if job_studies.pause_if_over(work):
        return Place(reason=work.study.state_reason)
    plan = _plan(work, trial)
    if plan.state not in plans.OPEN:
        plans.replace(work, trial, plan)
        return Place(reason=Reason(f"The plan of trial {trial.number} was replaced.", "live_no_trial"))
    if reason := _unfit(work, record, trial, asked):
        return Place(reason=reason)
    pace = Pace(rate=nodes / 3600, notice=asked.limit, revert=0.0, switch=0.0)
    permitted = permission.look(work, plan, Offered(), pace)
    if permitted.reason:
        if trial.state == TrialState.REQUESTED and trial.reason != permitted.reason:
            trial.explain(permitted.reason)
            actions.touch_trial(work, trial, "reason", "reason_data")
        return Place(reason=permitted.reason)
    if trial.state == TrialState.REQUESTED:
        actions.start_trials(work, [trial], agent=principal.actor)
        lease = leases.begin(work, trial, str(uuid4()), plan, permitted, Offered())
        # The seed stays secret until the result. Its commitment shows that it was drawn before.
        work.detail = {**work.detail, "commitment": lease.commitment}
    else:
        lease = job_judgement.lease_of(work, trial)
    number = access.rows(JobPair, principal).filter(lease=lease.lease).count() + 1
    pair = access.add(
        principal,
        JobPair(
            study_id=work.study.pk,
            trial=trial,
            lease=lease.lease,
            number=number,
            candidate_first=candidate_first(lease.seed, number),
            kind=kind,
            nodes=nodes,
            limit_seconds=asked.limit,
            first=asked.submission,
            cost=nodes * asked.limit / 3600,
            began_at=work.time,
        ),
    )
    return _note(work, _told(work, record, pair, trial, is_first=True), asked)


def _plan(work: Work, trial: Trial) -> Plan:
    """Return the plan of a trial. That of a running one does not expire."""
    if trial.state == TrialState.REQUESTED:
        return plans.ensure(work, trial, Offered())
    return access.rows(Plan, work.principal).get(pk=trial.pk)


def _unfit(work: Work, record: Record, trial: Trial, asked: Question) -> str:
    """Return why no pair may begin with this job; empty if one may."""
    if not asked.limit:
        return Reason("The job has no time limit.", "live_no_time_limit")
    kind = job_history.kind_of(work.principal, record, asked.submitted)
    least = job_history.LEAST_OF_KIND
    if kind.count < least:
        text = f"{kind.count} jobs of this kind have completed with the record's settings, and {least} must have."
        return Reason(text, "live_new_kind", jobs=kind.count, least=least)
    if kind.longest * job_history.HEADROOM > asked.limit:
        text = (
            f"Jobs of this kind have taken {kind.longest:g} s, which is too near the time limit of {asked.limit:g} s."
        )
        return Reason(text, "live_near_time_limit", longest=kind.longest, limit=asked.limit)
    pairs = access.rows(JobPair, work.principal).filter(trial=trial)
    still = pairs.filter(state=PairState.OPEN).count()
    most = job_pairs.may_be_open(pairs.exclude(state=PairState.OPEN).count())
    if still >= most:
        text = f"{still} pairs of trial {trial.number} are open, and at most {most} may be now."
        return Reason(text, "live_pairs_open", open=still, most=most)
    return ""


def _told(work: Work, record: Record, pair: JobPair, trial: Trial, *, is_first: bool) -> Place:
    """Return what the agent of one job of a pair is told."""
    return Place(
        study=work.study.name,
        trial=trial.number,
        candidate=is_first == pair.candidate_first,
        params={**record.settings, **trial.params},
        waits=is_first and not pair.second,
    )


def _note(work: Work, place: Place, asked: Question) -> Place:
    """Write for the audit trail what a job was given, and return it."""
    work.revise()
    work.target = f"trial/{place.trial}"
    job = asked.submitted.job
    work.detail = {
        **work.detail,
        "record": asked.record,
        "submission": asked.submission,
        "user": job.user,
        "job": job.name,
        "candidate": place.candidate,
    }
    return place
