"""The SDK against a real service: everything but `optimize`."""

import math
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.conftest import SPACE, make_study
from trimtab.study import Study


def test_the_example_of_the_documentation(embedded_service: EmbeddedService, name: str) -> None:
    client = trimtab.Client(embedded_service.grpc_address, token=embedded_service.token)
    study = client.create_study(
        name,
        space=[
            trimtab.Float("x", 1e-3, 10, log=True),
            trimtab.Int("n", 1, 16, step=1),
            trimtab.Ordinal("block", [4, 16, 64, 256]),
            trimtab.Categorical("alg", ["a", "b"]),
            trimtab.Bool("huge"),
        ],
        objectives=[trimtab.Minimize("seconds")],
        constraints=["n * 4 <= block"],
        algorithm="gp",
        seed=0,
    )
    trials = study.ask(4)
    assert len(trials) == 4
    assert [type(value) for value in trials[0].params.values()] == [float, int, int, str, bool]
    assert all(trial.params["n"] * 4 <= trial.params["block"] for trial in trials)
    study.tell(trials[0], {"seconds": 1.2})
    study.tell(trials[2], infeasible="does not compile")
    study.report(trials[1], step=3, metrics={"seconds": 2.0})
    assert study.best_trial.params == trials[0].params
    assert [trial.state for trial in study.trials()] == ["COMPLETED", "ACTIVE", "INFEASIBLE", "ACTIVE"]
    assert [trial.number for trial in study.pareto_front()] == [1]
    study.optimize(lambda params: float(params["x"]), n_trials=6, parallel=4, progress=False)
    assert len(study.trials(states=["COMPLETED"])) == 7
    assert client.get_study(name).status.trial_count == 10
    assert name in [found.name for found in client.list_studies()]
    assert len(study.to_dataframe()) == 10
    client.close()


def test_a_study_is_read_as_it_was_written(client: trimtab.Client, name: str) -> None:
    written = make_study(
        client,
        name,
        space=[*SPACE, trimtab.Int("k", 1, 3, when=("alg", ["a"]), default=2)],
        objectives=[trimtab.Minimize("seconds", "s"), trimtab.Maximize("rate")],
        algorithm="sobol",
        noisy=False,
        seed=5,
        max_trials=9,
        max_time=60.5,
    )
    read = client.get_study(name)
    assert read.spec == written.spec
    assert list(read.spec.space) == [*SPACE, trimtab.Int("k", 1, 3, when=("alg", ("a",)), default=2)]
    assert read.objectives == (trimtab.Minimize("seconds", "s"), trimtab.Maximize("rate"))
    assert (read.spec.max_trials, read.spec.max_time, read.spec.seed, read.spec.noisy) == (9, 60.5, 5, False)
    assert read.state == "ACTIVE"
    assert repr(read) == f"<trimtab.Study '{name}' ACTIVE, 0 trials finished>"


def test_load_if_exists_goes_on_with_the_same_question_only(client: trimtab.Client, name: str) -> None:
    make_study(client, name).ask(2)
    with pytest.raises(trimtab.errors.AlreadyExists) as taken:
        make_study(client, name)
    assert taken.value.code == "study_exists"
    again = make_study(client, name, load_if_exists=True)
    assert again.status.trial_count == 2
    for change in ({"space": SPACE[:3]}, {"objectives": [trimtab.Maximize("seconds")]}):
        with pytest.raises(trimtab.errors.Conflict) as differs:
            make_study(client, name, load_if_exists=True, **change)
        assert differs.value.code == "study_differs"


def test_studies_are_listed_over_all_pages(client: trimtab.Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {f"{name}-{index}" for index in range(5)}
    for one in names:
        make_study(client, one)
    monkeypatch.setattr("trimtab.client.PAGE_SIZE", 2)
    assert {study.name for study in client.list_studies(name_prefix=name)} == names
    client.get_study(f"{name}-3").pause()
    assert [study.name for study in client.list_studies(name_prefix=name, states=["paused"])] == [f"{name}-3"]


def test_a_deleted_study_is_gone_and_its_name_free(client: trimtab.Client, name: str) -> None:
    make_study(client, name).ask()
    client.delete_study(name)
    with pytest.raises(trimtab.errors.NotFound) as caught:
        client.get_study(name)
    assert caught.value.code == "study_not_found"
    assert make_study(client, name).ask()[0].number == 1


# --- ask and tell


def test_only_a_restarted_client_gets_its_open_trials_again(
    embedded_service: EmbeddedService, client: trimtab.Client, name: str
) -> None:
    study = make_study(client, name)
    worker = client.get_study(name, client_id="worker")
    numbers = [trial.number for trial in (*worker.ask(2), *worker.ask(), *study.ask(2))]
    assert numbers == [1, 2, 3, 4, 5]
    worker.tell(2, 1.0)
    with trimtab.Client(embedded_service.grpc_address, embedded_service.token, client_id="worker") as restarted:
        assert [trial.number for trial in restarted.get_study(name).ask(3)] == [1, 3, 6]


def test_threads_that_share_a_client_get_different_trials(study: Study) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(trial.number for trial in study.ask(2))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 17))


