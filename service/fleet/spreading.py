"""The agent and the time of a trial in a study with `stability:`.

A configuration is measured again on a node that has not measured it. A runner on a cluster chooses among its nodes by
`measured_on`; among agents, one with nodes that have all measured the configuration leaves the trial to another one.
With `stability.times`, trials of the last stage wait until so long after the first one of their configuration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from service.core.lifecycle import TrialState
from service.core.stability import Stability
from service.fleet.components import misfit
from service.fleet.leases import lease_time
from service.fleet.models import Agent
from service.studies.change import Work
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

# A trial that has waited so long for another node runs on any.
_PATIENCE = timedelta(minutes=10)
_RUN = (TrialState.ACTIVE, TrialState.COMPLETED)


@dataclass(slots=True)
class _Earlier:
    """The trials of a configuration: their numbers, the start of the first one, and their agents with nodes."""

    numbers: list[int] = field(default_factory=list)
    began: datetime | None = None
    places: set[tuple[str, str]] = field(default_factory=set)


def spread(work: Work, agent: Agent, waiting: Sequence[Trial]) -> list[Trial]:
    """Return the waiting trials of a study with `stability:` that this agent may have now, the most suitable first."""
    stability = work.spec.stability
    assert stability is not None
    earlier = _earlier(work.principal, work.study, {trial.key for trial in waiting})
    due = [
        trial for trial in waiting if (at := _due_at(stability, trial, earlier[trial.key])) is None or at <= work.time
    ]
    nodes = _nodes(work)
    own = nodes.get(agent.name, set())
    fresh = [trial for trial in due if not _has_met(earlier[trial.key], agent.name, own)]
    rest = [trial for trial in due if trial not in fresh]
    if rest:
        others = [one.name for one in _others(work, agent)]
        rest = [
            trial
            for trial in rest
            if work.time - trial.created_at > _PATIENCE
            or all(_has_met(earlier[trial.key], name, nodes.get(name, set())) for name in others)
        ]
    return [*fresh, *rest]


def due_at(principal: Principal, study: Study) -> datetime | None:
    """Return when the first waiting trial of a study may run, if all of them wait for `stability.times`."""
    stability = spec_of(study).stability
    if stability is None or stability.times is None:
        return None
    waiting = list(access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.REQUESTED))
    earlier = _earlier(principal, study, {trial.key for trial in waiting})
    times = [_due_at(stability, trial, earlier[trial.key]) for trial in waiting]
    found = [one for one in times if one is not None]
    return min(found) if found and len(found) == len(times) else None


def _due_at(stability: Stability, trial: Trial, earlier: _Earlier) -> datetime | None:
    """Return when a trial may run if it is of the last stage; None for all others."""
    if stability.times is None or trial.origin != "replicate" or earlier.began is None:
        return None
    before = sum(number < trial.number for number in earlier.numbers)
    is_last = before >= (stability.nodes[-2] if len(stability.nodes) > 1 else 1)
    return earlier.began + timedelta(seconds=stability.times) if is_last else None


def _earlier(principal: Principal, study: Study, keys: set[str]) -> Mapping[str, _Earlier]:
    found = {key: _Earlier() for key in keys}
    rows = access.rows(Trial, principal).filter(study_id=study.pk, key__in=keys).exclude(state=TrialState.FAILED)
    for key, number, state, agent, node, started in rows.values_list(
        "key", "number", "state", "agent", "node", "started_at"
    ):
        one = found[key]
        one.numbers.append(number)
        if state in _RUN:
            one.places.add((agent, node))
            if started is not None and (one.began is None or started < one.began):
                one.began = started
    return found


def _has_met(earlier: _Earlier, agent: str, nodes: set[str]) -> bool:
    """Return whether a configuration has been measured on all nodes of an agent, as far as they are known."""
    mine = {node for name, node in earlier.places if name == agent}
    # A trial that has just been given out has no node yet.
    return bool(mine) and nodes <= mine | (nodes if "" in mine and len(nodes) == 1 else set())


def _nodes(work: Work) -> dict[str, set[str]]:
    """Return the nodes on which each agent has run trials of the study."""
    ran = access.rows(Trial, work.principal).filter(study_id=work.study.pk).exclude(node="")
    found: dict[str, set[str]] = {}
    for agent, node in ran.values_list("agent", "node").distinct():
        found.setdefault(agent, set()).add(node)
    return found


def _others(work: Work, agent: Agent) -> list[Agent]:
    """Return the other agents that can take a trial of the study."""
    study = work.study
    online = access.rows(Agent, work.principal).filter(draining=False, last_seen_at__gt=work.time - lease_time())
    return [
        one for one in online.exclude(pk=agent.pk) if not misfit(one, study.component, study.digest, study.application)
    ]
