"""Live studies, and what their agents report, for tests of the domain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.core.live_results import Entry, LiveResult, Pair
from service.fleet import runs
from service.fleet.grants import Grant
from service.planning.create import create_study
from service.studies.models import Operation
from service.tenancy import access
from service.tenancy.principal import Principal
from service.workers import compute
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import AGENT, acquire, register

SPACE = {
    "parameters": [
        {"name": "size", "type": "int", "min": 1, "max": 64, "log": True, "default": 8},
        {"name": "share", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
        {"name": "restarting", "type": "int", "min": 1, "max": 4, "default": 2},
    ]
}
LIVE: Mapping[str, Any] = {
    "restart": ["restarting"],
    "forbidden": ["durable"],
    "guards": [{"name": "latency", "metric": "latency", "for_seconds": 5.0, "above_control": 1.5}],
    "warm_up": 2.0,
    "block": 10.0,
}
INCUMBENT: Mapping[str, Any] = {"size": 8, "share": 0.5, "restarting": 2}


def register_live(principal: Principal, **live: Any) -> None:
    register(principal, name="live", applications=["one"], metrics=[], live={**LIVE, **live})


def create_live(principal: Principal, live: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """Create a live study of the agent's component, and compute its first candidate."""
    spec = make_spec(
        space=SPACE,
        objectives=[{"metric": "latency", "goal": "minimize"}],
        execution=make_execution(component="live", application=""),
        live={"approve": "none"} if live is None else live,
        **changes,
    )
    name = create_study(principal, study_name(), spec).name
    compute_all(principal)
    return name


def compute_all(principal: Principal) -> None:
    """Do the work of a worker."""
    while waiting := list(access.rows(Operation, principal).filter(state="PENDING").values_list("id", flat=True)):
        for one in waiting:
            compute.compute(one)


def acquire_live(principal: Principal) -> list[Grant]:
    granted = acquire(principal)
    compute_all(principal)
    return granted


def pairs(
    effects: Sequence[float], *, level: float = 2.0, slow: float = 1.0, slow_before: float = 1.0, of: float = 200.0
) -> tuple[Pair, ...]:
    """Return pairs with these effects; `level` is the logarithm of the incumbent's latency."""
    return tuple(
        Pair(
            place % 2 == 0,
            level + effect,
            level,
            of,
            {"slow": slow, "requests": of, "memory": 0.5},
            {"slow": slow_before, "requests": of, "memory": 0.4},
            100.0 + place,
        )
        for place, effect in enumerate(effects)
    )


def journal(*kinds: str) -> tuple[Entry, ...]:
    """Return a journal whose hashes follow from each other."""
    found: list[Entry] = []
    before = ""
    for place, kind in enumerate(kinds):
        before = hashlib.sha256(f"{before}\n{place:.6f}\n{kind}\n{kind} it".encode()).hexdigest()
        found.append(Entry(float(place), kind, f"{kind} it", before))
    return tuple(found)


def result(effects: Sequence[float], decision: str = "most", *, kept: bool = False, **changes: Any) -> LiveResult:
    effect = sum(effects) / len(effects) if effects else None
    found = LiveResult(
        decision,
        pairs=pairs(effects),
        effect=effect,
        low=None if effect is None else effect - 0.05,
        high=None if effect is None else effect + 0.05,
        incumbent=dict(INCUMBENT),
        instances=("one",),
        kept=kept,
        audit=journal("plan", "apply", "switch", "keep" if kept else "revert"),
    )
    return replace(found, **changes)


def settle_live(principal: Principal, grant: Grant, found: LiveResult, outcome: Any = "completed") -> None:
    runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome=outcome, live=found)
    compute_all(principal)


def break_guard(principal: Principal, grant: Grant, metric: str = "latency", value: float = 30.0) -> None:
    """Settle a lease whose candidate has broken a guard."""
    runs.settle(
        principal,
        agent_id=AGENT,
        lease=grant.lease,
        outcome="infeasible",
        reason=f"guard {metric} was broken",
        reason_code="live_guard_broken",
        reason_values={"guard": metric, "metric": metric, "value": f"{value:g}", "limit": "20"},
        live=LiveResult("guard", incumbent=dict(INCUMBENT), instances=("one",), cost={"slow": 40.0}),
    )
    compute_all(principal)