def test_fixed_parameters_hold(study: Study) -> None:
    trials = study.ask(5, fixed={"alg": "b", "x": 1})
    assert {(trial.params["alg"], trial.params["x"]) for trial in trials} == {("b", 1.0)}


def test_an_exhausted_space_gives_fewer_and_says_so(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, space=[trimtab.Int("n", 1, 3)], constraints=[], algorithm="grid", noisy=False)
    assert not study.space_exhausted
    assert len(study.ask(5)) == 3
    assert study.space_exhausted
    assert study.ask() == []


def test_the_three_ends_of_a_trial(study: Study) -> None:
    first, second, third, fourth = study.ask(4)
    assert study.tell(first, 1.5).metrics == {"seconds": 1.5}
    assert study.tell(second, infeasible="crashes").state == "INFEASIBLE"
    failed = study.tell(third, failed="disk full")
    assert (failed.state, failed.reason) == ("FAILED", "disk full")
    assert study.stop_trial(fourth, "hopeless").state == "PRUNED"


def test_the_same_result_again_is_no_error_and_another_one_changes_nothing(study: Study) -> None:
    [trial] = study.ask()
    assert study.tell(trial, 1.5) == study.tell(trial.number, {"seconds": 1.5})
    with pytest.raises(trimtab.errors.Conflict) as caught:
        study.tell(trial, 9.0)
    assert caught.value.code == "trial_already_finished"
    assert study.trial(trial.number).metrics == {"seconds": 1.5}


@pytest.mark.parametrize(
    ("metrics", "field"),
    [
        ({"secs": 1.0}, "metrics.seconds"),
        ({}, "metrics.seconds"),
        ({"seconds": "1.0"}, "metrics.seconds"),
    ],
)
def test_a_bad_metric_is_named_and_changes_nothing(study: Study, metrics: Any, field: str) -> None:
    [trial] = study.ask()
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.tell(trial, metrics)
    assert caught.value.data["field"] == field
    assert study.trial(trial.number).state == "ACTIVE"


def test_many_results_in_one_call(study: Study) -> None:
    first, second = study.ask(2)
    told = study.tell_many([(second, 2.0), (first.number, {"seconds": 1.0})])
    assert [(trial.number, trial.state, trial.metrics) for trial in told] == [
        (second.number, "COMPLETED", {"seconds": 2.0}),
        (first.number, "COMPLETED", {"seconds": 1.0}),
    ]
    with pytest.raises(trimtab.errors.InvalidInput, match=r"results\[1\].trial"):
        study.tell_many([(first, 1.0), (first, 1.0)])


def test_tell_takes_exactly_one_result(study: Study) -> None:
    [trial] = study.ask()
    calls: list[dict[str, Any]] = [{}, {"metrics": 1.0, "failed": "x"}, {"infeasible": "x", "failed": "x"}]
    for arguments in calls:
        with pytest.raises(trimtab.errors.InvalidInput, match="exactly one of"):
            study.tell(trial, **arguments)
    with pytest.raises(trimtab.errors.InvalidInput, match="reason: True"):
        study.tell(trial, infeasible=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True, "y": 1}, "params.y"),
        ({"x": 1.0, "n": 1, "block": 4, "alg": "a"}, "params.huge"),
        ({"x": 1.0, "n": 1, "block": 5, "alg": "a", "huge": True}, "params.block"),
        ({"x": 1.0, "n": None, "block": 4, "alg": "a", "huge": True}, "params.n"),
    ],
)
def test_a_configuration_of_one_s_own_is_checked(study: Study, params: dict[str, Any], field: str) -> None:
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.add_trial(params, 1.0)
    assert caught.value.data["field"] == field
    assert study.trials() == []


