"""The agent of a round of a final check: it runs all trials of the round, one after the other, if possible on one node.

A round of an agent that is gone is void for all of its trials, and a new one begins, so that nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from service.core.lifecycle import LeaseState, StudyState, TrialState
from service.core.reasons import Reason
from service.fleet.components import misfit
from service.fleet.leases import lease_time
from service.fleet.models import Agent, Lease
from service.studies import actions
from service.studies.change import Work
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending
from service.trials.topup import top_up

_GONE = Reason("The agent that has begun its round of the final check is gone.", "round_agent_gone")
# The latest trials among which the node of a round is looked for.
_MOST_LOOKED = 100


def offered(work: Work, agent: Agent, count: int) -> list[Trial]:
    """Return up to `count` waiting trials of a study that this agent may have now.

    Of a final check, that is the next trial of the round that it has begun, or the first one of a round that nobody has
    begun, while few enough agents take part.
    """
    study = work.study
    if study.final_check is None:
        return actions.waiting_trials(work, count)
    waiting = actions.waiting_trials(work, study.requested_count)
    if all(trial.round is None for trial in waiting):
        return waiting[:count]
    owners = _owners(work, [trial for trial in waiting if trial.round is not None])
    others = {owner for owner in owners.values() if owner is not None and owner != agent.pk}
    if lost := others - _able(work.principal, study, others, work.time):
        _void(work, [trial for trial in waiting if trial.round is not None and owners[trial.round] in lost])
        return offered(work, agent, count) if study.state == StudyState.ACTIVE else []
    free = [trial for trial in waiting if trial.round is None]
    return [*_next(work, agent, waiting, owners), *free][:count]


def node_for(work: Work, trial: Trial, agent: Agent) -> str:
    """Return the node on which a trial of a final check should run: that of its round, or of the agent's last trial."""
    ran = _checks(work).filter(agent=agent.name).exclude(node="").exclude(pk=trial.pk)
    nodes = list(ran.order_by("-number").values_list("round", "node")[:_MOST_LOOKED])
    same = [node for number, node in nodes if number is not None and number == trial.round]
    return next(iter([*same, *(node for _, node in nodes)]), "")


def _next(work: Work, agent: Agent, waiting: Sequence[Trial], owners: dict[int, int | None]) -> list[Trial]:
    """Return the trial of a round that the agent may have now, if there is one."""
    running = _checks(work).filter(state=TrialState.ACTIVE, round__isnull=False)
    busy = set(running.values_list("round", flat=True))
    mine = [trial for trial in waiting if trial.round is not None and owners[trial.round] == agent.pk]
    if mine:
        return [trial for trial in mine if trial.round not in busy][:1]
    held = access.rows(Lease, work.principal).filter(
        agent_id=agent.pk, state=LeaseState.HELD, study_id=work.study.pk, trial__round__isnull=False
    )
    new = [trial for trial in waiting if trial.round is not None and owners[trial.round] is None]
    fresh = [trial for trial in new if trial.round not in busy]
    return fresh[:1] if fresh and not held.exists() and _may_take_part(work, agent) else []


def _may_take_part(work: Work, agent: Agent) -> bool:
    """Return whether few enough other agents take part in the final check, so that each has enough rounds."""
    leases = _leases(work).exclude(agent_id=agent.pk)
    others = set(leases.values_list("agent_id", flat=True))
    able = _able(work.principal, work.study, others, work.time)
    return len(able) < ending.most_agents(work)


def _owners(work: Work, waiting: Sequence[Trial]) -> dict[int, int | None]:
    """Return the agent that has begun the round of each of these trials; None if no one has."""
    rounds = {trial.round for trial in waiting if trial.round is not None}
    leases = _leases(work).filter(trial__round__in=rounds).order_by("granted_at")
    # An agent that has given a trial back without a run has not begun the round.
    begun = {
        number: agent
        for number, agent, settlement in leases.values_list("trial__round", "agent_id", "settlement")
        if number is not None and (settlement or {}).get("outcome") != "released"
    }
    return {number: begun.get(number) for number in rounds}


def _void(work: Work, trials: Sequence[Trial]) -> None:
    """Withdraw the waiting trials of rounds whose agent is gone, and have other rounds begin."""
    actions.withdraw_waiting(work, [trial.number for trial in trials], _GONE)
    ending.after_result(work)
    top_up(work)


def _checks(work: Work) -> QuerySet[Trial]:
    """Return the trials of the final check that is under way."""
    check = work.study.final_check or {}
    return access.rows(Trial, work.principal).filter(
        study_id=work.study.pk, origin="check", number__gt=check.get("after", 0)
    )


def _leases(work: Work) -> QuerySet[Lease]:
    """Return the leases of the trials of its rounds."""
    trials = _checks(work).filter(round__isnull=False)
    return access.rows(Lease, work.principal).filter(study_id=work.study.pk, trial__in=trials)


def _able(principal: Principal, study: Study, agents: set[int], time: datetime) -> set[int]:
    """Return which of these agents can take the next trial of a study."""
    known = access.rows(Agent, principal).filter(pk__in=agents, draining=False, last_seen_at__gt=time - lease_time())
    return {one.pk for one in known if not misfit(one, study.component, study.digest, study.application)}
