"""The roll-out of kept settings as the results of its trials make it go on, end, or go back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.core.live_results import LiveResult
from service.core.reasons import Reason, first_line
from service.live.models import LiveStudy
from service.notices import notices
from service.notices.models import Kind
from service.policies import rollout as policy
from service.policies.rollout import STAGE, Rollout
from service.studies.change import Work
from service.studies.models import Trial
from service.trials import ending, rollouts

# The end of the journal's entry for settings that are written into the system's own configuration.
DURABLE = "written durably"


def kept_on(plan: Mapping[str, Any], result: LiveResult) -> list[str]:
    """Return the instances where a trial of the search has kept its candidate."""
    places = plan.get("places") or result.instances
    return list(places[: plan["instances"]] if plan.get("instances") else places)


def begin(work: Work, state: LiveStudy, trial: Trial, result: LiveResult, plan: Mapping[str, Any]) -> None:
    """Begin the roll-out of settings that a trial has just kept. An earlier one that is watched ends in it."""
    live, earlier = work.spec.live, rollouts.of(work.study)
    assert live is not None
    own = kept_on(plan, result)
    fleet = earlier.instances if earlier is not None else plan.get("fleet") or own
    begun = policy.begin(
        trial.number,
        trial.params,
        before=state.incumbent or result.incumbent,
        original=state.original or result.incumbent,
        instances=fleet,
        kept_on=own,
        wanted=live.rollout,
        watch=live.watch,
        now=work.time.timestamp(),
        held_back=() if earlier is None else earlier.held_back,
        chain=state.chain,
    )
    rollouts.store(work, begun)


def follow(work: Work, state: LiveStudy, trial: Trial, rollout: Rollout, result: LiveResult, reason: str) -> None:
    """Take the step of a roll-out that follows from the result of its trial."""
    now = work.time.timestamp()
    first = first_line(reason)
    if result.rolled_back:
        forget(work, state, first or _ended(trial, result))
    elif not result.kept:
        rollouts.store(work, rollout.interrupted(first or f"It has ended: {result.decision}.", now))
    elif rollout.next_step().kind == STAGE:
        grown = rollout.stage_kept(now)
        _write_instances(state, grown)
        rollouts.store(work, grown)
    else:
        _check(work, state, trial, rollout, result, now)


def forget(work: Work, state: LiveStudy, why: str) -> None:
    """Note that no kept settings are in force any more, and end the roll-out."""
    rollout = rollouts.of(work.study)
    state.chain = {}
    state.kept = [{**one, "in_force": False, "reason": why} if one["in_force"] else one for one in state.kept]
    if state.original is not None:
        state.incumbent = dict(state.original)
    notices.add(work.principal, Kind.LIVE_REVERTED, study=work.study.name, reason=why)
    if rollout is not None:
        _end(work, rollout)


def _ended(trial: Trial, result: LiveResult) -> Reason:
    text = f"Trial {trial.number} of the roll-out has ended: {result.decision}."
    return Reason(text, "rollout_trial_ended", trial=trial.number, decision=result.decision)


def _check(work: Work, state: LiveStudy, trial: Trial, rollout: Rollout, result: LiveResult, now: float) -> None:
    """Store what a check of kept settings has shown."""
    sign = -1.0 if work.spec.problem.objectives[0].goal == "maximize" else 1.0
    effects = [sign * one.effect for one in result.pairs]
    state.checks = [
        *state.checks,
        {
            "trial": trial.number,
            "at": work.time.isoformat(),
            "effect": result.effect,
            "low": result.low,
            "high": result.high,
            "pairs": len(rollout.effects) + len(result.pairs),
            "steps": sum(one["in_force"] for one in state.kept),
        },
    ]
    following = rollout.checked(effects, result.deviation, now)
    if following is not None:
        rollouts.store(work, following)
        return
    _write_instances(state, rollout, everywhere=True)
    if any(one.kind == "keep" and one.text.endswith(DURABLE) for one in result.audit):
        state.kept = [{**one, "durable": True} if one["in_force"] else one for one in state.kept]
    _end(work, rollout)


def _end(work: Work, rollout: Rollout) -> None:
    rollouts.store(work, None)
    if reason := rollouts.end_reason(rollout):
        ending.end_search(work, reason)


def _write_instances(state: LiveStudy, rollout: Rollout, *, everywhere: bool = False) -> None:
    """Keep on which instances the settings are in force."""
    instances = [*rollout.in_force, *(rollout.held_back[:1] if everywhere else ())]
    state.kept = [{**one, "instances": instances} if one["trial"] == rollout.trial else one for one in state.kept]
