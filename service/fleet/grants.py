"""Grants of trials to agents. A grant is repeated if its answer was lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from django.db.models import F, Q

from service.core.errors import InvalidInput, shorten
from service.core.lifecycle import LeaseState, StudyState, TrialState
from service.core.space import Configuration
from service.fleet import agents, rounds
from service.fleet.leases import is_untouched, lease_time, lock_lease, to_id
from service.fleet.models import Agent, Lease
from service.studies import actions
from service.studies.change import Deleted, Work, changing
from service.studies.models import Study
from service.studies.specs import Placement
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert

MOST_GRANTS = 1000
# What a component may say about injected delays and contention: the number of parts, and characters of each.
_MOST_INJECTED, _LONGEST_INJECTED = 20, 200
# The number of studies that one call considers. The next call continues with those that have waited longest.
_MOST_CANDIDATES = 100

_insert_leases = Insert(Lease)


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
    # The node on which the trial should run, for a trial of a final check; empty: any node.
    same_node: str = ""
    # The span that made the trial; empty while traces are off, and in a dry run.
    traceparent: str = ""


def acquire(principal: Principal, *, agent_id: str, count: int, held: Sequence[str] = ()) -> list[Grant]:
    """Grant up to `count` trials that wait for an agent like this one; none when there is no work now.

    Leases granted to it before and not listed in `held` come first: the answer was lost. While it holds an
    expired lease, it counts as silent and gets nothing. Studies take turns, and the one that has waited longest is
    first. With a count of 0, only grants whose answer was lost are returned.

    Raises InvalidInput, NotFound (`unknown_agent`).
    """
    if not 0 <= count <= MOST_GRANTS:
        raise InvalidInput("count", count, f"0 to {MOST_GRANTS}")
    agent = agents.known(principal, agent_id)
    agents.seen(principal, agent)
    own = [lease_id for lease_id in map(to_id, held) if lease_id is not None]
    open_leases = list(
        access.rows(Lease, principal)
        .filter(Q(state=LeaseState.HELD) | Q(state=LeaseState.EXPIRED, id__in=own), agent_id=agent.pk)
        .select_related("trial")
        .defer("invocation")
    )
    if any(lease.state == LeaseState.EXPIRED and is_untouched(lease) for lease in open_leases):
        # This call may be older than the agent's silence. Its heartbeat holds them again, or reports them as lost.
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
    """Lease up to `count` trials of one study, in one transaction, so that no call holds the locks of two studies."""
    with suppress(Deleted), changing(principal, study_id, "lease.grant", f"agent/{agent.agent_id}") as work:
        study = work.study
        free = min(count, (study.parallelism or 0) - study.active_count)
        if study.state != StudyState.ACTIVE or free <= 0:
            return []
        trials = rounds.offered(work, agent, free)
        if not trials or study.state != StudyState.ACTIVE:
            return []
        actions.start_trials(work, trials, agent=agent.name)
        _note_injected(work, agent)
        leases = [
            Lease(
                study_id=study.pk,
                trial=trial,
                agent=agent,
                attempt=trial.attempt,
                state=LeaseState.HELD,
                granted_at=work.time,
                expires_at=work.time + lease_time(),
            )
            for trial in trials
        ]
        _insert_leases(principal, leases)
        study.last_granted_at = work.time
        work.detail = {"trials": [trial.number for trial in trials]}
        return [_describe(work, agent, lease, lease.trial.measured_on) for lease in leases]
    return []


def _note_injected(work: Work, agent: Agent) -> None:
    """Add to a study what the component of an agent injects into the runs of its application."""
    study = work.study
    offered = next(one for one in agent.components if one["name"] == study.component)
    application = study.application or next(iter(offered.get("applications", ())), "")
    known = study.injected or []
    found = [
        {"text": shorten(one["text"], _LONGEST_INJECTED), "parameter": one["parameter"], "values": one["values"]}
        for one in offered.get("injected", ())
        if one["application"] in ("", application)
    ]
    if added := [one for one in found if one not in known]:
        study.injected = [*known, *added][:_MOST_INJECTED]
        access.save(work.principal, study, "injected")


def _grant_again(principal: Principal, agent: Agent, unheard: Sequence[Lease]) -> list[Grant]:
    """Repeat grants whose answer never arrived. Settle those whose trial was stopped in the meantime."""
    grants = []
    for lease in unheard:
        with suppress(Deleted), changing(principal, lease.study_id, "lease.settle") as work:
            held = lock_lease(work, lease.id)
            if held.state != LeaseState.HELD:
                continue
            if held.trial.state == TrialState.ACTIVE:
                held.expires_at = work.time + lease_time()
                access.save(principal, held, "expires_at")
                grants.append(_describe(work, agent, held, actions.measured_on(principal, held.trial)))
            else:
                work.revise()
                work.target, work.detail = f"trial/{held.trial.number}", {"lease": str(held.id)}
                work.slot_freed = True
                held.state = LeaseState.SETTLED
                held.settlement = {"outcome": "cancelled"}
                held.settled_at = work.time
                access.save(principal, held, "state", "settlement", "settled_at")
    return grants


def _describe(work: Work, agent: Agent, lease: Lease, measured_on: Sequence[str]) -> Grant:
    study, spec = work.study, work.spec
    assert spec.execution is not None
    placement, same_node = spec.execution.placement, ""
    if lease.trial.origin == "check":
        # The runs of a check are compared with each other on one node.
        placement, same_node = replace(placement, spread=False), rounds.node_for(work, lease.trial, agent)
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
        placement=placement,
        measured_on=measured_on if placement.spread else (),
        same_node=same_node,
        traceparent=lease.trial.traceparent,
    )
