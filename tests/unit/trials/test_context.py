"""A study with a context: asks, the final check in each context, and the table of recommendations."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from service.notices.models import Kind, Notice
from service.planning.create import create_study
from service.planning.space_edits import edit_space
from service.results.analysis import Analysis, analyse
from service.results.summaries import summarise
from service.studies import selectors
from service.studies.models import StudySummary
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import enqueue
from service.trials.tell import add_trial, complete_trial
from tests.factories.domain import ask, make_execution, make_principal, make_spec, refused, study_name, tell

pytestmark = pytest.mark.django_db(transaction=True)

IDLE, HIGH = {"load": "idle"}, {"load": "high"}


def context_spec(**changes: Any) -> dict[str, Any]:
    parameters = [
        {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5},
        {"name": "load", "type": "categorical", "values": ["idle", "high"]},
    ]
    return make_spec(space={"parameters": parameters, "constraints": []}, context=[{"name": "load"}], **changes)


def new(principal: Principal, **changes: Any) -> str:
    return create_study(principal, study_name(), context_spec(**changes)).name


def measure(principal: Principal, study: str, trial: Any, under_load: float = 0.0) -> None:
    """Report a synthetic time: idle, a large x is much faster; under load, by `under_load` only."""
    x, idle = trial.params["x"], trial.params["load"] == "idle"
    seconds = 2.0 - x if idle else 9.0 - under_load * x
    complete_trial(principal, study, trial.number, metrics={"seconds": seconds})


def table(principal: Principal, study: str) -> Analysis:
    return analyse(principal, selectors.get_study(principal, study))


def test_an_ask_needs_the_present_context(principal: Principal) -> None:
    study = new(principal)
    error = refused("invalid_argument", lambda: ask(principal, study))
    assert error.data["field"] == "context.load"
    assert "'idle', 'high'" in error.message
    assert refused("invalid_argument", lambda: ask(principal, study, context={"load": "low"})).data["value"] == "low"
    assert refused("invalid_argument", lambda: ask(principal, study, context={"disk": "ssd"}))
    assert refused("invalid_argument", lambda: ask(principal, study, context=IDLE, schedule_context=True))
    assert refused("invalid_argument", lambda: ask(principal, study, context=IDLE, fixed=HIGH))
    assert ask(principal, study, context=HIGH)[0].params == {"x": 0.5, "load": "high"}


def test_a_study_without_context_refuses_one(principal: Principal) -> None:
    study = create_study(principal, study_name(), make_spec()).name
    assert refused("invalid_argument", lambda: ask(principal, study, context=HIGH)).data["field"] == "context.load"
    assert ask(principal, study, schedule_context=True)


def test_a_client_gets_back_only_trials_of_its_present_context(principal: Principal) -> None:
    study = new(principal)
    [idle] = ask(principal, study, client_id="c", context=IDLE)
    [high] = ask(principal, study, client_id="c", context=HIGH)
    assert high.number != idle.number
    assert ask(principal, study, client_id="c", context=IDLE)[0].number == idle.number


def test_enqueued_trials_need_their_context_and_wait_for_it(principal: Principal) -> None:
    study = new(principal)
    refused("invalid_argument", lambda: enqueue.enqueue_trials(principal, study, params={"x": 0.1}))
    enqueue.enqueue_trials(principal, study, params={"x": 0.1, **HIGH})
    assert ask(principal, study, context=IDLE)[0].params == {"x": 0.5, "load": "idle"}
    assert ask(principal, study, context=HIGH)[0].params == {"x": 0.1, "load": "high"}


def test_a_table_of_more_contexts_needs_no_more_queries(principal: Principal) -> None:
    counts = []
    for contexts in ([IDLE], [IDLE, HIGH]):
        study = new(principal)
        for context in contexts:
            for trial in ask(principal, study, count=2, context=context):
                measure(principal, study, trial)
        with CaptureQueriesContext(connection) as queries:
            rows = table(principal, study).contexts
        assert sum(row.verdict is not None for row in rows) == len(contexts)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_table_has_the_default_where_nothing_is_proven(principal: Principal) -> None:
    check = {"max_trials": 8, "effects": 0}
    study = new(principal, budget={"max_trials": 12}, final_check=check)
    assert [row.verdict for row in table(principal, study).contexts] == [None, None]
    while selectors.get_study(principal, study).state == "ACTIVE":
        for trial in ask(principal, study, schedule_context=True):
            measure(principal, study, trial)
    idle, high = table(principal, study).contexts
    assert (idle.context, high.context) == (IDLE, HIGH)
    assert idle.verdict is not None
    assert high.verdict is not None
    assert idle.verdict.level == "proven"
    assert float(idle.settings["x"]) > 0.5
    assert idle.settings == {"x": idle.verdict.configuration["x"]}
    assert (high.settings, high.is_default, idle.is_default) == ({"x": 0.5}, True, False)
    assert high.verdict.level == "no measurable gain"
    found = selectors.get_study(principal, study)
    assert found.verdict is not None
    assert found.verdict["trials"] == found.trial_count - 12
    notice = access.rows(Notice, principal).get(study=study)
    assert notice.kind == Kind.GAIN_PROVEN
    assert notice.reason == f"load = idle: {idle.verdict.text}"
    # The list of studies shows the gain of the context in which it is proven.
    summarise(principal, found.pk)
    summary = access.rows(StudySummary, principal).get(study_id=found.pk)
    assert (summary.gain, summary.best) == (idle.verdict.gain, idle.verdict.value)
    assert summary.objectives[0]["level"] == "proven"
    assert summary.objectives[0]["text"] == notice.reason


def test_a_check_that_proves_no_gain_in_any_context_ends_the_study(principal: Principal) -> None:
    study = new(principal, budget={"max_trials": 8}, final_check={"max_trials": 8, "effects": 0})
    while selectors.get_study(principal, study).state == "ACTIVE":
        for trial in ask(principal, study, schedule_context=True):
            tell(principal, study, trial, 2.0)
    assert access.rows(Notice, principal).get(study=study).kind == Kind.STUDY_ENDED


def test_the_final_check_says_which_context_it_needs(principal: Principal) -> None:
    study = new(principal, budget={"max_trials": 12}, final_check={"max_trials": 8, "effects": 0})
    for _ in range(12):
        [trial] = ask(principal, study, schedule_context=True)
        measure(principal, study, trial, under_load=1.0)
    for _ in range(4):
        [trial] = ask(principal, study, context=IDLE)
        assert trial.origin == "check"
        measure(principal, study, trial)
    while (pairs := ask(principal, study, context=IDLE, client_id="c", count=8)) and len(pairs) == 8:
        pass
    error = refused("context_measured", lambda: ask(principal, study, context=IDLE))
    assert "load = 'high'" in error.message
    assert ask(principal, study, context=HIGH)[0].origin == "check"


def test_agents_get_trials_in_each_context(principal: Principal) -> None:
    execution = make_execution(parallelism=3)
    study = new(principal, execution=execution, budget={"max_trials": 8})
    trials = selectors.list_trials(principal, study).items
    assert [trial.params["load"] for trial in trials] == ["idle", "high", "idle", "high"]
    assert [trial.origin for trial in trials] == ["default", "default", "suggested", "suggested"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"algorithm": {"name": "cmaes"}}, "algorithm.name"),
        ({"start_from": ["another"]}, "start_from"),
        ({"final_check": {"effects": 32}}, "final_check.effects"),
        ({"context": [{"name": "speed"}]}, "context[0].name"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(principal: Principal, changes: dict[str, Any], field: str) -> None:
    spec = {**context_spec(), **changes}
    assert refused("invalid_argument", lambda: create_study(principal, study_name(), spec)).data["field"] == field


def test_an_edit_keeps_the_context_and_cannot_remove_it(principal: Principal) -> None:
    study = new(principal)
    [trial] = ask(principal, study, context=HIGH)
    measure(principal, study, trial)
    added = {"name": "y", "type": "int", "min": 0, "max": 9, "default": 3}
    edit_space(principal, study, {"add": [added]})
    assert ask(principal, study, context=HIGH)[0].params.keys() == {"x", "load", "y"}
    refused("invalid_argument", lambda: edit_space(principal, study, {"remove": {"load": "idle"}}))
    refused("invalid_argument", lambda: edit_space(principal, study, {"fix": {"load": "idle"}}))


def test_another_tenant_sees_nothing(principal: Principal) -> None:
    study = new(principal)
    refused("study_not_found", lambda: ask(make_principal(), study, context=IDLE))


def test_a_change_of_the_system_is_found_and_measured_again(principal: Principal) -> None:
    study = new(principal, budget={"max_trials": 200})
    values = [10.0 + 0.1 * (place % 3) for place in range(14)]
    for value in values:
        add_trial(principal, study, params={"x": 0.7, **HIGH}, metrics={"seconds": value})
        add_trial(principal, study, params={"x": 0.7, **IDLE}, metrics={"seconds": value})
    before = selectors.get_study(principal, study)
    assert (before.space_version, before.requested_count) == (1, 0)
    for _ in range(2):
        add_trial(principal, study, params={"x": 0.7, **HIGH}, metrics={"seconds": 13.0})
        # One or two disturbed runs are not enough.
        assert selectors.get_study(principal, study).space_version == 1
    add_trial(principal, study, params={"x": 0.7, **HIGH}, metrics={"seconds": 13.0})
    found = selectors.get_study(principal, study)
    assert "changed with load = high" in found.state_reason
    waiting = ask(principal, study, 6, context=HIGH)
    assert [trial.params["x"] for trial in waiting] == [0.5, 0.7] * 3
    spec = spec_of(found)
    assert spec.is_stale(1, {"x": 0.7, **HIGH})
    assert not spec.is_stale(2, {"x": 0.7, **IDLE})
    for trial in waiting:
        tell(principal, study, trial, 13.0 if trial.params["x"] == 0.7 else 20.0)
    [idle, high] = table(principal, study).contexts
    assert idle.verdict is not None
    assert high.verdict is not None
    assert high.verdict.value == pytest.approx(13.0, abs=0.3)
    assert idle.verdict.value == pytest.approx(10.1, abs=0.3)
    audited = access.rows(AuditEntry, principal).filter(action="study.drift")
    assert [entry.detail["context"] for entry in audited] == [HIGH]
