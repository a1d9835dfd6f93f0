"""Every operation ends, with the true reason: deadlines, deleted studies, answers that cannot be stored."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import DataError, connection

from service.algorithms.base import Batch
from service.core.errors import JsonValue
from service.planning.create import create_study, delete_study
from service.platform import deadlines
from service.studies import change, selectors
from service.studies.change import Snapshot
from service.studies.models import Operation
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget
from service.trials.ask import ask as ask_trials
from service.workers import compute
from tests.factories.domain import ScriptedAlgorithm, make_principal, make_spec, study_name
from tests.factories.operations import row
from tests.factories.patience import PATIENCE, wait_for

pytestmark = pytest.mark.usefixtures("enqueued")


def spin(seconds: float = PATIENCE) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_computation_beyond_its_deadline_ends_with_the_reason(
    principal: Principal, study: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRIMTAB_OPERATION_CPU_SECONDS = 0.2
    asked = ask_trials(principal, study)
    with monkeypatch.context() as patched:
        patched.setattr(ScriptedAlgorithm, "suggest", lambda *_, **__: spin())
        compute.compute_next()
    failed = row(asked)
    assert (failed.state, failed.error_code, failed.attempt, failed.losses) == ("FAILED", "computation_too_long", 1, 0)
    assert "more than 0.2 s of CPU" in failed.error_message
    again = ask_trials(principal, study)
    compute.compute_next()
    assert row(again).state == "SUCCEEDED", "the worker and the study go on"


def test_the_computation_of_a_deleted_study_ends(
    principal: Principal, study: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRIMTAB_OPERATION_STALE_SECONDS = 0.5
    monkeypatch.setattr(deadlines, "UNWANTED_SECONDS", 0.1)
    entered = threading.Event()

    def suggest(*_: object, **__: object) -> None:
        entered.set()
        while True:
            time.sleep(0.001)
            sum(range(10_000))

    monkeypatch.setattr(ScriptedAlgorithm, "suggest", suggest)
    asked = ask_trials(principal, study)

    def work() -> None:
        try:
            compute.compute(asked.operation.id)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(PATIENCE)
    begun = row(asked).heartbeat_at
    wait_for(lambda: row(asked).heartbeat_at != begun, "the worker has beaten")
    delete_study(principal, study)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not access.rows(Operation, principal).exists()


def test_a_worker_that_does_not_leave_a_library_fails_its_operation_and_is_replaced(
    principal: Principal, study: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRIMTAB_OPERATION_CPU_SECONDS = 0.1
    monkeypatch.setattr(compute, "_QUICK_STUCK_SECONDS", 0.2)
    ended = threading.Event()
    monkeypatch.setattr(deadlines, "end_process", ended.set)

    def suggest(*_: object, **__: object) -> None:
        while not ended.is_set():
            try:
                spin()
            except deadlines.Ended:
                continue
        # What the process has done by its end counts, not what it does in this test afterwards.
        assert row(asked).state == "FAILED"

    monkeypatch.setattr(ScriptedAlgorithm, "suggest", suggest)
    asked = ask_trials(principal, study)
    compute.compute(asked.operation.id)
    failed = row(asked)
    assert (failed.state, failed.error_code, failed.losses) == ("FAILED", "computation_too_long", 0)


def test_an_answer_that_cannot_be_stored_fails_with_the_true_reason(
    principal: Principal, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dump(_: ScriptedAlgorithm) -> JsonValue:
        return {"best": float("inf")}

    monkeypatch.setattr(ScriptedAlgorithm, "dump", dump)
    asked = ask_trials(principal, study)
    compute.compute_next()
    failed = row(asked)
    assert (failed.state, failed.error_code, failed.attempt, failed.losses) == ("FAILED", "algorithm_failed", 1, 0)
    assert "Out of range float values are not JSON compliant" in failed.error_message
    assert selectors.get_study(principal, study).trial_count == 0


def test_a_refusal_of_the_database_is_no_outage(
    principal: Principal, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(*_: object) -> None:
        raise DataError("value out of range")

    monkeypatch.setattr(compute, "_keep", keep)
    monkeypatch.setattr(compute, "_PAUSES", (10 * PATIENCE,))
    asked = ask_trials(principal, study)
    compute.compute_next()
    assert (row(asked).state, row(asked).error_message) == ("FAILED", "DataError: value out of range")


def test_an_operation_that_cannot_be_begun_fails_and_the_next_tenants_is_computed(
    principal: Principal, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = make_principal()
    other = create_study(stranger, study_name(), make_spec(algorithm={"name": "gp"})).name
    asked, theirs = ask_trials(principal, study), ask_trials(stranger, other)
    refusal = budget.refusal

    def broken(found: Snapshot) -> Any:
        if found.study.name == study:
            raise RuntimeError("the budget cannot be read")
        return refusal(found)

    monkeypatch.setattr(budget, "refusal", broken)
    for _ in range(2):
        compute.compute_next()
    assert (row(asked).state, row(theirs).state) == ("FAILED", "SUCCEEDED")
    assert row(asked).error_message == "RuntimeError: the budget cannot be read"


def test_an_operation_ends_even_if_its_study_cannot_be_changed(
    principal: Principal, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ScriptedAlgorithm.error = ValueError("singular")
    asked = ask_trials(principal, study)

    def broken(*_: object) -> None:
        raise change.HalfDone("the counters are wrong")

    monkeypatch.setattr(compute, "fail_locked", broken)
    compute.compute_next()
    assert (row(asked).state, row(asked).error_message) == ("FAILED", "ValueError: singular")
    assert row(asked).finished_at is not None


def test_an_ask_for_many_gets_those_that_are_ready_after_a_part_of_the_time(
    principal: Principal, study: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggest = ScriptedAlgorithm.suggest

    def slowly(self: ScriptedAlgorithm, count: int, **more: Any) -> Batch:
        spin(0.2)
        return suggest(self, count, **more)

    monkeypatch.setattr(ScriptedAlgorithm, "suggest", slowly)
    settings.TRIMTAB_OPERATION_CPU_SECONDS = 1.2  # a quarter of it is over in the second step
    asked = ask_trials(principal, study, count=100)
    compute.compute_next()
    found = selectors.get_operation(principal, asked.operation.id)
    assert (found.operation.state, len(found.trials)) == ("SUCCEEDED", 2 * compute._AT_ONCE)
    # The second step knew the suggestions of the first one.
    assert [len(numbers) for numbers in ScriptedAlgorithm.pending] == [0, compute._AT_ONCE]
    again = ask_trials(principal, study, count=3)
    compute.compute_next()
    assert len(selectors.get_operation(principal, again.operation.id).trials) == 3
