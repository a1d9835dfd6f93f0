"""Records: written, withdrawn and restored with the verdicts of studies, by people, and by slower jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from service.core.errors import InvalidInput, NotFound, shorten
from service.core.lifecycle import StudyState
from service.core.reasons import Reason, joined, stored
from service.core.space import Configuration
from service.logger import Logger
from service.matching import approval, ledger, origin
from service.matching.approval import Terms
from service.matching.linkage.job import Job
from service.matching.models import Audience, Cause, Record, State
from service.matching.models.record import LONGEST_REASON
from service.notices import notices
from service.studies.job_metadata import check_text
from service.studies.models import Study
from service.studies.specs import spec_of
from service.tenancy import access, audit, pages, tenants
from service.tenancy.conditions import Column, percent, select
from service.tenancy.pages import Page, key_of
from service.tenancy.permissions import Action, may, require
from service.tenancy.principal import Principal

LARGEST_PAGE = 500
_ENDED = (StudyState.COMPLETED, StudyState.ABORTED)
_PROVEN = ("params", "gain", "gain_low", "gain_high", "conditions")
_TERMS = ("audience", "withheld")
_STATE = ("state", "cause", "state_reason", "state_reason_data", "active_since", "revision", "kept", *_TERMS)
_SEARCHED = ("component", "application", "study_name", "user", "name", "program")
NEWEST = "-created"
# The sort keys of lists, each with its column.
SORTS = {"created": "pk", "component": "component", "study": "study_name", "job": "name", "gain": "gain"}
# The columns that conditions can name.
COLUMNS: Mapping[str, Column] = {
    **{name: Column(F(name)) for name in ("component", "application", "user", "program")},
    "study": Column(F("study_name")),
    "job": Column(F("name")),
    "nodes": Column(F("nodes"), "number"),
    "gain": percent("gain"),
    "state": Column(F("state"), "word"),
    "written": Column(F("created_at"), "time"),
}

_NEEDS_APPROVAL = Reason("An administrator has to approve it.", "record_needs_approval")
_FOR_ITS_USER = Reason(
    "Until an administrator approves it, only jobs of its own user get the settings.", "record_for_its_user"
)

logger = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Proof:
    """A gain that a study with one objective has proven, as a share of the default's value, with its interval.

    `conditions`: the circumstances under which it holds. `withheld`: why jobs of other people do not get the settings
    until an administrator has approved them; empty if they do.
    """

    configuration: Configuration
    gain: float
    low: float
    high: float
    conditions: tuple[Reason, ...] = ()
    withheld: str = ""

    def columns(self) -> dict[str, object]:
        """Return the columns of a record that hold it."""
        conditions = [{"text": str(one), **one.data} for one in self.conditions]
        values = (dict(self.configuration), self.gain, self.low, self.high, conditions)
        return dict(zip(_PROVEN, values, strict=True))

    def state(self, study: str, terms: Terms) -> tuple[State, str, str]:
        """Return the state of a record of this gain on these terms, its cause and the reason for people."""
        if withheld := self.withheld_by(terms):
            return State.WITHDRAWN, Cause.APPROVAL, joined([_NEEDS_APPROVAL, withheld])
        proven = Reason(f"Study {study!r} has proven the gain.", "record_proven", study=study)
        return State.ACTIVE, "", joined([proven, _FOR_ITS_USER] if terms.audience == Audience.USER else [proven])

    def withheld_by(self, terms: Terms) -> str:
        """Return why an administrator has to approve the record before any job gets the settings; empty if not."""
        return shorten(joined([one for one in (self.withheld, terms.withheld) if one]), LONGEST_REASON)


def settle(principal: Principal, study: Study, proof: Proof | None) -> None:
    """Bring the record of a study that has ended into line with its verdict. `proof`: None if no gain is proven.

    The caller holds the lock on the study's row. Nothing changes while a study goes on, without a component, with
    several objectives, or where the record agrees already. A record that a person has withdrawn stays withdrawn. One
    that slower jobs have withdrawn becomes active again with another proof. A proof that is withheld makes a withdrawn
    record, which an administrator may approve: then it stays active until there is another proof. Without an approval
    that the tenant needs, a record is for jobs of its own user alone (`approval.terms`).
    """
    if study.state not in _ENDED or not study.component or len(spec_of(study).problem.objectives) > 1:
        return
    if _agrees(principal, study, _of(principal, study), proof):
        return
    with access.work(principal):
        revision = ledger.advance(principal)
        # Others may have changed the record until the ledger was locked.
        record = _of(principal, study)
        if _agrees(principal, study, record, proof):
            return
        if proof is None:
            assert record is not None
            text = f"The verdict on study {study.name!r} no longer proves a gain."
            reason = Reason(text, "record_not_proven", study=study.name)
            _withdraw(principal, record, Cause.VERDICT, reason, revision)
        elif record is None:
            _create(principal, study, proof, revision)
        else:
            _prove_again(principal, study, record, proof, revision)


def withdraw_deleted(principal: Principal, study: Study) -> None:
    """Withdraw the record of a study that this transaction deletes."""
    record = _of(principal, study)
    if record is not None and record.is_active:
        revision = ledger.advance(principal)
        reason = Reason(f"Study {study.name!r} was deleted.", "record_study_deleted", study=study.name)
        _withdraw(principal, record, Cause.DELETION, reason, revision)


def withdraw_slower(principal: Principal, reasons: Mapping[int, str], revision: int) -> None:
    """Withdraw the active ones of these records, whose jobs were slower, each with its reason, in this transaction."""
    for record in _rows(principal).filter(pk__in=reasons, state=State.ACTIVE):
        _withdraw(principal, record, Cause.JOBS, reasons[record.pk], revision)


def keep(principal: Principal, record_id: int, params: Configuration, study: str, trial: int, found: str) -> None:
    """Give jobs that match a record other settings, which a live study of these jobs has kept, in this transaction.

    `found`: what the study has found, as a sentence. The record still has the proof of its own study.
    """
    revision = ledger.advance(principal)
    record = _rows(principal).filter(pk=record_id, state=State.ACTIVE).first()
    if record is None:
        return
    before = _shown(record)
    record.kept = {"params": {**record.settings, **params}, "study": study, "trial": trial}
    _set_state(principal, record, State.ACTIVE, "", found, revision)
    audit.record(principal, "record.change", _target(record), {"study": study}, before=before, after=_shown(record))


def change(principal: Principal, record_id: str, state: str, reason: str = "") -> Record:
    """Withdraw a record, or make it active again, and return it. The state that it has already changes nothing.

    An administrator who makes it active approves its present settings for the jobs of everybody, also if it is active
    for its own user already. Others may not do so with a record that is withheld. Raises InvalidInput, NotFound
    (`record_not_found`), Forbidden.
    """
    if state not in list(State):
        raise InvalidInput("state", state, ", ".join(State))
    check_text("reason", reason, LONGEST_REASON)
    get(principal, record_id)
    with access.work(principal):
        revision = ledger.advance(principal)
        record = get(principal, record_id)
        actor = principal.actor
        approves = state == State.ACTIVE and may(principal, Action.RECORD_APPROVE)
        is_approved = not record.withheld and record.cause != Cause.APPROVAL
        if record.state == state and not (approves and record.audience == Audience.USER):
            return record
        if state == State.ACTIVE and not is_approved:
            require(principal, Action.RECORD_APPROVE)
        if approves and not (is_approved and record.audience == Audience.EVERYBODY):
            said = Reason(f"{actor} has approved it.", "record_approved_by", actor=actor)
            _activate(principal, record, reason or said, revision, approved=True)
        elif state == State.WITHDRAWN:
            said = Reason(f"{actor} has withdrawn it.", "record_withdrawn_by", actor=actor)
            _withdraw(principal, record, Cause.PERSON, reason or said, revision)
        else:
            said = Reason(f"{actor} has restored it.", "record_restored_by", actor=actor)
            _activate(principal, record, reason or said, revision)
    return get(principal, record_id)


def get(principal: Principal, record_id: str) -> Record:
    """Return a record by its id. Raises NotFound (`record_not_found`)."""
    key = key_of(record_id)
    found = None if key is None else _rows(principal).filter(pk=key).first()
    if found is None:
        raise NotFound("record_not_found", f"There is no record {record_id!r}.")
    return found


def page(
    principal: Principal,
    *,
    component: str = "",
    study: str = "",
    state: str = "",
    search: str = "",
    where: Sequence[str] = (),
    sort: str = NEWEST,
    page_size: int = 0,
    page_token: str = "",
) -> Page[Record]:
    """Return a page of records, newest first or in the order of `sort`; empty texts stand for all. Raises InvalidInput.

    `search` matches part of the component, application, study, user, name or program. All conditions of `where` hold,
    such as "nodes > 8"; `COLUMNS` lists their columns.
    """
    if state and state not in list(State):
        raise InvalidInput("state", state, ", ".join(State))
    key, down = sort.removeprefix("-"), sort.startswith("-")
    if key not in SORTS:
        raise InvalidInput("sort", sort, f"{', '.join(SORTS)}; with a leading - in descending order")
    given = {"component": component, "study_name": study, "state": state}
    # A text with a NUL would be an error of the database.
    wanted = {name: value.replace("\0", "\ufffd") for name, value in given.items() if value}
    rows = _rows(principal).filter(**wanted)
    if search:
        text, found = search.replace("\0", "\ufffd"), Q()
        for column in _SEARCHED:
            found |= Q(**{f"{column}__icontains": text})
        rows = rows.filter(found)
    rows = select(rows, where, COLUMNS)
    if sort == NEWEST:
        return pages.page(rows, "-pk", page_size, page_token, largest=LARGEST_PAGE)
    return pages.by_column(rows, _rows(principal), SORTS[key], page_size, page_token, down=down, largest=LARGEST_PAGE)


def _rows(principal: Principal) -> QuerySet[Record]:
    return access.rows(Record, principal)


def _of(principal: Principal, study: Study) -> Record | None:
    return _rows(principal).filter(study_id=study.pk).first()


def _agrees(principal: Principal, study: Study, record: Record | None, proof: Proof | None) -> bool:
    """Return whether a record says what the verdict of its study says."""
    if record is None or proof is None:
        return proof is None and (record is None or not record.is_active)
    given = proof.columns()
    # Earlier versions of the service have stored no conditions.
    is_known = all(getattr(record, name) == given[name] for name in _PROVEN if name != "conditions")
    if not is_known or record.cause == Cause.VERDICT:
        return False
    if record.audience == Audience.EVERYBODY and not record.withheld and record.cause != Cause.APPROVAL:
        return True
    terms = approval.terms(principal, study, _job_of(record))
    # The tenant may need no approval any more, or the grounds of the proof may be known better.
    return (record.audience, record.withheld) == (terms.audience, proof.withheld_by(terms))


def _create(principal: Principal, study: Study, proof: Proof, revision: int) -> None:
    if not _make_room(principal):
        most = tenants.limits_of(principal.tenant_id).matching_records
        reason = f"The tenant has {most} active records, which is its limit. Withdraw some, or raise the limit."
        logger.warning("a proven gain gets no record", study=study.name, reason=reason)
        audit.record(principal, "record.refuse", f"study/{study.name}", {"reason": reason})
        return
    job = origin.job_of(principal, study, proof.configuration)
    terms = approval.terms(principal, study, job)
    state, cause, reason = proof.state(study.name, terms)
    record = Record(
        study_id=study.pk,
        study_name=study.name,
        component=study.component,
        digest=study.digest,
        application=study.application,
        user=job.user,
        name=job.name,
        program=job.program,
        command_line=job.command_line,
        submitted_at=job.submitted_at,
        nodes=job.nodes,
        audience=terms.audience,
        withheld=proof.withheld_by(terms),
        state=state,
        cause=cause,
        state_reason=(said := shorten(reason, LONGEST_REASON)),
        state_reason_data=stored(said),
        withdrawn_at=None if state == State.ACTIVE else Now(),
        revision=revision,
        **proof.columns(),
    )
    access.add(principal, record)
    audit.record(principal, "record.create", _target(record), {"study": study.name}, after=_shown(record))


def _make_room(principal: Principal) -> bool:
    """Return whether one more record may be stored. The withdrawn record that is oldest gives way to a new one."""
    most, count = tenants.limits_of(principal.tenant_id).matching_records, _rows(principal).count()
    if count < most:
        return True
    oldest = _rows(principal).filter(state=State.WITHDRAWN).order_by("pk").first() if count == most else None
    if oldest is None:
        return False
    audit.record(principal, "record.delete", _target(oldest), {"study": oldest.study_name}, before=_shown(oldest))
    _rows(principal).filter(pk=oldest.pk).delete()
    return True


def _prove_again(principal: Principal, study: Study, record: Record, proof: Proof, revision: int) -> None:
    before, was_active = _shown(record), record.is_active
    job = origin.job_of(principal, study, proof.configuration)
    for name, value in {**proof.columns(), "submitted_at": job.submitted_at, "kept": None}.items():
        setattr(record, name, value)
    access.save(principal, record, *_PROVEN, "submitted_at", "kept")
    terms = approval.terms(principal, study, _job_of(record))
    record.audience, record.withheld = terms.audience, proof.withheld_by(terms)
    state, cause, reason = proof.state(study.name, terms)
    if record.cause == Cause.PERSON:
        record.revision = revision
        access.save(principal, record, "revision", *_TERMS)
        action = "record.change"
    else:
        _set_state(principal, record, state, cause, reason, revision)
        action = "record.change" if was_active == record.is_active else "record.restore"
        if was_active and not record.is_active:
            action = "record.withdraw"
            notices.record_withdrawn(principal, record.pk, record.study_name, record.state_reason)
    audit.record(principal, action, _target(record), {"study": study.name}, before=before, after=_shown(record))


def _withdraw(principal: Principal, record: Record, cause: Cause, reason: str, revision: int) -> None:
    before = _shown(record)
    _set_state(principal, record, State.WITHDRAWN, cause, reason, revision)
    detail = {"study": record.study_name, "cause": cause, "reason": record.state_reason}
    audit.record(principal, "record.withdraw", _target(record), detail, before=before, after=_shown(record))
    notices.record_withdrawn(principal, record.pk, record.study_name, record.state_reason)


def _activate(principal: Principal, record: Record, reason: str, revision: int, *, approved: bool = False) -> None:
    before = _shown(record)
    if approved:
        record.audience, record.withheld = Audience.EVERYBODY, ""
    _set_state(principal, record, State.ACTIVE, "", reason, revision)
    detail = {"study": record.study_name, "reason": record.state_reason}
    action = "record.approve" if approved else "record.restore"
    audit.record(principal, action, _target(record), detail, before=before, after=_shown(record))


def _set_state(principal: Principal, record: Record, state: State, cause: str, reason: str, revision: int) -> None:
    record.state, record.cause, record.revision = state, cause, revision
    if state == State.WITHDRAWN:
        # Who restores it means the settings that its own study has proven.
        record.kept = None
    record.state_reason = shorten(reason, LONGEST_REASON)
    record.state_reason_data = stored(record.state_reason)
    columns: dict[str, object] = {name: getattr(record, name) for name in _STATE if name != "active_since"}
    columns["withdrawn_at"] = None if state == State.ACTIVE else Now()
    if state == State.ACTIVE:
        # Jobs that were submitted before ran with earlier settings, or have had their say.
        columns["active_since"] = Now()
    _rows(principal).filter(pk=record.pk).update(**columns)


def _job_of(record: Record) -> Job:
    """Return the job of a record, whose user a later proof does not change."""
    return Job(**{name: getattr(record, name) for name in Job.__dataclass_fields__})


def _target(record: Record) -> str:
    return f"record/{record.pk}"


def _shown(record: Record) -> dict[str, object]:
    """Return the columns of a record that the audit trail shows."""
    names = ("state", "state_reason", *_TERMS, *_PROVEN, "kept")
    return {"record": {name: getattr(record, name) for name in names}}
