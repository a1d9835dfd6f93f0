"""The state of a live study for people: what is in force and why, what waits for them, and what it has cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Count, F, Q

from service.core.errors import NotFound
from service.core.lifecycle import TrialState
from service.core.live_instances import InstanceStatus
from service.core.live_results import LiveOutcome, LiveResult, deviation_of
from service.core.reasons import Reason
from service.core.space import Configuration
from service.live import job_history, permission
from service.live.details import Details
from service.live.models import JobPair, LiveLease, LiveStudy, PairState, Plan
from service.live.permission import period_began, rooms_of
from service.live.plans import OPEN
from service.live.system import Offered, changes, settings_in_force, state_of
from service.policies.rollout import STAGE, Rollout
from service.studies import selectors
from service.studies.change import Snapshot, read
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import rollouts

_MOST_PLANS = 20


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """A plan that waits or whose trial runs: what would change, and who has approved it.

    `changes` has the present and the new value of each parameter. `expected` and `worst` are the logarithms of the
    objective's ratio to the settings in force that the model expects, below 0 is better; None if no model has made it.
    `reason` says why it waits; empty while it runs.
    """

    trial: int
    trial_state: str
    state: str
    changes: Mapping[str, Sequence[Any]]
    restarts: bool
    people: int
    approvals: Sequence[Mapping[str, str]]
    expires_at: datetime
    reason: str
    reason_data: Mapping[str, Any] | None
    expected: float | None
    worst: float | None


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """The state of a budget in its present period. `limit` and `left` are None while the rate is unknown."""

    name: str
    metric: str
    of: str
    per: str
    began_at: datetime
    limit: float | None
    spent: float
    left: float | None
    worst: float


@dataclass(frozen=True, slots=True)
class JobsStatus:
    """The jobs that a study of jobs learns from: `matched` within the last `days`, and `candidates` in all.

    `open`, `counted` and `void`: numbers of pairs. `share`: of matched jobs that may get a candidate; None if no agent
    has told it. `reason`: why no pair may begin now; empty if one may.
    """

    record: str
    matched: int
    days: int
    candidates: int
    open: int
    counted: int
    void: int
    share: float | None
    reason: str

    @property
    def reason_data(self) -> Mapping[str, Any] | None:
        """Code and values of the reason."""
        return self.reason.data if isinstance(self.reason, Reason) else None


@dataclass(frozen=True, slots=True)
class RolloutStatus:
    """The roll-out of the settings that `trial` has kept, as long as it goes on.

    `state`: rolling (they go to further instances) or watching. `stage` of `stages` is done; a stage is the number of
    instances that have the settings after it. `in_force` on these instances, oldest first; `waiting` are to get them,
    and `held_back` keep the earlier ones until the watch ends. `reason`: what happens now and why. `due_at`: when the
    next trial may begin. `checks` have compared the settings again.
    """

    trial: int
    state: str
    stage: int
    stages: Sequence[int]
    in_force: Sequence[str]
    waiting: Sequence[str]
    held_back: Sequence[str]
    reason: str
    due_at: datetime
    watched_until: datetime | None
    checks: int


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """The state of a live study.

    `in_force`: the settings of the system; where `known` is false, no trial has read them yet, and these are the
    component's defaults. `kept`: what was kept, oldest first. `settled` candidates have been in force, and `broken` of
    them broke a guard. `deviation`: of the effect in one pair; 0 if it is unknown. `checks`: comparisons of the kept
    settings with those of the start. `instances`: those that agents have switched for it, as they have reported them
    last. `details`: its rules and outcomes, None if nobody has asked.
    """

    study: Study
    in_force: Configuration
    original: Configuration
    known: bool
    plans: Sequence[PlanStatus]
    kept: Sequence[Mapping[str, Any]]
    budgets: Sequence[BudgetStatus]
    settled: int
    broken: int
    deviation: float
    rollout: RolloutStatus | None
    checks: Sequence[Mapping[str, Any]]
    instances: Sequence[InstanceStatus] = ()
    details: Details | None = None
    jobs: JobsStatus | None = None


def status(principal: Principal, name: str, offered: Offered) -> LiveStatus:
    """Return the state of a live study. Raises NotFound (`study_not_found`, `not_live`)."""
    found = read(principal, selectors.get_study(principal, name).pk)
    live = found.spec.live
    if live is None:
        raise NotFound("not_live", f"Study {name!r} is not live: it has no plans and no settings in force.")
    state = state_of(principal, found.study)
    rooms = rooms_of(found, state, offered)
    return LiveStatus(
        study=found.study,
        in_force=settings_in_force(found.spec, state),
        original=state.original or found.spec.space.default(),
        known=state.incumbent is not None,
        plans=_plans(found),
        kept=state.kept,
        budgets=[
            BudgetStatus(
                name=key,
                metric=one.metric,
                of=one.of,
                per=one.per,
                began_at=period_began(live, one, found.time),
                limit=rooms[key].limit,
                spent=rooms[key].spent,
                left=rooms[key].left,
                worst=rooms[key].worst,
            )
            for key, one in live.budget.items()
        ],
        settled=state.settled,
        broken=state.broken,
        deviation=deviation_of(state.squares, state.freedom),
        jobs=None if live.record is None else _jobs(found, state),
        rollout=_rollout(found),
        checks=state.checks,
    )


def _jobs(found: Snapshot, state: LiveStudy) -> JobsStatus:
    principal, record = found.principal, state.record_id
    pairs = access.rows(JobPair, principal).filter(study_id=found.study.pk)
    counts = dict(pairs.values_list("state").annotate(count=Count("pk")).order_by())
    given = pairs.filter(Q(candidate_first=True) | ~Q(second="")).count()
    return JobsStatus(
        record="" if record is None else str(record),
        matched=job_history.jobs_of(principal, record or 0, found.time),
        days=job_history.DAYS,
        candidates=given,
        open=counts.get(PairState.OPEN, 0),
        counted=counts.get(PairState.COUNTED, 0),
        void=counts.get(PairState.VOID, 0),
        share=state.share,
        reason=_why_not(found),
    )


def _why_not(found: Snapshot) -> str:
    """Return why no pair of jobs may begin now; empty if one may."""
    plan = access.rows(Plan, found.principal).filter(study_id=found.study.pk, state__in=OPEN).order_by("trial").last()
    return "" if plan is None else permission.look(found, plan, Offered()).reason


def _rollout(found: Snapshot) -> RolloutStatus | None:
    rollout = rollouts.of(found.study)
    if rollout is None:
        return None
    due = datetime.fromtimestamp(max(rollout.due_at, found.time.timestamp()), UTC)
    until = rollout.watched_until
    return RolloutStatus(
        trial=rollout.trial,
        state="rolling" if rollout.is_rolling else "watching",
        stage=rollout.stage,
        stages=rollout.stages,
        in_force=rollout.in_force,
        waiting=[one for one in rollout.instances if one not in rollout.in_force],
        held_back=rollout.held_back,
        reason=_why(rollout, due),
        due_at=due,
        watched_until=None if until is None else datetime.fromtimestamp(until, UTC),
        checks=rollout.checks,
    )


def _why(rollout: Rollout, due: datetime) -> str:
    """Return what a roll-out does now and why, for people."""
    step = rollout.next_step()
    if step.kind == STAGE:
        new, others = ", ".join(step.places[: step.count]), ", ".join(step.places[step.count :])
        compared = f"compared with {others}" if others else "compared block by block"
        stage = f"Stage {rollout.stage + 1} of {len(rollout.stages)}"
        return f"{stage}: the settings of trial {rollout.trial} go to {new}, {compared}."
    held = f" {rollout.held}" if rollout.held else ""
    last = "The last check is" if step.durable else "The next check is"
    until = f"{last} due on {due:%Y-%m-%d at %H:%M} (UTC)."
    return f"The settings of trial {rollout.trial} are watched under their guards. {until}{held}"


def _plans(found: Snapshot) -> list[PlanStatus]:
    open_ones = access.rows(Plan, found.principal).filter(
        study_id=found.study.pk, trial__state__in=(TrialState.REQUESTED, TrialState.ACTIVE)
    )
    plans = open_ones.select_related("trial").order_by(F("trial__number"))[:_MOST_PLANS]
    return [_plan(plan, plan.trial) for plan in plans]


def _plan(plan: Plan, trial: Trial) -> PlanStatus:
    planned = {} if trial.live is None else LiveOutcome.from_json(trial.live).planned
    data = trial.reason_data
    return PlanStatus(
        trial=trial.number,
        trial_state=trial.state,
        state=plan.state,
        changes=changes(plan.incumbent, trial.params),
        restarts=plan.restarts,
        people=plan.people,
        approvals=plan.approvals,
        expires_at=plan.expires_at,
        reason=trial.reason,
        reason_data=None if data is None else {"code": data["code"], "values": data["values"]},
        expected=planned.get("expected"),
        worst=planned.get("worst"),
    )


@dataclass(frozen=True, slots=True)
class Revealed:
    """The result of the last lease of a live trial, with its coin, which is secret until then."""

    result: LiveResult
    seed: str
    commitment: str
    broken_link: int | None


def revealed(principal: Principal, trial: Trial) -> Revealed | None:
    """Return the result of a live trial; None for other trials and before its end."""
    if trial.live is None:
        return None
    leases = access.rows(LiveLease, principal).filter(trial_id=trial.pk, result__isnull=False)
    row = leases.order_by("-settled_at").first()
    if row is None:
        return None
    return Revealed(LiveResult.from_json(row.result), row.seed, row.commitment, row.broken_link)
