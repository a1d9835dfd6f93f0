"""Steps of studies and trials, under the study's row lock.

Every change of a study or of one of its trials has this shape, in one transaction:

    with access.work(principal):
        study = lock(principal, name)
        ...                                   # steps from this file
        conclude(principal, study, "trial.complete", "trial/3")

`lock` comes first (lock order: study, then trial, then lease or operation). `conclude` comes last and costs one
statement for the study's row, the audit entry and the door-bell together. A transaction that changed nothing does not
conclude.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from psycopg.types.json import Json

from service.core.errors import NotFound
from service.core.lifecycle import StudyState, TrialState, check_step
from service.core.space import Configuration
from service.studies.models import Study, Trial
from service.studies.specs import budget_of, spec_of
from service.tenancy import access, attempt
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert, Select, Update

CHANNEL = "trimtab"
OPEN_STATES = (TrialState.REQUESTED, TrialState.ACTIVE)

# The spec may be large and is cached by spec_of. NO KEY: rows that refer to the study may be inserted meanwhile.
_LARGE = ["spec", "first_space"]
_CLOCK = {"database_time": "statement_timestamp()"}
_lock_name = Select(Study, "name = %s", ending="FOR NO KEY UPDATE", without=_LARGE, extra=_CLOCK)
_read_id = Select(Study, "id = %s", without=_LARGE, extra=_CLOCK)
_lock_id = Select(Study, "id = %s", ending="FOR NO KEY UPDATE", without=_LARGE, extra=_CLOCK)
_select_trial = Select(Trial, "study_id = %s AND number = %s")
_select_client = Select(Trial, "study_id = %s AND client_id = %s AND state = 'ACTIVE'", ending="ORDER BY number")
_insert_trials = Insert(Trial)
_MEASURED_ON = {
    "measured_on": """ARRAY(
        SELECT other.node FROM studies_trial AS other
        WHERE other.tenant_id = studies_trial.tenant_id AND other.study_id = studies_trial.study_id
            AND other.key = studies_trial.key AND other.id <> studies_trial.id
            AND other.node <> '' AND other.state IN ('ACTIVE', 'COMPLETED', 'PRUNED'))"""
}
_select_waiting = Select(
    Trial, "study_id = %s AND state = 'REQUESTED'", ending="ORDER BY number LIMIT %s", extra=_MEASURED_ON
)
_select_places = Select(Trial, "id = %s", extra=_MEASURED_ON)
_start_trials = Update(Trial, "state", "agent", "client_id", "reason", "revision", "started_at")
_begin_trial = Update(Trial, "revision", "reason", "node", "started_at")
_update_trial = Update(
    Trial, "state", "revision", "reason", "metrics", "agent", "node", "attempt", "seconds", "started_at", "finished_at"
)
# The revision guards what is written without a lock (change.py); under the lock it is always that.
_CONCLUDE = """
WITH stamped AS (
    UPDATE studies_study
    SET state = %s, state_reason = %s, revision = %s, next_number = %s, cursor = %s, requested_count = %s,
        active_count = %s, finished_count = %s, added_count = %s, default_done = %s, exhausted = %s, deadline = %s,
        last_granted_at = %s, final_check = %s, verdict = %s, updated_at = %s
    WHERE id = %s AND tenant_id = %s AND revision = %s
    RETURNING id
), noted AS (
    INSERT INTO tenancy_auditentry (tenant_id, actor, credential, address, action, target, detail, before, after)
    SELECT %s, %s, %s, %s, %s, %s, %s, %s::json, %s::json FROM stamped
){}
SELECT pg_notify(%s, %s), statement_timestamp() FROM stamped
"""


def lock(principal: Principal, name: str) -> Study:
    """The study of this name, its row locked until the transaction ends. Raises NotFound."""
    return _expect(_lock_name(principal, name), f"There is no study {name!r}.")


def lock_by_id(principal: Principal, study_id: int) -> Study:
    """The study with this primary key, its row locked until the transaction ends. Raises NotFound."""
    return _expect(_lock_id(principal, study_id), "The study was deleted.")


def read_by_id(principal: Principal, study_id: int) -> Study:
    """The study with this primary key as it is now, not locked. Raises NotFound."""
    return _expect(_read_id(principal, study_id), "The study was deleted.")


def stamp(study: Study) -> int:
    """The revision of this transaction's change: one more than the last, however many rows it touches."""
    if not study.changed:
        study.changed = True
        study.revision += 1
    return study.revision


