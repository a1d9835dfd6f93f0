"""Limits of a tenant, and the turns that tenants take with the workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pytest

from service.core.errors import InvalidInput, ResourceExhausted
from service.fleet import agents, artifacts, grants, logs, runs
from service.planning import create
from service.planning.create import create_study, delete_study
from service.studies import selectors
from service.studies.models import Operation, TrialLog
from service.tenancy import access, tenants
from service.tenancy.principal import Principal, Role
from service.trials import ask, enqueue, quotas, tell, topup
from service.trials.ask import ask as ask_trials
from service.trials.quotas import Meter
from service.trials.tell import add_trial, complete_trial
from service.workers import compute, sweep
from tests.factories.domain import make_component, make_execution, make_principal, make_spec, study_name

Limit = Callable[..., None]
OPERATOR = Principal(0, "operator", Role.OPERATOR)


@pytest.fixture(autouse=True)
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    """One that knows nothing of other tests, and to which a minute is as long as a day."""
    new = Meter()
    for user in (ask, create, tell, enqueue, compute, logs, artifacts, quotas, topup):
        monkeypatch.setattr(user, "meter", new)
    monkeypatch.setattr(quotas, "WINDOW", "day")
    monkeypatch.setattr(quotas, "MINUTE", quotas.DAY)
    return new


@pytest.fixture
def limit(principal: Principal, meter: Meter) -> Limit:
    def set_limits(**limits: int | None) -> None:
        tenants.change(OPERATOR, tenants.slug_of(principal.tenant_id), limits_=limits)
        meter.forget()

    return set_limits


def new_study(principal: Principal, **changes: Any) -> str:
    return create_study(principal, study_name(), make_spec(**changes)).name


def refused(code: str, quota: str, work: Callable[[], object]) -> ResourceExhausted:
    with pytest.raises(ResourceExhausted) as caught:
        work()
    assert (caught.value.code, caught.value.data["quota"]) == (code, quota)
    return caught.value


def test_studies(principal: Principal, limit: Limit) -> None:
    limit(studies=2)
    names = [new_study(principal), new_study(principal)]
    refused("quota_exceeded", "studies", lambda: new_study(principal))
    assert new_study(make_principal())
    delete_study(principal, names[0])
    new_study(principal)
    limit(studies=None)
    new_study(principal)


def test_active_trials(principal: Principal, limit: Limit) -> None:
    limit(active_trials=5)
    study, other = new_study(principal), new_study(principal)
    asked = ask_trials(principal, study, count=3)
    assert ask_trials(principal, other, count=2).trials
    for work in (
        lambda: ask_trials(principal, other, count=1),
        lambda: enqueue.enqueue_trials(principal, other, params={"x": 0.5, "n": 2}),
    ):
        error = refused("quota_exceeded", "active_trials", work)
        assert (error.data["limit"], error.data["used"], error.retryable) == (5, 5, False)
    complete_trial(principal, study, asked.trials[0].number, metrics={"seconds": 1})
    assert ask_trials(principal, other).trials
    # One's own measurements are no active trials.
    add_trial(principal, other, params={"x": 0.5, "n": 2}, metrics={"seconds": 1})


@pytest.mark.parametrize("quota", ["active_trials", "stored_trials"])
def test_trials_that_are_there_already_need_no_room(principal: Principal, limit: Limit, quota: str) -> None:
    study = new_study(principal)
    enqueue.enqueue_trials(principal, study, params={"x": 0.5, "n": 2}, count=3)
    limit(**{quota: 3})
    # Those in the queue are handed out, and handed out again to a client that has lost them.
    asked = [ask_trials(principal, study, count=3, client_id="c") for _ in range(2)]
    assert [[trial.number for trial in one.trials] for one in asked] == [[1, 2, 3], [1, 2, 3]]
    assert len(ask_trials(principal, study, count=4, client_id="c").trials) == 3
    error = refused("quota_exceeded", quota, lambda: ask_trials(principal, study, client_id="other"))
    assert (error.data["limit"], error.data["used"]) == (3, 3)


def test_stored_trials(principal: Principal, limit: Limit) -> None:
    limit(stored_trials=2)
    study = new_study(principal)
    (trial,) = ask_trials(principal, study).trials
    complete_trial(principal, study, trial.number, metrics={"seconds": 1})
    add_trial(principal, study, params={"x": 0.5, "n": 2}, metrics={"seconds": 1})
    refused("quota_exceeded", "stored_trials", lambda: ask_trials(principal, study))
    add: Any = {"params": {"x": 0.25, "n": 2}, "metrics": {"seconds": 1}}
    refused("quota_exceeded", "stored_trials", lambda: add_trial(principal, study, **add))


def test_a_repeated_request_that_filled_the_quota_is_answered_again(principal: Principal, limit: Limit) -> None:
    limit(stored_trials=3)
    study = new_study(principal)
    params: Any = {"x": 0.5, "n": 2}
    for _ in range(2):
        again: Any = {"params": params, "metrics": {"seconds": 1}, "request_id": "added"}
        assert add_trial(principal, study, **again).trial.number == 1
    for _ in range(2):
        _, trials = enqueue.enqueue_trials(principal, study, params=params, count=2, request_id="enqueued")
        assert [trial.number for trial in trials] == [2, 3]
    assert add_trial(principal, study, **again).trial.number == 1
    new = {**again, "request_id": "another"}
    refused("quota_exceeded", "stored_trials", lambda: add_trial(principal, study, **new))


def test_a_study_whose_first_trials_have_no_room_is_not_created(principal: Principal, limit: Limit) -> None:
    earlier = new_study(principal)
    for x in (0.25, 0.5):
        add_trial(principal, earlier, params={"x": x, "n": 2}, metrics={"seconds": x})
    spec, name = make_spec(start_from=[earlier]), study_name()
    limit(stored_trials=3)
    refused("quota_exceeded", "stored_trials", lambda: create_study(principal, name, spec))
    assert selectors.find_study(principal, name) is None
    limit(stored_trials=4)
    assert create_study(principal, name, spec).requested_count == 2


def test_suggestions_per_minute(principal: Principal, limit: Limit) -> None:
    limit(suggestions_per_minute=10)
    study = new_study(principal)
    first = ask_trials(principal, study, count=9, request_id="first")
    error = refused("rate_limited", "suggestions_per_minute", lambda: ask_trials(principal, study, count=2))
    assert error.retryable
    assert 1 <= int(str(error.data["retry_after_seconds"])) <= quotas.MINUTE + 1
    ask_trials(principal, study)
    refused("rate_limited", "suggestions_per_minute", lambda: ask_trials(principal, study))
    # What was answered before is answered again.
    again = ask_trials(principal, study, count=9, request_id="first")
    assert again.operation.id == first.operation.id
    # What no minute would ever allow is not worth trying again.
    assert not refused(
        "rate_limited", "suggestions_per_minute", lambda: ask_trials(principal, study, count=11)
    ).retryable


def test_processes_count_together(principal: Principal, limit: Limit, meter: Meter) -> None:
    limit(suggestions_per_minute=100)
    others = Meter()
    given = 0
    with suppress(ResourceExhausted):
        while given < 200:
            for one in (meter, others):
                one.suggest(principal, 1)
                given += 1
    # Each may give an eighth of what was left when it looked last, without knowing of the other.
    assert 100 <= given <= 100 + 100 // quotas.SHARE


def test_a_minute_that_is_over_counts_no_more(principal: Principal, limit: Limit, meter: Meter) -> None:
    limit(suggestions_per_minute=10)
    meter.suggest(principal, 10)
    with pytest.raises(ResourceExhausted):
        meter.suggest(principal, 1)
    access.query(principal, "UPDATE tenancy_usage SET period = period - interval '1 day' RETURNING 1", ())
    meter._known[principal.tenant_id].minute -= 1
    meter.suggest(principal, 10)
    with pytest.raises(ResourceExhausted):
        meter.suggest(principal, 1)


def test_asks_far_below_the_limit_make_no_query(
    principal: Principal, meter: Meter, django_assert_num_queries: Callable[..., Any]
) -> None:
    meter.suggest(principal, 1)
    with django_assert_num_queries(0):
        for _ in range(1000):
            meter.suggest(principal, 1)


def test_usage_is_shown_and_old_counts_are_deleted(principal: Principal, limit: Limit, meter: Meter) -> None:
    limit(suggestions_per_minute=16)
    study = new_study(principal)
    ask_trials(principal, study, count=3)
    ask_trials(principal, study, count=2)
    meter.add_worker_seconds(principal, 1.5)
    meter.add_worker_seconds(principal, 1.0)
    limits, used = meter.usage(principal)
    assert limits.suggestions_per_minute == 16
    assert used == {
        "studies": 1,
        "active_trials": 5,
        "stored_trials": 5,
        "log_bytes": 0,
        "matching_records": 0,
        "suggestions_per_minute": 5,
        "worker_seconds_per_day": 2.5,
    }
    access.query(principal, "UPDATE tenancy_usage SET period = period - interval '91 days' RETURNING 1", ())
    meter.add_worker_seconds(principal, 1.0)
    kept = access.query(principal, "SELECT kind, amount FROM tenancy_usage", ())
    assert kept == [("worker_seconds", 1.0)]


def test_worker_time(principal: Principal, limit: Limit, meter: Meter) -> None:
    costly = new_study(principal, algorithm={"name": "gp"})
    ask_trials(principal, costly, count=2)
    compute.compute_next()
    used = meter.usage(principal)[1]["worker_seconds_per_day"]
    assert used > 0
    limit(worker_seconds_per_day=0)
    error = refused("quota_exceeded", "worker_seconds_per_day", lambda: ask_trials(principal, costly))
    assert 0 < int(str(error.data["retry_after_seconds"])) <= 24 * 3600
    # Cheap algorithms need no worker; a study on agents waits.
    assert ask_trials(principal, new_study(principal)).trials
    on_agents = new_study(principal, algorithm={"name": "gp"}, execution=make_execution())
    found = access.rows(Operation, principal).filter(for_agents=True)
    assert not found.exists()
    limit(worker_seconds_per_day=None)
    sweep.top_up_hungry_studies()
    assert found.filter(study__name=on_agents).count() == 1


def test_log_bytes(principal: Principal, limit: Limit, meter: Meter) -> None:
    limit(log_bytes=100)
    new_study(principal, execution=make_execution())
    agents.register(
        principal,
        agent_id="a",
        name="a",
        version="1",
        slots=1,
        labels={},
        components=[make_component()],
        session_id="s",
    )
    (grant,) = grants.acquire(principal, agent_id="a", count=1, held=[])

    def append(offset: int, data: bytes) -> int:
        return logs.append_log(principal, agent_id="a", lease=grant.lease, offset=offset, data=data)

    assert append(0, b"x" * 90) == 90
    # The agent goes on; what is too much is not kept.
    assert append(90, b"y" * 20) == 110
    log = access.rows(TrialLog, principal).get()
    assert (bytes(log.tail), log.size) == (b"x" * 90, 110)
    # The dropped output does not count either: other trials may still use the rest.
    assert meter.usage(principal)[1]["log_bytes"] == 90
    # Files count like output.
    runs.settle(principal, agent_id="a", lease=grant.lease, outcome="completed", metrics={"seconds": 1.0})
    full = "the tenant has reached its quota for the output of trials"
    for name, count, left_out in (("fits", 10, ""), ("not", 1, full)):
        data = b"z" * count
        file: dict[str, Any] = {"name": name, "size": count, "sha256": sha256(data).hexdigest(), "data": data}
        assert artifacts.put(principal, agent_id="a", lease=grant.lease, left_out="", **file) == left_out
    assert meter.usage(principal)[1]["log_bytes"] == 100


def test_a_study_on_agents_waits_for_room(principal: Principal, limit: Limit) -> None:
    limit(active_trials=0)
    name = new_study(principal, execution=make_execution())
    assert selectors.get_study(principal, name).open_count == 0
    limit(active_trials=None)
    sweep.sweep()
    assert selectors.get_study(principal, name).open_count == 2


@pytest.mark.parametrize("algorithm", ["random", "gp"])
def test_a_study_on_agents_makes_do_with_the_room_there_is(principal: Principal, limit: Limit, algorithm: str) -> None:
    limit(active_trials=3)
    name = new_study(principal, algorithm={"name": algorithm}, execution=make_execution(parallelism=5))
    while access.rows(Operation, principal).filter(state="PENDING").exists():
        compute.compute_next()
    sweep.sweep()
    found = selectors.get_study(principal, name)
    assert (found.state, found.open_count, found.state_reason) == ("ACTIVE", 3, topup.NO_ROOM)
    # With room for as many as may run at once nothing is wanting but the one that would wait.
    limit(active_trials=5)
    sweep.sweep()
    while access.rows(Operation, principal).filter(state="PENDING").exists():
        compute.compute_next()
    found = selectors.get_study(principal, name)
    assert (found.open_count, found.state_reason) == (5, "")


@pytest.mark.parametrize(("name", "value"), [("studies", -1), ("studies", True), ("cores", 1), ("log_bytes", 2**63)])
def test_limits_are_checked(principal: Principal, limit: Limit, name: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=f"limits.{name}"):
        limit(**{name: value})


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tenants whose operations a worker computed, in order."""
    order: list[int] = []
    finish = compute._finish

    def note(claim: compute.Claim) -> None:
        order.append(claim.principal.tenant_id)
        finish(claim)

    monkeypatch.setattr(compute, "_finish", note)
    return order


