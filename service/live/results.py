"""The meaning of the end of a live lease: value of the trial, settings in force, ledger, and whether to freeze."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.core.lifecycle import StudyState
from service.core.live_results import (
    GUARD,
    HARM,
    LiveOutcome,
    LiveResult,
    deviation_of,
    limits_of,
    same_settings,
    scaled,
    summed,
)
from service.core.reasons import Reason, first_line, quoted
from service.live import rolling
from service.live.models import LiveLease, LiveStudy, Loss
from service.live.system import changes, state_of
from service.notices import notices
from service.notices.models import Kind
from service.policies import ledger
from service.policies.ledger import Block
from service.studies import actions
from service.studies.change import Work
from service.studies.models import Trial
from service.tenancy import access
from service.trials import rollouts

# A study is frozen after at least so many trials with a broken guard.
LEAST_BROKEN = 3
_NO_PAIR = Reason("The trial has ended before its first pair of blocks.", "live_no_pair")
BROKEN, JOB_FAILED, STUCK = "live_guard_broken", "live_job_failed", "live_stuck"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The outcome of a trial with its metrics in the user's unit, and its reason."""

    outcome: str
    metrics: dict[str, float]
    reason: str


def settle(work: Work, trial: Trial, lease: str, outcome: str, reason: str, result: LiveResult | None) -> Meaning:
    """Store the result of a live lease, and return what it means for its trial.

    The seed of the coin is revealed in the audit trail, with the state of the agent's journal. The trial itself is for
    the caller to end, which also writes `trial.live`.
    """
    if result is None and outcome == "completed":
        text = "The agent has sent no pairs of blocks: it is older than live studies. Install a newer one."
        return Meaning("failed", {}, Reason(text, "live_old_agent"))
    result = result or LiveResult("")
    rollout = rollouts.of(work.study) if trial.origin == rollouts.ORIGIN else None
    row = access.rows(LiveLease, work.principal).filter(lease=lease).first()
    block = _close(work, row, result)
    state = state_of(work.principal, work.study)
    _note_cost(work, row, result, block)
    usual = deviation_of(state.squares, state.freedom)
    _learn(work, state, result, of_search=trial.origin != rollouts.ORIGIN)
    found = result.ratios(work.spec.problem.metrics[0], usual)
    ratios = {name: one.mean for name, one in found.items()}
    outlook = {} if trial.live is None else LiveOutcome.from_json(trial.live).planned
    guard, guards = _guard(reason), [] if row is None else row.guards
    chain = state.chain if rollout is None else rollout.chain if rollout.is_rolling else {}
    metrics = {**_as_read(result), **scaled(state.baseline or {}, chain, ratios)}
    limits, compared_with = limits_of(guards, usual_of(state)), state.incumbent or result.incumbent
    stays = result.kept
    if rollout is not None:
        compared_with, stays = result.incumbent or rollout.before, not result.rolled_back
        rolling.follow(work, state, trial, rollout, result, reason)
    elif result.kept and trial.origin != rollouts.ORIGIN:
        _keep(work, state, trial, result, ratios, {} if row is None else row.plan)
    elif result.rolled_back:
        rolling.forget(work, state, reason)
    trial.live = LiveOutcome(
        decision=result.decision or (GUARD if guard else ""),
        effect=result.effect,
        low=result.low,
        high=result.high,
        pairs=len(result.pairs),
        kept=stays,
        incumbent=compared_with,
        ratios={name: (one.mean, one.deviation) for name, one in found.items()},
        limits=limits,
        next_limits=limits_of(guards, usual_of(state)),
        instances=result.instances,
        guard=guard,
        planned=outlook,
    ).to_json()
    if result.pairs or result.instances or guard:
        state.settled += 1
        state.broken += bool(guard)
    access.put(work.principal, state)
    _notify(work, trial, result, reason, guard)
    if guard:
        _freeze(work, state)
    meaning = _meaning(work, outcome, metrics, reason, result)
    if trial.origin == rollouts.ORIGIN and meaning.outcome not in ("completed", "infeasible"):
        # The roll-out itself decides whether a step follows.
        return Meaning("over", {}, meaning.reason)
    return meaning


