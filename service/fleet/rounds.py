"""The agent of a round of a final check: it runs all trials of the round, one after the other, if possible on one node.

A round of an agent that is gone is void for all of its trials, and a new one begins, so that nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from service.core.lifecycle import LeaseState, StudyState, TrialState
from service.core.reasons import Reason
from service.fleet import spreading
from service.fleet.components import misfit
from service.fleet.leases import lease_time
from service.fleet.models import Agent, Lease
from service.studies import actions
from service.studies.change import Work
from service.studies.models import Trial
from service.tenancy import access
from service.trials import ending
from service.trials.topup import top_up

_GONE = Reason("The agent that has begun its round of the final check is gone.", "round_agent_gone")
# An agent that runs no trial of a round that it has begun for so long is busy with other work.
_PATIENCE = timedelta(minutes=10)
# The latest trials and leases of a check that are looked at.
_MOST_LOOKED = 500


@dataclass(frozen=True, slots=True)
class _Begun:
    """The agent that has begun a round. `idle`: since when it has run no trial of it; None while it runs one."""

    agent: int
    idle: datetime | None


def offered(work: Work, agent: Agent, count: int) -> list[Trial]:
    """Return up to `count` waiting trials of a study that this agent may have now.

    Of a final check, that is the next trial of the round that it has begun, or the first one of a round that nobody has
    begun, while few enough agents take part.
    """
    study = work.study
    if study.final_check is None and work.spec.stability is not None:
        return spreading.spread(work, agent, actions.waiting_trials(work, study.requested_count))[:count]
    if study.final_check is None:
        return actions.waiting_trials(work, count)
    waiting = actions.waiting_trials(work, study.requested_count)
    in_rounds = [trial for trial in waiting if trial.round is not None]
    if not in_rounds:
        return waiting[:count]
    begun = _begun(work)
    others = {one.agent for one in begun.values() if one.agent != agent.pk and not _is_idle(work, one)}
    able = _able(work, others)
    lost = [trial for trial in in_rounds if _is_lost(work, begun.get(trial.round or 0), agent, able)]
    if lost:
        _void(work, lost)
        return offered(work, agent, count) if study.state == StudyState.ACTIVE else []
    return [*_next(work, agent, in_rounds, begun, able), *(one for one in waiting if one.round is None)][:count]


def node_for(work: Work, trial: Trial, agent: Agent) -> str:
    """Return the node on which a trial of a final check should run; empty for any node.

    It is the node of its round. A new round has a node of the agent's earlier ones, unless another round is there.
    """
    ran = _checks(work).filter(agent=agent.name).exclude(node="").exclude(pk=trial.pk)
    nodes = list(ran.order_by("-number").values_list("round", "node")[:_MOST_LOOKED])
    same = [node for number, node in nodes if number is not None and number == trial.round]
    waiting = _checks(work).filter(state__in=actions.OPEN_STATES)
    taken = _taken(work, set(waiting.values_list("round", flat=True)))
    known = [*(node for _, node in nodes), *_nodes(work, agent.name)]
    return next(iter([*same, *(node for node in known if node not in taken)]), "")


def _next(
    work: Work, agent: Agent, waiting: Sequence[Trial], begun: Mapping[int, _Begun], able: Set[int]
) -> list[Trial]:
    """Return the trial of a round that the agent may have now, if there is one."""
    owners = {number: one.agent for number, one in begun.items()}
    active = _running(work).values_list("round", "agent", "node")
    free = [trial for trial in waiting if trial.round not in {number for number, *_ in active}]
    mine = [trial for trial in free if owners.get(trial.round or 0) == agent.pk]
    if mine:
        return mine[:1]
    # Rounds on one node would disturb each other, also those of two agents there. An agent of a cluster runs rounds on
    # several nodes at once, but must know where each of them is.
    own = [node for _, name, node in active if name == agent.name]
    nodes = _nodes(work, agent.name)
    taken = _taken(work, {trial.round for trial in waiting} | {number for number, *_ in active})
    room = "" not in own and (bool(set(nodes) - taken) if nodes else not own)
    may = room and _others(work, agent, begun, able) + len(own) < ending.most_agents(work)
    return [trial for trial in free if trial.round not in begun][:1] if may else []


def _others(work: Work, agent: Agent, begun: Mapping[int, _Begun], able: Set[int]) -> int:
    """Return how many other agents take part in the check.

    If more agents than may have taken part, those that have done so last go on.
    """
    last: dict[int, datetime] = {}
    for one in begun.values():
        if one.agent in able or (one.agent == agent.pk and not _is_idle(work, one)):
            last[one.agent] = max(one.idle or work.time, last.get(one.agent, one.idle or work.time))
    latest = sorted(last, key=lambda one: last[one], reverse=True)[: ending.most_agents(work)]
    return sum(one != agent.pk for one in latest)


def _is_lost(work: Work, begun: _Begun | None, agent: Agent, able: Set[int]) -> bool:
    """Return whether a round will not go on: its agent cannot take the next trial, or has been busy for too long."""
    if begun is None or begun.agent == agent.pk:
        return False
    return begun.agent not in able or _is_idle(work, begun)


def _is_idle(work: Work, begun: _Begun) -> bool:
    return begun.idle is not None and begun.idle < work.time - _PATIENCE


def _begun(work: Work) -> dict[int, _Begun]:
    """Return the rounds that have begun, by number."""
    leases = _leases(work).order_by("-granted_at")
    values = leases.values_list("trial__round", "agent_id", "state", "settlement", "settled_at", "expires_at")
    # An agent that has given a trial back without a run has not begun the round.
    return {
        number: _Begun(agent, None if state == LeaseState.HELD else settled or expired)
        for number, agent, state, settlement, settled, expired in reversed(values[:_MOST_LOOKED])
        if number is not None and (settlement or {}).get("outcome") != "released"
    }


def _able(work: Work, agents: Set[int]) -> set[int]:
    """Return which of these agents can take the next trial of a study."""
    study = work.study
    known = access.rows(Agent, work.principal).filter(
        pk__in=agents, draining=False, last_seen_at__gt=work.time - lease_time()
    )
    return {one.pk for one in known if not misfit(one, study.component, study.digest, study.application)}


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


def _running(work: Work) -> QuerySet[Trial]:
    """Return the trials of its rounds that run now."""
    return _checks(work).filter(state=TrialState.ACTIVE, round__isnull=False)


def _taken(work: Work, rounds: Set[int | None]) -> set[str]:
    """Return the nodes of these rounds. An agent that has just got a trial is on its only node, if it has only one."""
    ran = _checks(work).filter(round__in=[one for one in rounds if one is not None])
    places = set(ran.values_list("agent", "node"))
    starting = [_nodes(work, agent) for agent, node in places if agent and not node]
    return {node for _, node in places if node} | {nodes[0] for nodes in starting if len(nodes) == 1}


def _nodes(work: Work, agent: str) -> list[str]:
    """Return the nodes on which an agent has run trials of the study."""
    ran = access.rows(Trial, work.principal).filter(study_id=work.study.pk, agent=agent).exclude(node="")
    return sorted(ran.values_list("node", flat=True).distinct())


def _leases(work: Work) -> QuerySet[Lease]:
    """Return the leases of the trials of its rounds."""
    trials = _checks(work).filter(round__isnull=False)
    return access.rows(Lease, work.principal).filter(study_id=work.study.pk, trial__in=trials)