def test_a_configuration_of_one_s_own_counts(study: Study) -> None:
    added = study.add_trial({"x": 1, "n": 1.0, "block": 4.0, "alg": "a", "huge": True}, {"seconds": 0.5})
    assert added.origin == "added"
    assert [type(value) for value in added.params.values()] == [float, int, int, str, bool]
    assert study.best_trial.number == added.number


def test_a_configuration_that_did_not_work_is_added(study: Study) -> None:
    params = {"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True}
    added = [study.add_trial(params, infeasible="out of memory"), study.add_trial(params, failed="no disk")]
    assert [(trial.state, trial.origin, trial.reason, trial.metrics) for trial in added] == [
        ("INFEASIBLE", "added", "out of memory", {}),
        ("FAILED", "added", "no disk", {}),
    ]
    assert study.refresh().finished_count == 2
    assert study.best_trials == []
    wrongs: list[dict[str, Any]] = [{}, {"metrics": 1.0, "failed": "x"}]
    for wrong in wrongs:
        with pytest.raises(trimtab.errors.InvalidInput, match="exactly one of metrics"):
            study.add_trial(params, **wrong)


def test_an_enqueued_configuration_is_given_out_first(study: Study) -> None:
    params = {"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True}
    waiting = study.enqueue(params, count=2)
    assert [(trial.state, trial.origin, trial.params) for trial in waiting] == [("REQUESTED", "enqueued", params)] * 2
    assert [trial.origin for trial in study.ask(3)][:2] == ["enqueued", "enqueued"]
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.enqueue({**params, "x": -1})
    assert caught.value.data["field"] == "params.x"


def test_the_best_of_earlier_studies_are_measured_first(client: trimtab.Client, study: Study, name: str) -> None:
    for seconds, x in enumerate((0.5, 0.7, 9.0), 1):
        study.add_trial({"x": x, "n": 1, "block": 4, "alg": "a", "huge": True}, float(seconds))
    space = [trimtab.Float("x", 1e-3, 1, log=True, default=0.1), trimtab.Int("n", 1, 16, step=1, default=2)]
    arguments: dict[str, Any] = {"space": space, "constraints": [], "start_from": name}
    begun = make_study(client, f"{name}-2", **arguments)
    assert begun.status.started_from == (trimtab.StartedFrom(name, taken=2, passed_over=1),)
    assert client.get_study(begun.name).spec.start_from == (name,)
    assert [(trial.origin, trial.params) for trial in begun.ask(3)] == [
        ("default", {"x": 0.1, "n": 2}),
        ("earlier", {"x": 0.5, "n": 1}),
        ("earlier", {"x": 0.7, "n": 1}),
    ]
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        make_study(client, f"{name}-3", start_from=[name, f"{name}-4"])
    assert (caught.value.code, caught.value.data["field"]) == ("study_not_found", "start_from[1]")


def test_ranges_and_budget_are_changed_while_the_search_goes_on(client: trimtab.Client, name: str) -> None:
    space = [trimtab.Float("x", 0.0, 1.0), trimtab.Int("n", 1, 16), trimtab.Categorical("alg", ["a", "b"])]
    study = make_study(client, name, space=space, constraints=[], algorithm="gp", max_trials=8)
    elsewhere = client.get_study(name)
    for trial in study.ask(7):
        # The best lie where nothing is to be looked for any more.
        study.tell(trial, float(trial.params["x"]) + (trial.params["alg"] == "b"))
    ranges = {"x": {"min": 0.4, "max": 2.0}, "alg": {"values": ["a", "c"]}}
    outside = study.change_space(ranges, validate_only=True)
    reported = study.trials()
    beyond = [trial for trial in reported if float(trial.params["x"]) < 0.4 or trial.params["alg"] == "b"]
    assert (outside.finished, outside.running, outside.waiting) == (len(beyond), 0, 0)
    assert (study.spec.space[0], study.status.space_version) == (space[0], 1)
    assert study.change_space(ranges) == outside
    assert (study.spec.space[0], study.status.space_version) == (trimtab.Float("x", 0.4, 2.0), 2)
    study.extend_budget(max_trials=20, max_node_hours=3)
    assert (study.spec.max_trials, study.spec.max_time, study.spec.max_node_hours) == (20, None, 3.0)
    study.extend_budget(max_node_hours=None)
    assert (study.spec.max_trials, study.spec.max_node_hours) == (20, None)
    # A program that knows nothing of it.
    for trial in elsewhere.ask(4):
        assert 0.4 <= float(trial.params["x"]) <= 2.0
        assert trial.params["alg"] in ("a", "c")
        elsewhere.tell(trial, float(trial.params["x"]))
    elsewhere.refresh()
    assert elsewhere.spec == study.spec
    assert 0.4 <= float(study.best_trial.params["x"]) <= 2.0
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.change_space({"n": {"max": 0}})
    assert caught.value.data["field"] == "ranges.n.min"
    for endless in (math.inf, math.nan, 1e30):
        with pytest.raises(trimtab.errors.InvalidInput, match="max_time"):
            study.extend_budget(max_time=endless)
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.extend_budget(max_trials=3)
    assert caught.value.data["field"] == "budget.max_trials"
    study.complete()
    with pytest.raises(trimtab.errors.Conflict) as refused:
        study.change_space({"n": {"max": 8}})
    assert refused.value.code == "search_over"


def test_parameters_are_edited_while_the_search_goes_on(client: trimtab.Client, name: str) -> None:
    space = [
        trimtab.Float("x", 0.0, 1.0, default=0.5),
        trimtab.Int("n", 1, 16, default=4),
        trimtab.Categorical("alg", ["a", "b"], default="a"),
    ]
    study = make_study(client, name, space=space, constraints=[], algorithm="gp", max_trials=24)
    elsewhere = client.get_study(name)
    for trial in study.ask(8):
        study.tell(trial, float(trial.params["x"]) + (trial.params["alg"] == "b"))
    others = sum(trial.params["alg"] == "b" for trial in study.trials())
    cache = trimtab.Int("cache", 1, 64, default=8)
    would = study.edit_space(add=[cache], fix={"alg": "a"}, validate_only=True)
    assert (study.status.space_version, study.spec.space) == (1, tuple(space))
    found = study.edit_space(add=[cache], fix={"alg": "a"}, request_id="edit-1")
    assert found == would == study.edit_space(add=[cache], fix={"alg": "a"}, request_id="edit-1")
    assert (found.total, found.used, found.imputed, found.values) == (8, 8 - others, 8 - others, {"cache": 8})
    assert found.left_out == ({"alg": others} if others else {})
    assert str(found).startswith(f"{8 - others} of 8 trials are used")
    status = study.status
    assert (status.fixed, status.imputed, status.removed) == ({"alg": "a"}, {"cache": 8}, {})
    assert [(one.version, one.added, one.fixed) for one in status.space_edits] == [(2, ("cache",), {"alg": "a"})]
    assert [parameter.name for parameter in study.spec.space] == ["x", "n", "alg", "cache"]
    # Another program, which knows nothing of the edit, gets the new parameter too.
    (other,) = elsewhere.ask()
    assert list(other.params) == ["x", "n", "alg", "cache"]
    elsewhere.tell(other, 1.0)
    for trial in study.ask(3):
        assert (trial.params["alg"], 1 <= int(trial.params["cache"]) <= 64) == ("a", True)
        study.tell(trial, float(trial.params["x"]) + 0.01 * int(trial.params["cache"]))
    assert set(study.best_trial.params) <= {"x", "n", "alg", "cache"}
    study.edit_space(free=["alg"], remove=["n"])
    assert (study.status.fixed, study.status.removed) == ({}, {"n": 4})
    (trial,) = study.ask()
    assert set(trial.params) == {"x", "alg", "cache"}
    study.tell(trial, 0.1)
    frame = study.to_dataframe()
    assert {"params.cache", "params.n"} <= set(frame.columns)
    assert study.verdict is not None
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        study.edit_space(fix={"n": 4})
    assert (caught.value.code, caught.value.data["field"]) == ("unknown_parameter", "fix.n")
    with pytest.raises(trimtab.errors.InvalidInput, match="remove"):
        study.edit_space(remove="n")
    study.complete()
    with pytest.raises(trimtab.errors.Conflict) as refused:
        study.edit_space(fix={"alg": "a"})
    assert refused.value.code == "search_over"
    study.edit_space(fix={"alg": "a"}, budget={"max_trials": 30})
    assert (study.state, study.spec.max_trials) == ("ACTIVE", 30)
    study.optimize(lambda params: float(params["x"]), n_trials=3, progress=False)
    assert {trial.params["alg"] for trial in study.trials()[-3:]} == {"a"}


def test_measurements_are_kept_by_step(study: Study) -> None:
    [trial] = study.ask()
    study.report(trial, step=1, metrics=3.0, elapsed=1.5)
    study.report(trial, step=2, metrics={"seconds": 2.0})
    assert study.trial(trial.number).measurements == (
        trimtab.Measurement(1, {"seconds": 3.0}, 1.5),
        trimtab.Measurement(2, {"seconds": 2.0}, None),
    )
    with pytest.raises(trimtab.errors.Conflict) as caught:
        study.report(trial, step=1, metrics=4.0)
    assert caught.value.code == "step_already_reported"


def test_unknown_things_are_not_found(client: trimtab.Client, study: Study) -> None:
    with pytest.raises(trimtab.errors.NotFound, match="999") as caught:
        study.tell(999, 1.0)
    assert caught.value.code == "trial_not_found"
    with pytest.raises(trimtab.errors.NotFound) as component:
        client.component("no-such-component")
    assert component.value.code == "component_not_found"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"space": [trimtab.Float("x", 2, 1)], "constraints": []}, "space[0].min"),
        ({"constraints": ["n +"]}, "constraints[0]"),
        ({"constraints": ["__import__('os')"]}, "constraints[0]"),
        ({"algorithm": "magic"}, "algorithm.name"),
        ({"objectives": []}, "objectives"),
        ({"seed": 2**70}, "seed"),
        ({"space": None}, "space"),
        ({"application": "a"}, "component"),
        ({"max_trials": 0}, "budget.max_trials"),
    ],
)
def test_a_bad_study_is_refused_by_field(
    client: trimtab.Client, name: str, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(trimtab.errors.InvalidInput) as caught:
        make_study(client, name, **changes)
    assert caught.value.data["field"] == field
    assert client.list_studies(name_prefix=name) == []


def test_a_wrong_token_is_refused_at_once(embedded_service: EmbeddedService) -> None:
    with (
        trimtab.Client(embedded_service.grpc_address, "wrong") as client,
        pytest.raises(trimtab.errors.Unauthenticated) as caught,
    ):
        client.list_studies()
    assert caught.value.code == "invalid_token"


def test_an_oversized_message_is_refused(client: trimtab.Client, name: str) -> None:
    with pytest.raises(trimtab.errors.ResourceExhausted) as caught:
        make_study(client, name, space=[trimtab.Categorical("c", ["x" * 1000 + str(i) for i in range(5000)])])
    assert caught.value.code == "message_too_large"


# --- results


def test_there_is_no_best_before_a_result(client: trimtab.Client, study: Study, name: str) -> None:
    study.ask()
    assert study.pareto_front() == []
    with pytest.raises(trimtab.errors.NotFound, match="no completed trial yet"):
        _ = study.best_trial
    several = make_study(client, name + "-2", objectives=[trimtab.Minimize("seconds"), trimtab.Maximize("rate")])
    with pytest.raises(trimtab.errors.Conflict, match=r"use pareto_front\(\)"):
        _ = several.best_trial


def test_the_pareto_front(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, objectives=[trimtab.Minimize("seconds"), trimtab.Maximize("rate")])
    values = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (0.5, 0.5)]
    for trial, (seconds, rate) in zip(study.ask(4), values, strict=True):
        study.tell(trial, {"seconds": seconds, "rate": rate})
    assert sorted(trial.number for trial in study.pareto_front()) == [1, 2, 4]
    with pytest.raises(trimtab.errors.InvalidInput, match="a dict with values for seconds, rate"):
        study.tell(study.ask()[0], 1.0)


