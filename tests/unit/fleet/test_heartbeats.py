"""Heartbeats of agents: renewal, cancellation and pruning, against a real PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.conf import settings
from django.db.models.functions import Now

from service.fleet import heartbeats, runs, tasks
from service.fleet.models import Lease
from service.planning.create import create_study
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.tell import stop_trial
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import AGENT, acquire, create, expire, refused, register, settle, study, trial


def test_a_heartbeat_renews_leases_and_lists_trials_to_cancel(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    one, two = acquire(principal, 2)
    before = access.rows(Lease, principal).get(id=one.lease).expires_at
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[one.lease, two.lease])
    assert (renewed.cancel, renewed.lost) == ([], [])
    assert access.rows(Lease, principal).get(id=one.lease).expires_at > before
    stop_trial(principal, name, one.trial, reason="too slow")
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[one.lease, two.lease, str(uuid4()), "odd"])
    assert renewed.cancel == [(one.lease, "too slow")]
    assert len(renewed.lost) == 2
    assert runs.report_measurement(principal, agent_id=agent, lease=one.lease, step=1, metrics={"seconds": 1.0})
    settle(principal, one, "cancelled")
    assert trial(principal, name, one.trial).state == "PRUNED"


def test_trials_continue_when_their_agent_is_heard_again(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    grants = acquire(principal, 2)
    expire(principal)
    assert acquire(principal, 2, held=grants) == [], "a call that was held while the agent was silent"
    assert heartbeats.stops(principal, agent_id=agent, leases=[grant.lease for grant in grants]).lost == [], "another"
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[grant.lease for grant in grants])
    assert (renewed.cancel, renewed.lost) == ([], [])
    assert study(principal, name).active_count == 2
    for grant in grants:
        found = trial(principal, name, grant.trial)
        assert (found.state, found.attempt, found.agent) == ("ACTIVE", 1, AGENT)
        settle(principal, grant, "failed", reason="a report that only a lease that is held may give")
        assert trial(principal, name, grant.trial).attempt == 2


def test_a_lease_that_another_agent_holds_now_is_lost(principal: Principal, agent: str) -> None:
    """A lease that would exceed the parallelism of the study is lost too."""
    register(principal, "agent-2")
    name = create(principal, parallelism=2)
    first, second = acquire(principal, 2)
    expire(principal)
    (taken,) = acquire(principal, 1, agent_id="agent-2")
    assert taken.trial == first.trial
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[first.lease, second.lease])
    assert renewed.lost == [first.lease]
    expire(principal)
    others = acquire(principal, 2, agent_id="agent-2")
    assert len(others) == 2
    assert heartbeats.renew(principal, agent_id=agent, leases=[second.lease]).lost == [second.lease]
    assert study(principal, name).active_count == 2
    refused("lease_lost", lambda: settle(principal, first))


def test_a_service_that_was_away_gives_agents_time_to_be_heard(
    principal: Principal, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create(principal)
    acquire(principal)
    access.rows(Lease, principal).update(expires_at=Now() - timedelta(hours=1))
    clock = [1000.0]
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(tasks, "_watch", tasks._Watch())

    def sweep_for(seconds: float) -> str:
        for _ in range(int(seconds / 2)):
            tasks.sweep()
            clock[0] += 2
        return str(trial(principal, name, 1).state)

    assert sweep_for(settings.TRIMTAB_LEASE_SECONDS) == "ACTIVE"
    clock[0] += 60  # the database was away
    assert sweep_for(settings.TRIMTAB_LEASE_SECONDS) == "ACTIVE"
    assert sweep_for(2) == "REQUESTED"


def test_a_heartbeat_prunes_a_trial_that_exceeds_its_time_limit(principal: Principal, agent: str) -> None:
    spec = make_spec(execution=make_execution(parallelism=2), pruning=[{"name": "limit", "options": {"seconds": 5}}])
    name = create_study(principal, study_name(), spec).name
    quick, slow = acquire(principal, 2)
    both = [quick.lease, slow.lease]
    # Neither the time since the grant nor that before the trial began counts.
    access.rows(Trial, principal).update(started_at=Now() - timedelta(hours=1))
    assert heartbeats.renew(principal, agent_id=AGENT, leases=both).cancel == []
    reported = {quick.lease: 4.0, slow.lease: 6.5}
    ((cancelled, reason),) = heartbeats.renew(principal, agent_id=AGENT, leases=both, elapsed=reported).cancel
    assert (cancelled, "5 s" in reason) == (slow.lease, True)
    pruned = trial(principal, name, slow.trial)
    assert (pruned.state, pruned.seconds, pruned.metrics) == ("PRUNED", 6.5, {"seconds": 6.5})
    # The agent may not have heard it.
    assert [lease for lease, _ in heartbeats.renew(principal, agent_id=AGENT, leases=both).cancel] == [slow.lease]
    settle(principal, slow, "cancelled", reason=reason, elapsed_seconds=6.7)
    assert heartbeats.renew(principal, agent_id=AGENT, leases=[quick.lease]).cancel == []
    settle(principal, quick, elapsed_seconds=4.5)
    assert trial(principal, name, quick.trial).seconds == 4.5
    assert study(principal, name).finished_count == 2


def test_the_time_of_a_repeated_trial_starts_again(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    settle(principal, grant, "failed", reason="no disk", elapsed_seconds=9.0)
    again = trial(principal, name, grant.trial)
    assert (again.state, again.seconds) == ("REQUESTED", None)
