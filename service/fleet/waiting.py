"""The reasons why trials wait (no online agent offers what they need, or all that do are busy), and their queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import partial

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from service.core.errors import JsonValue
from service.core.lifecycle import LeaseState, StudyState, TrialState
from service.core.reasons import Reason, joined, restored
from service.fleet import spreading
from service.fleet.components import misfit
from service.fleet.models import Agent, Lease
from service.live import job_studies, permission, plans
from service.live.system import Offered, has_instances, is_live
from service.studies import actions
from service.studies.change import Deleted, changing, read
from service.studies.isolated import isolated
from service.studies.models import Study, Trial
from service.studies.selectors import NO_AGENT, TURN
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

# The number of studies in one sweep, latest change first, and the number of trials explained in each study.
_MOST_STUDIES = 200
_MOST_TRIALS = 100
# The reason of a trial that has waited for this many seconds names the busy agents. A shorter wait is normal.
_USUAL_WAIT = timedelta(seconds=10)
# The number of names in such a reason.
_MOST_NAMES = 3
# The number of studies among which a place in the queue is counted.
_MOST_QUEUED = 500
# What a trial of a study of jobs waits for if nothing else holds it up.
NEXT_JOB = Reason(
    f"{permission.WAITS} for jobs of its record on a submission host whose policy has matching.explore.",
    "live_next_job",
)
_PLACES = ("next", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True, slots=True)
class Standing:
    """The reason why a study with waiting trials and no running one waits.

    `reason` is a complete sentence, empty if nothing waits or an agent is about to take a trial. `place` is the place
    among the studies that wait for the same agents, from 1; None if no online agent fits or one is free.
    """

    reason: str = ""
    place: int | None = None


def standing(principal: Principal, study: Study) -> Standing:
    """Return what a study waits for at this moment, with its place in the queue."""
    if study.state != StudyState.ACTIVE or not study.component or not study.requested_count or study.active_count:
        return Standing()
    online = _online(principal)
    if is_live(study) and (reason := _stored_wait(principal, study)):
        return Standing(reason)
    if reason := why(study, online):
        return Standing(reason)
    due = spreading.due_at(principal, study)
    if due is not None:
        at = due.astimezone(UTC).isoformat(sep=" ", timespec="minutes")
        text = f"The last stage goes on at {at[:16]} UTC: stability.times has it measured at another time."
        return Standing(Reason(text, "waits_for_times", at=due.isoformat()))
    reason = busy(study, online, _running(principal, online))
    if not reason:
        return Standing()
    place = _place(principal, study, _fitting(study, online))
    named = _PLACES[place - 1] if place <= len(_PLACES) else f"number {place}"
    in_queue = Reason(f"It is {named} in the queue.", "place_in_queue", place=place)
    return Standing(joined([reason, in_queue]), place)


def _stored_wait(principal: Principal, study: Study) -> str:
    """Return why the next trial of a live study may not begin; empty if it may."""
    waiting = access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.REQUESTED)
    first = waiting.order_by("number").first()
    if first is None or not first.reason.startswith(permission.WAITS):
        return ""
    return restored(first.reason, first.reason_data)


def _place(principal: Principal, study: Study, fitting: Sequence[Agent]) -> int:
    """Return the place of a study in the order in which `grants.py` gives its agents to studies."""
    queued = access.rows(Study, principal).filter(
        state=StudyState.ACTIVE, requested_count__gt=0, active_count__lt=F("parallelism")
    )
    ahead = 0
    turns = queued.order_by(F("last_granted_at").asc(nulls_first=True), "pk").only(
        "pk", "component", "digest", "application"
    )
    for other in turns[:_MOST_QUEUED]:
        if other.pk == study.pk:
            break
        ahead += any(not misfit(agent, other.component, other.digest, other.application) for agent in fitting)
    return ahead + 1


def tell() -> None:
    """Check all studies with waiting trials and no running one. Celery calls this every two seconds."""
    by_tenant: dict[int, list[int]] = {}
    for tenant_id, study_id in access.across("waiting_studies", _MOST_STUDIES):
        by_tenant.setdefault(tenant_id, []).append(study_id)
    for tenant_id, studies in by_tenant.items():
        isolated(partial(_explain_tenant, Principal.system(tenant_id), studies), tenant_id)


def _explain_tenant(principal: Principal, studies: Sequence[int]) -> None:
    online = _online(principal)
    waiting = access.rows(Trial, principal).filter(study_id__in=studies, state=TrialState.REQUESTED)
    reported = set(waiting.values_list("study_id", "reason").distinct())
    long = set(waiting.filter(created_at__lt=Now() - _USUAL_WAIT).values_list("study_id", flat=True).distinct())
    running = _running(principal, online) if long else {}
    for study in access.rows(Study, principal).filter(pk__in=studies).defer("spec"):
        before = [reason for of, reason in reported if of == study.pk]
        part = partial(_explain, principal, study, online, running if study.pk in long else None, before)
        isolated(part, study.tenant_id, study.pk)


def _explain(
    principal: Principal,
    study: Study,
    online: Sequence[Agent],
    running: Mapping[int, Sequence[str]] | None,
    before: Sequence[str],
) -> None:
    """Say why the trials of a study wait. `running`: what agents run, if it has waited long; `before`: the reasons."""
    if is_live(study):
        _explain_live(principal, study, online)
        return
    reason = why(study, online) or ("" if running is None else busy(study, online, running))
    # Usually the reason is already stored, and no lock is needed.
    if any(_is_news(one, reason) for one in before):
        _write(study, reason)


def _explain_live(principal: Principal, study: Study, online: Sequence[Agent]) -> None:
    """Make the plan of the next trial of a live study, and say what it waits for: a person, a window, a budget."""
    needs = (study.component, study.digest, study.application)
    agents = access.rows(Agent, principal).order_by("-last_seen_at")
    # An agent that is away now has still said which changes restart the system.
    fitting = [agent for agent in agents if not misfit(agent, *needs)]
    no_agent = why(study, online)
    if not has_instances(spec_of(study)):
        # No agent runs it: its trials are jobs, which agents of submission hosts ask about.
        fitting, no_agent = [], NEXT_JOB
    waits = access.rows(Trial, principal).filter(study_id=study.pk, state=TrialState.REQUESTED).order_by("number")
    if not fitting and no_agent is not NEXT_JOB:
        if any(_is_news(reason, no_agent) for reason in waits.values_list("reason", flat=True)[:_MOST_TRIALS]):
            _write(study, no_agent)
        return
    offered = Offered.of((one for agent in fitting for one in agent.components), study.component)
    with suppress(Deleted):
        # Usually the plan is made and the reason stored, and no lock is needed.
        found, trial = read(principal, study.pk), waits.first()
        plan = None if trial is None else plans.known(found, trial)
        if trial is None:
            return
        is_told = plan is not None and (permission.look(found, plan, offered).reason or no_agent) == trial.reason
        if is_told and not job_studies.over(found):
            return
    with suppress(Deleted), changing(principal, study.pk, "trial.wait") as work:
        if work.study.state != StudyState.ACTIVE or not (waiting := actions.waiting_trials(work, 1)):
            return
        [trial] = waiting
        if job_studies.pause_if_over(work):
            return
        plan = plans.ensure(work, trial, offered)
        if plan.state not in plans.OPEN:
            plans.replace(work, trial, plan)
            return
        reason = permission.look(work, plan, offered).reason or no_agent
        # The reason of a failed attempt is more important than none.
        if reason != trial.reason and (reason or trial.reason.startswith((permission.WAITS, NO_AGENT, TURN))):
            work.detail = {"reason": reason}
            trial.explain(reason)
            actions.touch_trial(work, trial, "reason", "reason_data")


def _online(principal: Principal) -> list[Agent]:
    silence = timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)
    return list(access.rows(Agent, principal).filter(last_seen_at__gt=Now() - silence))


def why(study: Study, online: Sequence[Agent]) -> str:
    """Return what the study needs and no online agent offers; empty if one agent offers all of it."""
    if not online:
        return Reason(f"{NO_AGENT}: none is online.", "no_agent_online")
    if not (ready := [agent for agent in online if not agent.draining]):
        text = f"{NO_AGENT}: those online take no more trials, since they are being drained."
        return Reason(text, "agents_drained")
    online = ready
    offers = [(agent, component) for agent in online for component in agent.components]
    named = [(agent, component) for agent, component in offers if component["name"] == study.component]
    if not named:
        offered = sorted({str(component["name"]) for _, component in offers})
        text = f"{NO_AGENT} that offers component {study.component!r}; those online offer {_listed(offered)}."
        return Reason(text, "no_agent_with_component", component=study.component, offered=[*offered])
    same = [one for one in named if study.digest in ("", one[1]["digest"])]
    if not same:
        others = sorted({f"{str(component['digest'])[:12]} ({agent.name})" for agent, component in named})
        digest = study.digest[:12]
        text = (
            f"{NO_AGENT} that offers component {study.component!r} with digest {digest}; those online have"
            f" {_listed(others)}. Its files have been changed since: bring them back, or create a new study."
        )
        return Reason(text, "no_agent_with_digest", component=study.component, digest=digest, offered=[*others])
    if study.application and not any(study.application in component["applications"] for _, component in same):
        known = sorted({str(name) for _, component in same for name in component["applications"]})
        text = (
            f"{NO_AGENT} whose component {study.component!r} has application {study.application!r};"
            f" those online have {_listed(known)}."
        )
        values = {"component": study.component, "application": study.application}
        return Reason(text, "no_agent_with_application", **values, offered=[*known])
    return ""


def busy(study: Study, online: Sequence[Agent], running: Mapping[int, Sequence[str]]) -> str:
    """Return which agents the study waits for and what they run; empty if one that fits has a free slot.

    `running`: by agent, the name of the study of each trial that it runs.
    """
    fitting = _fitting(study, online)
    if not fitting or any(len(running.get(agent.pk, ())) < agent.slots for agent in fitting):
        return ""
    named = [(agent.name, _some(set(running[agent.pk]))) for agent in fitting[:_MOST_NAMES]]
    said = [f"{agent} is busy with {studies}{_and_more(further)}" for agent, (studies, further) in named]
    more = len(fitting) - len(said)
    text = f"{TURN}: {'; '.join(said)}{f'; and {more} more are busy' if more else ''}."
    agents: list[JsonValue] = [
        {"agent": agent, "studies": studies, "more": further} for agent, (studies, further) in named
    ]
    return Reason(text, "agents_busy", agents=agents, more=more)


def _fitting(study: Study, online: Sequence[Agent]) -> list[Agent]:
    """Return the agents that would take a trial of the study if they had a free slot."""
    needs = (study.component, study.digest, study.application)
    return [agent for agent in online if not agent.draining and not misfit(agent, *needs)]


def _running(principal: Principal, online: Sequence[Agent]) -> dict[int, list[str]]:
    held = access.rows(Lease, principal).filter(state=LeaseState.HELD, agent_id__in=[agent.pk for agent in online])
    found: dict[int, list[str]] = {}
    for agent, study in held.values_list("agent_id", "study__name"):
        found.setdefault(agent, []).append(study)
    return found


def _some(names: set[str]) -> tuple[str, int]:
    """Return the first names, and how many more there are."""
    listed = sorted(names)
    return ", ".join(listed[:_MOST_NAMES]), max(0, len(listed) - _MOST_NAMES)


def _and_more(count: int) -> str:
    return f" and {count} more" if count else ""


def _write(found: Study, reason: str) -> None:
    principal = Principal.system(found.tenant_id)
    with suppress(Deleted), changing(principal, found.pk, "trial.wait", detail={"reason": reason}) as work:
        for trial in actions.waiting_trials(work, _MOST_TRIALS):
            if _is_news(trial.reason, reason):
                trial.explain(reason)
                actions.touch_trial(work, trial, "reason", "reason_data")


def _is_news(before: str, reason: str) -> bool:
    """Return whether to store this reason. The reason of a failed attempt is more important, so it stays."""
    return before != reason and (not before or before.startswith((NO_AGENT, TURN)))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
