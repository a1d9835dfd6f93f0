"""The permission of a live trial to begin now, by its plan, the change window and the budget, or why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Sum

from service.core.errors import JsonValue
from service.core.reasons import Reason
from service.live import job_history
from service.live.models import LiveStudy, Loss, Plan, PlanState
from service.live.system import Offered, state_of
from service.policies import ledger
from service.policies.ledger import Pace
from service.studies.change import Snapshot
from service.studies.live_spec import PERIODS, Live, Losses
from service.tenancy import access

# The first words of each reason below, by which they are known as reasons of a wait.
WAITS = "This live trial waits"


# Seconds until a guard notices a total failure, until the old settings are back, and for one switch. Measured on
# PostgreSQL, these are 0.7 s, 1 s and 1 s at most; other systems are slower. A slower guard counts with its own time.
NOTICE, REVERT, SWITCH = 5.0, 5.0, 1.0


@dataclass(frozen=True, slots=True)
class Room:
    """The state of a budget in its period: how much may be lost, what was lost, and what a total failure costs.

    `limit` is None while the rate is unknown.
    """

    limit: float | None
    spent: float
    pace: Pace | None

    @property
    def left(self) -> float | None:
        """How much may still be lost; None if it is unknown."""
        return None if self.limit is None else max(0.0, self.limit - self.spent)

    @property
    def worst(self) -> float:
        """The cost of a trial that fails totally; 0 if it is unknown."""
        return 0.0 if self.pace is None else ledger.worst(self.pace)

    @property
    def may_start(self) -> bool:
        """True if the rest of the budget survives the total failure of one more candidate."""
        return self.left is None or self.pace is None or ledger.may_start(self.left, self.pace)


@dataclass(frozen=True, slots=True)
class Permission:
    """Why a trial may not begin (empty: it may), the seconds left of its window (0: there is none) and its budgets."""

    reason: str = ""
    seconds_left: float = 0.0
    rooms: Mapping[str, Room] = field(default_factory=dict)


def look(found: Snapshot, plan: Plan, offered: Offered, pace: Pace | None = None) -> Permission:
    """Return whether the trial of a plan may begin now; for a study of jobs, also whether its next pair may.

    `pace`: how fast the job that is to get the candidate can lose node-hours.
    """
    live = found.spec.live
    assert live is not None
    if plan.state == PlanState.PLANNED:
        return Permission(_approval(plan))
    left, reason = _window(live, plan.restarts, found.time)
    if reason:
        return Permission(reason)
    state = state_of(found.principal, found.study)
    if live.record is not None and (reason := job_history.too_few(found, state)):
        return Permission(reason)
    rooms = rooms_of(found, state, offered, pace)
    used = next(((name, room) for name, room in rooms.items() if not room.may_start), None)
    if used is not None:
        return Permission(_budget(live, *used, found.time), left, rooms)
    return Permission("", left, rooms)


def seconds_left(live: Live, restarts: bool, now: datetime) -> float:
    """Return how long a trial may run until its window closes; 0 if it has no window or the window is closed."""
    return _window(live, restarts, now)[0]


def rooms_of(found: Snapshot, state: LiveStudy, offered: Offered, pace: Pace | None = None) -> dict[str, Room]:
    """Return what each budget of a live study allows in its present period, or for jobs in the last period.

    `pace`: as in `look`.
    """
    live = found.spec.live
    assert live is not None
    if live.record is not None:
        return {name: _room_of_jobs(found, state, one, pace) for name, one in live.budget.items()}
    seconds = max([NOTICE, offered.slowest_guard, *(one.seconds for one in live.guards.values())])
    rooms: dict[str, Room] = {}
    for name, one in live.budget.items():
        rate = one.rate if one.rate is not None else state.rates.get(one.of)
        spent = access.rows(Loss, found.principal).filter(
            study_id=found.study.pk, budget=name, at__gte=period_began(live, one, found.time)
        )
        total = spent.aggregate(total=Sum("counted"))["total"] or 0.0
        limit = None if rate is None else one.most * rate * PERIODS[one.per]
        rooms[name] = Room(limit, total, None if rate is None else Pace(rate, seconds, REVERT, SWITCH))
    return rooms


def _room_of_jobs(found: Snapshot, state: LiveStudy, losses: Losses, pace: Pace | None) -> Room:
    """Return what a budget of a study of jobs allows: a share of what the jobs of the last period have used."""
    principal, now = found.principal, found.time
    used = job_history.node_hours(principal, state.record_id, losses, now)
    return Room(losses.most * used, job_history.lost(principal, found.study.pk, losses, now), pace)


def period_began(live: Live, losses: Losses, now: datetime) -> datetime:
    """Return when the present period of a budget began, in the time zone of the change window."""
    zone = UTC if live.window is None or live.window.zone == "UTC" else ZoneInfo(live.window.zone)
    local = now.astimezone(zone)
    if losses.per == "hour":
        return local.replace(minute=0, second=0, microsecond=0)
    day = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday()) if losses.per == "week" else day


def _window(live: Live, restarts: bool, now: datetime) -> tuple[float, str]:
    """Return the seconds left of the windows of a trial, and why it may not begin."""
    windows = [("window", live.window), *([("restart_window", live.restart_window)] if restarts else [])]
    left = []
    for name, window in windows:
        if window is None:
            continue
        seconds = window.seconds_left(now)
        if not seconds:
            opens = window.opens_at(now)
            text = f"{WAITS}: its {name} opens on {opens:%A, %Y-%m-%d at %H:%M} ({window.zone})."
            return 0.0, Reason(text, "live_window_closed", window=name, opens_at=opens.isoformat())
        left.append(seconds)
    return min(left, default=0.0), ""


def _approval(plan: Plan) -> Reason:
    missing = plan.people - len(plan.approvals)
    who = "an administrator approves" if missing == 1 else f"{missing} administrators approve"
    if plan.approvals:
        who = "a second administrator approves"
    return Reason(
        f"{WAITS} until {who} its plan.",
        "live_approval_waiting",
        missing=missing,
        approved=len(plan.approvals),
        expires_at=plan.expires_at.isoformat(),
    )


def _budget(live: Live, name: str, room: Room, now: datetime) -> Reason:
    one, limit = live.budget[name], room.limit or 0.0
    text = (
        f"{WAITS}: budget {name!r} allows {_amount(limit)} {one.metric} in a {one.per}, {_amount(room.spent)} are used,"
        f" and a trial that fails totally costs {_amount(room.worst)}."
    )
    values: dict[str, JsonValue] = {"budget": name, "metric": one.metric, "limit": limit, "spent": room.spent}
    if live.record is not None:
        return Reason(f"{text} More jobs make room.", "live_job_budget_used", **values, worst=room.worst)
    until = _period_ends(live, one, now)
    text = f"{text} The next {one.per} begins on {until:%Y-%m-%d at %H:%M}."
    return Reason(text, "live_budget_used", **values, worst=room.worst, until=until.isoformat())


def _amount(value: float) -> str:
    """Return an amount for people: a large one without a fraction."""
    return f"{value:,.0f}" if value >= 100 or not value else f"{value:.3g}"


def _period_ends(live: Live, losses: Losses, now: datetime) -> datetime:
    length = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}[losses.per]
    return period_began(live, losses, now) + length
