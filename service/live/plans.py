"""Plans of live trials: what each would change, who has agreed to it, and until when that holds."""

from __future__ import annotations

from datetime import datetime, timedelta

from service.core.errors import Conflict, InvalidInput, NotFound
from service.core.lifecycle import StudyState, TrialState
from service.core.live_results import as_configuration, same_settings
from service.core.reasons import Reason, quoted
from service.core.space import Configuration
from service.live.models import LiveLease, Plan, PlanState
from service.live.system import Offered, changes, settings_in_force, state_of
from service.notices import notices
from service.notices.models import Kind
from service.studies import actions
from service.studies.change import Snapshot, Work, changing
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import rollouts
from service.trials.topup import top_up

# An approval is for the system as the person has seen it.
VALID = timedelta(hours=24)
_HOURS = VALID.total_seconds() / 3600
_TOO_OLD = Reason(f"It was valid for {_HOURS:g} hours.", "plan_too_old", hours=_HOURS)
_SUPERSEDED = Reason("Other settings have come into force.", "plan_superseded")
LONGEST_REASON = 1000
# The states of a plan whose trial may still begin.
OPEN = (PlanState.PLANNED, PlanState.APPROVED)


def ensure(work: Work, trial: Trial, offered: Offered) -> Plan:
    """Return the plan of a waiting trial, which is made at the first call. One that holds no more is EXPIRED."""
    live = work.spec.live
    assert live is not None
    found = access.rows(Plan, work.principal).filter(pk=trial.pk).first()
    incumbent = _before(work, trial)
    if found is None:
        restarts = bool(offered.restart & changes(incumbent, trial.params).keys())
        people = live.approve.people if _needs_approval(work, trial, restarts) else 0
        found = access.add(
            work.principal,
            Plan(
                trial=trial,
                study_id=work.study.pk,
                state=PlanState.PLANNED if people else PlanState.APPROVED,
                people=people,
                incumbent=incumbent,
                restarts=restarts,
                made_at=work.time,
                expires_at=work.time + VALID,
            ),
        )
        if people:
            names = sorted(changes(incumbent, trial.params))
            text = f"Trial {trial.number} would change {', '.join(names)}."
            reason = Reason(text, "live_would_change", trial=trial.number, parameters=[*names])
            notices.add(work.principal, Kind.LIVE_APPROVAL, study=work.study.name, reason=reason)
    elif found.state in OPEN and (why := _over(found, incumbent, work.time)):
        found.state, found.reason, found.decided_at = PlanState.EXPIRED, why, work.time
        access.save(work.principal, found, "state", "reason", "decided_at")
    return found


def known(found: Snapshot, trial: Trial) -> Plan | None:
    """Return the plan of a waiting trial if there is one that still holds. It changes nothing."""
    plan = access.rows(Plan, found.principal).filter(pk=trial.pk, state__in=OPEN).first()
    incumbent = _before(found, trial)
    return None if plan is None or _over(plan, incumbent, found.time) else plan


def _before(found: Snapshot, trial: Trial) -> Configuration:
    """Return the settings with which a trial compares its own."""
    rollout = rollouts.of(found.study) if trial.origin == rollouts.ORIGIN else None
    if rollout is None:
        return settings_in_force(found.spec, state_of(found.principal, found.study))
    return as_configuration(found.spec.space, rollout.original if rollout.since is not None else rollout.before)


def _reason(plan: Plan) -> str:
    """Return why a plan has expired, with its code."""
    return next((one for one in (_TOO_OLD, _SUPERSEDED) if one == plan.reason), plan.reason)


def _over(plan: Plan, incumbent: Configuration, now: datetime) -> str:
    """Return why a plan no longer holds; empty if it does."""
    if plan.people and plan.expires_at <= now:
        return _TOO_OLD
    return "" if same_settings(plan.incumbent, incumbent) else _SUPERSEDED


def _needs_approval(work: Work, trial: Trial, restarts: bool) -> bool:
    """Return whether people must approve a trial. A configuration that a person has enqueued is in no safe set."""
    assert work.spec.live is not None
    rule, rollout = work.spec.live.approve, rollouts.of(work.study)
    if trial.origin == rollouts.ORIGIN and rollout is not None and not rollout.is_rolling and not restarts:
        # A check brings nothing new into force.
        return False
    if trial.origin == "enqueued" or rule.trials == "each":
        return True
    if rule.trials == "restart":
        return restarts
    return rule.trials == "first" and begun(work) < rule.first


