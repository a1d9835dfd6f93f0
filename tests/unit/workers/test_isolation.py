"""A study that cannot be read or changed ends its own part of each loop, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.fleet import grants, heartbeats, waiting
from service.fleet.components import best_settings
from service.fleet.models import Lease
from service.matching import book
from service.notices import delivery
from service.notices import messages as notice_messages
from service.planning.create import create_study
from service.platform import predecessor
from service.results import summaries
from service.studies import change, selectors
from service.studies.isolated import isolated
from service.studies.models import Operation, Study, StudySummary, Trial
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.trials import client_leases, presence
from service.trials.ask import ask as ask_trials
from service.workers import compute, losses, sweep
from tests.factories import fleet
from tests.factories.domain import make_execution, make_principal, make_spec, study_name, tell
from tests.factories.operations import row
from tests.factories.patience import PATIENCE

Poison = Callable[[int], None]


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Poison:
    """Makes each later read or change of a study fail."""
    expect, poisoned = change._expect, set[int]()

    def broken(principal: Principal, found: list[Study], trials: Sequence[Trial] = ()) -> change.Snapshot:
        if found and found[0].pk in poisoned:
            raise RuntimeError("the study is poisoned")
        return expect(principal, found, trials)

    monkeypatch.setattr(change, "_expect", broken)
    return poisoned.add


def two(principal: Principal, **spec: Any) -> list[Study]:
    """Create two studies, the first of which is to be poisoned."""
    return [create_study(principal, study_name(), make_spec(**spec)) for _ in range(2)]


def on_agents(principal: Principal) -> list[Study]:
    return two(principal, execution=make_execution())


def again(principal: Principal, study: Study) -> Study:
    return selectors.get_study(principal, study.name)


@pytest.mark.usefixtures("enqueued")
def test_operations_of_lost_workers(principal: Principal, poison: Poison, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = two(principal, algorithm={"name": "gp"})
    asked = [ask_trials(principal, one.name) for one in (bad, good)]
    poison(bad.pk)
    held = access.rows(Operation, principal)
    held.update(state="STALE", attempt=1, worker="x", heartbeat_at=Now() - timedelta(seconds=60))
    sweep.requeue_lost()
    assert [row(one).state for one in asked] == ["STALE", "PENDING"]
    held.update(state="RUNNING", worker=presence.name())
    monkeypatch.setenv(predecessor.END_VARIABLE, predecessor.End.STOPPED)
    losses.recover()
    assert [row(one).state for one in asked] == ["RUNNING", "PENDING"]


def test_operations_whose_message_was_lost(
    principal: Principal, enqueued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = two(principal, algorithm={"name": "gp"})
    _, asked = [ask_trials(principal, one.name) for one in (bad, good)]
    late = Now() - timedelta(seconds=60)
    access.rows(Operation, principal).update(created_at=late, enqueued_at=late)
    next_due = compute.next_due

    def broken(principal: Principal, study_id: int) -> Operation | None:
        if study_id == bad.pk:
            raise RuntimeError("poisoned")
        return next_due(principal, study_id)

    monkeypatch.setattr(sweep, "next_due", broken)
    enqueued.clear()
    sweep.send_forgotten()
    assert enqueued == [str(asked.operation.id)]


@pytest.mark.usefixtures("enqueued")
def test_operations_that_wait_for_a_worker(principal: Principal, poison: Poison) -> None:
    bad, good = two(principal, algorithm={"name": "gp"})
    asked = [ask_trials(principal, one.name) for one in (bad, good)]
    poison(bad.pk)
    for _ in asked:
        compute.compute_next()
    assert [row(one).state for one in asked] == ["FAILED", "SUCCEEDED"]
    assert row(asked[0]).error_message == "RuntimeError: the study is poisoned"


def test_summaries(principal: Principal, poison: Poison) -> None:
    bad, good = two(principal)
    for one in (bad, good):
        (trial,) = ask_trials(principal, one.name).trials
        tell(principal, one.name, trial, 2.0)
    poison(bad.pk)
    summaries.refresh()
    assert list(access.rows(StudySummary, principal).values_list("study_id", "best")) == [(good.pk, 2.0)]


def test_a_study_that_cannot_be_summarised_is_not_the_first_of_each_sweep(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = create_study(principal, study_name(), make_spec())
    (trial,) = ask_trials(principal, study.name).trials
    tell(principal, study.name, trial, 2.0)
    monkeypatch.setattr(summaries, "_objectives", lambda _: [{"best": float("inf")}])
    summaries.refresh()
    summary = access.rows(StudySummary, principal).get()
    assert (summary.objectives, summary.best, summary.revision) == ([], None, again(principal, study).revision)
    assert not access.across("old_summaries", 10)


def test_a_step_of_the_sweep_that_fails(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    study = create_study(principal, study_name(), make_spec())

    def broken() -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(sweep, "mark_stale", broken)
    monkeypatch.setattr(delivery, "send_due", broken)
    sweep.sweep()
    assert access.rows(StudySummary, principal).filter(study_id=study.pk).exists()


def test_deliveries(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = make_principal()
    sent: list[int] = []

    def send(tenant_id: int, delivery_id: int) -> None:
        if tenant_id == principal.tenant_id:
            raise RuntimeError("poisoned")
        sent.append(delivery_id)

    due = [(principal.tenant_id, 1), (stranger.tenant_id, 2)]
    monkeypatch.setattr(access, "across", lambda name: due if name == "due_deliveries" else [])
    monkeypatch.setattr(notice_messages, "send", send)
    monkeypatch.setattr(access, "rows", lambda *_: _Updated())
    delivery.send_due()
    assert sent == [2]


class _Updated:
    """Rows all of which an update changes."""

    def filter(self, **_: object) -> _Updated:
        return self

    def update(self, **_: object) -> int:
        return 1


def test_leases_of_agents(principal: Principal, poison: Poison) -> None:
    bad, good = on_agents(principal)
    fleet.register(principal)
    assert len(fleet.acquire(principal, count=2)) == 2
    poison(bad.pk)
    fleet.expire(principal)
    states = access.rows(Lease, principal).order_by("study_id").values_list("study_id", "state")
    assert list(states) == [(bad.pk, "HELD"), (good.pk, "EXPIRED")]


def test_leases_of_clients(principal: Principal, poison: Poison) -> None:
    bad, good = two(principal)
    for one in (bad, good):
        ask_trials(principal, one.name, client_id="a", lease_seconds=60)
    access.rows(Trial, principal).update(leased_until=Now() - timedelta(seconds=1))
    poison(bad.pk)
    client_leases.expire(client_leases.overdue())
    assert [again(principal, one).active_count for one in (bad, good)] == [1, 0]


def test_reasons_why_trials_wait(principal: Principal, poison: Poison, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = on_agents(principal)
    strange = make_principal()
    (other,) = on_agents(strange)[:1]
    poison(bad.pk)
    online = waiting._online

    def broken(asking: Principal) -> Any:
        if asking.tenant_id == strange.tenant_id:
            raise RuntimeError("poisoned")
        return online(asking)

    monkeypatch.setattr(waiting, "_online", broken)
    waiting.tell()

    def reasons(owner: Principal, study: Study) -> set[bool]:
        found = access.rows(Trial, owner).filter(study_id=study.pk)
        return {bool(reason) for reason in found.values_list("reason", flat=True)}

    assert (reasons(principal, bad), reasons(principal, good)) == ({False}, {True})
    assert reasons(strange, other) == {False}


def test_grants_to_an_agent(principal: Principal, poison: Poison) -> None:
    bad, good = on_agents(principal)
    fleet.register(principal)
    poison(bad.pk)
    assert [one.study for one in fleet.acquire(principal, count=2)] == [good.name]
    assert access.rows(Study, principal).get(pk=bad.pk).last_granted_at is not None, "the others are first next time"


def test_repeated_grants(principal: Principal, poison: Poison) -> None:
    bad, good = on_agents(principal)
    fleet.register(principal)
    assert len(fleet.acquire(principal, count=2)) == 2
    poison(bad.pk)
    assert [one.study for one in grants.acquire(principal, agent_id=fleet.AGENT, count=0)] == [good.name]


def test_heartbeats_of_an_agent(principal: Principal, poison: Poison) -> None:
    bad, good = on_agents(principal)
    fleet.register(principal)
    held = fleet.acquire(principal, count=2)
    poison(bad.pk)
    why = {one.lease: f"{one.study} waits for a node" for one in held}
    renewal = heartbeats.renew(principal, agent_id=fleet.AGENT, leases=list(why), waiting=why)
    assert (renewal.cancel, renewal.lost) == ([], [])
    reasons = access.rows(Trial, principal).filter(state="ACTIVE").order_by("study_id").values_list("reason", flat=True)
    assert list(reasons) == ["", f"{good.name} waits for a node"]


def test_leases_that_are_held_again(principal: Principal, poison: Poison) -> None:
    bad, _ = on_agents(principal)
    fleet.register(principal)
    held = fleet.acquire(principal, count=2)
    fleet.expire(principal)
    poison(bad.pk)
    renewal = heartbeats.renew(principal, agent_id=fleet.AGENT, leases=[one.lease for one in held])
    assert [one.study for one in held if one.lease in renewal.lost] == [bad.name]


def test_best_settings_of_a_component(principal: Principal) -> None:
    bad, good = on_agents(principal)
    objective = {"metric": "seconds", "goal": "minimize", "unit": "s", "level": "proven", "gain": 0.5}
    for one, objectives in ((bad, []), (good, [objective])):
        access.put(
            principal,
            StudySummary(
                study_id=one.pk, revision=1, objectives=objectives, configuration={"x": 0.5}, gain=0.5, made_at=Now()
            ),
        )
    assert [one.study for one in best_settings(principal, "compiler")] == [good.name]


def test_the_records_that_jobs_match(monkeypatch: pytest.MonkeyPatch, principal: Principal) -> None:
    loaded: list[str] = []

    class Index:
        def load(self, items: Any) -> None:
            for key in items:
                if key == "bad":
                    raise RuntimeError("poisoned")
                loaded.append(key)

    class Record:
        is_active, tenant_id = True, principal.tenant_id
        component, audience, user = "compiler", "everybody", "ada"

        def __init__(self, key: str) -> None:
            self.pk = key

    shelf: Any = book._Shelf()
    shelf.index = Index()
    monkeypatch.setattr(book, "_item", lambda record: record.pk)
    records: Any = [Record("bad"), Record("good")]
    book._put(shelf, records, ("compiler", ""))
    assert loaded == ["good"]


def test_queues_of_tenants(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = make_principal()
    depths = [(owner.tenant_id, 1, 0, 2.0, 0) for owner in (principal, stranger)]
    monkeypatch.setattr(access, "across", lambda name, *_: depths if name == "queue_depth" else [])
    slug_of = tenants.slug_of
    monkeypatch.setattr(
        tenants, "slug_of", lambda tenant: slug_of(-1) if tenant == principal.tenant_id else slug_of(tenant)
    )
    assert [one.tenant for one in presence.overview().tenants] == [slug_of(stranger.tenant_id)]


def test_a_part_that_uses_up_its_seconds(principal: Principal) -> None:
    def computes_for_ever() -> None:
        while True:
            pass

    assert isolated(computes_for_ever, principal.tenant_id, seconds=0.1) is None
    assert isolated(lambda: 1, principal.tenant_id, seconds=PATIENCE) == 1
