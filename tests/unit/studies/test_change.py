"""Changes without a lock: as certain as those with one, and cheaper."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from service.core.errors import Conflict, NotFound
from service.planning.create import create_study, delete_study
from service.studies import actions, selectors
from service.studies.change import change
from service.studies.models import Operation, Study, Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import complete_trial
from tests.factories.domain import make_spec, study_name


@pytest.fixture
def study(one_minute: None, principal: Principal) -> str:
    """A study that this process has changed already."""
    name = create_study(principal, study_name(), make_spec()).name
    ask(principal, name)
    return name


def ask(principal: Principal, study: str, **more: Any) -> Trial:
    (trial,) = ask_trials(principal, study, **more).trials
    return trial


def change_elsewhere(principal: Principal, study: str) -> None:
    """What another process does: this one does not hear of it."""
    with access.work(principal):
        locked = actions.lock(principal, study)
        actions.add_trials(principal, locked, [{"x": 0.5, "n": 1}], state="ACTIVE", origin="suggested")  # type: ignore[arg-type]
        actions.conclude(principal, locked, "study.suggest")


def test_an_ask_and_a_tell_take_two_statements_each(principal: Principal, study: str) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        trial = ask(principal, study, client_id="c")
    with CaptureQueriesContext(connection) as told:
        complete_trial(principal, study, trial.number, metrics={"seconds": 1.0})
    assert (len(asked), len(told)) == (2, 2), [query["sql"] for query in [*asked, *told]]
    stored = access.rows(Trial, principal).get(number=trial.number)
    assert (stored.state, stored.metrics, stored.params) == ("COMPLETED", {"seconds": 1.0}, trial.params)
    assert stored.finished_at is not None
    assert stored.started_at is not None
    assert stored.finished_at >= stored.started_at


def test_what_another_process_changed_is_seen(principal: Principal, study: str) -> None:
    change_elsewhere(principal, study)
    assert ask(principal, study).number == 3
    change_elsewhere(principal, study)
    complete_trial(principal, study, 3, metrics={"seconds": 1.0})
    change_elsewhere(principal, study)
    complete_trial(principal, study, 5, metrics={"seconds": 2.0})
    found = selectors.get_study(principal, study)
    assert (found.trial_count, found.finished_count, found.active_count) == (5, 2, 3)
    assert found.revision == access.rows(AuditEntry, principal).count()  # each change once


def test_a_try_that_comes_too_late_writes_nothing(principal: Principal, study: str) -> None:
    """Another process changes the study after the first try has read, before it writes."""
    calls = []

    def add(locked: Study) -> int:
        calls.append(locked.revision)
        if len(calls) == 1:
            with ThreadPoolExecutor(1) as other:
                other.submit(change_elsewhere, principal, study).result()
        (trial,) = actions.add_trials(principal, locked, [{"x": 0.1, "n": 2}], state="ACTIVE", origin="suggested")  # type: ignore[arg-type]
        actions.conclude(principal, locked, "study.suggest")
        return trial.number

    assert change(principal, study, add) == 3
    assert calls == [2, 3]
    assert [trial.number for trial in access.rows(Trial, principal).order_by("number")] == [1, 2, 3]
    assert access.rows(AuditEntry, principal).count() == 3 + 1  # with the creation


def test_what_fails_has_changed_nothing(principal: Principal, study: str) -> None:
    def fail(locked: Study) -> None:
        actions.add_trials(principal, locked, [{"x": 0.1, "n": 2}], state="ACTIVE", origin="suggested")  # type: ignore[arg-type]
        raise Conflict("no", "No.")

    for _ in range(2):
        with pytest.raises(Conflict):
            change(principal, study, fail)
    assert ask(principal, study).number == 2


def test_a_request_sent_twice_is_answered_as_before(principal: Principal, study: str) -> None:
    first = ask(principal, study, request_id="r")
    assert ask(principal, study, request_id="r").number == first.number
    assert access.rows(Operation, principal).filter(request_id="r").count() == 1
    assert selectors.get_study(principal, study).trial_count == 2


def test_a_deleted_study_is_gone_at_once(principal: Principal, study: str) -> None:
    with ThreadPoolExecutor(1) as other:
        other.submit(delete_study, principal, study).result()
    with pytest.raises(NotFound):
        ask(principal, study)


def test_many_threads_and_other_processes_together(principal: Principal, study: str) -> None:
    def work(number: int) -> None:
        for _ in range(10):
            trial = ask(principal, study, client_id=str(number))
            if number % 4 == 0:
                change_elsewhere(principal, study)
            complete_trial(principal, study, trial.number, metrics={"seconds": 1.0})
        connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    found = selectors.get_study(principal, study)
    numbers = list(access.rows(Trial, principal).order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, 1 + 1 + 80 + 20))
    assert (found.finished_count, found.active_count) == (80, 21)
    assert found.revision == access.rows(AuditEntry, principal).count()
