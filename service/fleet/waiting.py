"""Stores on a waiting trial why it waits, if no online agent offers what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db.models.functions import Now

from service.core.lifecycle import TrialState
from service.fleet.models import Agent
from service.studies import actions
from service.studies.change import Deleted, changing
from service.studies.isolated import isolated
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal

WAITS = "Waits for an agent"
# The number of studies in one sweep, latest change first, and the number of trials explained in each study.
_MOST_STUDIES = 200
_MOST_TRIALS = 100


def tell() -> None:
    """Check all studies with waiting trials and no running one. Celery calls this every two seconds."""
    by_tenant: dict[int, list[int]] = {}
    for tenant_id, study_id in access.across("waiting_studies", _MOST_STUDIES):
        by_tenant.setdefault(tenant_id, []).append(study_id)
    for tenant_id, studies in by_tenant.items():
        _explain_tenant(Principal.system(tenant_id), studies)


def _explain_tenant(principal: Principal, studies: Sequence[int]) -> None:
    silence = timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)
    online = list(access.rows(Agent, principal).filter(last_seen_at__gt=Now() - silence))
    waiting = access.rows(Trial, principal).filter(study_id__in=studies, state=TrialState.REQUESTED)
    reported = set(waiting.values_list("study_id", "reason").distinct())
    for study in access.rows(Study, principal).filter(pk__in=studies).defer("spec"):
        with isolated(study.tenant_id, study.pk):
            reason = why(study, online)
            # Usually the reason is already stored, and no lock is needed.
            if any(_is_news(before, reason) for of, before in reported if of == study.pk):
                _write(study, reason)


def why(study: Study, online: Sequence[Agent]) -> str:
    """Return what the study needs and no online agent offers; empty if one agent offers all of it."""
    if not online:
        return f"{WAITS}: none is online."
    if not (ready := [agent for agent in online if not agent.draining]):
        return f"{WAITS}: those online take no more trials, since they are being drained."
    online = ready
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


def _write(found: Study, reason: str) -> None:
    principal = Principal.system(found.tenant_id)
    with suppress(Deleted), changing(principal, found.pk, "trial.wait", detail={"reason": reason}) as work:
        for trial in actions.waiting_trials(work, _MOST_TRIALS):
            if _is_news(trial.reason, reason):
                trial.reason = reason
                actions.touch_trial(work, trial, "reason")


def _is_news(before: str, reason: str) -> bool:
    """Return whether to store this reason. The reason of a failed attempt is more important, so it stays."""
    return before != reason and (not before or before.startswith(WAITS))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
