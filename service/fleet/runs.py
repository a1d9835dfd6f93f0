"""Reports of agents on leased trials: start, measurements, end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, get_args

from service.core.errors import Conflict, InvalidInput, JsonValue
from service.core.interference import Interference
from service.core.lifecycle import LeaseState, TrialState, check_step
from service.core.live_results import LiveResult
from service.core.reasons import Reason
from service.fleet import agents, failures
from service.fleet.leases import expect_held, find_lease, is_untouched, lock_lease, plain, read_lease, return_trial
from service.fleet.models import Lease
from service.live import results as live_results
from service.live import silent
from service.studies import actions
from service.studies.change import Work, changing
from service.studies.models import Measurement
from service.studies.models.trial import DOUBT_LENGTH, MACHINE_LENGTH, NODE_LENGTH
from service.studies.specs import LONGEST_SECONDS
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tenancy.statements import Update
from service.trials import tell

# The code of the reason why an agent's policy refuses a job.
POLICY_REFUSED = "policy_refused"
Outcome = Literal["completed", "infeasible", "failed", "cancelled", "released"]
# The maximum size of an invocation, in characters of JSON.
LARGEST_INVOCATION = 256 * 1024
# The form of a reason's code, and the maximum number and length of its values.
_CODE = re.compile(r"[a-z_]{1,50}")
_MOST_VALUES, _LONGEST_VALUE = 10, 1000

_start = Update(Lease, "started_at", "node", "run", "invocation")
_start_again = Update(Lease, "run", "invocation")
_settle = Update(Lease, "state", "settlement", "settled_at", "node")


def report_started(
    principal: Principal,
    *,
    agent_id: str,
    lease: str,
    node: str = "",
    run: int = 0,
    invocation: Mapping[str, JsonValue] | None = None,
) -> None:
    """Record that an agent has started the process of a trial.

    `run` is the number of the run within the lease; 0: the agent counts no runs. `invocation` says what runs, for
    people. Raises InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_lost`).
    """
    _check_run(run)
    check_invocation("invocation", invocation)
    agent = agents.known(principal, agent_id)
    found = find_lease(principal, agent, lease)
    with changing(principal, found.study_id, "trial.start") as work:
        held = read_lease(principal, agent, found)
        expect_held(held)
        work.target = f"trial/{held.trial.number}"
        if held.started_at is not None:
            if run > held.run:
                _begin_run(principal, held, run)
                held.invocation = invocation
                _start_again(principal, held)
                if held.trial.state == TrialState.ACTIVE:
                    work.detail = {"run": run}
                    actions.touch_trial(work, held.trial)
            return
        held.run, held.invocation = max(run, held.run), invocation
        held.started_at = work.time
        held.node = plain(node, NODE_LENGTH)
        _start(principal, held)
        if held.trial.state == TrialState.ACTIVE:
            # Since the grant the agent has built and prepared. The trial itself starts now.
            work.detail = {"node": held.node}
            actions.begin_trial(work, held.trial, held.node)


def report_measurement(
    principal: Principal,
    *,
    agent_id: str,
    lease: str,
    step: int,
    metrics: Mapping[str, object],
    elapsed_seconds: float | None = None,
    run: int = 0,
) -> bool:
    """Store a measurement of a leased trial. Return True if the trial was stopped, so that the agent must cancel it.

    The first measurement of a newer `run` replaces all measurements of earlier runs. A measurement of an earlier run
    is ignored. Raises InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_lost`, `step_already_reported`).
    """
    _check_run(run)
    agent = agents.known(principal, agent_id)
    found = find_lease(principal, agent, lease)
    with changing(principal, found.study_id, "trial.report", detail={"step": step}) as work:
        held = lock_lease(work, found.id)
        expect_held(held)
        trial = held.trial
        work.target = f"trial/{trial.number}"
        if trial.state != TrialState.ACTIVE:
            return True
        if 0 < run < held.run:
            return False
        if run > held.run:
            _begin_run(principal, held, run)
            access.save(principal, held, "run")
        if not tell.measure(work, trial, step, metrics, elapsed_seconds):
            return False
        return tell.prune(work, trial, elapsed_seconds)


def settle(
    principal: Principal,
    *,
    agent_id: str,
    lease: str,
    outcome: Outcome,
    metrics: Mapping[str, object] | None = None,
    reason: str = "",
    reason_code: str = "",
    reason_values: Mapping[str, str] | None = None,
    elapsed_seconds: float | None = None,
    node: str = "",
    doubt: str = "",
    interference: Interference | None = None,
    machine: str = "",
    live: LiveResult | None = None,
) -> None:
    """End a lease with the outcome of its trial. A repeated call changes nothing.

    `reason_code` and `reason_values` stand for the first line of the reason. `node` and `machine`: where the trial ran,
    empty if it did not run. `doubt`: why its timing may be wrong. `interference`: what the agent measured of other
    processes; None: nothing. `live`: what a live trial has found. An expired lease may still be settled with a result
    until another agent gets the trial; the cost of a live trial counts in any case. Raises InvalidInput, NotFound
    (`unknown_agent`), Conflict (`lease_already_settled`, `lease_lost`).
    """
    if outcome not in get_args(Outcome):
        raise InvalidInput("outcome", outcome, ", ".join(get_args(Outcome)))
    if elapsed_seconds is not None:
        # A result counts even if the clock of its machine is wrong.
        elapsed_seconds = min(max(elapsed_seconds, 0.0), LONGEST_SECONDS)
    reason = _reason(reason, reason_code, reason_values or {})
    agent = agents.known(principal, agent_id)
    found = find_lease(principal, agent, lease)
    detail = {"lease": lease, "outcome": outcome}
    late = silent.counting_cost(principal, found.study_id, found.id, live)
    with late, changing(principal, found.study_id, "lease.settle", detail=detail) as work:
        held = read_lease(principal, agent, found)
        trial = held.trial
        work.target = f"trial/{trial.number}"
        is_live = work.spec.live is not None
        measured = tell.check_metrics(work, metrics or {}) if outcome == "completed" and not is_live else {}
        settlement: dict[str, JsonValue] = {
            "outcome": outcome,
            "metrics": dict(measured),
            "reason": reason,
            "elapsed_seconds": elapsed_seconds,
        }
        if is_live and live is not None:
            settlement["live"] = {"decision": live.decision, "pairs": len(live.pairs), "effect": live.effect}
        if outcome == "failed" and isinstance(reason, Reason):
            settlement["code"] = reason.code
        if held.state == LeaseState.SETTLED:
            # A process of an earlier version has stored no code.
            if settlement | (held.settlement or {}) == settlement:
                return
            raise Conflict("lease_already_settled", f"Lease {lease} was settled as {_outcome(held)}.")
        work.revise()
        work.slot_freed = True
        if held.state == LeaseState.EXPIRED:
            _take_back(work, held, outcome)
        check_step("lease", LeaseState(held.state), LeaseState.SETTLED)
        held.state = LeaseState.SETTLED
        held.settlement = settlement
        held.settled_at = work.time
        # A cluster may have started the job again on another node than the agent reported first.
        held.node = plain(node, NODE_LENGTH) or held.node
        _settle(principal, held)
        ended: str = outcome
        if is_live:
            meaning = live_results.settle(work, trial, lease, outcome, reason, live)
            ended, measured, reason = meaning.outcome, meaning.metrics, meaning.reason
            if trial.state != TrialState.ACTIVE:
                # A person has stopped it. What was measured until then is kept with it.
                actions.touch_trial(work, trial, "live")
        if trial.state == TrialState.ACTIVE:
            trial.seconds = elapsed_seconds
            trial.node = held.node
            trial.doubt = plain(doubt, DOUBT_LENGTH)
            trial.interference = _interference(work, interference)
            trial.machine = plain(machine, MACHINE_LENGTH)
            _apply(work, held, ended, measured, reason)
        elif trial.attempt == held.attempt and trial.node != held.node:
            trial.node = held.node
            actions.touch_trial(work, trial, "node")


def _interference(work: Work, measured: Interference | None) -> dict[str, JsonValue] | None:
    """Return what is stored of the measured interference. Of `unaffected`, only metrics that the study needs count."""
    if measured is None:
        return None
    needed = set(work.spec.problem.needed_metrics)
    return replace(measured, unaffected=tuple(one for one in measured.unaffected if one in needed)).to_json()


def _reason(text: str, code: str, values: Mapping[str, str]) -> str:
    """Return the reason of an agent, with its code unless code or values are larger than any that it sends."""
    # It contains the last output of the application, which may hold any character.
    said = plain(text)
    small = len(values) <= _MOST_VALUES and all(len(one) <= _LONGEST_VALUE for pair in values.items() for one in pair)
    if not small or not _CODE.fullmatch(code):
        return said
    return Reason(said, code, **{plain(name): plain(value) for name, value in values.items()})


def check_invocation(field: str, invocation: Mapping[str, JsonValue] | None) -> None:
    """Check that an invocation is small enough to be stored. Raises InvalidInput."""
    size = 0 if invocation is None else len(json.dumps(invocation))
    if size > LARGEST_INVOCATION:
        raise InvalidInput(field, f"{size} characters", f"at most {LARGEST_INVOCATION} characters as JSON")


def _check_run(run: int) -> None:
    if not 0 <= run < 2**31:
        raise InvalidInput("run", run, "0 or more")


def _begin_run(principal: Principal, lease: Lease, run: int) -> None:
    """Begin a new run, because the job was started again: the measurements of the earlier run are deleted."""
    if lease.run:
        access.rows(Measurement, principal).filter(trial_id=lease.trial_id).delete()
    lease.run = run


def _take_back(work: Work, lease: Lease, outcome: Outcome) -> None:
    """Hold an expired lease again so that its late result counts, if the trial still waits for another agent."""
    if outcome not in ("completed", "infeasible") or not is_untouched(lease):
        raise Conflict("lease_lost", f"Lease {lease.id} expired, and its trial was given to another agent or ended.")
    check_step("lease", LeaseState.EXPIRED, LeaseState.SETTLED)
    return_trial(work, lease)


def _apply(work: Work, lease: Lease, outcome: str, measured: Mapping[str, float], reason: str) -> None:
    trial = lease.trial
    if outcome == "completed":
        tell.finish(work, trial, TrialState.COMPLETED, metrics=measured, reason=reason)
    elif outcome == "infeasible":
        tell.finish(work, trial, TrialState.INFEASIBLE, reason=reason)
    elif outcome == "over":
        tell.finish(work, trial, TrialState.FAILED, reason=reason)
    elif outcome == "failed" and failures.shows_the_configuration(work, lease):
        tell.finish(work, trial, TrialState.INFEASIBLE, reason=failures.explained(reason))
    elif outcome == "failed" and isinstance(reason, Reason) and reason.code == POLICY_REFUSED:
        tell.refuse(work, trial, reason)
    else:
        # A trial that was given back without a run costs no attempt; a failure or an agent's cancellation costs one.
        tell.try_again(work, trial, reason, counted=outcome != "released")


def _outcome(lease: Lease) -> str:
    return str((lease.settlement or {}).get("outcome", "unknown"))
