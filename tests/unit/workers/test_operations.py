"""Costly suggestions: claimed once, computed in order, written once, never lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from service.planning.create import create_study, delete_study, update_state
from service.studies import selectors
from service.studies.change import Snapshot, Work
from service.studies.models import Operation
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending, topup, tuners
from service.trials.ask import ask as ask_trials
from service.trials.models import DesignerState
from service.trials.tell import complete_trial
from service.workers import compute, sweep
from tests.factories.domain import ScriptedAlgorithm, computing, make_execution, make_spec, study_name
from tests.factories.operations import row, silent_for
from tests.factories.patience import wait_for

pytestmark = pytest.mark.usefixtures("enqueued")


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers do not beat, which they would do in a test that takes seconds."""
    monkeypatch.setattr(compute._Heartbeat, "_beat", lambda heartbeat: None)


def test_an_operation_is_enqueued_computed_and_answers(principal: Principal, study: str, enqueued: list[str]) -> None:
    asked = ask_trials(principal, study, count=2, client_id="a")
    assert (asked.operation.state, asked.trials) == ("PENDING", [])
    assert enqueued == [str(asked.operation.id)]
    compute.compute(asked.operation.id)
    compute.compute(asked.operation.id)
    answer = selectors.get_operation(principal, asked.operation.id)
    assert answer.operation.state == "SUCCEEDED"
    assert [(trial.number, trial.state, trial.client_id) for trial in answer.trials] == [
        (1, "ACTIVE", "a"),
        (2, "ACTIVE", "a"),
    ]
    assert selectors.get_study(principal, study).trial_count == 2


def test_the_default_needs_no_worker(principal: Principal, enqueued: list[str]) -> None:
    spec = make_spec(algorithm={"name": "gp"})
    spec["space"]["parameters"][0]["default"] = 0.25
    name = create_study(principal, study_name(), spec).name
    first = ask_trials(principal, name)
    assert (first.operation.state, first.trials[0].origin, enqueued) == ("SUCCEEDED", "default", [])


def test_an_algorithm_is_fed_each_finished_trial_once(principal: Principal, study: str) -> None:
    for round_ in range(3):
        asked = ask_trials(principal, study, count=2)
        compute.compute(asked.operation.id)
        first, _ = selectors.get_operation(principal, asked.operation.id).trials
        complete_trial(principal, study, first.number, metrics={"seconds": 1.0})
        if round_ == 1:
            # Another process: it has no memory, so it reads the state and the whole history.
            tuners._learners.clear()
            fed, ScriptedAlgorithm.fed[:] = list(ScriptedAlgorithm.fed), []
            assert fed == [1]
    assert ScriptedAlgorithm.fed == [1, 3]
    assert ScriptedAlgorithm.pending == [[], [2], [2, 4]]
    assert ScriptedAlgorithm.loaded == [{"seen": 1}]
    assert access.rows(DesignerState, principal).get(study__name=study).state == {"seen": 2}


