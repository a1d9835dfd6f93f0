"""Grants of trials to agents. A grant is repeated if its answer was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from service.core.errors import InvalidInput, shorten
from service.core.lifecycle import LeaseState, StudyState, TrialState
from service.core.space import Configuration
from service.fleet import agents, rounds
from service.fleet.leases import is_untouched, lease_time, lock_lease, to_id
from service.fleet.models import Agent, Lease
from service.live import leases as live_leases
from service.live import permission, plans, system
from service.live.models import Plan, PlanState
from service.live.permission import Permission
from service.live.system import Offered
from service.studies import actions
from service.studies.change import Deleted, Work, changing
from service.studies.isolated import isolated
from service.studies.models import Study, Trial
from service.studies.specs import Placement
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert
from service.trials import rollouts

MOST_GRANTS = 1000
# What a component may say about injected delays and contention: the number of parts, and characters of each.
_MOST_INJECTED, _LONGEST_INJECTED = 20, 200
# The number of studies that one call considers. The next call continues with those that have waited longest.
_MOST_CANDIDATES = 100
# The share of the seconds of CPU of a call that one study may use.
_SHARE = 0.25

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
    # The plan of a live trial (the fields of LivePlan); None for other trials.
    live: Mapping[str, Any] | None = None


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
        part = partial(_grant, principal, agent, study_id, share)
        granted = isolated(part, principal.tenant_id, study_id, seconds=_SHARE * settings.TRIMTAB_REQUEST_CPU_SECONDS)
        if granted is None:
            # The next call begins with the others.
            access.rows(Study, principal).filter(pk=study_id).update(last_granted_at=Now())
            continue
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
        if study.state != StudyState.ACTIVE or free <= 0 or not system.has_instances(work.spec):
            return []
        trials = rounds.offered(work, agent, free)
        is_live = work.spec.live is not None
        permitted = _permitted(work, agent, trials) if trials and is_live else None
        if is_live:
            trials = trials[:1] if permitted is not None and permitted.may_begin else []
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
        if permitted is not None:
            begun = live_leases.begin(work, trials[0], str(leases[0].id), *permitted.grounds)
            # The seed stays secret until the result. Its commitment shows that it was drawn before.
            work.detail = {**work.detail, "commitment": begun.commitment}
        return [_describe(work, agent, lease, lease.trial.measured_on) for lease in leases]
    return []


@dataclass(frozen=True, slots=True)
class _Permitted:
    """The permission of the next trial of a live study to begin, and its grounds."""

    grounds: tuple[Plan, Permission, Offered]

    @property
    def may_begin(self) -> bool:
        return not self.grounds[1].reason


def _permitted(work: Work, agent: Agent, trials: Sequence[Trial]) -> _Permitted | None:
    """Look at the plan of the next trial of a live study. One that may not begin gets the reason; None: no plan."""
    trial = trials[0]
    offered = Offered.of(agent.components, work.study.component)
    if not rollouts.is_wanted(work.study, trial):
        plans.withdraw(work, trial, rollouts.NOT_WANTED)
        return None
    plan = plans.ensure(work, trial, offered)
    if plan.state in (PlanState.DECLINED, PlanState.EXPIRED):
        plans.replace(work, trial, plan)
        return _Permitted((plan, Permission("its plan was replaced"), offered))
    found = permission.look(work, plan, offered)
    if found.reason and trial.reason != found.reason:
        trial.explain(found.reason)
        actions.touch_trial(work, trial, "reason", "reason_data")
    return _Permitted((plan, found, offered))


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
    parts = [(partial(_repeat, principal, agent, lease), lease.study_id) for lease in unheard]
    repeated = [isolated(part, principal.tenant_id, study_id) for part, study_id in parts]
    return [grant for grant in repeated if grant is not None]


def _repeat(principal: Principal, agent: Agent, lease: Lease) -> Grant | None:
    with suppress(Deleted), changing(principal, lease.study_id, "lease.settle") as work:
        held = lock_lease(work, lease.id)
        if held.state != LeaseState.HELD:
            return None
        if held.trial.state == TrialState.ACTIVE:
            held.expires_at = work.time + lease_time()
            access.save(principal, held, "expires_at")
            return _describe(work, agent, held, actions.measured_on(principal, held.trial))
        work.revise()
        work.target, work.detail = f"trial/{held.trial.number}", {"lease": str(held.id)}
        work.slot_freed = True
        held.state = LeaseState.SETTLED
        held.settlement = {"outcome": "cancelled"}
        held.settled_at = work.time
        access.save(principal, held, "state", "settlement", "settled_at")
    return None


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
        live=None if spec.live is None else live_leases.told(work, str(lease.id)),
    )