def test_tenants_take_turns_with_the_workers(principal: Principal, served: list[int]) -> None:
    busy, patient = principal, make_principal()
    cheap = {"algorithm": {"name": "tpe"}}
    busy_studies = [new_study(busy, **cheap) for _ in range(4)]
    for study in busy_studies:
        for _ in range(5):
            with access.work(busy):
                row = selectors.get_study(busy, study)
                access.add(busy, Operation(study=row, count=1))
    with access.work(patient):
        access.add(patient, Operation(study=selectors.get_study(patient, new_study(patient, **cheap)), count=1))
    for _ in range(4):
        compute.compute_next()
    assert sorted(served[:2]) == sorted([busy.tenant_id, patient.tenant_id])
    assert served.count(patient.tenant_id) == 1
    late = make_principal()
    with access.work(late):
        access.add(late, Operation(study=selectors.get_study(late, new_study(late, **cheap)), count=1))
    compute.compute_next()
    assert served[-1] == late.tenant_id
    while access.rows(Operation, busy).filter(state="PENDING").exists():
        compute.compute_next()
    assert served.count(busy.tenant_id) == 20
    assert not access.across("next_operations", 10)


def test_ten_thousand_waiting_operations_do_not_delay_another_tenant(principal: Principal, served: list[int]) -> None:
    busy, patient = principal, make_principal()
    cheap = {"algorithm": {"name": "tpe"}}
    study = selectors.get_study(busy, new_study(busy, **cheap))
    for state, count in (("RUNNING", 1), ("PENDING", 9_999)):
        access.query(
            busy,
            "INSERT INTO studies_operation (tenant_id, study_id, id, count, fixed, client_id, for_agents, state,"
            " trial_numbers, exhausted, attempt, worker, error_code, error_message)"
            " SELECT %s, %s, gen_random_uuid(), 1, '{}', '', false, %s, '{}', false, 0, '', '', ''"
            " FROM generate_series(1, %s) RETURNING 1",
            (busy.tenant_id, study.pk, state, count),
        )
    # While one of them is computed the others of its study wait, and no worker has to go through them.
    assert access.across("next_operations", 10) == []
    sweep.send_forgotten()
    access.rows(Operation, busy).filter(state="RUNNING").update(state="FAILED")
    compute.compute_next()
    access.add(patient, Operation(study=selectors.get_study(patient, new_study(patient, **cheap)), count=1))
    compute.compute_next()
    assert served == [busy.tenant_id, patient.tenant_id]
