"""Leases: granted, renewed, reported on, settled, expired. Lock order: study, then lease."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError
from django.db.models import F, Q
from django.db.models.functions import Now

from service.core.errors import Conflict, InvalidInput, JsonValue, NotFound
from service.core.lifecycle import LeaseState, StudyState, TrialState, check_step
from service.core.space import Configuration
from service.fleet import agents
from service.fleet.models import Agent, Lease
from service.pipeline import report
from service.pipeline.apart import apart
from service.pipeline.quotas import meter
from service.studies import actions
from service.studies.change import change
from service.studies.models import Study, Trial, TrialLog
from service.studies.models.trial import NODE_LENGTH
from service.studies.specs import Placement, spec_of
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert, Select, Update

Outcome = Literal["completed", "infeasible", "failed", "cancelled", "released"]
LOG_TAIL_BYTES = 64 * 1024
MOST_GRANTS = 1000
# Characters kept of why a trial does not start.
REASON_LENGTH = 1000
# Studies looked at in one call; the next call goes on with those that waited longest.
_MOST_CANDIDATES = 100

_select_lease = Select(Lease, "id = %s AND agent_id = %s")
_select_trial = Select(Trial, "id = %s")
_insert_leases = Insert(Lease)
_start = Update(Lease, "started_at", "node")
_settle = Update(Lease, "state", "settlement", "settled_at", "node")
# As leases are asked for in every heartbeat: no more of them than that needs.
_select_stops = Select(
    Lease,
    "agent_id = %s AND state = 'HELD'",
    without=[field.attname for field in Lease._meta.concrete_fields if field.attname != "id"],
    extra={
        f"trial_{name}": f"(SELECT {name} FROM studies_trial AS trial WHERE trial.id = trial_id)"  # nosec B608
        for name in ("state", "reason")
    },
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Grant:
    """All that an agent must know to run a trial."""

    lease: str
    tenant: str
    study: str
    trial: int
    attempt: int
    component: str
    digest: str
    application: str
    params: Configuration
    metrics: tuple[str, ...]
    trial_timeout_seconds: float | None
    placement: Placement
    measured_on: Sequence[str]


@dataclass(frozen=True, slots=True)
class Renewal:
    """Leases to stop, with the reason, and those that are no longer the agent's."""

    cancel: list[tuple[str, str]]
    lost: list[str]


