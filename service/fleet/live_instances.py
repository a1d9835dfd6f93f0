"""Instances of live systems: what agents report of them, and requests to put the old settings back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models.functions import Now

from service.core.errors import InvalidInput
from service.core.live_instances import IDLE, KEPT, STATES, STOPPED, STUCK, Instance, InstanceStatus
from service.core.reasons import Reason
from service.fleet import agents
from service.fleet.leases import to_id
from service.fleet.models import Agent, Lease, LiveInstance
from service.live import taken_back
from service.notices import notices
from service.notices.models import Kind
from service.studies.models import Study
from service.tenancy import access
from service.tenancy.principal import Principal

# The most instances in a report, and of a study.
MOST_INSTANCES = 100
_MOST_SHOWN = 100
# The states in which no settings of a trial are in force.
_FREE = (IDLE, STOPPED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An instance where the settings before the first trial are wanted."""

    component: str
    instance: str
    reason: str


def report(principal: Principal, *, agent_id: str, instances: Sequence[Instance]) -> list[Wanted]:
    """Store what an agent has seen of all its instances, and return those where it must put the old settings back.

    Raises InvalidInput, NotFound (`unknown_agent`).
    """
    if len(instances) > MOST_INSTANCES:
        raise InvalidInput("instances", f"{len(instances)} instances", f"at most {MOST_INSTANCES}")
    for index, one in enumerate(instances):
        if one.state not in STATES:
            raise InvalidInput(f"instances[{index}].state", one.state, ", ".join(STATES))
    agent = agents.known(principal, agent_id)
    trials = _trials(principal, agent, instances)
    wanted: list[Wanted] = []
    # The studies of instances where nothing of a trial is in force, with the reason.
    free: dict[int, str] = {}
    with access.work(principal):
        # The agent's row is locked, so that two reports of one agent run one after the other.
        access.rows(Agent, principal).select_for_update().filter(pk=agent.pk).values_list("pk").first()
        own = access.rows(LiveInstance, principal).filter(agent_id=agent.pk)
        rows = {(row.component, row.name): row for row in own.select_related("study").defer("study__spec")}
        for one in {(one.component, one.instance): one for one in instances}.values():
            row = rows.pop((one.component, one.instance), None)
            row = row or LiveInstance(agent_id=agent.pk, component=one.component, name=one.instance)
            if one.lease in trials:
                row.study_id, row.trial = trials[one.lease]
            if one.state in _FREE:
                row.trial, row.revert_at, row.revert_reason = None, None, ""
                if row.study_id is not None:
                    free[row.study_id] = one.reason
            elif row.revert_at is not None:
                wanted.append(Wanted(one.component, one.instance, row.revert_reason))
            if one.state == STUCK and row.state == KEPT and row.study is not None:
                # The end of a trial has a notice of its own.
                text = f"{one.instance}: {one.reason}"
                why = Reason(text, "live_instance_stuck", instance=one.instance, reason=one.reason)
                notices.add(principal, Kind.LIVE_STUCK, study=row.study.name, reason=why)
            row.state, row.report, row.seen_at = one.state, one.to_json(), agent.database_time
            if row.pk is None:
                access.add(principal, row)
            else:
                fields = ("study", "trial", "state", "report", "seen_at", "revert_at", "revert_reason")
                access.save(principal, row, *fields)
        if rows:
            own.filter(pk__in=[row.pk for row in rows.values()]).delete()
    for study_id, reason in free.items():
        others = access.rows(LiveInstance, principal).filter(study_id=study_id).exclude(state__in=_FREE)
        if not others.exists():
            taken_back.note(principal, study_id, reason)
    return wanted


def of_study(principal: Principal, study: Study) -> list[InstanceStatus]:
    """Return the instances that agents have switched for a study."""
    return of_studies(principal, [study.pk])


def of_studies(principal: Principal, ids: Sequence[int]) -> list[InstanceStatus]:
    """Return the instances that agents have switched for studies."""
    rows = access.rows(LiveInstance, principal).filter(study_id__in=ids).select_related("agent", "study")
    return [
        InstanceStatus(
            seen=Instance.from_json(row.report),
            agent=row.agent.name,
            seen_at=row.seen_at,
            study="" if row.study is None else row.study.name,
            trial=row.trial,
            revert_at=row.revert_at,
        )
        for row in rows.order_by("component", "name", "agent__name", "pk")[:_MOST_SHOWN]
    ]


def ask_revert(principal: Principal, study: Study, reason: str) -> int:
    """Ask the agents of a study to put the settings before its first trial back; return on how many instances.

    An agent is told with the answer to its next report, which follows within a second or two while settings of a trial
    may be in force there.
    """
    in_force = access.rows(LiveInstance, principal).filter(study_id=study.pk).exclude(state__in=_FREE)
    return in_force.filter(revert_at=None).update(revert_at=Now(), revert_reason=reason)


def _trials(principal: Principal, agent: Agent, instances: Sequence[Instance]) -> dict[str, tuple[int, int]]:
    """Return the study and the trial's number of each lease that a report names and that is the agent's."""
    ids = {one.lease: lease for one in instances if (lease := to_id(one.lease)) is not None}
    if not ids:
        return {}
    leases = access.rows(Lease, principal).filter(agent_id=agent.pk, id__in=ids.values())
    found = {key: (study, number) for key, study, number in leases.values_list("id", "study_id", "trial__number")}
    return {text: found[lease] for text, lease in ids.items() if lease in found}
