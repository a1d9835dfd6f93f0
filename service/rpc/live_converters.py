"""Translate messages about live trials to plain Python and back. What an agent sends too much of is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from google.protobuf.message import Message

from service._gen import agent_pb2, tuning_pb2
from service.core.live_instances import Instance, InstanceStatus, Look, Reading
from service.core.live_results import DECISIONS, Entry, LiveResult, Pair
from service.core.space import Configuration
from service.fleet.leases import plain
from service.fleet.live import Listing
from service.live.status import LiveStatus, PlanStatus, RolloutStatus
from service.rpc.values import plain_value, set_values

_MOST_PAIRS, _MOST_ENTRIES, _MOST_NAMED, _LONGEST_NAME, _LONGEST_TEXT = 1000, 1000, 100, 200, 2000
_MOST_LOOKS = 200


def component_json(message: agent_pb2.LiveComponent) -> dict[str, Any]:
    """Return what a component says of its live system, in its JSON form."""
    return {
        "restart": list(message.restart),
        "forbidden": list(message.forbidden),
        "guards": [_guard_json(one) for one in message.guards],
        "warm_up": message.warm_up,
        "block": message.block,
    }


def _guard_json(message: agent_pb2.LiveGuard) -> dict[str, Any]:
    kind = message.WhichOneof("limit")
    limit: dict[str, Any] = {} if kind is None else {kind: getattr(message, kind)}
    return {"name": message.name, "metric": message.metric, "for_seconds": message.for_seconds, **limit}


def live_result(message: tuning_pb2.LiveResult) -> LiveResult:
    """Return what an agent has found in a live trial. A pair whose values are not finite counts as none."""
    pairs = [_pair(one) for one in message.pairs[:_MOST_PAIRS]]
    known = tuple(one for one in pairs if math.isfinite(one.candidate) and math.isfinite(one.incumbent))
    effect = _finite(message, "effect")
    return LiveResult(
        decision=message.decision if message.decision in DECISIONS else "",
        pairs=known,
        # Without a pair, there is nothing that an effect could rest on.
        effect=effect if known else None,
        low=_finite(message, "low") if known else None,
        high=_finite(message, "high") if known else None,
        deviation=message.deviation if math.isfinite(message.deviation) else 0.0,
        cost=_numbers(message.cost),
        incumbent=_settings(message.incumbent),
        instances=tuple(plain(one, _LONGEST_NAME) for one in message.instances[:_MOST_NAMED]),
        kept=message.kept and effect is not None and bool(known),
        rolled_back=message.rolled_back,
        audit=tuple(
            Entry(
                one.time if math.isfinite(one.time) else 0.0,
                plain(one.kind, _LONGEST_NAME),
                plain(one.text, _LONGEST_TEXT),
                plain(one.hash, _LONGEST_NAME),
            )
            for one in message.audit[:_MOST_ENTRIES]
        ),
    )


def instance(message: tuning_pb2.LiveInstance) -> Instance:
    """Return what an agent has seen of an instance. What it sends too much of is left out."""
    return Instance(
        component=plain(message.component, _LONGEST_NAME),
        instance=plain(message.instance, _LONGEST_NAME),
        state=message.state,
        lease=plain(message.lease, _LONGEST_NAME),
        phase=plain(message.phase, _LONGEST_NAME),
        left=message.left if math.isfinite(message.left) else 0.0,
        candidate=message.candidate,
        settings=_settings(message.settings),
        reason=plain(message.reason, _LONGEST_TEXT),
        guards=tuple(
            Reading(
                name=plain(one.name, _LONGEST_NAME),
                metric=plain(one.metric, _LONGEST_NAME),
                above=one.above,
                limit=_finite(one, "limit"),
                value=_finite(one, "value"),
                seconds=one.seconds if math.isfinite(one.seconds) else 0.0,
                beyond=one.beyond if math.isfinite(one.beyond) else 0.0,
            )
            for one in message.guards[:_MOST_NAMED]
        ),
        looks=tuple(
            Look(one.at, one.value, one.effect, _finite(one, "low"), _finite(one, "high"))
            for one in message.looks[-_MOST_LOOKS:]
            if all(map(math.isfinite, (one.at, one.value, one.effect)))
        ),
        pairs=message.pairs,
    )


def instance_message(status: InstanceStatus) -> tuning_pb2.LiveInstance:
    """Return an instance with what the service knows of it as a message."""
    seen = status.seen
    message = tuning_pb2.LiveInstance(
        component=seen.component,
        instance=seen.instance,
        state=seen.state,
        lease=seen.lease,
        phase=seen.phase,
        left=seen.left,
        candidate=seen.candidate,
        reason=seen.reason,
        guards=[tuning_pb2.LiveReading(**asdict(one)) for one in seen.guards],
        looks=[tuning_pb2.LiveLook(**asdict(one)) for one in seen.looks],
        pairs=seen.pairs,
        agent=status.agent,
        study=status.study,
        trial=status.trial or 0,
    )
    set_values(message.settings, seen.settings)
    message.seen_at.FromDatetime(status.seen_at)
    if status.revert_at is not None:
        message.revert_at.FromDatetime(status.revert_at)
    return message


def _settings(given: Mapping[str, tuning_pb2.Value]) -> Configuration:
    found: Configuration = {}
    for name in sorted(given)[:_MOST_NAMED]:
        value = given[name]
        if value.WhichOneof("kind") is not None:
            scalar = plain_value(name, value)
            found[plain(name, _LONGEST_NAME)] = plain(scalar, _LONGEST_TEXT) if isinstance(scalar, str) else scalar
    return {name: value for name, value in found.items() if not isinstance(value, float) or math.isfinite(value)}


def _pair(message: tuning_pb2.LivePair) -> Pair:
    return Pair(
        message.candidate_first,
        message.candidate,
        message.incumbent,
        message.load if math.isfinite(message.load) else 0.0,
        _numbers(message.candidate_metrics),
        _numbers(message.incumbent_metrics),
        message.began if math.isfinite(message.began) else 0.0,
    )


def _numbers(given: Mapping[str, float]) -> dict[str, float]:
    names = sorted(given)[:_MOST_NAMED]
    return {plain(name, _LONGEST_NAME): given[name] for name in names if math.isfinite(given[name])}


def _finite(message: Message, field: str) -> float | None:
    value: float = getattr(message, field)
    return value if message.HasField(field) and math.isfinite(value) else None


def result_message(result: LiveResult, seed: str = "", commitment: str = "") -> tuning_pb2.LiveResult:
    """Return the result of a live trial as a message, with the coin's seed once it is revealed."""
    message = tuning_pb2.LiveResult(
        decision=result.decision,
        deviation=result.deviation,
        cost=result.cost,
        instances=result.instances,
        kept=result.kept,
        rolled_back=result.rolled_back,
        seed=seed,
        commitment=commitment,
    )
    for name in ("effect", "low", "high"):
        if (value := getattr(result, name)) is not None:
            setattr(message, name, value)
    set_values(message.incumbent, result.incumbent)
    for pair in result.pairs:
        message.pairs.add(
            candidate_first=pair.candidate_first,
            candidate=pair.candidate,
            incumbent=pair.incumbent,
            load=pair.load,
            candidate_metrics=pair.candidate_metrics,
            incumbent_metrics=pair.incumbent_metrics,
            began=pair.began,
        )
    for entry in result.audit:
        message.audit.add(time=entry.time, kind=entry.kind, text=entry.text, hash=entry.hash)
    return message