def conclude(
    principal: Principal,
    study: Study,
    action: str,
    target: str = "",
    detail: Mapping[str, object] | None = None,
    *,
    operation: UUID | None = None,
    slot_freed: bool = False,
) -> None:
    """Write the locked study's row and the audit entry, and ring for all who wait for this study.

    Agents are rung for as well when the study has work for them, or when one of them has a free slot now, which another
    study may have work for; and when a trial that one of them runs is to be stopped.
    """
    before = study.revision - 1 if study.changed else study.revision
    stamp(study)
    study.updated_at = study.database_time
    kinds = ["studies"] if study.component == "" else ["studies", "agents"]
    bell = {
        "study": study.pk,
        "operation": None if operation is None else str(operation),
        "work": slot_freed or (study.state == StudyState.ACTIVE and study.requested_count > 0),
        "stop": principal.tenant_id if study.stopping else None,
        "tenant": principal.tenant_id,
        "kinds": kinds,
    }
    kept_back = attempt.current()
    writes = [] if kept_back is None else kept_back.writes
    concluded = access.ask(
        principal,
        _CONCLUDE.format("".join(f", write{index} AS ({sql})" for index, (sql, _) in enumerate(writes))),
        (
            study.state,
            study.state_reason,
            study.revision,
            study.next_number,
            study.cursor,
            study.requested_count,
            study.active_count,
            study.finished_count,
            study.added_count,
            study.default_done,
            study.exhausted,
            study.deadline,
            study.last_granted_at,
            None if study.final_check is None else Json(study.final_check),
            None if study.verdict is None else Json(study.verdict),
            study.updated_at,
            study.pk,
            principal.tenant_id,
            before,
            principal.tenant_id,
            principal.actor,
            principal.credential,
            principal.address,
            action,
            f"study/{study.name}" + (f"/{target}" if target else ""),
            Json(dict(detail or {})),
            _noted(study, 0),
            _noted(study, 1),
            *(parameter for _, parameters in writes for parameter in parameters),
            CHANNEL,
            json.dumps(bell),
        ),
    )
    if kept_back is not None:
        if not concluded:
            raise attempt.NeedsTransaction
        kept_back.done = True
        study.database_time = concluded[0][1]


