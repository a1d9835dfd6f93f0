"""Leases of ask/tell clients: silent clients lose their trials, each result counts once, late ones included."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from service.core.errors import InvalidInput
from service.fleet.tasks import sweep
from service.planning.create import create_study
from service.studies import selectors
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import client_leases
from service.trials.ask import ask as ask_trials
from service.trials.enqueue import enqueue_trials
from service.trials.tell import fail_trial, report_measurement
from service.workers import compute
from tests.factories.domain import ask, make_principal, make_spec, refused, study_name, tell

pytestmark = pytest.mark.django_db(transaction=True)


def make(principal: Principal, **changes: Any) -> str:
    return create_study(principal, study_name(), make_spec(**changes)).name


def row(principal: Principal, study: str, number: int) -> Trial:
    found = selectors.get_study(principal, study)
    return access.rows(Trial, principal).get(study_id=found.pk, number=number)


def be_silent(principal: Principal, study: str, seconds: float) -> None:
    """Let so much time pass for the open trials of a study, and expire what is overdue."""
    found = selectors.get_study(principal, study)
    passed = timedelta(seconds=seconds)
    access.rows(Trial, principal).filter(study_id=found.pk, state="ACTIVE").update(
        started_at=F("started_at") - passed, leased_until=F("leased_until") - passed
    )
    client_leases.expire(client_leases.overdue())


def renew(principal: Principal, study: str, *trials: int, client_id: str = "a", seconds: float = 60) -> list[int]:
    return client_leases.renew(principal, study, client_id=client_id, trials=trials, lease_seconds=seconds)


def test_a_silent_client_loses_its_trial_to_the_next_one(principal: Principal) -> None:
    study = make(principal)
    (trial,) = ask(principal, study, client_id="a", lease_seconds=60)
    be_silent(principal, study, 59)
    assert row(principal, study, 1).state == "ACTIVE"
    be_silent(principal, study, 2)
    waiting = row(principal, study, 1)
    assert (waiting.state, waiting.attempt) == ("REQUESTED", 2)
    assert waiting.reason == "Client 'a' has reported no result, and has stopped sending heartbeats."
    (again,) = ask(principal, study, client_id="b", lease_seconds=60)
    assert (again.number, again.params, again.client_id) == (1, trial.params, "b")
    tell(principal, study, again)
    after = selectors.get_study(principal, study)
    assert (after.requested_count, after.active_count, after.finished_count) == (0, 0, 1)


def test_a_client_that_renews_keeps_its_trials(principal: Principal) -> None:
    study = make(principal)
    ask(principal, study, 3, client_id="a", lease_seconds=60)
    for _ in range(3):
        be_silent(principal, study, 50)
        assert renew(principal, study, 1, 2) == [1, 2]
    assert [row(principal, study, number).state for number in (1, 2, 3)] == ["ACTIVE", "ACTIVE", "REQUESTED"]


def test_without_a_lease_a_trial_waits_for_its_client(principal: Principal) -> None:
    study = make(principal)
    ask(principal, study, client_id="a")
    assert row(principal, study, 1).leased_until is None
    be_silent(principal, study, 10**7)
    assert row(principal, study, 1).state == "ACTIVE"


def test_the_time_limit_of_a_study_ends_a_trial_although_its_client_is_alive(principal: Principal) -> None:
    study = make(principal, trial_timeout_seconds=100.0)
    ask(principal, study, client_id="a", lease_seconds=60)
    be_silent(principal, study, 50)
    assert renew(principal, study, 1) == [1]
    be_silent(principal, study, 51)
    assert row(principal, study, 1).state == "REQUESTED"
    assert row(principal, study, 1).reason == "Client 'a' has reported no result within the trial_timeout of 100 s."


def test_the_time_limit_holds_without_a_lease(principal: Principal) -> None:
    study = make(principal, trial_timeout_seconds=100.0)
    ask(principal, study, client_id="a")
    be_silent(principal, study, 101)
    assert row(principal, study, 1).state == "REQUESTED"


def test_after_three_silent_clients_a_trial_is_failed(principal: Principal) -> None:
    study = make(principal, budget={"max_trials": 1})
    for client in ("a", "b", "c"):
        (trial,) = ask(principal, study, client_id=client, lease_seconds=60)
        assert trial.number == 1
        be_silent(principal, study, 61)
    failed = row(principal, study, 1)
    assert (failed.state, failed.attempt) == ("FAILED", 3)
    assert "'c'" in failed.reason
    assert selectors.get_study(principal, study).state == "COMPLETED"


def test_a_late_result_counts_once(principal: Principal) -> None:
    study = make(principal)
    (trial,) = ask(principal, study, client_id="a", lease_seconds=60)
    be_silent(principal, study, 61)
    tell(principal, study, trial, 3.0)
    tell(principal, study, trial, 3.0)
    assert row(principal, study, 1).metrics == {"seconds": 3.0}
    assert ask(principal, study, client_id="b")[0].number == 2


def test_of_two_clients_with_one_trial_the_first_result_counts(principal: Principal) -> None:
    study = make(principal)
    (trial,) = ask(principal, study, client_id="a", lease_seconds=60)
    be_silent(principal, study, 61)
    ask(principal, study, client_id="b", lease_seconds=60)
    tell(principal, study, trial, 3.0)
    refused("trial_already_finished", lambda: tell(principal, study, trial, 4.0))
    assert row(principal, study, 1).metrics == {"seconds": 3.0}
    assert selectors.get_study(principal, study).finished_count == 1


def test_a_late_failure_or_measurement_counts_too(principal: Principal) -> None:
    study = make(principal)
    ask(principal, study, 2, client_id="a", lease_seconds=60)
    be_silent(principal, study, 61)
    report_measurement(principal, study, 1, step=1, metrics={"seconds": 2.0})
    assert row(principal, study, 1).state == "ACTIVE"
    assert row(principal, study, 1).leased_until is not None
    fail_trial(principal, study, 2, infeasible=True, reason="too large")
    assert row(principal, study, 2).state == "INFEASIBLE"


def test_a_client_that_wakes_up_regains_what_nobody_has_taken(principal: Principal) -> None:
    study = make(principal)
    ask(principal, study, 2, client_id="a", lease_seconds=60)
    be_silent(principal, study, 61)
    ask(principal, study, client_id="b", lease_seconds=60)
    assert renew(principal, study, 1, 2, 3, -1, 2**40) == [2]
    assert [row(principal, study, number).client_id for number in (1, 2)] == ["b", "a"]
    assert renew(principal, study, 1, client_id="b") == [1]


def test_a_configuration_that_waits_for_the_first_time_has_no_client(principal: Principal) -> None:
    study = make(principal)
    enqueue_trials(principal, study, params={"x": 0.5, "n": 2})
    assert renew(principal, study, 1, client_id="") == []
    refused("trial_not_active", lambda: fail_trial(principal, study, 1, infeasible=False))


def test_trials_that_return_to_a_client_get_a_new_lease(principal: Principal) -> None:
    study = make(principal)
    ask(principal, study, client_id="a", lease_seconds=60)
    be_silent(principal, study, 50)
    ask(principal, study, client_id="a", lease_seconds=60)
    be_silent(principal, study, 50)
    assert row(principal, study, 1).state == "ACTIVE"


def test_trials_that_a_worker_computes_are_leased(principal: Principal) -> None:
    study = make(principal, algorithm={"name": "gp", "options": {}})
    assert not ask_trials(principal, study, client_id="a", lease_seconds=60).trials
    compute.compute_next()
    assert row(principal, study, 1).leased_until is not None
    be_silent(principal, study, 61)
    assert row(principal, study, 1).state == "REQUESTED"


def test_another_tenant_renews_nothing(principal: Principal) -> None:
    study = make(principal)
    ask(principal, study, client_id="a", lease_seconds=60)
    refused("study_not_found", lambda: renew(make_principal(), study, 1))


@pytest.mark.parametrize("seconds", [0.0, 9.9, float("nan"), float("inf"), 1e6])
def test_a_lease_has_bounds(principal: Principal, seconds: float) -> None:
    study = make(principal)
    with pytest.raises(InvalidInput, match=r"lease_seconds.*10 to 604800 seconds"):
        ask(principal, study, lease_seconds=seconds)
    with pytest.raises(InvalidInput, match="lease_seconds"):
        renew(principal, study, 1, seconds=seconds)
    with pytest.raises(InvalidInput, match="at most 1000"):
        renew(principal, study, *range(1, 1002))


def test_clients_get_time_after_an_outage(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sweep after a break expires nothing: no client could send a heartbeat."""
    study = make(principal)
    ask(principal, study, client_id="a", lease_seconds=60)
    found = selectors.get_study(principal, study)
    access.rows(Trial, principal).filter(study_id=found.pk).update(leased_until=Now() - timedelta(seconds=1))
    monkeypatch.setattr("service.fleet.tasks._watch", type("Watch", (), {"since": 0.0, "last": float("-inf")})())
    sweep()
    assert row(principal, study, 1).state == "ACTIVE"
