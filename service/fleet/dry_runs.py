"""Dry runs: agents answer what they would run for a configuration, and run nothing.

Only an agent can answer, because the service knows just the values of parameters. The question stays in a row until an
agent has answered it. Agents receive it in the reply to a heartbeat, and a notification makes the service reply at
once. Each agent that offers the component may answer, and the first answer counts. So a lost message costs only time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from django.db.models import F
from django.db.models.functions import Now

from service.core.errors import InvalidInput, JsonValue
from service.core.space import Configuration
from service.fleet import agents, selectors
from service.fleet.components import misfit, obstacle
from service.fleet.grants import Grant
from service.fleet.leases import plain
from service.fleet.models import Agent, DryRun
from service.fleet.offers import check_offer
from service.fleet.runs import check_invocation
from service.planning.component_check import places_of
from service.planning.plan import first_configurations
from service.planning.warm_start import warm_start
from service.studies import listen_notify
from service.studies.specs import Placement, parse
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.tenancy.statements import Select
from service.trials.method import completed

# How long the service waits for an answer, how long an answer is valid, and how long rows are kept.
PATIENCE = timedelta(seconds=15)
FRESH = timedelta(seconds=60)
KEPT = timedelta(minutes=10)
# The most questions in one reply to a heartbeat.
_MOST = 10
_REFUSAL_LENGTH = 2000

_select_open = Select(
    DryRun,
    f"answered_at IS NULL AND asked_at > statement_timestamp() - interval '{PATIENCE.total_seconds()} seconds'",
    ending=f"ORDER BY asked_at LIMIT {_MOST}",
)


class State(StrEnum):
    """The state of a dry run."""

    WAITING = "waiting"
    ANSWERED = "answered"
    # No agent has answered in time, or no agent can answer.
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer to a dry run.

    `trials` holds the configurations, each with its `invocation` or `refusal` once there is an answer. `message` says,
    for people, why there is no answer.
    """

    state: State
    message: str
    agent: str
    trials: Sequence[Mapping[str, Any]]


def ask(principal: Principal, spec: object, study: str = "") -> Shown:
    """Return what agents would run for the first trials of a study. Call it again while it is WAITING.

    The same question shares one row, so it returns the present answer or joins the wait for it. Raises InvalidInput as
    the creation of the study would, and for a study that does not run on agents.
    """
    found = completed(parse(spec))
    execution = found.execution
    if execution is None:
        raise InvalidInput("spec.execution", None, "a component, because agents run only components")
    check_offer(principal, found, places_of(found))
    first = first_configurations(found, warm_start(principal, found, may_lag=True))
    if not first:
        # Only a worker can compute the first configurations.
        return _bare(State.ANSWERED, "", first)
    named = execution.component, execution.digest, execution.application
    able = [agent for agent in selectors.list_agents(principal) if not obstacle(agent, *named)]
    if not able:
        return _bare(State.UNANSWERED, f"No agent that can run component {execution.component!r} is connected.", first)
    question: dict[str, JsonValue] = {
        "study": study,
        "component": execution.component,
        "digest": execution.digest,
        "application": execution.application,
        "metrics": list(found.problem.needed_metrics),
        "trial_timeout_seconds": execution.trial_timeout_seconds,
        "exclusive": execution.placement.exclusive,
        "spread": execution.placement.spread,
        "trials": [dict(one) for one in first],
    }
    row, waited = _open(principal, question, able)
    if row.answer is not None:
        trials = [{"params": params, **reply} for params, reply in zip(first, row.answer, strict=True)]
        return Shown(State.ANSWERED, "", row.agent, trials)
    if waited < PATIENCE:
        return _bare(State.WAITING, "", first)
    names = ", ".join(agent.name for agent in able[:5])
    seconds = f"{PATIENCE.total_seconds():.0f} s"
    message = (
        f"No agent has answered within {seconds} ({names}). Agents of an earlier version of Trimtab do not answer."
    )
    return _bare(State.UNANSWERED, message, first)