def _close(work: Work, row: LiveLease | None, result: LiveResult) -> float:
    """Store a result with its lease, note the seed for the audit trail, and return the seconds of a block."""
    if row is None:
        return 0.0
    row.result, row.broken_link, row.settled_at = result.to_json(), result.broken_link(), work.time
    access.save(work.principal, row, "result", "broken_link", "settled_at")
    journal: dict[str, Any] = {"entries": len(result.audit)}
    if result.audit:
        journal["hash"] = result.audit[-1].hash
    if row.broken_link is not None:
        journal["broken_at"] = row.broken_link
    work.detail = {
        **work.detail,
        "live": {"decision": result.decision, "seed": row.seed, "commitment": row.commitment, "journal": journal},
    }
    return float(row.plan["block"])


def _note_cost(work: Work, row: LiveLease | None, result: LiveResult, block: float) -> None:
    """Write what a lease has lost of each budget into the ledger: the larger one of the two counts."""
    live = work.spec.live
    assert live is not None
    if row is None:
        return
    # What was assumed while the agent was silent.
    access.rows(Loss, work.principal).filter(study_id=work.study.pk, lease=row.lease).delete()
    for name, one in live.budget.items():
        by_agent = max(0.0, result.cost.get(name, 0.0))
        by_service = ledger.cost(_blocks(result, one.metric, one.of, block))
        if by_agent or by_service:
            access.add(
                work.principal,
                Loss(
                    study_id=work.study.pk,
                    lease=row.lease,
                    budget=name,
                    by_agent=by_agent,
                    by_service=by_service,
                    counted=max(by_agent, by_service),
                    at=work.time,
                ),
            )


def _blocks(result: LiveResult, slow: str, of: str, seconds: float) -> list[tuple[Block, Block]]:
    """Return what was counted in the blocks of pairs that have read both metrics, which are per second."""
    pairs = [(one.candidate_metrics, one.incumbent_metrics) for one in result.pairs]
    return [
        (Block(tried[slow] * seconds, tried[of] * seconds), Block(before[slow] * seconds, before[of] * seconds))
        for tried, before in pairs
        if {slow, of} <= tried.keys() & before.keys()
    ]


def _learn(work: Work, state: LiveStudy, result: LiveResult, *, of_search: bool) -> None:
    """Take from a result what is in force, what is usual under it, and how much pairs differ.

    `of_search`: the trial has compared its candidate with the settings in force, and not with those before kept ones.
    """
    live, problem = work.spec.live, work.spec.problem
    assert live is not None
    if result.incumbent and of_search:
        if state.original is None:
            state.original = dict(result.incumbent)
        if state.incumbent is not None and not same_settings(state.incumbent, result.incumbent):
            # A person, or the agent's watch, has put other settings in force. What earlier steps gained is over.
            found = ", ".join(sorted(changes(state.incumbent, result.incumbent)))
            rolling.forget(work, state, f"Other settings were found in force than those of this study: {found}.")
        state.incumbent = dict(result.incumbent)
    if not result.pairs:
        return
    if state.baseline is None:
        names = {name for one in result.pairs for name in one.incumbent_metrics}
        means = {name: mean for name in names if (mean := result.before(name)) is not None and mean > 0}
        usual = math.exp(min(statistics.fmean(one.incumbent for one in result.pairs), 700.0))
        state.baseline = {**means, problem.metrics[0]: usual}
    squares, freedom = result.squares()
    state.squares, state.freedom = state.squares + squares, state.freedom + freedom
    for one in live.budget.values():
        rate = result.before(one.of)
        if rate is not None and rate > 0:
            state.rates = {**state.rates, one.of: rate}


def usual_of(state: LiveStudy) -> dict[str, float]:
    """Return the means of metrics under the settings in force, as far as they are known."""
    return scaled(state.baseline or {}, state.chain, dict.fromkeys(state.baseline or {}, 0.0))


def _as_read(result: LiveResult) -> dict[str, float]:
    """Return the means of the metrics under the candidate, for those that have no ratio, such as counts of errors."""
    names = {name for one in result.pairs for name in one.candidate_metrics}
    return {
        name: statistics.fmean(one.candidate_metrics[name] for one in result.pairs if name in one.candidate_metrics)
        for name in names
    }


def _guard(reason: str) -> str:
    """Return the metric of the guard that the candidate has broken; empty if it has broken none."""
    return (
        str(reason.values.get("metric", ""))
        if isinstance(reason, Reason) and reason.code in (BROKEN, JOB_FAILED)
        else ""
    )