def note(study: Study, what: str, before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> None:
    """Keep for the audit entry of this transaction how `what` (study, trial/3) was, and how it is now."""
    first = study.noted[what][0] if what in study.noted else before
    study.noted = {**study.noted, what: (first, after)}


def _noted(study: Study, side: int) -> Json | None:
    known = {what: pair[side] for what, pair in study.noted.items() if pair[side] is not None}
    return Json(known) if known else None


def configuration_key(study: Study, configuration: Configuration) -> str:
    """Digest of a configuration's canonical text: short enough for an index."""
    text = spec_of(study).space.key(configuration)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def add_trials(
    principal: Principal,
    study: Study,
    configurations: Sequence[Configuration],
    *,
    state: TrialState,
    origin: str,
    client_id: str = "",
    metrics: Mapping[str, float] | None = None,
    request_id: str | None = None,
) -> list[Trial]:
    """Insert trials of a locked study, numbered on from its last."""
    if not configurations:
        return []
    revision = stamp(study)
    now = study.database_time
    trials = [
        Trial(
            study_id=study.pk,
            number=study.next_number + index,
            state=state,
            params=configuration,
            key=configuration_key(study, configuration),
            metrics=None if metrics is None else dict(metrics),
            origin=origin,
            client_id=client_id,
            revision=revision,
            request_id=request_id,
            created_at=now,
            started_at=None if state == TrialState.REQUESTED else now,
            finished_at=None if state in OPEN_STATES else now,
        )
        for index, configuration in enumerate(configurations)
    ]
    _insert_trials(principal, trials)
    study.noted = {**study.noted, **{f"trial/{trial.number}": (None, {"state": state}) for trial in trials}}
    study.next_number += len(trials)
    _count(study, state, len(trials))
    max_seconds = budget_of(study).max_seconds
    if study.deadline is None and max_seconds is not None and study.final_check is None:
        study.deadline = now + timedelta(seconds=max_seconds)
    return trials


def get_trial(principal: Principal, study: Study, number: int) -> Trial:
    """A trial of a locked study. Raises NotFound."""
    # Numbers beyond the column's range are nobody's.
    found = _select_trial(principal, study.pk, number) if 0 < number < study.next_number else []
    if not found:
        raise NotFound("trial_not_found", f"Study {study.name!r} has no trial {number}.")
    return found[0]


def active_trials(principal: Principal, study: Study, client_id: str) -> list[Trial]:
    """The trials that a client of a locked study works on, by number."""
    return _select_client(principal, study.pk, client_id)


def waiting_trials(principal: Principal, study: Study, count: int) -> list[Trial]:
    """The first trials of a locked study that wait to be given out, with `measured_on`."""
    return _select_waiting(principal, study.pk, count)


def measured_on(principal: Principal, trial: Trial) -> list[str]:
    """The nodes where a trial's configuration has been measured by others or is now, once for each time."""
    return _select_places(principal, trial.pk)[0].measured_on


def begin_trial(principal: Principal, study: Study, trial: Trial, node: str) -> None:
    """Note that a trial of a locked study, ACTIVE since it was leased, begins to run now, on this node."""
    trial.started_at = study.database_time
    trial.node, trial.reason = node, ""
    trial.revision = stamp(study)
    _begin_trial(principal, trial)


def step_trial(
    principal: Principal,
    study: Study,
    trial: Trial,
    state: TrialState,
    *,
    metrics: Mapping[str, float] | None = None,
    reason: str = "",
) -> None:
    """Take a trial of a locked study to another state, as far as the table of steps allows it.

    What the caller changed on `agent`, `node`, `attempt`, `seconds` or `started_at` is written along.
    """
    check_step("trial", TrialState(trial.state), state)
    after: dict[str, object] = {"state": state}
    if metrics is not None:
        after["metrics"] = dict(metrics)
    if reason:
        after["reason"] = reason
    note(study, f"trial/{trial.number}", {"state": trial.state}, after)
    _count(study, TrialState(trial.state), -1)
    _count(study, state, 1)
    trial.state = state
    trial.revision = stamp(study)
    trial.reason = reason
    if metrics is not None:
        trial.metrics = dict(metrics)
    if state in OPEN_STATES:
        trial.started_at = study.database_time if state == TrialState.ACTIVE else None
    else:
        trial.finished_at = study.database_time
    _update_trial(principal, trial)


def start_trials(
    principal: Principal, study: Study, trials: Sequence[Trial], *, agent: str = "", client_id: str = ""
) -> None:
    """Take REQUESTED trials of a locked study to ACTIVE, on an agent or with a client, with one statement."""
    revision = stamp(study)
    taker = {"agent": agent} if agent else {"client": client_id}
    for trial in trials:
        check_step("trial", TrialState(trial.state), TrialState.ACTIVE)
        note(study, f"trial/{trial.number}", {"state": trial.state}, {"state": TrialState.ACTIVE, **taker})
        trial.state, trial.reason = TrialState.ACTIVE, ""
        trial.agent, trial.client_id = agent, client_id
        trial.revision, trial.started_at = revision, study.database_time
    _start_trials(principal, *trials)
    _count(study, TrialState.REQUESTED, -len(trials))
    _count(study, TrialState.ACTIVE, len(trials))


def touch_trial(principal: Principal, study: Study, trial: Trial, *fields: str) -> None:
    """Stamp a trial of a locked study that changed without a step, and write these of its columns."""
    trial.revision = stamp(study)
    access.save(principal, trial, "revision", *fields)


def step_study(study: Study, state: StudyState, reason: str = "") -> None:
    """Take a locked study to another state, as far as the table of steps allows it."""
    check_step("study", StudyState(study.state), state)
    note(study, "study", {"state": study.state}, {"state": state, "reason": reason})
    stamp(study)
    study.state = state
    study.state_reason = reason


def withdraw_trials(principal: Principal, study: Study, states: Sequence[TrialState], reason: str) -> None:
    """End all trials of a locked study that are in these open states as FAILED, with one statement. Agents are told."""
    trials = access.rows(Trial, principal).filter(study_id=study.pk, state__in=states)
    ended = _withdraw(study, trials, reason, states=list(states))
    if TrialState.REQUESTED in states:
        study.requested_count = 0
    if TrialState.ACTIVE in states:
        study.active_count = 0
        study.stopping = bool(study.component)
    study.finished_count += ended


def withdraw_outside(principal: Principal, study: Study, numbers: Sequence[int], reason: str) -> None:
    """End REQUESTED trials of a locked study as FAILED, with one statement. They do not count against its budget."""
    trials = access.rows(Trial, principal).filter(study_id=study.pk, number__in=numbers, state=TrialState.REQUESTED)
    ended = _withdraw(study, trials, reason, states=[TrialState.REQUESTED], numbers=list(numbers))
    study.requested_count -= ended
    study.finished_count += ended
    study.added_count += ended


def _withdraw(study: Study, trials: QuerySet[Trial], reason: str, **which: object) -> int:
    now = study.database_time
    ended = trials.update(state=TrialState.FAILED, reason=reason, revision=stamp(study), finished_at=now)
    if ended:
        note(study, "trials", which, {"state": TrialState.FAILED, "reason": reason, "trials": ended})
    return ended


def ring_deleted(principal: Principal, study_id: int) -> None:
    """Ring for all who wait for a study that this transaction deletes, agents that run its trials among them."""
    tenant = principal.tenant_id
    _ring(principal, study=study_id, work=True, stop=tenant, tenant=tenant, kinds=["studies", "agents"])


def ring_agents(principal: Principal) -> None:
    """Ring for the heartbeats of the tenant's agents, which are held until there is something to tell them."""
    _ring(principal, stop=principal.tenant_id)


def ring_log(principal: Principal, trial_id: int) -> None:
    """Ring for all who read along what a trial prints."""
    _ring(principal, log=trial_id)


def ring_lists(principal: Principal, *kinds: str) -> None:
    """Ring for all who look at the lists of the tenant's studies, agents or components (`kinds`), once this
    transaction is done."""
    _ring(principal, tenant=principal.tenant_id, kinds=kinds)


def _ring(principal: Principal, **topics: object) -> None:
    # A listener of before, still running beside this service, expects the first three.
    bell = {"study": None, "operation": None, "work": False, **topics}
    access.ask(principal, "SELECT pg_notify(%s, %s)", (CHANNEL, json.dumps(bell)))


def _expect(found: list[Study], message: str) -> Study:
    if not found:
        raise NotFound("study_not_found", message)
    return found[0]


def _count(study: Study, state: TrialState, by: int) -> None:
    if state == TrialState.REQUESTED:
        study.requested_count += by
    elif state == TrialState.ACTIVE:
        study.active_count += by
    else:
        study.finished_count += by