def plan_message(plan: Mapping[str, Any]) -> agent_pb2.LivePlan:
    """Return the plan of a live trial as a message."""
    own = {name: value for name, value in plan.items() if name not in ("original", "guards", "budgets", "fleet")}
    message = agent_pb2.LivePlan(**own)
    message.guards.extend(agent_pb2.LiveGuard(**one) for one in plan["guards"])
    message.budgets.extend(agent_pb2.LiveBudget(**one) for one in plan["budgets"])
    set_values(message.original, plan["original"])
    return message


def listing_message(listing: Listing) -> tuning_pb2.ListLiveResponse:
    """Return the live studies of a tenant as a message."""
    briefs = [
        tuning_pb2.LiveBrief(
            study=one.name,
            state=tuning_pb2.StudyState.Value(f"STUDY_STATE_{one.state}"),
            state_reason=one.state_reason,
            component=one.component,
            application=one.application,
            waiting=one.waiting,
            running=one.running,
        )
        for one in listing.studies
    ]
    instances = [instance_message(one) for one in listing.instances]
    return tuning_pb2.ListLiveResponse(studies=briefs, left_off=listing.left_off, instances=instances)


def status_message(status: LiveStatus) -> tuning_pb2.LiveStatus:
    """Return the state of a live study as a message."""
    study = status.study
    message = tuning_pb2.LiveStatus(
        study=study.name,
        state=tuning_pb2.StudyState.Value(f"STUDY_STATE_{study.state}"),
        state_reason=study.state_reason,
        known=status.known,
        settled=status.settled,
        broken=status.broken,
        deviation=status.deviation,
    )
    set_values(message.in_force, status.in_force)
    set_values(message.original, status.original)
    for plan in status.plans:
        _set_plan(message.plans.add(), plan)
    for kept in status.kept:
        shown = message.kept.add(
            trial=kept["trial"],
            pairs=kept["pairs"],
            instances=kept["instances"],
            in_force=kept["in_force"],
            reason=kept.get("reason", ""),
        )
        set_values(shown.params, kept["params"])
        shown.at.FromDatetime(datetime.fromisoformat(kept["at"]))
        _set_known(shown, kept, "effect", "low", "high")
    message.instances.extend(instance_message(one) for one in status.instances)
    for budget in status.budgets:
        room = message.budgets.add(
            name=budget.name,
            metric=budget.metric,
            of=budget.of,
            per=budget.per,
            spent=budget.spent,
            worst=budget.worst,
        )
        room.began_at.FromDatetime(budget.began_at)
        _set_known(room, {"limit": budget.limit, "left": budget.left}, "limit", "left")
    if (jobs := status.jobs) is not None:
        for name in ("record", "matched", "days", "candidates", "open", "counted", "void", "reason"):
            setattr(message.jobs, name, getattr(jobs, name))
        message.jobs.reason_code = jobs.reason_data["code"] if jobs.reason_data else ""
        _set_known(message.jobs, {"share": jobs.share}, "share")
    if status.rollout is not None:
        message.rollout.CopyFrom(_rollout_message(status.rollout))
    for check in status.checks:
        row = message.checks.add(trial=check["trial"], pairs=check["pairs"], steps=check["steps"])
        row.at.FromDatetime(datetime.fromisoformat(check["at"]))
        _set_known(row, check, "effect", "low", "high")
    return message


