"""Live studies with what their agents say of the system: status, decisions about plans, and the red button."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.db.models import Count, F, Func, Q, TextField, Value

from service.core.lifecycle import StudyState, TrialState
from service.core.live_instances import InstanceStatus
from service.fleet import live_instances
from service.fleet.components import misfit
from service.fleet.models import Agent, LiveInstance
from service.live import plans, stopping
from service.live.details import details
from service.live.models import LiveStudy, Plan, PlanState
from service.live.status import LiveStatus
from service.live.status import status as status_of
from service.live.system import Offered
from service.studies import selectors
from service.studies.models import Study
from service.tenancy import access
from service.tenancy.principal import Principal

# The most studies on the board.
_MOST_STUDIES = 50


@dataclass(frozen=True, slots=True)
class Brief:
    """A live study on the board: how many plans wait for people, how many trials run, and instances by state."""

    name: str
    state: str
    state_reason: str
    component: str
    application: str
    waiting: int
    running: int
    instances: dict[str, int]


@dataclass(frozen=True, slots=True)
class Listing:
    """The live studies of a tenant, open ones first, and the instances that agents have switched for them."""

    studies: list[Brief]
    left_off: int
    instances: list[InstanceStatus]


@dataclass(frozen=True, slots=True)
class Board:
    """The live studies of a tenant, open ones first, and the state of one of them; None if there is none."""

    studies: list[Brief]
    left_off: int
    shown: LiveStatus | None


def offered(principal: Principal, study: str) -> Offered:
    """Return what the agent that was seen last says of a study's live system. Raises NotFound."""
    found = selectors.get_study(principal, study)
    agents = access.rows(Agent, principal).order_by("-last_seen_at")
    fitting = [one for one in agents if not misfit(one, found.component, found.digest, found.application)]
    return Offered.of((component for agent in fitting for component in agent.components), found.component)


def status(principal: Principal, study: str) -> LiveStatus:
    """Return the state of a live study. Raises NotFound (`study_not_found`, `not_live`)."""
    return _status(principal, study, offered(principal, study))


def board(principal: Principal, study: str = "") -> Board:
    """Return the live studies, and the state of `study` (default: of the first one).

    Raises NotFound (`study_not_found`, `not_live`).
    """
    briefs, left_off, _ = _briefs(principal)
    name = study or (briefs[0].name if briefs else "")
    return Board(briefs, left_off, status(principal, name) if name else None)


def listing(principal: Principal) -> Listing:
    """Return the live studies with their instances."""
    briefs, left_off, ids = _briefs(principal)
    return Listing(briefs, left_off, live_instances.of_studies(principal, ids))


def _briefs(principal: Principal) -> tuple[list[Brief], int, list[int]]:
    """Return the first live studies, the number of the others, and the primary keys of the first ones."""
    rows = access.rows(Study, principal)
    key = Func(F("spec"), Value("live"), function="json_extract_path_text", output_field=TextField())
    is_open = Q(state__in=(StudyState.ACTIVE, StudyState.PAUSED))
    known = access.rows(LiveStudy, principal).values("pk")
    # The specs of ended studies are not read: those whose trials have switched anything have a row of their own.
    live = rows.exclude(component="").filter(is_open | Q(pk__in=known)).annotate(live=key, open=is_open)
    ordered = live.filter(live__isnull=False).order_by("-open", "-pk")
    found = list(ordered.only("name", "state", "state_reason", "component", "application", "active_count"))
    shown = found[:_MOST_STUDIES]
    ids = [one.pk for one in shown]
    waiting = access.rows(Plan, principal).filter(
        study_id__in=ids, state=PlanState.PLANNED, trial__state=TrialState.REQUESTED
    )
    plans_of = dict(waiting.values_list("study_id").annotate(count=Count("pk")).order_by())
    instances: dict[int | None, dict[str, int]] = {}
    counted = access.rows(LiveInstance, principal).filter(study_id__in=ids).values_list("study_id", "state")
    for owner, state, count in counted.annotate(count=Count("pk")).order_by():
        instances.setdefault(owner, {})[state] = count
    briefs = [
        Brief(
            name=one.name,
            state=one.state,
            state_reason=one.state_reason,
            component=one.component,
            application=one.application,
            waiting=plans_of.get(one.pk, 0),
            running=one.active_count,
            instances=instances.get(one.pk, {}),
        )
        for one in shown
    ]
    return briefs, len(found) - len(shown), ids


def decide(principal: Principal, study: str, number: int, *, approve: bool, reason: str = "") -> LiveStatus:
    """Approve or decline the plan of a waiting trial, and return the state afterwards. Raises as `plans.decide`."""
    known = offered(principal, study)
    plans.decide(principal, study, number, approve=approve, offered=known, reason=reason)
    return _status(principal, study, known)


def stop(principal: Principal, study: str, *, reason: str = "", leave_kept: bool = False) -> LiveStatus:
    """Pause a live study, end its running trials, and return the state afterwards. Raises as `stopping.stop`.

    The agents also take back what earlier trials have kept, so that the settings before the first trial are in force
    again, unless `leave_kept`.
    """
    stopping.stop(principal, study, reason=reason)
    if not leave_kept:
        why = f"{principal.actor} has stopped the study" + (f": {reason}" if reason else "")
        live_instances.ask_revert(principal, selectors.get_study(principal, study), why)
    return status(principal, study)


def _status(principal: Principal, study: str, known: Offered) -> LiveStatus:
    found = status_of(principal, study, known)
    instances = live_instances.of_study(principal, found.study)
    return replace(found, instances=instances, details=details(principal, study))
