"""The plan of the pairs of a live trial, which its agent gets with the lease, and the seed of their coin."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from service.core.live_results import deviation_of
from service.live.models import LiveLease, Plan
from service.live.permission import Permission, seconds_left
from service.live.system import Offered, state_of
from service.policies.rollout import WATCH, first_places
from service.studies.change import Snapshot, Work
from service.studies.live_spec import MOST_PAIRS, PERIODS
from service.studies.models import Trial
from service.tenancy import access
from service.trials import rollouts
from trimtab_components.pairs import commitment

_SEED_BYTES = 32
# The limit of a budget that is not known yet.
UNKNOWN = -1.0


def begin(work: Work, trial: Trial, lease: str, plan: Plan, permission: Permission, offered: Offered) -> LiveLease:
    """Draw the coin of a lease and store what its agent is told. The audit trail gets the commitment, not the seed."""
    seed = secrets.token_hex(_SEED_BYTES)
    told = _plan(work, trial, permission, offered, seed)
    row = LiveLease(
        lease=lease,
        study_id=work.study.pk,
        trial=trial,
        seed=seed,
        commitment=commitment(seed),
        plan=told,
        guards=[*offered.guards, *told["guards"]],
    )
    return access.add(work.principal, row)


def told(found: Snapshot, lease: str) -> Mapping[str, Any] | None:
    """Return the plan of a lease as its agent gets it now: some of the window may have passed since the grant."""
    row = access.rows(LiveLease, found.principal).filter(lease=lease).first()
    live = found.spec.live
    if row is None or live is None:
        return None
    plan = access.rows(Plan, found.principal).filter(pk=row.trial_id).first()
    stored: dict[str, Any] = row.plan
    if not stored["seconds_left"]:
        return stored
    # An answer of 0 would mean that there is no window.
    return {**stored, "seconds_left": max(1.0, seconds_left(live, bool(plan and plan.restarts), found.time))}


def _plan(work: Work, trial: Trial, permission: Permission, offered: Offered, seed: str) -> dict[str, Any]:
    live, objective = work.spec.live, work.spec.problem.objectives[0]
    assert live is not None
    state = state_of(work.principal, work.study)
    return {
        **_step(work, trial, offered, deviation_of(state.squares, state.freedom)),
        "warm_up": offered.warm_up if live.warm_up is None else live.warm_up,
        "block": offered.block if live.block is None else live.block,
        "min_gain": live.min_gain,
        "objective": objective.metric,
        "maximize": objective.goal == "maximize",
        "seed": seed,
        "keep": True,
        "guards": [
            {"name": name, "metric": one.metric, one.kind: one.limit, "for_seconds": one.seconds}
            for name, one in live.guards.items()
        ],
        "budgets": [
            {
                "name": name,
                "slow": one.metric,
                "of": one.of,
                "left": UNKNOWN if (left := permission.rooms[name].left) is None else left,
                "most": one.most,
                "period": PERIODS[one.per],
            }
            for name, one in live.budget.items()
        ],
        "seconds_left": permission.seconds_left,
        "original": state.original or {},
    }


def _step(work: Work, trial: Trial, offered: Offered, deviation: float) -> dict[str, Any]:
    """Return which instances a trial compares and how: a candidate of the search, or a step of a roll-out."""
    live, rollout = work.spec.live, rollouts.of(work.study)
    assert live is not None
    fleet = (work.study.application,) if work.study.application else offered.instances
    least, most = live.pairs.least, live.pairs.most
    # `fleet` stays here: it says later which instances kept settings may go to.
    found: dict[str, Any] = {"fleet": list(fleet), "step": "", "in_force": [], "durable": False, "earlier": []}
    found |= {"least_pairs": least, "most_pairs": most, "deviation": deviation}
    if trial.origin != rollouts.ORIGIN or rollout is None:
        free = fleet if rollout is None else rollout.in_force
        design = design_of(live.design, free)
        first = live.rollout[0]
        count = min(len(free), (2 if design == "crossover" else 1) if isinstance(first, str) else first)
        return {**found, "design": design, "places": list(first_places(free, design, count)), "instances": count}
    step = rollout.next_step()
    found |= {"step": step.kind, "durable": step.durable, "in_force": list(rollout.in_force)}
    found |= {"design": step.design, "places": list(step.places), "instances": step.count}
    if step.kind == WATCH:
        earlier = list(rollout.effects)
        found |= {"earlier": earlier, "deviation": rollout.deviation or deviation}
        found |= {"least_pairs": len(earlier) + least, "most_pairs": min(MOST_PAIRS, len(earlier) + most)}
    return found


def design_of(wanted: str, free: Sequence[str]) -> str:
    """Return how the instances with the settings in force are compared: two of them swap if there are several.

    One that is alone compares its own blocks, also where the study wants another design.
    """
    if len(free) < 2:
        return "switchback"
    return "crossover" if wanted == "auto" else wanted
