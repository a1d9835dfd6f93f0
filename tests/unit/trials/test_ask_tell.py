"""Asks and tells against a real PostgreSQL: what comes back, what is refused, what they cost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from service.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from service.planning.create import create_study, delete_study, update_state
from service.results import analysis
from service.studies import selectors
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import add_trial, complete_trial, fail_trial, report_measurement, stop_trial
from tests.factories.domain import ask, make_spec, refused, study_name, tell


@pytest.fixture
def study(principal: Principal) -> str:
    return create_study(principal, study_name(), make_spec()).name


def best_trials(principal: Principal, name: str) -> list[Trial]:
    study = selectors.get_study(principal, name)
    return analysis.best_trials(principal, study, analysis.analyse(principal, study))


def test_an_ask_gives_the_requested_trials_and_a_report_completes_each(principal: Principal, study: str) -> None:
    detail = ask_trials(principal, study, count=3, client_id="a")
    assert detail.operation.state == "SUCCEEDED"
    assert [trial.number for trial in detail.trials] == [1, 2, 3]
    assert all(trial.state == "ACTIVE" and 0 <= trial.params["x"] <= 1 for trial in detail.trials)
    for seconds, trial in zip((3.0, 1.0, 2.0), detail.trials, strict=True):
        tell(principal, study, trial, seconds)
    assert [trial.number for trial in best_trials(principal, study)] == [2]
    after = selectors.get_study(principal, study)
    assert (after.trial_count, after.finished_count, after.active_count) == (3, 3, 0)
    assert selectors.get_operation(principal, detail.operation.id).trials[1].metrics == {"seconds": 1.0}


def test_the_default_is_measured_first_and_once(principal: Principal) -> None:
    spec = make_spec()
    spec["space"]["parameters"][1]["default"] = 4
    name = create_study(principal, study_name(), spec).name
    first, second = ask(principal, name, 2)
    assert (first.origin, first.params["n"], second.origin) == ("default", 4, "suggested")
    assert all(trial.origin == "suggested" for trial in ask(principal, name, 5))


def test_the_default_waits_for_an_ask_whose_fixed_parameters_agree(principal: Principal) -> None:
    spec = make_spec()
    spec["space"]["parameters"][1]["default"] = 4
    name = create_study(principal, study_name(), spec).name
    (fixed,) = ask(principal, name, fixed={"n": 7})
    assert (fixed.origin, fixed.params["n"]) == ("suggested", 7)
    assert ask(principal, name)[0].origin == "default"


def test_a_grid_says_when_it_is_exhausted(principal: Principal) -> None:
    spec = make_spec(algorithm={"name": "grid"}, noisy=False)
    spec["space"]["parameters"] = [{"name": "n", "type": "int", "min": 1, "max": 5, "default": 3}]
    name = create_study(principal, study_name(), spec).name
    detail = ask_trials(principal, name, count=9)
    assert sorted(trial.params["n"] for trial in detail.trials) == [1, 2, 3, 4, 5]
    assert detail.operation.exhausted
    assert selectors.get_study(principal, name).exhausted
    again = ask_trials(principal, name)
    assert (again.trials, again.operation.exhausted, again.operation.state) == ([], True, "SUCCEEDED")


def test_a_client_that_crashed_gets_its_trials_back(principal: Principal, study: str) -> None:
    mine = ask(principal, study, 2, client_id="a")
    ask(principal, study, 1, client_id="b")
    back = ask(principal, study, 3, client_id="a", held_trials=[mine[1].number])
    assert [trial.number for trial in back] == [1, 4, 5]
    tell(principal, study, mine[0])
    assert [trial.number for trial in ask(principal, study, 1, client_id="a")] == [2]


def test_an_ask_sent_twice_answers_the_same(principal: Principal, study: str) -> None:
    first = ask_trials(principal, study, count=2, request_id="r1")
    second = ask_trials(principal, study, count=2, request_id="r1")
    assert first.operation.id == second.operation.id
    assert [trial.number for trial in second.trials] == [1, 2]
    assert selectors.get_study(principal, study).trial_count == 2


def test_an_ask_sent_twice_answers_even_if_the_first_took_the_last_of_the_budget(principal: Principal) -> None:
    name = create_study(principal, study_name(), make_spec(budget={"max_trials": 2})).name
    first = ask_trials(principal, name, count=2, request_id="r1")
    assert ask_trials(principal, name, count=2, request_id="r1").operation.id == first.operation.id
    refused("budget_exhausted", lambda: ask_trials(principal, name, request_id="r2"))


def test_a_request_id_belongs_to_one_study(principal: Principal, study: str) -> None:
    other = create_study(principal, study_name(), make_spec()).name
    ask_trials(principal, study, request_id="r1")
    refused("request_id_reused", lambda: ask_trials(principal, other, request_id="r1"))
    assert selectors.get_study(principal, other).trial_count == 0


def test_the_same_completion_again_changes_nothing_and_another_is_refused(principal: Principal, study: str) -> None:
    (trial,) = ask(principal, study)
    first = tell(principal, study, trial, 1.5)
    again = tell(principal, study, trial, 1.5)
    assert (again.trial.revision, again.study.revision) == (first.trial.revision, first.study.revision)
    refused("trial_already_finished", lambda: tell(principal, study, trial, 2.5))
    refused("trial_already_finished", lambda: stop_trial(principal, study, trial.number))
    refused("trial_already_finished", lambda: fail_trial(principal, study, trial.number, infeasible=True))
    assert selectors.get_trial(principal, study, trial.number).trial.metrics == {"seconds": 1.5}


def test_failures_and_stops_can_be_sent_twice(principal: Principal, study: str) -> None:
    one, two, three = ask(principal, study, 3)
    report_measurement(principal, study, three.number, step=2, metrics={"seconds": 9})
    for _ in range(2):
        assert fail_trial(principal, study, one.number, infeasible=True, reason="no").trial.state == "INFEASIBLE"
        assert fail_trial(principal, study, two.number, infeasible=False).trial.state == "FAILED"
        stopped = stop_trial(principal, study, three.number, reason="slow").trial
        assert (stopped.state, stopped.metrics) == ("PRUNED", {"seconds": 9.0})
    assert selectors.get_study(principal, study).finished_count == 3


def test_measurements_are_kept_by_step(principal: Principal, study: str) -> None:
    (trial,) = ask(principal, study)
    for step in (3, 1, 3):
        report_measurement(principal, study, 1, step=step, metrics={"seconds": step / 2}, elapsed_seconds=0.5)
    refused(
        "step_already_reported",
        lambda: report_measurement(principal, study, 1, step=3, metrics={"seconds": 7.0}),
    )
    kept = selectors.get_trial(principal, study, 1).measurements
    assert [(one.step, one.metrics) for one in kept] == [(1, {"seconds": 0.5}), (3, {"seconds": 1.5})]
    tell(principal, study, trial)
    refused(
        "trial_already_finished",
        lambda: report_measurement(principal, study, 1, step=4, metrics={"seconds": 7.0}),
    )


@pytest.mark.parametrize(
    ("metrics", "field"),
    [
        ({}, "metrics.seconds"),
        ({"other": 1.0}, "metrics.seconds"),
        ({"seconds": 10**400}, "metrics.seconds"),
        ({"seconds": "fast"}, "metrics.seconds"),
        ({"seconds": True}, "metrics.seconds"),
        ({"seconds": 1.0, "other": "fast"}, "metrics.other"),
    ],
)
def test_bad_metrics_name_the_field_and_change_nothing(
    principal: Principal, study: str, metrics: dict[str, Any], field: str
) -> None:
    ask(principal, study)
    before = selectors.get_study(principal, study).revision
    with pytest.raises(InvalidInput) as caught:
        complete_trial(principal, study, 1, metrics=metrics)
    assert caught.value.data["field"] == field
    assert selectors.get_study(principal, study).revision == before
    assert selectors.get_trial(principal, study, 1).trial.state == "ACTIVE"


def test_unknown_studies_and_trials_are_not_found(principal: Principal, study: str) -> None:
    refused("study_not_found", lambda: ask(principal, "none"))
    refused("study_not_found", lambda: selectors.get_study(principal, "none"))
    for number in (0, -1, 1, 2**40):
        refused("trial_not_found", partial(stop_trial, principal, study, number))
    refused("operation_not_found", lambda: selectors.get_operation(principal, "no uuid"))
    refused("operation_not_found", lambda: selectors.get_operation(principal, uuid4()))


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": 1001}, "count"),
        ({"client_id": "x" * 201}, "client_id"),
        ({"fixed": {"zz": 1}}, "fixed.zz"),
        ({"fixed": {"n": 99}}, "fixed.n"),
    ],
)
def test_a_bad_ask_names_the_field(principal: Principal, study: str, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask_trials(principal, study, **arguments)
    assert caught.value.data["field"] == field
    assert selectors.get_study(principal, study).trial_count == 0


def test_own_measurements_are_added_and_not_counted_against_the_budget(principal: Principal) -> None:
    name = create_study(principal, study_name(), make_spec(budget={"max_trials": 1})).name
    for _ in range(2):
        added = add_trial(principal, name, params={"x": 0.5, "n": 2}, metrics={"seconds": 1}, request_id="r1").trial
        assert (added.number, added.state, added.origin) == (1, "COMPLETED", "added")
    refused("trial_already_finished", lambda: tell(principal, name, added, 2.0))
    with pytest.raises(InvalidInput) as caught:
        add_trial(principal, name, params={"x": 0.5, "q": 2}, metrics={"seconds": 1})
    assert str(caught.value.data["field"]).startswith("params")
    assert [trial.number for trial in ask(principal, name)] == [2]
    assert selectors.get_study(principal, name).state == "ACTIVE"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"state": "ACTIVE", "metrics": {}}, "state"),
        ({"state": "FAILED", "metrics": {"seconds": 1}}, "metrics"),
        ({"metrics": {"seconds": 1}, "reason": "why"}, "reason"),
    ],
)
def test_an_added_trial_has_either_metrics_or_a_reason(principal: Principal, more: dict[str, Any], field: str) -> None:
    name = create_study(principal, study_name(), make_spec()).name
    with pytest.raises(InvalidInput) as caught:
        add_trial(principal, name, params={"x": 0.5, "n": 2}, **more)
    assert caught.value.data["field"] == field
    failed = add_trial(principal, name, params={"x": 0.5, "n": 4}, metrics={}, state="FAILED", reason="disk").trial
    assert (failed.state, failed.reason, failed.metrics) == ("FAILED", "disk", None)
    assert not selectors.get_study(principal, name).default_done, "the default is still to be measured"


def test_a_study_completes_with_its_budget_of_trials(principal: Principal) -> None:
    name = create_study(principal, study_name(), make_spec(budget={"max_trials": 3})).name
    trials = ask(principal, name, 5)
    assert len(trials) == 3
    error = refused("budget_exhausted", lambda: ask(principal, name))
    assert error.data["open"] == 3
    for trial in trials:
        tell(principal, name, trial)
    after = selectors.get_study(principal, name)
    assert (after.state, after.finished_count) == ("COMPLETED", 3)
    assert "3 trials" in after.state_reason
    refused("study_not_active", lambda: ask(principal, name))


def test_a_paused_study_gives_nothing_new_and_takes_results(principal: Principal, study: str) -> None:
    (trial,) = ask(principal, study, client_id="a")
    update_state(principal, study, "PAUSED", reason="lunch")
    error = refused("study_not_active", lambda: ask(principal, study))
    assert "PAUSED (lunch)" in error.message
    assert ask(principal, study, 2, client_id="a")[0].number == trial.number
    tell(principal, study, trial)
    update_state(principal, study, "ACTIVE")
    assert ask(principal, study)[0].number == 2


def test_an_aborted_study_ends_its_trials_and_stays_aborted(principal: Principal, study: str) -> None:
    (trial,) = ask(principal, study)
    for _ in range(2):
        after = update_state(principal, study, "ABORTED", reason="enough")
        assert (after.active_count, after.finished_count, after.state_reason) == (0, 1, "enough")
    refused("trial_already_finished", lambda: tell(principal, study, trial))
    refused("invalid_step", lambda: update_state(principal, study, "ACTIVE"))
    with pytest.raises(InvalidInput):
        update_state(principal, study, "SLEEPING")


def test_studies_are_created_once(principal: Principal) -> None:
    name = study_name()
    first = create_study(principal, name, make_spec(), request_id=name)
    assert create_study(principal, name, make_spec(), request_id=name).pk == first.pk
    with pytest.raises(AlreadyExists):
        create_study(principal, name, make_spec(), request_id="other")
    loaded = create_study(principal, name, make_spec(seed=7), load_if_exists=True)
    assert loaded.pk == first.pk
    different = make_spec(objectives=[{"metric": "seconds", "goal": "maximize"}])
    refused("study_differs", lambda: create_study(principal, name, different, load_if_exists=True))
    refused("request_id_reused", lambda: create_study(principal, study_name(), make_spec(), request_id=name))


def test_studies_are_deleted_once(principal: Principal, study: str) -> None:
    ask(principal, study, 3)
    report_measurement(principal, study, 1, step=1, metrics={"seconds": 1.0})
    delete_study(principal, study)
    delete_study(principal, study)
    with pytest.raises(NotFound):
        selectors.get_study(principal, study)
    refused("study_not_found", lambda: delete_study(principal, "never-was"))
    assert create_study(principal, study, make_spec()).trial_count == 0


def test_another_tenant_sees_nothing(principal: Principal, study: str) -> None:
    from tests.factories.domain import make_principal

    detail = ask_trials(principal, study)
    stranger = make_principal()
    refused("study_not_found", lambda: ask(stranger, study))
    refused("study_not_found", lambda: stop_trial(stranger, study, 1))
    refused("operation_not_found", lambda: selectors.get_operation(stranger, detail.operation.id))
    assert selectors.list_studies(stranger).items == []


def test_numbers_have_neither_gaps_nor_doubles_when_many_ask_and_tell_at_once(principal: Principal, study: str) -> None:
    clients, rounds = 32, 5
    start = threading.Barrier(clients)
    seen: list[int] = []

    def work(client: int) -> None:
        try:
            start.wait()
            for _ in range(rounds):
                trials = ask(principal, study, 2, client_id=f"c{client}")
                for trial in trials:
                    tell(principal, study, trial, trial.params["x"])
                    seen.append(trial.number)
        finally:
            connection.close()

    with ThreadPoolExecutor(clients) as threads:
        for done in [threads.submit(work, client) for client in range(clients)]:
            done.result()
    total = clients * rounds * 2
    assert sorted(seen) == list(range(1, total + 1))
    after = selectors.get_study(principal, study)
    assert (after.trial_count, after.finished_count, after.active_count) == (total, total, 0)
    revisions = list(access.rows(Trial, principal).values_list("revision", flat=True))
    # 32 clients, 5 asks of 2 and 10 tells each, and the creation: every change took one revision.
    assert after.revision == clients * rounds * 3 + 1
    assert len(set(revisions)) == total


def test_the_same_ask_from_many_threads_is_done_once(principal: Principal, study: str) -> None:
    def work(_: int) -> list[int]:
        try:
            return [trial.number for trial in ask(principal, study, 2, request_id="same")]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(work, range(8)))
    assert answers == [[1, 2]] * 8
    assert selectors.get_study(principal, study).trial_count == 2


def test_one_of_two_completions_at_once_counts(principal: Principal, study: str) -> None:
    (trial,) = ask(principal, study)

    def work(seconds: float) -> float | None:
        try:
            tell(principal, study, trial, seconds)
        except Conflict:
            return None
        finally:
            connection.close()
        return seconds

    with ThreadPoolExecutor(8) as threads:
        accepted = [one for one in threads.map(work, map(float, range(8))) if one is not None]
    assert len(accepted) == 1
    assert selectors.get_trial(principal, study, 1).trial.metrics == {"seconds": accepted[0]}
    assert selectors.get_study(principal, study).finished_count == 1


def test_an_ask_and_a_tell_cost_few_statements(one_minute: None, principal: Principal, study: str) -> None:
    ask(principal, study)
    with CaptureQueriesContext(connection) as asked:
        trials = ask(principal, study, 3, client_id="a", request_id="r")
    with CaptureQueriesContext(connection) as reported:
        tell(principal, study, trials[0])

    def statements(context: CaptureQueriesContext) -> list[str]:
        return [one["sql"] for one in context.captured_queries if one["sql"] not in ("BEGIN", "COMMIT")]

    assert len(statements(asked)) <= 5, statements(asked)
    assert len(statements(reported)) <= 4, statements(reported)


def test_lists_go_by_pages(principal: Principal, study: str) -> None:
    for trial in ask(principal, study, 7)[:4]:
        tell(principal, study, trial)
    numbers, token = [], ""
    while True:
        page = selectors.list_trials(principal, study, page_size=3, page_token=token)
        numbers += [trial.number for trial in page.items]
        token = page.next_page_token
        if not token:
            break
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    assert [one.number for one in selectors.list_trials(principal, study, states=["ACTIVE"]).items] == [5, 6, 7]
    newest = selectors.list_trials(principal, study, page_size=2, newest_first=True)
    assert [one.number for one in newest.items] == [7, 6]
    names = [create_study(principal, f"p{index}-{study}", make_spec()).name for index in range(3)]
    first = selectors.list_studies(principal, page_size=2)
    rest = selectors.list_studies(principal, page_size=2, page_token=first.next_page_token)
    assert [one.name for one in (*first.items, *rest.items)] == [*reversed(names), study]
    assert (first.total_count, rest.next_page_token) == (4, "")
    assert [one.name for one in selectors.list_studies(principal, name_prefix="p1-").items] == [names[1]]
    for call in (
        lambda: selectors.list_trials(principal, study, page_token="x"),
        lambda: selectors.list_trials(principal, study, page_size=-1),
        lambda: selectors.list_studies(principal, states=["ODD"]),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_paged_changes_list_every_trial_once_in_its_latest_state(principal: Principal, study: str) -> None:
    first = ask(principal, study, 5)
    tell(principal, study, first[2])
    seen: dict[int, str] = {}
    revision, pages = 0, 0
    while True:
        change = selectors.changes(principal, study, revision, limit=2)
        for trial in change.trials:
            assert trial.revision > revision
            seen[trial.number] = trial.state
        revision, pages = change.revision, pages + 1
        if not change.more:
            break
    assert seen == {1: "ACTIVE", 2: "ACTIVE", 3: "COMPLETED", 4: "ACTIVE", 5: "ACTIVE"}
    assert pages == 2
    assert revision == selectors.get_study(principal, study).revision
    assert selectors.changes(principal, study, revision).trials == []


def test_values_come_back_as_they_were_written(principal: Principal, study: str) -> None:
    (trial,) = ask(principal, study)
    for value in (1e22, 5e-324, -0.0, 0.1 + 0.2, -1e100):
        report_measurement(principal, study, 1, step=int(abs(hash(value)) % 1000), metrics={"seconds": value})
    kept = [one.metrics["seconds"] for one in selectors.get_trial(principal, study, 1).measurements]
    assert sorted(map(repr, kept)) == sorted(map(repr, (1e22, 5e-324, -0.0, 0.1 + 0.2, -1e100)))
    assert access.rows(Study, principal).get(name=study).spec["space"]["parameters"][0]["max"] == 1.0
    assert trial.params == selectors.get_trial(principal, study, 1).trial.params
