"""One change of a study: one transaction and one revision, written when its block ends or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from service.core.errors import Conflict, NotFound
from service.planning.create import create_study, delete_study
from service.studies import actions, selectors
from service.studies.change import Deleted, HalfDone, Work, changing, lock, read
from service.studies.models import Operation, Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import complete_trial
from tests.factories.domain import make_spec, study_name


@pytest.fixture
def study(one_minute: None, principal: Principal) -> str:
    """A study with one trial, which is ACTIVE."""
    name = create_study(principal, study_name(), make_spec()).name
    ask(principal, name)
    return name


def ask(principal: Principal, study: str, **more: Any) -> Trial:
    (trial,) = ask_trials(principal, study, **more).trials
    return trial


def add(work: Work, request_id: str = "") -> Trial:
    configuration: dict[str, Any] = {"x": 0.5, "n": 1}
    (trial,) = actions.add_trials(
        work,
        [configuration],
        state="ACTIVE",  # type: ignore[arg-type]
        origin="suggested",
        request_id=request_id or None,
    )
    return trial


def entries(principal: Principal) -> list[AuditEntry]:
    return list(access.rows(AuditEntry, principal).order_by("pk"))


def test_a_change_is_written_once_with_its_audit_entry(principal: Principal, study: str) -> None:
    before = selectors.get_study(principal, study)
    with changing(principal, study, "study.test") as work:
        first, second = add(work), add(work)
        work.study.default_done = True
        work.target, work.detail = f"trial/{first.number}", {"reason": "test"}
        assert first.revision == second.revision == work.revise()
    after = selectors.get_study(principal, study)
    assert (after.revision, after.trial_count, after.active_count) == (before.revision + 1, 3, 3)
    assert (after.default_done, after.updated_at) == (True, work.time)
    entry = entries(principal)[-1]
    assert (entry.action, entry.target, entry.detail) == ("study.test", f"study/{study}/trial/2", {"reason": "test"})
    assert entry.after == {"trial/2": {"state": "ACTIVE"}, "trial/3": {"state": "ACTIVE"}}


def test_a_column_that_was_set_is_enough_to_conclude(principal: Principal, study: str) -> None:
    before = selectors.get_study(principal, study).revision
    with changing(principal, study, "study.test") as work:
        work.study.exhausted = True
    after = selectors.get_study(principal, study)
    assert (after.exhausted, after.revision) == (True, before + 1)


def test_a_block_that_changes_nothing_writes_nothing(principal: Principal, study: str) -> None:
    before, count = selectors.get_study(principal, study), len(entries(principal))
    with changing(principal, study, "study.test") as work:
        work.detail = {"reason": "for nothing"}
        actions.get_trial(work, 1)
    after = selectors.get_study(principal, study)
    assert (after.revision, after.updated_at, len(entries(principal))) == (before.revision, before.updated_at, count)


def test_a_block_that_raises_is_undone(principal: Principal, study: str) -> None:
    def fail() -> None:
        with changing(principal, study, "study.test") as work:
            add(work)
            raise Conflict("no", "No.")

    for _ in range(2):
        with pytest.raises(Conflict):
            fail()
    assert ask(principal, study).number == 2


def test_a_step_after_the_end_is_refused(principal: Principal, study: str) -> None:
    with changing(principal, study, "study.test") as work:
        trial = add(work)
    with pytest.raises(HalfDone, match="concluded"):
        actions.step_trial(work, trial, "FAILED")  # type: ignore[arg-type]
    with pytest.raises(HalfDone, match="concluded"):
        add(work)
    assert selectors.get_study(principal, study).trial_count == 2


def test_counters_that_do_not_add_up_undo_the_change(principal: Principal, study: str) -> None:
    def miscount() -> None:
        with changing(principal, study, "study.test") as work:
            add(work)
            work.study.finished_count += 1

    with pytest.raises(HalfDone, match="2 ACTIVE and 1 finished of 2 trials"):
        miscount()
    after = selectors.get_study(principal, study)
    assert (after.trial_count, after.finished_count) == (1, 0)


def test_a_write_that_fails_undoes_the_change(principal: Principal, study: str) -> None:
    """Writes are sent with the statement that follows, which is where their errors come up."""
    ask(principal, study, request_id="r")
    with changing(principal, study, "study.test") as work:
        add(work, request_id="r1")
    with pytest.raises(IntegrityError), changing(principal, study, "study.test") as work:
        add(work, request_id="r1")
    assert selectors.get_study(principal, study).trial_count == 3
    assert ask(principal, study).number == 4


def test_a_write_is_sent_even_if_nothing_follows_it(principal: Principal, study: str) -> None:
    with access.work(principal):
        trial = access.rows(Trial, principal).get(number=1)
        trial.reason, trial.node = "written", "n1"
        actions._begin_trial(principal, trial)
    assert access.rows(Trial, principal).get(number=1).node == "n1"

    def fail() -> None:
        with access.work(principal):
            lock(principal, study)
            trial.node = "n2"
            actions._begin_trial(principal, trial)
            raise Conflict("no", "No.")

    with pytest.raises(Conflict):
        fail()
    ask(principal, study)
    assert access.rows(Trial, principal).get(number=1).node == "n1"


def test_a_study_that_was_deleted_is_gone_at_once(principal: Principal, study: str) -> None:
    key = selectors.get_study(principal, study).pk
    with ThreadPoolExecutor(1) as other:
        other.submit(delete_study, principal, study).result()
    with pytest.raises(NotFound):
        ask(principal, study)
    with pytest.raises(Deleted), changing(principal, key, "study.test"):
        raise AssertionError
    with pytest.raises(Deleted):
        read(principal, key)


def test_a_request_sent_twice_is_answered_as_before(principal: Principal, study: str) -> None:
    first = ask(principal, study, request_id="r")
    assert ask(principal, study, request_id="r").number == first.number
    assert access.rows(Operation, principal).filter(request_id="r").count() == 1
    assert selectors.get_study(principal, study).trial_count == 2


def test_an_ask_and_a_tell_wait_for_few_statements(principal: Principal, study: str) -> None:
    with CaptureQueriesContext(connection) as asked:
        trial = ask(principal, study, client_id="c")
    with CaptureQueriesContext(connection) as reported:
        complete_trial(principal, study, trial.number, metrics={"seconds": 1.0})

    def waited(context: CaptureQueriesContext) -> list[str]:
        return [one["sql"] for one in context.captured_queries if one["sql"] not in ("BEGIN", "COMMIT")]

    # The lock and the client's trials are one wait, and so are the lock and the trial. Writes go out with the commit.
    assert (len(waited(asked)), len(waited(reported))) == (1, 1), [*waited(asked), *waited(reported)]
    stored = access.rows(Trial, principal).get(number=trial.number)
    assert (stored.state, stored.metrics, stored.params) == ("COMPLETED", {"seconds": 1.0}, trial.params)
    assert stored.started_at is not None
    assert stored.finished_at is not None
    assert stored.finished_at >= stored.started_at


def test_many_threads_change_a_study_at_once(principal: Principal, study: str) -> None:
    def work(number: int) -> None:
        try:
            for _ in range(10):
                trial = ask(principal, study, client_id=str(number))
                if number % 4 == 0:
                    with changing(principal, study, "study.test") as change:
                        add(change)
                complete_trial(principal, study, trial.number, metrics={"seconds": 1.0})
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    found = selectors.get_study(principal, study)
    numbers = list(access.rows(Trial, principal).order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, 1 + 1 + 80 + 20))
    assert (found.finished_count, found.active_count) == (80, 21)
    # Each change took one revision and wrote one entry.
    assert found.revision == len(entries(principal))