def acquire(principal: Principal, *, agent_id: str, count: int, held: Sequence[str] = ()) -> list[Grant]:
    """Grant up to `count` trials that wait for an agent like this one; none when there is no work now.

    Leases granted to it before and not listed in `held` come first: the answer was lost. While it holds one that has
    expired it is given nothing: it is silent. Studies take turns, the one that waited longest first. A count of 0 asks
    for lost answers alone. Raises InvalidInput, NotFound (`unknown_agent`).
    """
    if not 0 <= count <= MOST_GRANTS:
        raise InvalidInput("count", count, f"0 to {MOST_GRANTS}")
    agent = agents.known(principal, agent_id)
    agents.seen(principal, agent)
    own = [lease_id for lease_id in map(_uuid, held) if lease_id is not None]
    open_leases = list(
        access.rows(Lease, principal)
        .filter(Q(state=LeaseState.HELD) | Q(state=LeaseState.EXPIRED, id__in=own), agent_id=agent.pk)
        .select_related("trial")
    )
    if any(lease.state == LeaseState.EXPIRED and _is_untouched(lease) for lease in open_leases):
        # This call may be of before its silence. Its heartbeat holds them again, or makes them lost.
        return []
    open_leases = [lease for lease in open_leases if lease.state == LeaseState.HELD]
    unheard = [lease for lease in open_leases if str(lease.id) not in set(held)]
    grants = _grant_again(principal, agent, unheard)
    wanted = 0 if agent.draining else min(count - len(grants), agent.slots - len(open_leases))
    if wanted <= 0:
        return grants
    candidates = _candidates(principal, agent)
    for index, study_id in enumerate(candidates):
        share = -(-wanted // (len(candidates) - index))
        granted = _grant(principal, agent, study_id, share)
        grants += granted
        wanted -= len(granted)
        if wanted <= 0:
            break
    return grants


def renew(
    principal: Principal,
    *,
    agent_id: str,
    leases: Sequence[str],
    elapsed: Mapping[str, float] | None = None,
    waiting: Mapping[str, str] | None = None,
) -> Renewal:
    """The heartbeat: extend the leases that an agent holds. Raises NotFound (`unknown_agent`).

    `elapsed`: how many seconds the trials of some of them have been running, without builds and queues. Pruning
    policies that look at nothing else decide here. `waiting`: why some of them do not start, for people.
    """
    agent = agents.known(principal, agent_id)
    agents.seen(principal, agent)
    ids = {lease: _uuid(lease) for lease in leases}
    mine = access.rows(Lease, principal).filter(
        agent_id=agent.pk, state=LeaseState.HELD, id__in=[one for one in ids.values() if one is not None]
    )
    held: dict[UUID, Lease] = {}
    if ids:
        mine.update(expires_at=Now() + _lease_time())
        held = {lease.id: lease for lease in mine.select_related("trial", "study").defer("study__spec")}
        missing = [text for text, lease_id in ids.items() if lease_id not in held]
        held |= {lease.id: lease for lease in _hold_again(principal, agent, missing)}
    cancel: list[tuple[str, str]] = []
    lost: list[str] = []
    for text, lease_id in ids.items():
        lease = held.get(lease_id) if lease_id is not None else None
        if lease is None:
            lost.append(text)
        elif lease.trial.state != TrialState.ACTIVE:
            cancel.append((text, lease.trial.reason))
        elif elapsed and text in elapsed and spec_of(lease.study).pruning:
            reason = _prune(principal, lease, elapsed[text])
            if reason is not None:
                cancel.append((text, reason))
        elif (why := _text((waiting or {}).get(text, ""), REASON_LENGTH)) != lease.trial.reason:
            _note_waiting(principal, lease, why)
    return Renewal(cancel, lost)


def stops(principal: Principal, *, agent_id: str, leases: Sequence[str]) -> Renewal:
    """What `renew` would answer of leases that it has extended: those to stop, and those that were lost meanwhile.

    Leases granted to the agent since then are looked at as well. One that has expired is not told of: what asks here
    may be a call of before the agent's silence, and the next heartbeat may hold it again. Raises NotFound
    (`unknown_agent`).
    """
    agent = agents.known(principal, agent_id)
    held = _select_stops(principal, agent.pk)
    known = {str(lease.id) for lease in held}
    if missing := {text: _uuid(text) for text in leases if text.lower() not in known}:
        ids = [lease_id for lease_id in missing.values() if lease_id is not None]
        expired = access.rows(Lease, principal).filter(agent_id=agent.pk, state=LeaseState.EXPIRED, id__in=ids)
        silent = set(expired.values_list("id", flat=True))
        missing = {text: lease_id for text, lease_id in missing.items() if lease_id not in silent}
    return Renewal(
        cancel=[(str(lease.id), lease.trial_reason) for lease in held if lease.trial_state != TrialState.ACTIVE],
        lost=list(missing),
    )


def _note_waiting(principal: Principal, lease: Lease, reason: str) -> None:
    """Tell on a leased trial why it does not start; an empty reason: it is expected to."""
    with access.work(principal):
        try:
            study = actions.lock_by_id(principal, lease.study_id)
            trial = actions.get_trial(principal, study, lease.trial.number)
        except NotFound:
            return
        if trial.state != TrialState.ACTIVE or trial.attempt != lease.attempt:
            return
        trial.reason = reason
        actions.touch_trial(principal, study, trial, "reason")
        actions.conclude(principal, study, "trial.wait", f"trial/{trial.number}", {"reason": reason})


def _prune(principal: Principal, lease: Lease, seconds: float) -> str | None:
    """Why the leased trial is to be stopped now; None: it goes on."""
    with access.work(principal):
        try:
            study = actions.lock_by_id(principal, lease.study_id)
            trial = actions.get_trial(principal, study, lease.trial.number)
        except NotFound:
            return None
        if trial.state != TrialState.ACTIVE or trial.attempt != lease.attempt:
            return None
        if not report.prune(principal, study, trial, seconds):
            return None
        actions.conclude(principal, study, "trial.prune", f"trial/{trial.number}", {"reason": trial.reason})
        return trial.reason


def report_started(principal: Principal, *, agent_id: str, lease: str, node: str = "") -> None:
    """An agent has started a trial's process. Raises NotFound (`unknown_agent`), Conflict (`lease_lost`)."""
    agent = agents.known(principal, agent_id)
    found = _find(principal, agent, lease)

    def start(study: Study) -> None:
        held = _read(principal, agent, found)
        _expect_held(held)
        if held.started_at is not None:
            return
        held.started_at = study.database_time
        held.node = _text(node, NODE_LENGTH)
        _start(principal, held)
        if held.trial.state == TrialState.ACTIVE:
            # From the grant to here the agent built and prepared: the trial itself starts now.
            actions.begin_trial(principal, study, held.trial, held.node)
            actions.conclude(principal, study, "trial.start", f"trial/{held.trial.number}", {"node": held.node})

    change(principal, found.study_id, start)


def report_measurement(
    principal: Principal,
    *,
    agent_id: str,
    lease: str,
    step: int,
    metrics: Mapping[str, object],
    elapsed_seconds: float | None = None,
) -> bool:
    """Keep a measurement of a leased trial. True: the trial was stopped, the agent is to cancel it.

    Raises InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_lost`, `step_already_reported`).
    """
    agent = agents.known(principal, agent_id)
    found = _find(principal, agent, lease)
    with access.work(principal):
        study = actions.lock_by_id(principal, found.study_id)
        held = _lock(principal, found.id)
        _expect_held(held)
        trial = held.trial
        if trial.state != TrialState.ACTIVE:
            return True
        if not report.measure(principal, study, trial, step, metrics, elapsed_seconds):
            return False
        pruned = report.prune(principal, study, trial, elapsed_seconds)
        actions.conclude(principal, study, "trial.report", f"trial/{trial.number}", {"step": step})
        return pruned


def settle(
    principal: Principal,
    *,
    agent_id: str,
    lease: str,
    outcome: Outcome,
    metrics: Mapping[str, object] | None = None,
    reason: str = "",
    elapsed_seconds: float | None = None,
    node: str = "",
) -> None:
    """End a lease with its trial's outcome; the same again changes nothing. `node`: where it ran, empty: nowhere.

    A lease that expired meanwhile may still be settled with a result while nobody else was given the trial. Raises
    InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_already_settled`, `lease_lost`).
    """
    if outcome not in get_args(Outcome):
        raise InvalidInput("outcome", outcome, ", ".join(get_args(Outcome)))
    # With what the application printed last, which may be anything.
    reason = _text(reason)
    agent = agents.known(principal, agent_id)
    found = _find(principal, agent, lease)

    def end(study: Study) -> None:
        held = _read(principal, agent, found)
        trial = held.trial
        measured = report.check_metrics(study, metrics or {}) if outcome == "completed" else {}
        settlement: dict[str, JsonValue] = {
            "outcome": outcome,
            "metrics": dict(measured),
            "reason": reason,
            "elapsed_seconds": elapsed_seconds,
        }
        if held.state == LeaseState.SETTLED:
            if held.settlement == settlement:
                return
            raise Conflict("lease_already_settled", f"Lease {lease} was settled as {_outcome(held)}.")
        if held.state == LeaseState.EXPIRED:
            _take_back(principal, study, held, outcome)
        check_step("lease", LeaseState(held.state), LeaseState.SETTLED)
        held.state = LeaseState.SETTLED
        held.settlement = settlement
        held.settled_at = study.database_time
        # A cluster may have started it anew, elsewhere than reported at first.
        held.node = _text(node, NODE_LENGTH) or held.node
        _settle(principal, held)
        if trial.state == TrialState.ACTIVE:
            trial.seconds = elapsed_seconds
            trial.node = held.node
            _apply(principal, study, trial, outcome, measured, reason)
        elif trial.attempt == held.attempt and trial.node != held.node:
            trial.node = held.node
            actions.touch_trial(principal, study, trial, "node")
        actions.conclude(
            principal,
            study,
            "lease.settle",
            f"trial/{trial.number}",
            {"lease": lease, "outcome": outcome},
            slot_freed=True,
        )

    change(principal, found.study_id, end)


def append_log(principal: Principal, *, agent_id: str, lease: str, offset: int, data: bytes) -> int:
    """Append to what a trial printed, at an offset in bytes; the offset where the next bytes belong.

    Bytes that are there already are ignored; after a gap the answer says from where to send again. Where others are
    there already, the trial's job was started anew and the log begins anew. Only the tail is kept. Raises
    InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_lost`).
    """
    if not 0 <= offset < 2**63:
        raise InvalidInput("offset", offset, "0 or more")
    agent = agents.known(principal, agent_id)
    found = _find(principal, agent, lease)
    try:
        with access.work(principal):
            return _append(principal, found, offset, data)
    except IntegrityError:
        # The study was deleted in between, as this then says.
        _find(principal, agent, lease)
        raise


def _append(principal: Principal, lease: Lease, offset: int, data: bytes) -> int:
    stored = access.rows(TrialLog, principal).select_for_update().filter(trial_id=lease.trial_id).first()
    if stored is None or stored.source != lease.id:
        # A new run starts the log anew; an older one that is late must not.
        newer = access.rows(Lease, principal).filter(trial_id=lease.trial_id, granted_at__gt=lease.granted_at)
        if newer.exists():
            raise Conflict("lease_lost", f"The trial of lease {lease.id} runs elsewhere now.")
        stored = TrialLog(trial_id=lease.trial_id, source=lease.id)
    elif _differs(stored, offset, data):
        stored.size, stored.tail = 0, b""
        access.put(principal, stored)
    if offset > stored.size:
        return stored.size
    new = data[stored.size - offset :]
    if new:
        growth = min(len(new), LOG_TAIL_BYTES - len(stored.tail))
        if meter.room_for_log(principal, growth):
            stored.tail = (bytes(stored.tail) + new)[-LOG_TAIL_BYTES:]
        stored.size += len(new)
        access.put(principal, stored)
        actions.ring_log(principal, lease.trial_id)
    return stored.size


def _differs(stored: TrialLog, offset: int, data: bytes) -> bool:
    """Whether bytes that are kept of a log are others than those sent for their place."""
    tail = bytes(stored.tail)
    start = stored.size - len(tail)
    first, end = max(offset, start), min(offset + len(data), stored.size)
    return first < end and data[first - offset : end - offset] != tail[first - start : end - start]


def overdue() -> list[tuple[int, int, UUID]]:
    """Leases that were not renewed in time: tenant, study and lease."""
    return [(tenant_id, study_id, lease_id) for tenant_id, study_id, lease_id in access.across("overdue_leases")]


def expire(late: Sequence[tuple[int, int, UUID]]) -> None:
    """Take overdue leases back, each for itself. Safe to run twice."""
    for tenant_id, study_id, lease_id in late:
        principal = Principal.system(tenant_id)
        with apart(tenant_id, study_id), access.work(principal):
            try:
                study = actions.lock_by_id(principal, study_id)
                lease = _lock(principal, lease_id)
            except NotFound:
                continue
            if lease.state != LeaseState.HELD or lease.expires_at >= study.database_time:
                continue
            check_step("lease", LeaseState.HELD, LeaseState.EXPIRED)
            lease.state = LeaseState.EXPIRED
            access.save(principal, lease, "state")
            trial = lease.trial
            if trial.state == TrialState.ACTIVE:
                report.try_again(principal, study, trial, f"Agent {lease.agent.name!r} was not heard of any more.")
            actions.conclude(
                principal, study, "lease.expire", f"trial/{trial.number}", {"lease": str(lease.id)}, slot_freed=True
            )


def _hold_again(principal: Principal, agent: Agent, leases: Sequence[str]) -> list[Lease]:
    """Those of an agent's leases that had expired, since it could not be heard, and whose trials still wait for another
    agent: held again, so that what runs goes on."""
    ids = [lease for lease in map(_uuid, leases) if lease is not None]
    if not ids:
        return []
    again = []
    for found in access.rows(Lease, principal).filter(agent_id=agent.pk, state=LeaseState.EXPIRED, id__in=ids):
        with access.work(principal):
            try:
                study = actions.lock_by_id(principal, found.study_id)
                lease = _lock(principal, found.id)
            except NotFound:
                continue
            full = study.active_count >= (study.parallelism or 0)
            if lease.state != LeaseState.EXPIRED or full or not _is_untouched(lease):
                continue
            _return_trial(principal, study, lease)
            check_step("lease", LeaseState.EXPIRED, LeaseState.HELD)
            lease.state = LeaseState.HELD
            lease.expires_at = study.database_time + _lease_time()
            access.save(principal, lease, "state", "expires_at")
            lease.study = study
            actions.conclude(principal, study, "lease.renew", f"trial/{lease.trial.number}", {"lease": str(lease.id)})
            again.append(lease)
    return again


def _candidates(principal: Principal, agent: Agent) -> list[int]:
    offered = Q(pk__in=[])
    for component in agent.components:
        offered |= Q(
            component=component["name"],
            digest__in=("", component["digest"]),
            application__in=["", *component.get("applications", ())],
        )
    waiting = access.rows(Study, principal).filter(
        offered, state=StudyState.ACTIVE, requested_count__gt=0, active_count__lt=F("parallelism")
    )
    turns = waiting.order_by(F("last_granted_at").asc(nulls_first=True), "pk")
    return list(turns.values_list("pk", flat=True)[:_MOST_CANDIDATES])


def _grant(principal: Principal, agent: Agent, study_id: int, count: int) -> list[Grant]:
    """Lease up to `count` trials of one study. One transaction for each study: never two studies' locks at once."""

    def grant(study: Study) -> list[Grant]:
        free = min(count, (study.parallelism or 0) - study.active_count)
        if study.state != StudyState.ACTIVE or free <= 0:
            return []
        trials = actions.waiting_trials(principal, study, free)
        if not trials:
            return []
        actions.start_trials(principal, study, trials, agent=agent.name)
        leases = [
            Lease(
                study_id=study.pk,
                trial=trial,
                agent=agent,
                attempt=trial.attempt,
                state=LeaseState.HELD,
                granted_at=study.database_time,
                expires_at=study.database_time + _lease_time(),
            )
            for trial in trials
        ]
        _insert_leases(principal, leases)
        study.last_granted_at = study.database_time
        actions.conclude(
            principal,
            study,
            "lease.grant",
            f"agent/{agent.agent_id}",
            {"trials": [trial.number for trial in trials]},
        )
        return [_describe(study, lease, lease.trial.measured_on) for lease in leases]

    try:
        return change(principal, study_id, grant)
    except NotFound:
        return []


def _grant_again(principal: Principal, agent: Agent, unheard: Sequence[Lease]) -> list[Grant]:
    """Repeat grants whose answer never arrived; those whose trial was stopped meanwhile are settled instead."""
    grants = []
    for lease in unheard:
        with access.work(principal):
            try:
                study = actions.lock_by_id(principal, lease.study_id)
                held = _lock(principal, lease.id)
            except NotFound:
                continue
            if held.state != LeaseState.HELD:
                continue
            if held.trial.state == TrialState.ACTIVE:
                held.expires_at = study.database_time + _lease_time()
                access.save(principal, held, "expires_at")
                grants.append(_describe(study, held, actions.measured_on(principal, held.trial)))
            else:
                held.state = LeaseState.SETTLED
                held.settlement = {"outcome": "cancelled"}
                held.settled_at = study.database_time
                access.save(principal, held, "state", "settlement", "settled_at")
                actions.conclude(
                    principal,
                    study,
                    "lease.settle",
                    f"trial/{held.trial.number}",
                    {"lease": str(held.id)},
                    slot_freed=True,
                )
    return grants


def _take_back(principal: Principal, study: Study, lease: Lease, outcome: Outcome) -> None:
    """Hold an expired lease again so that its late result counts, if the trial still waits for another agent."""
    if outcome not in ("completed", "infeasible") or not _is_untouched(lease):
        raise Conflict("lease_lost", f"Lease {lease.id} expired, and its trial was given to another agent or ended.")
    check_step("lease", LeaseState.EXPIRED, LeaseState.SETTLED)
    _return_trial(principal, study, lease)


def _is_untouched(lease: Lease) -> bool:
    """Whether the trial of an expired lease still waits for another agent."""
    return lease.trial.state == TrialState.REQUESTED and lease.trial.attempt == lease.attempt + 1


def _return_trial(principal: Principal, study: Study, lease: Lease) -> None:
    """Give an expired lease its trial back, with the attempt that this had seemed to cost."""
    trial = lease.trial
    trial.attempt = lease.attempt
    trial.agent, trial.node = lease.agent.name, lease.node
    actions.step_trial(principal, study, trial, TrialState.ACTIVE)


def _apply(
    principal: Principal,
    study: Study,
    trial: Trial,
    outcome: Outcome,
    measured: Mapping[str, float],
    reason: str,
) -> None:
    if outcome == "completed":
        report.finish(principal, study, trial, TrialState.COMPLETED, metrics=measured, reason=reason)
    elif outcome == "infeasible":
        report.finish(principal, study, trial, TrialState.INFEASIBLE, reason=reason)
    else:
        # Given back without a run it is not the trial's loss; a failure or an agent's own cancellation is counted.
        report.try_again(principal, study, trial, reason, counted=outcome != "released")


def _describe(study: Study, lease: Lease, measured_on: Sequence[str]) -> Grant:
    spec = spec_of(study)
    assert spec.execution is not None
    return Grant(
        lease=str(lease.id),
        tenant=tenants.slug_of(study.tenant_id),
        study=study.name,
        trial=lease.trial.number,
        attempt=lease.attempt,
        component=study.component,
        digest=study.digest,
        application=study.application,
        params=lease.trial.params,
        metrics=spec.problem.needed_metrics,
        trial_timeout_seconds=spec.execution.trial_timeout_seconds,
        placement=spec.execution.placement,
        measured_on=measured_on if spec.execution.placement.spread else (),
    )


def _find(principal: Principal, agent: Agent, lease: str) -> Lease:
    lease_id = _uuid(lease)
    found = [] if lease_id is None else _select_lease(principal, lease_id, agent.pk)
    if not found:
        raise Conflict("lease_lost", f"Agent {agent.agent_id!r} has no lease {lease!r}.")
    return found[0]


def _read(principal: Principal, agent: Agent, lease: Lease) -> Lease:
    """The lease as it is now, with its trial. Its study's lock keeps its state. Raises NotFound."""
    found, trials = _select_lease(principal, lease.id, agent.pk), _select_trial(principal, lease.trial_id)
    if not found or not trials:
        raise NotFound("lease_not_found", "The lease was deleted together with its study.")
    found[0].trial, found[0].agent = trials[0], agent
    return found[0]


def _lock(principal: Principal, lease_id: UUID) -> Lease:
    """A lease whose study is locked already. Raises NotFound."""
    try:
        return (
            access.rows(Lease, principal)
            .select_for_update(of=("self",))
            .select_related("trial", "agent")
            .get(id=lease_id)
        )
    except Lease.DoesNotExist:
        raise NotFound("lease_not_found", "The lease was deleted together with its study.") from None


def _expect_held(lease: Lease) -> None:
    if lease.state != LeaseState.HELD:
        raise Conflict("lease_lost", f"Lease {lease.id} is {lease.state}.")


def _outcome(lease: Lease) -> str:
    return str((lease.settlement or {}).get("outcome", "unknown"))


def _text(text: str, longest: int | None = None) -> str:
    """As much of what an agent says as is kept; PostgreSQL keeps no NUL."""
    return text.replace("\0", "")[:longest]


def _lease_time() -> timedelta:
    return timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
