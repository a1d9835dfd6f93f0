"""Ask and tell: values come back exactly, nothing is counted twice, and bad reports change nothing."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from service._gen import tuning_pb2 as pb
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import ask, create, plain, refusal, spec, tell, unique, value


def trial_of(tuning: TuningServiceStub, study: str, number: int) -> pb.Trial:
    return tuning.GetTrial(pb.GetTrialRequest(study=study, trial=number))


def revision_of(tuning: TuningServiceStub, study: str) -> int:
    return tuning.GetStudy(pb.GetStudyRequest(name=study)).revision


def test_an_ask_for_n_gives_n(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    operation = ask(tuning, study, 5, client_id="me")
    assert operation.state == pb.OPERATION_STATE_SUCCEEDED
    assert operation.study == study
    assert [trial.number for trial in operation.trials] == [1, 2, 3, 4, 5]
    for trial in operation.trials:
        assert trial.state == pb.TRIAL_STATE_ACTIVE
        assert (trial.study, trial.client_id, trial.attempt, trial.origin) == (study, "me", 1, "suggested")
        params = plain(trial.params)
        assert isinstance(params["x"], float)
        assert isinstance(params["n"], int)
        assert trial.HasField("created_at")
        assert not trial.HasField("finished_at")
    assert tuning.GetOperation(pb.GetOperationRequest(id=operation.id)) == operation


def test_values_keep_their_type(tuning: TuningServiceStub) -> None:
    """True is not 1, 1 is not 1.0, and a large float does not come back as an integer."""
    study = create(
        tuning,
        space=[
            pb.Parameter(name="big", float=pb.Parameter.FloatRange(min=1e22, max=2e22, step=1e22)),
            pb.Parameter(name="flag", boolean=pb.Parameter.BoolRange()),
            pb.Parameter(name="choice", categorical=pb.Values(values=[value("a"), value(2), value(2.5), value(True)])),
        ],
    )
    configurations = [plain(trial.params) for trial in ask(tuning, study, 200).trials]
    assert {type(found["big"]) for found in configurations} == {float}
    assert {type(found["flag"]) for found in configurations} == {bool}
    choices = {(type(found["choice"]), found["choice"]) for found in configurations}
    assert choices == {(str, "a"), (int, 2), (float, 2.5), (bool, True)}
    added = tuning.AddTrial(
        pb.AddTrialRequest(
            study=study,
            params={"big": value(1e22), "flag": value(False), "choice": value(True)},
            metrics={"loss": 1e100},
        )
    )
    assert plain(added.params) == {"big": 1e22, "flag": False, "choice": True}
    assert plain(added.params)["choice"] is True


def test_an_exhausted_space_says_so(embedded_tuning: TuningServiceStub) -> None:
    tuning = embedded_tuning
    study = create(tuning, "grid", space=[pb.Parameter(name="flag", boolean=pb.Parameter.BoolRange())], noisy=False)
    operation = ask(tuning, study, 3, wait=Duration(seconds=25))
    assert len(operation.trials) == 2
    assert operation.space_exhausted
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)).space_exhausted


def test_fixed_parameters(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    trials = ask(tuning, study, 4, fixed={"n": value(3)}).trials
    assert [plain(trial.params)["n"] for trial in trials] == [3] * 4
    error = refusal(tuning.SuggestTrials, pb.SuggestTrialsRequest(study=study, count=1, fixed={"m": value(3)}))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "fixed.m")
    error = refusal(tuning.SuggestTrials, pb.SuggestTrialsRequest(study=study, count=1, fixed={"n": pb.Value()}))
    assert error.data["field"] == "fixed.n"
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)).trial_count == 4


@pytest.mark.parametrize("count", [0, -1, 1001, 2**31 - 1])
def test_a_bad_count(tuning: TuningServiceStub, count: int) -> None:
    study = create(tuning)
    error = refusal(tuning.SuggestTrials, pb.SuggestTrialsRequest(study=study, count=count))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "count")


def test_a_client_that_crashed_gets_its_trials_back(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    first = ask(tuning, study, 2, client_id="a").trials
    assert [trial.number for trial in ask(tuning, study, 2, client_id="a").trials] == [1, 2]
    again = ask(tuning, study, 3, client_id="a", held_trials=[2]).trials
    assert [trial.number for trial in again] == [1, 3, 4]
    assert again[0].params == first[0].params
    assert [trial.number for trial in ask(tuning, study, 1, client_id="b").trials] == [5]
    tell(tuning, study, 1, 0.5)
    assert [trial.number for trial in ask(tuning, study, 1, client_id="a", held_trials=[3, 4]).trials] == [2]


def test_the_same_ask_twice_gives_the_same_trials(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    request = pb.SuggestTrialsRequest(study=study, count=3, request_id=unique())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: tuning.SuggestTrials(request), range(8)))
    assert all(answer.id == answers[0].id for answer in answers)
    assert all(answer.trials == answers[0].trials for answer in answers)
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)).trial_count == 3


def test_many_clients_at_once(tuning: TuningServiceStub) -> None:
    study = create(tuning)

    def work(client: int) -> list[int]:
        numbers = []
        for _ in range(10):
            (trial,) = ask(tuning, study, client_id=f"client-{client}").trials
            tell(tuning, study, trial.number, float(trial.number))
            numbers.append(trial.number)
        return numbers

    with ThreadPoolExecutor(8) as pool:
        numbers = [number for found in pool.map(work, range(8)) for number in found]
    assert sorted(numbers) == list(range(1, 81))
    study_now = tuning.GetStudy(pb.GetStudyRequest(name=study))
    assert (study_now.trial_count, study_now.finished_count) == (80, 80)


def test_tell(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study)
    before = revision_of(tuning, study)
    done = tuning.CompleteTrial(pb.CompleteTrialRequest(study=study, trial=1, metrics={"loss": 0.25, "watts": 7.0}))
    assert done.state == pb.TRIAL_STATE_COMPLETED
    assert dict(done.metrics) == {"loss": 0.25, "watts": 7.0}
    assert done.HasField("finished_at")
    assert done.revision > before
    assert trial_of(tuning, study, 1) == done


def tell_many(tuning: TuningServiceStub, study: str, results: list[tuple[int, dict[str, float]]]) -> list[pb.Trial]:
    told = [pb.CompleteTrialsRequest.Result(trial=number, metrics=metrics) for number, metrics in results]
    return list(tuning.CompleteTrials(pb.CompleteTrialsRequest(study=study, results=told)).trials)


def test_many_results_in_one_call(tuning: TuningServiceStub) -> None:
    study = create(tuning, budget=pb.Budget(max_trials=4))
    ask(tuning, study, 4)
    tell(tuning, study, 1, 1.0)
    revision = revision_of(tuning, study)
    trials = tell_many(tuning, study, [(3, {"loss": 3.0}), (1, {"loss": 1.0}), (2, {"loss": 2.0, "watts": 8.0})])
    assert [(trial.number, dict(trial.metrics)) for trial in trials] == [
        (3, {"loss": 3.0}),
        (1, {"loss": 1.0}),
        (2, {"loss": 2.0, "watts": 8.0}),
    ]
    assert {trial.state for trial in trials} == {pb.TRIAL_STATE_COMPLETED}
    assert revision_of(tuning, study) == revision + 1
    # The same results again change nothing, and the last one ends the study.
    assert tell_many(tuning, study, [(2, {"loss": 2.0, "watts": 8.0})])[0].finished_at == trials[2].finished_at
    assert revision_of(tuning, study) == revision + 1
    tell_many(tuning, study, [(4, {"loss": 4.0})])
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)).state == pb.STUDY_STATE_COMPLETED


@pytest.mark.parametrize(
    ("results", "status", "code", "field"),
    [
        (
            [(1, {"loss": 1.0}), (2, {})],
            grpc.StatusCode.INVALID_ARGUMENT,
            "invalid_argument",
            "results[1].metrics.loss",
        ),
        (
            [(1, {"loss": 1.0}), (1, {"loss": 1.0})],
            grpc.StatusCode.INVALID_ARGUMENT,
            "invalid_argument",
            "results[1].trial",
        ),
        ([], grpc.StatusCode.INVALID_ARGUMENT, "invalid_argument", "results"),
        ([(n, {"loss": 1.0}) for n in range(1001)], grpc.StatusCode.INVALID_ARGUMENT, "invalid_argument", "results"),
        ([(1, {"loss": 1.0}), (99, {"loss": 1.0})], grpc.StatusCode.NOT_FOUND, "trial_not_found", None),
        ([(1, {"loss": 1.0}), (-1, {"loss": 1.0})], grpc.StatusCode.NOT_FOUND, "trial_not_found", None),
        ([(1, {"loss": 1.0}), (3, {"loss": 9.0})], grpc.StatusCode.FAILED_PRECONDITION, "trial_already_finished", None),
    ],
)
def test_one_bad_result_of_many_changes_nothing(
    tuning: TuningServiceStub,
    results: list[tuple[int, dict[str, float]]],
    status: grpc.StatusCode,
    code: str,
    field: str | None,
) -> None:
    study = create(tuning)
    ask(tuning, study, 3)
    tell(tuning, study, 3, 3.0)
    revision = revision_of(tuning, study)
    told = [pb.CompleteTrialsRequest.Result(trial=number, metrics=metrics) for number, metrics in results]
    found = refusal(tuning.CompleteTrials, pb.CompleteTrialsRequest(study=study, results=told))
    assert (found.status, found.code, found.data.get("field")) == (status, code, field)
    assert revision_of(tuning, study) == revision
    assert trial_of(tuning, study, 1).state == pb.TRIAL_STATE_ACTIVE


def test_the_same_tell_twice_is_one(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study)
    first = tell(tuning, study, 1, 0.5)
    revision = revision_of(tuning, study)
    assert tell(tuning, study, 1, 0.5) == first
    assert revision_of(tuning, study) == revision
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)).finished_count == 1


def test_a_finished_trial_is_not_overwritten(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study)
    tell(tuning, study, 1, 0.5)
    before = trial_of(tuning, study, 1)
    for call, request in (
        (tuning.CompleteTrial, pb.CompleteTrialRequest(study=study, trial=1, metrics={"loss": 0.6})),
        (tuning.FailTrial, pb.FailTrialRequest(study=study, trial=1, infeasible=True)),
        (tuning.StopTrial, pb.StopTrialRequest(study=study, trial=1)),
        (
            tuning.ReportMeasurement,
            pb.ReportMeasurementRequest(study=study, trial=1, measurement=pb.Measurement(step=1, metrics={"loss": 1})),
        ),
    ):
        error = refusal(call, request)
        assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "trial_already_finished")
        assert not error.retryable
    assert trial_of(tuning, study, 1) == before


@pytest.mark.parametrize(
    ("metrics", "field"),
    [
        ({}, "metrics.loss"),
        ({"lose": 1.0}, "metrics.loss"),
    ],
)
def test_bad_metrics_change_nothing(tuning: TuningServiceStub, metrics: dict[str, float], field: str) -> None:
    study = create(tuning)
    ask(tuning, study)
    before = trial_of(tuning, study, 1), revision_of(tuning, study)
    error = refusal(tuning.CompleteTrial, pb.CompleteTrialRequest(study=study, trial=1, metrics=metrics))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    params = {"x": value(0.5), "n": value(2)}
    error = refusal(tuning.AddTrial, pb.AddTrialRequest(study=study, params=params, metrics=metrics))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert (trial_of(tuning, study, 1), revision_of(tuning, study)) == before


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"x": value(0.5), "n": value(2), "extra": value(1)}, "params.extra"),
        ({"x": value(0.5)}, "params.n"),
        ({"x": value(1.5), "n": value(2)}, "params.x"),
        ({"x": value(math.nan), "n": value(2)}, "params.x"),
        ({"x": value(0.5), "n": value(2.5)}, "params.n"),
        ({"x": value(0.5), "n": value("2")}, "params.n"),
        ({"x": value(0.5), "n": value(True)}, "params.n"),
        ({"x": value(0.5), "n": pb.Value()}, "params.n"),
    ],
)
def test_adding_a_bad_configuration_changes_nothing(
    tuning: TuningServiceStub, params: dict[str, pb.Value], field: str
) -> None:
    study = create(tuning)
    before = revision_of(tuning, study)
    error = refusal(tuning.AddTrial, pb.AddTrialRequest(study=study, params=params, metrics={"loss": 1.0}))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert revision_of(tuning, study) == before
    assert not tuning.ListTrials(pb.ListTrialsRequest(study=study)).trials


def test_an_added_trial_is_added_once(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    request = pb.AddTrialRequest(
        study=study, params={"x": value(0.5), "n": value(2)}, metrics={"loss": 1.0}, request_id=unique()
    )
    added = tuning.AddTrial(request)
    assert (added.state, added.origin, added.number) == (pb.TRIAL_STATE_COMPLETED, "added", 1)
    assert tuning.AddTrial(request) == added
    assert len(tuning.ListTrials(pb.ListTrialsRequest(study=study)).trials) == 1


def test_enqueued_trials_are_given_out_first_and_enqueued_once(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    request = pb.EnqueueTrialsRequest(
        study=study, params={"x": value(0.5), "n": value(2)}, count=2, request_id=unique()
    )
    waiting = tuning.EnqueueTrials(request).trials
    assert [(one.number, one.state, one.origin) for one in waiting] == [
        (1, pb.TRIAL_STATE_REQUESTED, "enqueued"),
        (2, pb.TRIAL_STATE_REQUESTED, "enqueued"),
    ]
    assert list(tuning.EnqueueTrials(request).trials) == list(waiting)
    assert [(one.number, one.origin) for one in ask(tuning, study, 3).trials] == [
        (1, "enqueued"),
        (2, "enqueued"),
        (3, "suggested"),
    ]


def test_objects_that_do_not_exist_are_not_found(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    calls: list[tuple[Any, Any]] = [
        (tuning.SuggestTrials, pb.SuggestTrialsRequest(study="nobody", count=1)),
        (tuning.CompleteTrial, pb.CompleteTrialRequest(study="nobody", trial=1, metrics={"loss": 1})),
        (tuning.ListTrials, pb.ListTrialsRequest(study="nobody")),
        (tuning.GetBestTrials, pb.GetBestTrialsRequest(study="nobody")),
        (tuning.UpdateStudyState, pb.UpdateStudyStateRequest(name="nobody", state=pb.STUDY_STATE_PAUSED)),
        (tuning.WatchStudy, pb.WatchStudyRequest(study="nobody")),
    ]
    for call, request in calls:
        error = refusal(call, request)
        assert (error.status, error.code) == (grpc.StatusCode.NOT_FOUND, "study_not_found")
    calls = [
        (tuning.GetTrial, pb.GetTrialRequest(study=study, trial=1)),
        (tuning.GetTrial, pb.GetTrialRequest(study=study, trial=-1)),
        (tuning.CompleteTrial, pb.CompleteTrialRequest(study=study, trial=9, metrics={"loss": 1})),
        (tuning.StopTrial, pb.StopTrialRequest(study=study, trial=9)),
    ]
    for call, request in calls:
        error = refusal(call, request)
        assert (error.status, error.code) == (grpc.StatusCode.NOT_FOUND, "trial_not_found")
    for identifier in ("", "nonsense", "0" * 32):
        error = refusal(tuning.GetOperation, pb.GetOperationRequest(id=identifier))
        assert (error.status, error.code) == (grpc.StatusCode.NOT_FOUND, "operation_not_found")
        error = refusal(tuning.WaitOperation, pb.WaitOperationRequest(id=identifier, wait=Duration(seconds=5)))
        assert error.code == "operation_not_found"


def test_measurements(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study)

    def report(step: int, loss: float) -> pb.ReportMeasurementRequest:
        measurement = pb.Measurement(step=step, metrics={"loss": loss}, elapsed=Duration(seconds=1, nanos=250_000_000))
        return pb.ReportMeasurementRequest(study=study, trial=1, measurement=measurement)

    for step in (3, 1):
        tuning.ReportMeasurement(report(step, step / 2))
    revision = revision_of(tuning, study)
    tuning.ReportMeasurement(report(3, 1.5))
    assert revision_of(tuning, study) == revision
    error = refusal(tuning.ReportMeasurement, report(3, 9.0))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "step_already_reported")
    error = refusal(tuning.ReportMeasurement, report(4, math.nan))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "metrics.loss")
    error = refusal(tuning.ReportMeasurement, report(-4, 1.0))
    assert error.data["field"] == "step"
    found = trial_of(tuning, study, 1).measurements
    assert [(item.step, dict(item.metrics)) for item in found] == [(1, {"loss": 0.5}), (3, {"loss": 1.5})]
    assert found[0].elapsed == Duration(seconds=1, nanos=250_000_000)
    stopped = tuning.StopTrial(pb.StopTrialRequest(study=study, trial=1, reason="hopeless"))
    assert (stopped.state, stopped.reason) == (pb.TRIAL_STATE_PRUNED, "hopeless")
    assert dict(stopped.metrics) == {"loss": 1.5}
    assert tuning.StopTrial(pb.StopTrialRequest(study=study, trial=1, reason="hopeless")) == stopped


@pytest.mark.parametrize(("infeasible", "state"), [(True, pb.TRIAL_STATE_INFEASIBLE), (False, pb.TRIAL_STATE_FAILED)])
def test_failures(tuning: TuningServiceStub, infeasible: bool, state: pb.TrialState.ValueType) -> None:
    study = create(tuning)
    ask(tuning, study)
    request = pb.FailTrialRequest(study=study, trial=1, infeasible=infeasible, reason="no — «ß»")
    failed = tuning.FailTrial(request)
    assert (failed.state, failed.reason) == (state, "no — «ß»")
    assert tuning.FailTrial(request) == failed


def test_list_trials_by_pages_and_filters(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study, 5, client_id="a")
    ask(tuning, study, 2, client_id="b")
    tell(tuning, study, 2, 1.0)
    numbers: list[int] = []
    token = ""
    while True:
        page = tuning.ListTrials(pb.ListTrialsRequest(study=study, page_size=3, page_token=token))
        numbers += [trial.number for trial in page.trials]
        token = page.next_page_token
        if not token:
            break
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    done = tuning.ListTrials(pb.ListTrialsRequest(study=study, states=[pb.TRIAL_STATE_COMPLETED]))
    assert [trial.number for trial in done.trials] == [2]
    assert [trial.number for trial in tuning.ListTrials(pb.ListTrialsRequest(study=study, client_id="b")).trials] == [
        6,
        7,
    ]


def test_best_trials(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    assert not tuning.GetBestTrials(pb.GetBestTrialsRequest(study=study)).trials
    for number, loss in enumerate((3.0, 1.0, 2.0), start=1):
        ask(tuning, study)
        tell(tuning, study, number, loss)
    assert [trial.number for trial in tuning.GetBestTrials(pb.GetBestTrialsRequest(study=study)).trials] == [2]


def test_the_pareto_set(tuning: TuningServiceStub) -> None:
    objectives = [
        pb.Objective(metric="seconds", goal=pb.Objective.GOAL_MINIMIZE),
        pb.Objective(metric="rate", goal=pb.Objective.GOAL_MAXIMIZE),
    ]
    study = create(tuning, objectives=objectives)
    ask(tuning, study, 4)
    for number, (seconds, rate) in enumerate(((1.0, 1.0), (2.0, 2.0), (2.5, 1.5), (3.0, 3.0)), start=1):
        tuning.CompleteTrial(
            pb.CompleteTrialRequest(study=study, trial=number, metrics={"seconds": seconds, "rate": rate})
        )
    best = tuning.GetBestTrials(pb.GetBestTrialsRequest(study=study)).trials
    assert sorted(trial.number for trial in best) == [1, 2, 4]


def test_the_budget(tuning: TuningServiceStub) -> None:
    study = create(tuning, budget=pb.Budget(max_trials=2))
    assert len(ask(tuning, study, 5).trials) == 2
    error = refusal(tuning.SuggestTrials, pb.SuggestTrialsRequest(study=study, count=1))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "budget_exhausted")
    for number in (1, 2):
        tell(tuning, study, number, 1.0)
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)).state == pb.STUDY_STATE_COMPLETED


def test_the_default_is_measured_first(tuning: TuningServiceStub) -> None:
    space = [pb.Parameter(name="x", float=pb.Parameter.FloatRange(min=0, max=1), default=value(0.125))]
    study = unique()
    tuning.CreateStudy(pb.CreateStudyRequest(name=study, spec=spec(space=space)))
    first, second = ask(tuning, study, 2).trials
    assert (plain(first.params), first.origin) == ({"x": 0.125}, "default")
    assert second.origin == "suggested"


def test_replicates_say_where_they_come_from(tuning: TuningServiceStub) -> None:
    study = create(tuning, resampling=pb.Policy(name="static"))
    origins = []
    for number in range(1, 5):
        (trial,) = ask(tuning, study).trials
        origins.append(trial.origin)
        tell(tuning, study, number, 1.0)
    assert origins[:2] == ["suggested", "replicate"]


def test_a_report_says_that_the_trial_was_pruned(tuning: TuningServiceStub) -> None:
    limit = pb.Policy(name="limit")
    limit.options.update({"seconds": 5})
    study = create(tuning, pruning=[limit])
    ask(tuning, study)

    def report(step: int, seconds: int) -> pb.Trial:
        measurement = pb.Measurement(step=step, metrics={"loss": 0.5}, elapsed=Duration(seconds=seconds))
        return tuning.ReportMeasurement(pb.ReportMeasurementRequest(study=study, trial=1, measurement=measurement))

    assert report(1, 4).state == pb.TRIAL_STATE_ACTIVE
    pruned = report(2, 6)
    assert (pruned.state, pruned.elapsed.seconds, dict(pruned.metrics)) == (pb.TRIAL_STATE_PRUNED, 6, {"loss": 0.5})
    assert "5 s" in pruned.reason


def test_the_final_check_ends_with_a_verdict(tuning: TuningServiceStub) -> None:
    space = [pb.Parameter(name="x", float=pb.Parameter.FloatRange(min=0, max=1), default=value(0.9))]
    study = create(tuning, space=space, budget=pb.Budget(max_trials=4), final_check=pb.FinalCheck(), noisy=False)
    checks = 0
    for number in range(1, 30):
        found = tuning.GetStudy(pb.GetStudyRequest(name=study))
        if found.state != pb.STUDY_STATE_ACTIVE:
            break
        (trial,) = ask(tuning, study).trials
        assert bool(found.search_end_reason) == (trial.origin == "check")
        checks += trial.origin == "check"
        # Ever so slightly noisy, for no two runs are alike.
        tell(tuning, study, number, 10 * plain(trial.params)["x"] + number * 1e-4)
    assert found.state == pb.STUDY_STATE_COMPLETED
    best = tuning.GetBestTrials(pb.GetBestTrialsRequest(study=study))
    verdict = best.verdict
    assert (verdict.level, verdict.trials) == (pb.VERDICT_LEVEL_PROVEN, checks)
    assert checks >= 8
    assert 0 < verdict.low <= verdict.gain <= verdict.high <= 1
    assert verdict.gain == pytest.approx(1 - verdict.value / verdict.default)
    assert "%" in verdict.text
    assert plain(best.recommendation.params) == plain(best.trials[0].params)
    assert len(best.recommendation.trials) == 1 + checks / 2
    assert best.recommendation.value == pytest.approx(10 * plain(best.trials[0].params)["x"], abs=0.01)


def test_an_ask_before_the_last_result_is_to_be_repeated(tuning: TuningServiceStub) -> None:
    space = [pb.Parameter(name="x", float=pb.Parameter.FloatRange(min=0, max=1), default=value(0.9))]
    study = create(tuning, space=space, budget=pb.Budget(max_trials=2), final_check=pb.FinalCheck())
    ask(tuning, study, 2)
    error = refusal(tuning.SuggestTrials, pb.SuggestTrialsRequest(study=study, count=1))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "results_awaited")
    assert error.data["open"] == 2


def define_by_run(tuning: TuningServiceStub) -> str:
    return create(
        tuning,
        space=[
            pb.Parameter(name="kind", categorical=pb.Values(values=[value("svm"), value("forest")])),
            pb.Parameter(name="depth", integer=pb.Parameter.IntRange(min=1, max=9), optional=True),
        ],
    )


def test_a_trial_has_the_values_that_its_client_has_measured(tuning: TuningServiceStub) -> None:
    study = define_by_run(tuning)
    first, second = ask(tuning, study, 2).trials
    request = pb.ReplaceParamsRequest(study=study, trial=first.number, params={"kind": value("svm")})
    replaced = tuning.ReplaceParams(request)
    assert plain(replaced.params) == {"kind": "svm"}
    revision = revision_of(tuning, study)
    assert tuning.ReplaceParams(request) == replaced
    assert revision_of(tuning, study) == revision
    tell(tuning, study, first.number, 1.0)
    # The same call after the end changes nothing, and another one is refused.
    tuning.ReplaceParams(request)
    other = pb.ReplaceParamsRequest(study=study, trial=first.number, params={"kind": value("forest")})
    error = refusal(tuning.ReplaceParams, other)
    assert error.code == "trial_already_finished"
    other = pb.ReplaceParamsRequest(study=study, trial=second.number, params={"depth": value(3)})
    error = refusal(tuning.ReplaceParams, other)
    assert error.code == "invalid_argument"
    best = tuning.GetBestTrials(pb.GetBestTrialsRequest(study=study))
    assert plain(best.recommendation.params) == {"kind": "svm"}
    assert plain(trial_of(tuning, study, second.number).params).keys() == {"kind", "depth"}


def test_an_added_trial_may_have_measurements_and_be_pruned(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    request = pb.AddTrialRequest(
        study=study,
        params={"x": value(0.5), "n": value(2)},
        state=pb.TRIAL_STATE_PRUNED,
        reason="too slow",
        measurements=[pb.Measurement(step=0, metrics={"loss": 3.0}), pb.Measurement(step=4, metrics={"loss": 2.0})],
        request_id=unique(),
    )
    added = tuning.AddTrial(request)
    assert tuning.AddTrial(request) == added
    assert (added.state, added.reason, dict(added.metrics)) == (pb.TRIAL_STATE_PRUNED, "too slow", {"loss": 2.0})
    assert [(one.step, dict(one.metrics)) for one in trial_of(tuning, study, added.number).measurements] == [
        (0, {"loss": 3.0}),
        (4, {"loss": 2.0}),
    ]
    request.request_id = unique()
    request.measurements[1].step = 0
    assert refusal(tuning.AddTrial, request).data["field"] == "measurements[1].step"
    assert len(tuning.ListTrials(pb.ListTrialsRequest(study=study)).trials) == 1