def waiting(principal: Principal, agent_id: str) -> list[tuple[UUID, list[Grant]]]:
    """Return the questions that this agent can answer, each with its trials in the form of a lease."""
    found = _select_open(principal)
    if not found:
        return []
    agent = agents.known(principal, agent_id)
    asked = []
    for row in found:
        question = row.question
        if not misfit(agent, question["component"], question["digest"], question["application"]):
            asked.append((row.id, _trials(principal, question)))
    return asked


def answer(
    principal: Principal, *, agent_id: str, dry_run: str, trials: Sequence[tuple[dict[str, JsonValue] | None, str]]
) -> None:
    """Store the answer of an agent: an invocation or a refusal for each trial. The first answer counts.

    Raises InvalidInput, NotFound (`unknown_agent`).
    """
    agent = agents.known(principal, agent_id)
    answers: list[JsonValue] = [
        {"invocation": invocation, "refusal": plain(refusal, _REFUSAL_LENGTH)} for invocation, refusal in trials
    ]
    for index, (invocation, refusal) in enumerate(trials):
        if (invocation is None) != bool(refusal):
            raise InvalidInput(f"trials[{index}]", refusal, "either an invocation or a refusal")
        check_invocation(f"trials[{index}].invocation", invocation)
    try:
        key = UUID(dry_run)
    except ValueError:
        raise InvalidInput("id", dry_run, "the id of a dry run") from None
    row = access.rows(DryRun, principal).filter(pk=key).first()
    if row is None or row.answer is not None:
        # The row has expired or has an answer.
        return
    if len(answers) != len(row.question["trials"]):
        raise InvalidInput(
            "trials", f"{len(answers)} of them", f"one answer for each of the {len(row.question['trials'])} trials"
        )
    still_open = access.rows(DryRun, principal).filter(pk=key, answered_at__isnull=True)
    still_open.update(answer=answers, agent=agent.name, answered_at=Now())


def _open(principal: Principal, question: Mapping[str, JsonValue], able: Sequence[Agent]) -> tuple[DryRun, timedelta]:
    """Return the question's row and how long it has waited. Ask again if its answer or its wait is too old."""
    # Another version of the component may answer differently, so the versions are part of the key.
    versions = sorted(
        {one["digest"] for agent in able for one in agent.components if one["name"] == question["component"]}
    )
    key = hashlib.sha256(json.dumps([question, versions], sort_keys=True).encode()).hexdigest()
    with access.work(principal):
        new = DryRun(id=uuid4(), key=key, question=dict(question))
        access.rows(DryRun, principal).filter(asked_at__lt=Now() - KEPT).delete()
        access.add_missing(principal, new)
        own = access.rows(DryRun, principal).filter(key=key)
        row = own.select_for_update().annotate(waited=Now() - F("asked_at"), age=Now() - F("answered_at")).get()
        waited: timedelta = row.waited
        age: timedelta | None = row.age
        if age > FRESH if age is not None else waited > 2 * PATIENCE:
            own.update(asked_at=Now(), answered_at=None, answer=None, agent="")
            row.answer, waited = None, timedelta()
            listen_notify.notify_agents(principal)
        elif row.id == new.id:
            listen_notify.notify_agents(principal)
    return row, waited


def _trials(principal: Principal, question: Mapping[str, Any]) -> list[Grant]:
    return [
        Grant(
            lease="",
            tenant=tenants.slug_of(principal.tenant_id),
            study=question["study"],
            trial=number,
            attempt=1,
            component=question["component"],
            digest=question["digest"],
            application=question["application"],
            params=params,
            metrics=tuple(question["metrics"]),
            trial_timeout_seconds=question["trial_timeout_seconds"],
            placement=Placement(exclusive=question["exclusive"], spread=question["spread"]),
            measured_on=(),
        )
        for number, params in enumerate(question["trials"], 1)
    ]


def _bare(state: State, message: str, first: Sequence[Configuration]) -> Shown:
    return Shown(state, message, "", [{"params": params, "invocation": None, "refusal": ""} for params in first])
