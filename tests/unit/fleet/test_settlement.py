"""Results, failures and expired leases, against a real PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.core.errors import InvalidInput
from service.core.reasons import data_of
from service.fleet import heartbeats, leases, runs
from service.fleet.models import Lease
from service.planning.create import update_state
from service.studies import selectors as study_selectors
from service.studies.change import Work
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending
from service.trials.tell import MOST_ATTEMPTS
from tests.factories.domain import make_principal
from tests.factories.fleet import AGENT, acquire, create, expire, refused, register, settle, study, trial


def test_an_expired_trial_is_tried_again_and_fails_after_three_attempts(principal: Principal, agent: str) -> None:
    name = create(principal)
    for attempt in (1, 2, 3):
        (grant,) = acquire(principal)
        assert (grant.trial, grant.attempt) == (1, attempt)
        runs.report_measurement(principal, agent_id=agent, lease=grant.lease, step=1, metrics={"seconds": attempt})
        expire(principal)
    failed = study_selectors.get_trial(principal, name, 1)
    assert failed.trial.state == "FAILED"
    assert AGENT in failed.trial.reason
    assert [one.metrics for one in failed.measurements] == [{"seconds": 3.0}]
    assert study(principal, name).open_count == 2


def test_one_study_whose_end_raises_holds_up_no_other_tenants_lease(
    principal: Principal, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_principal()
    register(other)
    for one in (principal, other):
        create(one)
        acquire(one)
    # Its attempts are used up, so that its expiry ends it.
    access.rows(Trial, principal).filter(state="ACTIVE").update(attempt=MOST_ATTEMPTS)
    broken, after_result = principal.tenant_id, ending.after_result

    def end(work: Work) -> None:
        if work.study.tenant_id == broken:
            raise RuntimeError("the stored state cannot be loaded")
        after_result(work)

    monkeypatch.setattr(ending, "after_result", end)
    for seconds, one in enumerate((other, principal), start=1):
        access.rows(Lease, one).update(expires_at=Now() - timedelta(seconds=seconds))
    late = leases.overdue()
    assert [tenant_id for tenant_id, _, _ in late] == [principal.tenant_id, other.tenant_id]
    leases.expire(late)
    assert [access.rows(Lease, one).get().state for one in (principal, other)] == ["HELD", "EXPIRED"]
    # After the repair the next sweep takes that lease back too.
    broken = 0
    leases.expire(leases.overdue())
    assert access.rows(Lease, principal).get().state == "EXPIRED"


def test_a_failure_is_tried_again_and_an_infeasible_configuration_is_not(principal: Principal, agent: str) -> None:
    name = create(principal)
    for attempt in (1, 2, 3):
        (grant,) = acquire(principal)
        assert (grant.trial, grant.attempt) == (1, attempt)
        settle(principal, grant, "failed", reason="disk full")
    assert (trial(principal, name, 1).state, trial(principal, name, 1).reason) == ("FAILED", "disk full")
    (grant,) = acquire(principal)
    settle(principal, grant, "infeasible", reason="does not compile")
    assert trial(principal, name, grant.trial).state == "INFEASIBLE"


def test_what_a_policy_refuses_uses_up_no_budget(principal: Principal, agent: str) -> None:
    name = create(principal, {"max_trials": 2})
    refusal: dict[str, Any] = {
        "reason": "Not allowed: partition 'long'.",
        "reason_code": "policy_refused",
    }
    for _ in range(MOST_ATTEMPTS):
        (grant,) = acquire(principal)
        settle(principal, grant, "failed", **refusal)
    assert trial(principal, name, grant.trial).state == "FAILED"
    paused = study(principal, name)
    assert paused.state == "PAUSED"
    assert paused.state_reason.startswith("The policy of an agent refuses the jobs: Not allowed: partition")
    # The policy is changed: the whole budget is there.
    update_state(principal, name, "ACTIVE")
    for _ in range(2):
        assert study(principal, name).state == "ACTIVE"
        (grant,) = acquire(principal)
        settle(principal, grant)
    assert acquire(principal) == []
    assert study(principal, name).state == "COMPLETED"
    assert study(principal, name).state_reason == "All 2 trials of the budget are done."


def test_the_same_failure_ten_times_in_a_row_pauses_the_study(principal: Principal, agent: str) -> None:
    name = create(principal, {"max_trials": 40})

    def fail(count: int, reason: str) -> None:
        for number in range(count):
            (grant,) = acquire(principal)
            # paths of the trials' folders do not make failures different
            where = f"/state/leases/lease-{grant.lease}/work"
            settle(principal, grant, "infeasible", reason=f"{where}: {reason}\noutput {number}")

    fail(9, "ran into its time limit")
    (grant,) = acquire(principal)
    settle(principal, grant)
    fail(9, "exit code 1")
    assert study(principal, name).state == "ACTIVE"
    fail(1, "exit code 1")
    paused = study(principal, name)
    assert paused.state == "PAUSED"
    assert paused.state_reason.startswith(
        "10 trials in a row are INFEASIBLE for the same reason: /state/leases/lease-…/work: exit code 1"
    )
    assert acquire(principal) == []

    update_state(principal, name, "ACTIVE")
    fail(9, "exit code 1")
    assert study(principal, name).state == "ACTIVE", "who resumes it is given ten more"
    fail(1, "exit code 1")
    assert study(principal, name).state_reason.startswith("20 trials in a row")
    update_state(principal, name, "ACTIVE")
    (grant,) = acquire(principal)
    settle(principal, grant)
    assert study(principal, name).state == "ACTIVE"


def test_a_trial_that_was_given_back_loses_no_attempt(principal: Principal, agent: str) -> None:
    create(principal)
    for _ in range(5):
        (grant,) = acquire(principal)
        assert (grant.trial, grant.attempt) == (1, 1)
        settle(principal, grant, "released")


def test_one_settlement_counts(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    with pytest.raises(InvalidInput):
        runs.settle(principal, agent_id=agent, lease=grant.lease, outcome="completed", metrics={"other": 1})
    for _ in range(2):
        settle(principal, grant, seconds=2.0)
    refused("lease_already_settled", lambda: settle(principal, grant, seconds=3.0))
    refused("lease_already_settled", lambda: settle(principal, grant, "failed"))
    assert trial(principal, name, 1).metrics == {"seconds": 2.0}
    assert study(principal, name).finished_count == 1


def test_a_reason_with_binary_output_is_kept(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    for _ in range(2):
        settle(principal, grant, "infeasible", reason="ended with exit code 1\nab\0c")
    assert (trial(principal, name, 1).state, trial(principal, name, 1).reason) == (
        "INFEASIBLE",
        "ended with exit code 1\nabc",
    )


def test_a_late_result_counts_while_no_other_agent_has_the_trial(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    expire(principal)
    assert trial(principal, name, 1).state == "REQUESTED"
    refused("lease_lost", lambda: settle(principal, grant, "failed"))
    for _ in range(2):
        settle(principal, grant, seconds=2.0)
    assert (trial(principal, name, 1).state, trial(principal, name, 1).agent) == ("COMPLETED", AGENT)
    assert study(principal, name).finished_count == 1


def test_a_late_result_is_refused_once_another_has_the_trial(principal: Principal, agent: str) -> None:
    name = create(principal)
    (late,) = acquire(principal)
    expire(principal)
    (current,) = acquire(principal)
    assert (current.trial, current.attempt) == (1, 2)
    refused("lease_lost", lambda: settle(principal, late))
    refused("lease_lost", lambda: runs.report_started(principal, agent_id=agent, lease=late.lease))
    settle(principal, current, seconds=4.0)
    refused("lease_lost", lambda: settle(principal, late))
    assert trial(principal, name, 1).metrics == {"seconds": 4.0}


def test_leases_belong_to_their_agent(principal: Principal, agent: str) -> None:
    create(principal)
    (grant,) = acquire(principal)
    register(principal, "agent-2")
    refused(
        "lease_lost",
        lambda: runs.settle(
            principal, agent_id="agent-2", lease=grant.lease, outcome="completed", metrics={"seconds": 1.0}
        ),
    )
    assert heartbeats.renew(principal, agent_id="agent-2", leases=[grant.lease]).lost == [grant.lease]


def test_an_agents_reason_keeps_its_code(principal: Principal, agent: str) -> None:
    create(principal)
    text = "ended with exit code 3\nno such file"
    [grant] = acquire(principal)
    settle(principal, grant, "infeasible", reason=text, reason_code="application_failed", reason_values={"code": "3"})
    ended = trial(principal, grant.study, grant.trial)
    assert data_of(ended.reason, ended.reason_data) == {"code": "application_failed", "values": {"code": "3"}}
    [grant] = acquire(principal)
    settle(principal, grant, "infeasible", reason=text, reason_code="no code", reason_values={"code": "3"})
    ended = trial(principal, grant.study, grant.trial)
    assert (ended.reason, ended.reason_data) == (text, None)