def _rollout_message(rollout: RolloutStatus) -> tuning_pb2.LiveRollout:
    message = tuning_pb2.LiveRollout(
        trial=rollout.trial,
        state=rollout.state,
        stage=rollout.stage,
        stages=rollout.stages,
        in_force=rollout.in_force,
        waiting=rollout.waiting,
        held_back=rollout.held_back,
        reason=rollout.reason,
        checks=rollout.checks,
    )
    message.due_at.FromDatetime(rollout.due_at)
    if rollout.watched_until is not None:
        message.watched_until.FromDatetime(rollout.watched_until)
    return message


def _set_plan(message: tuning_pb2.LivePlanStatus, plan: PlanStatus) -> None:
    message.trial, message.state, message.reason = plan.trial, plan.state, plan.reason
    message.trial_state = tuning_pb2.TrialState.Value(f"TRIAL_STATE_{plan.trial_state}")
    message.restarts, message.people = plan.restarts, plan.people
    message.approved_by.extend(one["actor"] for one in plan.approvals)
    message.expires_at.FromDatetime(plan.expires_at)
    set_values(message.before, {name: one[0] for name, one in plan.changes.items() if one[0] is not None})
    set_values(message.after, {name: one[1] for name, one in plan.changes.items()})
    _set_known(message, {"expected": plan.expected, "worst": plan.worst}, "expected", "worst")


def _set_known(message: Message, values: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if values[name] is not None:
            setattr(message, name, values[name])