def begun(work: Work) -> int:
    """Return how many trials of a live study have been given to an agent."""
    leases = access.rows(LiveLease, work.principal).filter(study_id=work.study.pk)
    return leases.values("trial_id").distinct().count()


def replace(work: Work, trial: Trial, plan: Plan) -> None:
    """Withdraw a trial whose plan was declined or has expired. A new one takes its place, and costs no budget."""
    if plan.state == PlanState.DECLINED:
        text = f"Its plan was declined: {plan.reason}" if plan.reason else "Its plan was declined."
        reason = Reason(text, "live_declined", reason=plan.reason)
    else:
        reason = Reason(f"Its plan has expired: {plan.reason}", "live_expired", **quoted(_reason(plan)))
    withdraw(work, trial, reason)


def withdraw(work: Work, trial: Trial, reason: str) -> None:
    """Withdraw a waiting trial, at no cost of the budget, and have the next one follow."""
    rollout = rollouts.of(work.study)
    if trial.origin != rollouts.ORIGIN:
        actions.withdraw_outside(work, [trial.number], reason)
    else:
        # It never counted. A stage that nobody wants is left out.
        actions.withdraw_waiting(work, [trial.number], reason)
        if rollout is not None and rollout.is_rolling:
            rollouts.store(work, rollout.hold(reason, work.time.timestamp()))
    work.target = f"trial/{trial.number}"
    top_up(work)


def decide(principal: Principal, study: str, number: int, *, approve: bool, offered: Offered, reason: str = "") -> Plan:
    """Approve or decline the plan of a waiting trial. The same decision again changes nothing.

    Raises InvalidInput, NotFound (`study_not_found`, `trial_not_found`, `not_live`), Conflict (`plan_decided` for a
    trial that has begun or whose plan was decided otherwise, `plan_expired`, `second_person` if two people must approve
    and this one has).
    """
    if len(reason) > LONGEST_REASON or "\0" in reason:
        raise InvalidInput("reason", reason, f"at most {LONGEST_REASON} characters, without NUL")
    action = "live.approve" if approve else "live.decline"
    with changing(principal, study, action, trial=number, detail={"reason": reason} if reason else None) as work:
        expect_live(work)
        trial = actions.get_trial(work, number)
        if trial.state != TrialState.REQUESTED:
            before = access.rows(Plan, principal).filter(pk=trial.pk).first()
            wanted = PlanState.APPROVED if approve else PlanState.DECLINED
            if before is not None and before.state == wanted:
                return before
            raise Conflict("plan_decided", f"Trial {number} is {trial.state}: its plan can no longer be changed.")
        if work.study.state != StudyState.ACTIVE:
            raise Conflict("study_not_active", f"Study {study!r} is {work.study.state}. Resume it first.")
        plan = ensure(work, trial, offered)
        if plan.state == PlanState.EXPIRED:
            # The answer would be undone by an error: the sweep replaces the trial.
            raise Conflict("plan_expired", f"The plan of trial {number} has expired: {plan.reason} A new one follows.")
        if approve:
            _approve(work, plan, trial)
        elif plan.state in OPEN:
            plan.state, plan.reason, plan.decided_at = PlanState.DECLINED, reason, work.time
            access.save(principal, plan, "state", "reason", "decided_at")
            replace(work, trial, plan)
        return plan


def _approve(work: Work, plan: Plan, trial: Trial) -> None:
    """Note the approval of the caller; the plan is APPROVED once enough people have approved it."""
    if plan.state == PlanState.APPROVED:
        return
    actor = work.principal.actor
    if any(one["actor"] == actor for one in plan.approvals):
        missing = plan.people - len(plan.approvals)
        raise Conflict(
            "second_person", f"You have approved trial {trial.number}: {missing} other person must approve it too."
        )
    plan.approvals = [*plan.approvals, {"actor": actor, "at": work.time.isoformat()}]
    if len(plan.approvals) >= plan.people:
        plan.state, plan.decided_at = PlanState.APPROVED, work.time
        # The approval holds for a day from now on.
        plan.expires_at = work.time + VALID
        work.slot_freed = True
        # It waited for this. An agent that asks for it says what else is missing.
        trial.explain("")
        actions.touch_trial(work, trial, "reason", "reason_data")
    access.save(work.principal, plan, "approvals", "state", "decided_at", "expires_at")
    work.revise()


def expect_live(work: Work) -> None:
    """Raise NotFound (`not_live`) unless the study is live."""
    if work.spec.live is None:
        raise NotFound("not_live", f"Study {work.study.name!r} is not live: it has no plans and no settings in force.")