def test_operations_of_a_study_are_computed_in_order_and_see_each_other(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    first, second, third = (ask_trials(principal, study) for _ in range(3))
    compute.compute(third.operation.id)
    assert row(third).state == "PENDING"
    with computing(first.operation.id):
        compute.compute(second.operation.id)
        assert (row(first).state, row(second).state) == ("RUNNING", "PENDING")
        enqueued.clear()
    assert enqueued == [str(second.operation.id)]
    compute.compute(second.operation.id)
    compute.compute(third.operation.id)
    assert ScriptedAlgorithm.pending == [[], [1], [1, 2]]


def test_an_algorithm_that_fails_ends_its_operation_with_the_reason(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    ScriptedAlgorithm.error = ValueError("matrix is not positive definite")
    asked, next_ = ask_trials(principal, study), ask_trials(principal, study)
    enqueued.clear()
    compute.compute(asked.operation.id)
    failed = row(asked)
    assert (failed.state, failed.error_code) == ("FAILED", "algorithm_failed")
    assert failed.error_message == "ValueError: matrix is not positive definite"
    assert enqueued == [str(next_.operation.id)]
    ScriptedAlgorithm.error = None
    compute.compute(next_.operation.id)
    assert row(next_).state == "SUCCEEDED"
    assert selectors.get_study(principal, study).state == "ACTIVE"


def test_a_database_that_is_away_for_a_moment_is_no_failure(
    principal: Principal, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute, "_PAUSES", (0.0, 0.0))
    asked = ask_trials(principal, study)
    borrowed, calls = tuners.borrowed, []

    def borrow_after_an_outage(*arguments: Any) -> Any:
        calls.append(arguments)
        with connection.cursor() as cursor:
            if len(calls) == 1:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return borrowed(*arguments)

    monkeypatch.setattr(tuners, "borrowed", borrow_after_an_outage)
    compute.compute(asked.operation.id)
    assert len(calls) == 2
    assert (row(asked).state, row(asked).attempt) == ("SUCCEEDED", 1)


def test_an_exhausted_algorithm_gives_fewer_and_says_so(principal: Principal, study: str) -> None:
    ScriptedAlgorithm.most = 3
    asked = ask_trials(principal, study, count=5)
    compute.compute(asked.operation.id)
    answer = selectors.get_operation(principal, asked.operation.id)
    assert (len(answer.trials), answer.operation.exhausted, answer.operation.state) == (3, True, "SUCCEEDED")


def test_an_operation_of_a_study_that_is_paused_meanwhile_fails(principal: Principal, study: str) -> None:
    early, late = ask_trials(principal, study), ask_trials(principal, study)
    with computing(early.operation.id):
        update_state(principal, study, "PAUSED")
    compute.compute(late.operation.id)
    for detail in (early, late):
        assert (row(detail).state, row(detail).error_code) == ("FAILED", "study_not_active")
    assert selectors.get_study(principal, study).trial_count == 0


def test_a_study_that_is_deleted_meanwhile_takes_its_operation_along(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    with computing(asked.operation.id):
        delete_study(principal, study)
    compute.compute(asked.operation.id)
    assert not access.rows(Operation, principal).exists()


@pytest.mark.usefixtures("quiet")
def test_a_quiet_worker_is_marked_and_its_result_still_counts(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    with computing(asked.operation.id):
        silent_for(asked, 11)
        sweep.sweep()
        assert row(asked).state == "STALE"
    assert (row(asked).state, row(asked).attempt) == ("SUCCEEDED", 1)
    assert selectors.get_study(principal, study).trial_count == 1


def test_a_worker_that_beats_again_is_running_again(principal: Principal, study: str, settings: Any) -> None:
    settings.TRIMTAB_OPERATION_STALE_SECONDS = 0.5
    asked = ask_trials(principal, study)
    with computing(asked.operation.id):
        silent_for(asked, 20, state="STALE")
        wait_for(lambda: row(asked).state == "RUNNING", "it has beaten")
    assert row(asked).state == "SUCCEEDED"


@pytest.mark.usefixtures("quiet")
def test_the_operation_of_a_lost_worker_is_computed_again(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    asked = ask_trials(principal, study, count=2)
    with computing(asked.operation.id):
        silent_for(asked, 31)
        enqueued.clear()
        sweep.sweep()
        assert enqueued == [str(asked.operation.id)]
        assert row(asked).state == "PENDING"
        second = compute._claim(asked.operation.id)
        assert second is not None
    # The first worker came back after all; its result is dropped, for the operation is the second's.
    assert (row(asked).state, row(asked).attempt) == ("RUNNING", 2)
    assert selectors.get_study(principal, study).trial_count == 0
    compute._write(second, compute._suggest(second))
    assert row(asked).state == "SUCCEEDED"
    assert selectors.get_study(principal, study).trial_count == 2


@pytest.mark.usefixtures("quiet")
def test_a_worker_that_comes_back_before_another_took_over_is_welcome(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    with computing(asked.operation.id):
        silent_for(asked, 31)
        sweep.sweep()
        assert row(asked).state == "PENDING"
    assert (row(asked).state, row(asked).attempt) == ("SUCCEEDED", 1)
    compute.compute(asked.operation.id)
    assert selectors.get_study(principal, study).trial_count == 1


def test_an_operation_that_costs_three_workers_fails(principal: Principal, study: str) -> None:
    asked = ask_trials(principal, study)
    for attempt in (1, 2, 3):
        access.rows(Operation, principal).filter(id=asked.operation.id).update(
            state="RUNNING", attempt=attempt, worker="host/1", heartbeat_at=Now() - timedelta(seconds=40)
        )
        sweep.sweep()
        if attempt < 3:
            assert row(asked).state == "PENDING"
    assert (row(asked).state, row(asked).error_code) == ("FAILED", "worker_lost")
    assert "host/1" in row(asked).error_message


def test_a_lost_message_is_sent_again_and_less_often_each_time(
    principal: Principal, study: str, enqueued: list[str]
) -> None:
    asked, waiting = ask_trials(principal, study), ask_trials(principal, study)
    enqueued.clear()
    sweep.sweep()
    assert enqueued == []
    both = access.rows(Operation, principal)
    both.update(created_at=Now() - timedelta(seconds=3), enqueued_at=Now() - timedelta(seconds=3))
    both.filter(id=waiting.operation.id).update(created_at=Now() - timedelta(seconds=2.9))
    sweep.sweep()
    # Only the one whose turn it is.
    assert enqueued == [str(asked.operation.id)]
    sweep.sweep()
    assert len(enqueued) == 1
    both.filter(id=asked.operation.id).update(
        created_at=Now() - timedelta(seconds=20), enqueued_at=Now() - timedelta(seconds=8)
    )
    sweep.sweep()
    assert len(enqueued) == 1, "it has waited 12 s so far and is sent again after another 12 s"


def test_a_study_on_agents_pauses_when_its_algorithm_fails(principal: Principal, enqueued: list[str]) -> None:
    ScriptedAlgorithm.error = ValueError("broken")
    spec = make_spec(algorithm={"name": "gp"}, execution=make_execution())
    name = create_study(principal, study_name(), spec).name
    (operation,) = access.rows(Operation, principal)
    assert enqueued == [str(operation.id)]
    compute.compute(operation.id)
    paused = selectors.get_study(principal, name)
    assert paused.state == "PAUSED"
    assert "broken" in paused.state_reason
    sweep.sweep()
    assert len(enqueued) == 1
    ScriptedAlgorithm.error = None
    update_state(principal, name, "ACTIVE")
    (again,) = access.rows(Operation, principal).filter(state="PENDING")
    compute.compute(again.id)
    after = selectors.get_study(principal, name)
    assert (after.requested_count, after.state, after.state_reason) == (2, "ACTIVE", "")


def test_the_sweep_tops_up_a_study_whose_operation_was_lost(principal: Principal, enqueued: list[str]) -> None:
    spec = make_spec(algorithm={"name": "gp"}, execution=make_execution(parallelism=3))
    create_study(principal, study_name(), spec)
    access.rows(Operation, principal).delete()
    sweep.sweep()
    (operation,) = access.rows(Operation, principal)
    assert (operation.for_agents, operation.count) == (True, 4)
    sweep.sweep()
    assert access.rows(Operation, principal).count() == 1


def test_a_time_budget_completes_a_study(principal: Principal) -> None:
    name = create_study(principal, study_name(), make_spec(budget={"max_seconds": 60})).name
    assert selectors.get_study(principal, name).deadline is None
    (trial,) = ask_trials(principal, name).trials
    from service.studies.models import Study

    assert selectors.get_study(principal, name).deadline is not None
    access.rows(Study, principal).update(deadline=Now() - timedelta(seconds=1))
    sweep.sweep()
    assert selectors.get_study(principal, name).state == "COMPLETED"
    complete_trial(principal, name, trial.number, metrics={"seconds": 1.0})
    assert selectors.get_study(principal, name).finished_count == 1


def test_one_study_that_cannot_be_swept_holds_up_no_other(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from service.studies.models import Study

    broken, late = (create_study(principal, study_name(), make_spec(budget={"max_seconds": 60})) for _ in range(2))
    broken_hungry, hungry = (
        create_study(principal, study_name(), make_spec(execution=make_execution(parallelism=1))) for _ in range(2)
    )
    for one in (broken, late):
        ask_trials(principal, one.name)
        access.rows(Study, principal).filter(pk=one.pk).update(deadline=Now() - timedelta(seconds=1))
    access.rows(Study, principal).filter(pk__in=(broken_hungry.pk, hungry.pk)).update(parallelism=2)
    end_search, deficit = ending.end_search, topup.deficit

    def end(work: Work, *reason: Any) -> None:
        if work.study.pk == broken.pk:
            raise RuntimeError("the rule divides by zero")
        end_search(work, *reason)

    def lacks(found: Snapshot) -> int:
        if found.study.pk == broken_hungry.pk:
            raise RuntimeError("the spec cannot be read")
        return deficit(found)

    monkeypatch.setattr(ending, "end_search", end)
    monkeypatch.setattr(topup, "deficit", lacks)
    sweep.sweep()
    assert [selectors.get_study(principal, one.name).state for one in (broken, late)] == ["ACTIVE", "COMPLETED"]
    assert [selectors.get_study(principal, one.name).open_count for one in (broken_hungry, hungry)] == [2, 3]