def test_trials_come_over_all_pages(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trimtab._internal.study.trials.PAGE_SIZE", 3)
    study.ask(8)
    study.tell(5, 1.0)
    assert [trial.number for trial in study.trials()] == list(range(1, 9))
    assert [trial.number for trial in study.trials(["COMPLETED"])] == [5]


def test_a_data_frame_has_types_also_where_cells_are_empty(client: trimtab.Client, name: str) -> None:
    space = [*SPACE, trimtab.Int("k", 1, 3, when=("alg", ["a"])), trimtab.Bool("deep", when=("alg", ["a"]))]
    study = make_study(client, name, space=space)
    study.ask(2, fixed={"alg": "a", "k": 2})
    study.ask(2, fixed={"alg": "b"})
    study.tell(1, {"seconds": 1.25, "watts": 80})
    frame = study.to_dataframe()
    assert list(frame["params.k"].dropna()) == [2, 2]
    assert frame["params.k"].isna().sum() == 2
    assert str(frame["params.k"].dtype) == "Int64"
    assert str(frame["params.deep"].dtype) == "boolean"
    assert frame.loc[0, "metrics.seconds"] == 1.25
    assert frame.loc[0, "metrics.watts"] == 80
    assert isinstance(frame.loc[0, "finished_at"], pd.Timestamp)
    assert list(frame["state"]) == ["COMPLETED", "ACTIVE", "ACTIVE", "ACTIVE"]


def test_the_error_without_pandas_names_the_install_command(
    embedded_service: EmbeddedService, study: Study, tmp_path: Path
) -> None:
    (tmp_path / "pandas.py").write_text("raise ImportError('No module named pandas')")
    code = (
        "import trimtab, sys; client = trimtab.Client(sys.argv[1], sys.argv[2])\n"
        "try: client.get_study(sys.argv[3]).to_dataframe()\n"
        "except ImportError as error: print(error)"
    )
    arguments = [sys.executable, "-c", code, embedded_service.grpc_address, embedded_service.token, study.name]
    run = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "to_dataframe needs pandas, which is not installed: `pip install pandas`" in run.stdout


# --- life


def test_a_paused_study_suggests_nothing_but_takes_results(study: Study) -> None:
    [trial] = study.ask()
    study.pause("maintenance")
    assert (study.state, study.status.reason) == ("PAUSED", "maintenance")
    with pytest.raises(trimtab.errors.Conflict) as caught:
        study.ask()
    assert caught.value.code == "study_not_active"
    study.tell(trial, 1.0)
    study.resume()
    assert study.ask()[0].number == 2
    study.stop()
    assert study.state == "ABORTED"
    with pytest.raises(trimtab.errors.Conflict):
        study.resume()


def test_a_watch_sees_all_that_was_and_all_that_comes(client: trimtab.Client, study: Study) -> None:
    study.ask(2)
    study.tell(1, 1.0)
    seen: list[tuple[int, str]] = []

    def act() -> None:
        study.tell(2, 2.0)
        study.stop("enough")

    for index, change in enumerate(client.get_study(study.name).watch(timeout=PATIENCE)):
        seen += [(trial.number, trial.state) for trial in change.trials]
        if index == 0:
            assert seen == [(2, "ACTIVE"), (1, "COMPLETED")]
            threading.Thread(target=act).start()
    assert seen[-1] == (2, "COMPLETED")
    assert change.status.state == "ABORTED"
    assert change.status.reason == "enough"


def test_waiting_ends_with_the_study_or_with_the_time(study: Study) -> None:
    with pytest.raises(trimtab.Timeout):
        study.wait(timeout=0.3, progress=False)
    threading.Timer(0.3, lambda: study.stop()).start()
    assert study.wait(timeout=PATIENCE, progress=False) == "ABORTED"


def test_a_request_that_is_sent_twice_creates_one(
    client: trimtab.Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = uuid.UUID(int=int.from_bytes(study.name.encode()[-8:]))
    monkeypatch.setattr(uuid, "uuid4", lambda: same)
    params = {"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True}
    assert study.add_trial(params, 1.0) == study.add_trial(params, 1.0)
    assert len(study.trials()) == 1


def test_notes_and_attributes_are_kept(client: trimtab.Client, name: str) -> None:
    study = make_study(client, name)
    (trial,) = study.ask()
    study.set_user_attr(trial, "power", 215.5)
    study.note(trial, "the fan was loud", tags=["doubtful"], attributes={"rack": "b7"})
    study.tell(trial, 1.0)
    noted = study.set_user_attr(trial.number, "power", None)
    assert (noted.text, noted.tags, noted.attributes) == ("the fan was loud", ("doubtful",), {"rack": "b7"})
    study.note(text="# For the paper")
    assert [(note.trial, note.text) for note in study.notes()] == [
        (None, "# For the paper"),
        (1, "the fan was loud"),
    ]
    with pytest.raises(trimtab.errors.InvalidInput, match="attributes"):
        study.set_user_attr(trial, "power", [1])