def _keep(
    work: Work,
    state: LiveStudy,
    trial: Trial,
    result: LiveResult,
    ratios: Mapping[str, float],
    plan: Mapping[str, Any],
) -> None:
    if plan.get("places"):
        # Jobs have no instances.
        rolling.begin(work, state, trial, result, plan)
    state.incumbent = {**(state.incumbent or {}), **trial.params}
    state.chain = summed(state.chain, ratios)
    state.kept = [
        *state.kept,
        {
            "trial": trial.number,
            "params": dict(trial.params),
            "effect": result.effect,
            "low": result.low,
            "high": result.high,
            "pairs": len(result.pairs),
            "instances": rolling.kept_on(plan, result),
            "at": work.time.isoformat(),
            "in_force": True,
        },
    ]


def _notify(work: Work, trial: Trial, result: LiveResult, reason: str, guard: str) -> None:
    code = reason.code if isinstance(reason, Reason) else ""
    text, kind = first_line(reason), None
    if code == STUCK:
        kind = Kind.LIVE_STUCK
    elif guard:
        kind = Kind.LIVE_GUARD
    elif result.kept:
        kind = Kind.LIVE_KEPT
        shown = ", ".join(f"{name}={value}" for name, value in sorted(trial.params.items()))
        text = _ratio(result, f"{ratio_text(result)} in {len(result.pairs)} pairs: {shown}.", shown)
    elif result.decision in (HARM, "stopped"):
        kind = Kind.LIVE_REVERTED
        text = text or _ratio(result, f"{ratio_text(result)} in {len(result.pairs)} pairs.", "")
    if kind is not None:
        said = f"Trial {trial.number}: {text}" if text else f"Trial {trial.number}."
        why = Reason(said, "live_of_trial", trial=trial.number, **quoted(text))
        notices.add(work.principal, kind, study=work.study.name, reason=why)


def _ratio(result: LiveResult, text: str, settings: str) -> Reason:
    """Return the sentence on the ratio of a trial, with the settings that were kept, if any."""
    values = {"effect": result.effect, "low": result.low, "high": result.high, "pairs": len(result.pairs)}
    return Reason(text, "live_ratio", **values, settings=settings)


def ratio_text(result: LiveResult) -> str:
    """Return the ratio candidate/incumbent as people read it."""
    if result.effect is None:
        return "nothing was measured"
    said = f"{100 * math.expm1(result.effect):+.1f} %"
    if result.low is None or result.high is None:
        return said
    return f"{said} (95 %: {100 * math.expm1(result.low):+.1f} to {100 * math.expm1(result.high):+.1f})"


def _freeze(work: Work, state: LiveStudy) -> None:
    """Pause a study whose trials break guards too often."""
    live = work.spec.live
    assert live is not None
    often = state.broken >= LEAST_BROKEN and state.broken > live.freeze * state.settled
    if not often or work.study.state != StudyState.ACTIVE:
        return
    share = 100 * state.broken / state.settled
    text = (
        f"{state.broken} of {state.settled} live trials broke a guard ({share:.1f} %), and {100 * live.freeze:g} % may."
        " Look at these trials, make `live.step` smaller or a guard's time longer, and resume the study."
    )
    values = {"broken": state.broken, "settled": state.settled, "freeze": live.freeze}
    actions.step_study(work, StudyState.PAUSED, Reason(text, "live_frozen", **values))
    notices.study_failed(work)


def _meaning(work: Work, outcome: str, metrics: dict[str, float], reason: str, result: LiveResult) -> Meaning:
    if outcome != "completed":
        return Meaning(outcome, {}, reason)
    if result.effect is None:
        # The window has closed before the first pair, so that another time is better. For anything else, such as a
        # budget that the agent takes for used up, the trial would come back at once, again and again.
        return Meaning("released" if result.decision == "window" else "failed", {}, reason or _NO_PAIR)
    missing = [name for name in work.spec.problem.needed_metrics if name not in metrics]
    if missing:
        text = f"The agent has sent no readings of the metric {missing[0]} in both blocks of a pair."
        return Meaning("failed", {}, Reason(text, "live_no_value", metric=missing[0]))
    return Meaning(outcome, metrics, reason)
