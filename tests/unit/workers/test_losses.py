"""The operations of workers that are gone: given back at once, and a bounded number of times."""

from __future__ import annotations

import threading

import pytest
from django.db.models.functions import Now

from service.planning.create import create_study
from service.platform import predecessor
from service.platform.predecessor import End
from service.studies import selectors
from service.studies.models import Operation
from service.studies.selectors import OperationDetail
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import presence
from service.trials.ask import ask as ask_trials
from service.workers import compute, losses
from tests.factories.domain import computing, make_spec, study_name
from tests.factories.operations import row, silent_for
from tests.factories.patience import wait_for

pytestmark = pytest.mark.usefixtures("enqueued")


@pytest.fixture(autouse=True)
def replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """This worker replaces one that was stopped, and has not been told to stop itself."""
    monkeypatch.setenv(predecessor.NAME_VARIABLE, "worker-1")
    monkeypatch.setenv(predecessor.END_VARIABLE, End.STOPPED)
    monkeypatch.setattr(compute, "_stopping", threading.Event())


def lost(principal: Principal, detail: OperationDetail, attempt: int = 1, worker: str = "") -> None:
    """A worker of this name, or of this worker's, has claimed the operation and died just now."""
    access.rows(Operation, principal).filter(id=detail.operation.id).update(
        state="RUNNING", attempt=attempt, worker=worker or presence.name(), heartbeat_at=Now()
    )


def test_a_worker_gives_back_at_its_start_what_its_predecessor_held(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    asked = ask_trials(principal, study)
    lost(principal, asked)
    enqueued.clear()
    losses.recover()
    assert (row(asked).state, row(asked).losses) == ("PENDING", 0)
    assert set(enqueued) == {str(asked.operation.id)}
    compute.compute_next()
    assert (row(asked).state, row(asked).attempt) == ("SUCCEEDED", 2)


def test_a_silent_predecessor_is_replaced_too(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    lost(principal, asked)
    silent_for(asked, 20, state="STALE")
    losses.recover()
    assert row(asked).state == "PENDING"


def test_a_worker_leaves_the_operations_of_others_and_what_is_done(principal: Principal, study: str) -> None:
    others = ask_trials(principal, study)
    done = ask_trials(principal, create_study(principal, study_name(), make_spec(algorithm={"name": "gp"})).name)
    compute.compute(done.operation.id)
    lost(principal, others, worker="elsewhere/worker-1")
    losses.recover()
    assert (row(others).state, row(done).state) == ("RUNNING", "SUCCEEDED")


def test_a_message_that_the_predecessor_took_is_sent_again(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    asked = ask_trials(principal, study)
    enqueued.clear()
    losses.recover()
    assert enqueued == [str(asked.operation.id)]


def test_workers_that_others_kill_cost_an_operation_nothing(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    for attempt in range(1, 11):
        lost(principal, asked, attempt)
        losses.recover()
        assert (row(asked).state, row(asked).losses) == ("PENDING", 0)
    compute.compute_next()
    assert row(asked).state == "SUCCEEDED"


@pytest.mark.parametrize("end", [End.DIED, None])
def test_an_operation_of_which_three_workers_die_fails(
    principal: Principal, study: str, monkeypatch: pytest.MonkeyPatch, end: str | None
) -> None:
    if end is None:
        monkeypatch.delenv(predecessor.END_VARIABLE)
    else:
        monkeypatch.setenv(predecessor.END_VARIABLE, end)
    asked = ask_trials(principal, study)
    for attempt in (1, 2, 3):
        assert row(asked).state == "PENDING"
        lost(principal, asked, attempt)
        losses.recover()
    failed = row(asked)
    assert (failed.state, failed.error_code, failed.losses) == ("FAILED", "worker_lost", 3)
    last = f"The last, {presence.name()}, died."
    assert failed.error_message.startswith(f"3 workers were lost while they computed it. {last} ")
    assert "memory" in failed.error_message


def test_an_operation_is_not_begun_for_ever(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    lost(principal, asked, losses.MOST_ATTEMPTS - 1)
    losses.recover()
    assert row(asked).state == "PENDING"
    lost(principal, asked, losses.MOST_ATTEMPTS)
    losses.recover()
    assert (row(asked).state, row(asked).error_code) == ("FAILED", "worker_lost")
    assert f"begun {losses.MOST_ATTEMPTS} times" in row(asked).error_message


def test_a_worker_that_is_told_to_stop_gives_its_operation_back_at_once(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    asked = ask_trials(principal, study)
    with computing(asked.operation.id):
        enqueued.clear()
        compute.begin_stop()
        wait_for(lambda: row(asked).state == "PENDING", "it is given back")
        assert enqueued == [str(asked.operation.id)]
    # It was ready before another worker took it.
    assert (row(asked).state, row(asked).attempt, row(asked).losses) == ("SUCCEEDED", 1, 0)
    assert selectors.get_study(principal, study).trial_count == 1


def test_the_result_of_a_stopped_worker_is_dropped_where_another_has_begun(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    with computing(asked.operation.id):
        compute.begin_stop()
        wait_for(lambda: row(asked).state == "PENDING", "it is given back")
        second = compute._claim(asked.operation.id)
        assert second is not None
    assert (row(asked).state, row(asked).attempt) == ("RUNNING", 2)
    assert selectors.get_study(principal, study).trial_count == 0
