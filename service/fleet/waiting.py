"""Says on trials that no agent can take why they wait: what they need is offered by nobody now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from service.core.errors import NotFound
from service.core.lifecycle import StudyState, TrialState
from service.fleet.models import Agent
from service.studies import actions
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal

WAITS = "Waits for an agent"
# Studies looked at in one sweep, those that changed last before the others; trials told of in each.
_MOST_STUDIES = 200
_MOST_TRIALS = 100


def tell() -> None:
    """Go over all studies whose trials wait while none runs. Runs every two seconds; safe to run twice."""
    silence = timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)
    hungry = access.system_rows(Study).filter(
        state=StudyState.ACTIVE, parallelism__isnull=False, requested_count__gt=0, active_count=0
    )
    studies = list(hungry.order_by("-updated_at").defer("spec")[:_MOST_STUDIES])
    if not studies:
        return
    tenants = {study.tenant_id for study in studies}
    online = list(access.system_rows(Agent).filter(tenant_id__in=tenants, last_seen_at__gt=Now() - silence))
    waiting = access.system_rows(Trial).filter(study_id__in=[study.pk for study in studies], state=TrialState.REQUESTED)
    told = set(waiting.values_list("study_id", "reason").distinct())
    for study in studies:
        reason = why(study, [agent for agent in online if agent.tenant_id == study.tenant_id])
        # Most often all has been said: no lock is taken for that.
        if any(_is_news(before, reason) for of, before in told if of == study.pk):
            _tell(study, reason)


def why(study: Study, online: Sequence[Agent]) -> str:
    """What no online agent has of what the study needs; empty where one has all of it."""
    if not online:
        return f"{WAITS}: none is online."
    offers = [(agent, component) for agent in online for component in agent.components]
    named = [(agent, component) for agent, component in offers if component["name"] == study.component]
    if not named:
        return (
            f"{WAITS} that offers component {study.component!r}; those online offer"
            f" {_listed({str(component['name']) for _, component in offers})}."
        )
    same = [one for one in named if study.digest in ("", one[1]["digest"])]
    if not same:
        others = {f"{str(component['digest'])[:12]} ({agent.name})" for agent, component in named}
        return (
            f"{WAITS} that offers component {study.component!r} with digest {study.digest[:12]}; those online have"
            f" {_listed(others)}. Its files have been changed since: bring them back, or create a new study."
        )
    if study.application and not any(study.application in component["applications"] for _, component in same):
        known = {str(name) for _, component in same for name in component["applications"]}
        return (
            f"{WAITS} whose component {study.component!r} has application {study.application!r};"
            f" those online have {_listed(known)}."
        )
    return ""


def _tell(found: Study, reason: str) -> None:
    principal = Principal.system(found.tenant_id)
    with access.work(principal):
        try:
            study = actions.lock_by_id(principal, found.pk)
        except NotFound:
            return
        told = False
        for trial in actions.waiting_trials(principal, study, _MOST_TRIALS):
            if _is_news(trial.reason, reason):
                trial.reason = reason
                actions.touch_trial(principal, study, trial, "reason")
                told = True
        if told:
            actions.conclude(principal, study, "trial.wait", f"study/{study.name}", {"reason": reason})


def _is_news(before: str, reason: str) -> bool:
    """Whether a trial is to have this reason. Why an attempt failed is worth more than why the next has not begun."""
    return before != reason and (not before or before.startswith(WAITS))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
