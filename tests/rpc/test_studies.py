"""Studies: made once, found, listed, stopped, deleted; bad specs change nothing and say which field is at fault."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from service._gen import tuning_pb2 as pb
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import GrpcService, create, plain, refusal, spec, unique, value

FloatRange, IntRange = pb.Parameter.FloatRange, pb.Parameter.IntRange


def rich_spec() -> pb.StudySpec:
    options = Struct()
    options.update({"scramble": True})
    return pb.StudySpec(
        space=[
            pb.Parameter(name="x", float=FloatRange(min=1e-3, max=1e22, log=True), default=value(1e22)),
            pb.Parameter(name="grid", float=FloatRange(min=0, max=1, step=0.25)),
            pb.Parameter(name="n", integer=IntRange(min=1, max=2**40, factor=2.0), default=value(4)),
            pb.Parameter(name="block", ordinal=pb.Values(values=[value(4), value(16), value(64.5)])),
            pb.Parameter(
                name="alg",
                categorical=pb.Values(values=[value("a"), value("ü"), value(True), value(1)]),
                condition=pb.Condition(parent="huge", values=[value(True)]),
            ),
            pb.Parameter(name="huge", boolean=pb.Parameter.BoolRange(), default=value(True)),
        ],
        constraints=["n * 4 <= x"],
        objectives=[
            pb.Objective(metric="seconds", goal=pb.Objective.GOAL_MINIMIZE, unit="s"),
            pb.Objective(metric="rate", goal=pb.Objective.GOAL_MAXIMIZE),
        ],
        algorithm=pb.Algorithm(name="sobol"),
        seed=2**62,
        noisy=True,
        budget=pb.Budget(max_trials=7, max_time=Duration(seconds=90, nanos=500_000_000)),
    )


def test_a_study_comes_back_as_it_was_made(tuning: TuningServiceStub) -> None:
    name, wanted = unique(), rich_spec()
    made = tuning.CreateStudy(pb.CreateStudyRequest(name=name, spec=wanted))
    assert made.name == name
    assert made.state == pb.STUDY_STATE_ACTIVE
    found = tuning.GetStudy(pb.GetStudyRequest(name=name))
    assert found == made
    assert found.created_at.seconds > 1_700_000_000
    for field in ("constraints", "objectives", "seed", "noisy", "budget"):
        assert getattr(found.spec, field) == getattr(wanted, field), field
    for there, here in zip(found.spec.space, wanted.space, strict=True):
        assert there == here
    assert found.spec.algorithm.name == "sobol"


def test_a_study_starts_from_an_earlier_one(tuning: TuningServiceStub) -> None:
    earlier = create(tuning)
    best = {"x": value(0.25), "n": value(2)}
    tuning.AddTrial(pb.AddTrialRequest(study=earlier, params=best, metrics={"loss": 1.0}))
    made = tuning.CreateStudy(pb.CreateStudyRequest(name=unique(), spec=spec(start_from=[earlier])))
    assert list(made.spec.start_from) == [earlier]
    assert list(made.started_from) == [pb.StartedFrom(study=earlier, taken=1)]
    (trial,) = tuning.ListTrials(pb.ListTrialsRequest(study=made.name)).trials
    assert (trial.origin, plain(trial.params), dict(trial.metrics)) == ("earlier", {"x": 0.25, "n": 2}, {})
    error = refusal(tuning.CreateStudy, pb.CreateStudyRequest(name=unique(), spec=spec(start_from=["nowhere"])))
    assert (error.status, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "study_not_found")
    assert error.data["field"] == "start_from[0]"


def test_create_twice_with_a_request_id_makes_one(tuning: TuningServiceStub) -> None:
    request = pb.CreateStudyRequest(name=unique(), spec=spec(), request_id=unique())
    assert tuning.CreateStudy(request) == tuning.CreateStudy(request)


def test_a_name_that_is_taken(tuning: TuningServiceStub) -> None:
    name = create(tuning)
    error = refusal(tuning.CreateStudy, pb.CreateStudyRequest(name=name, spec=spec()))
    assert (error.status, error.code) == (grpc.StatusCode.ALREADY_EXISTS, "study_exists")
    assert not error.retryable
    loaded = tuning.CreateStudy(pb.CreateStudyRequest(name=name, spec=spec(), load_if_exists=True))
    assert loaded == tuning.GetStudy(pb.GetStudyRequest(name=name))
    other = spec(objectives=[pb.Objective(metric="other", goal=pb.Objective.GOAL_MAXIMIZE)])
    error = refusal(tuning.CreateStudy, pb.CreateStudyRequest(name=name, spec=other, load_if_exists=True))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "study_differs")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"space": []}, "space"),
        ({"space": [pb.Parameter(name="x", float=FloatRange(min=2, max=1))]}, "space[0]"),
        ({"space": [pb.Parameter(name="x", float=FloatRange(min=float("nan"), max=1))]}, "space[0].min"),
        ({"space": [pb.Parameter(name="x")]}, "space[0]"),
        ({"space": [pb.Parameter(name="9 lives", boolean=pb.Parameter.BoolRange())]}, "space[0].name"),
        (
            {"space": [pb.Parameter(name="x", categorical=pb.Values(values=[value(1), pb.Value()]))]},
            "space[0].values[1]",
        ),
        ({"space": [pb.Parameter(name="x", boolean=pb.Parameter.BoolRange(), default=pb.Value())]}, "space[0].default"),
        (
            {
                "space": [
                    pb.Parameter(
                        name="x",
                        boolean=pb.Parameter.BoolRange(),
                        condition=pb.Condition(parent="y", values=[value(1)]),
                    )
                ]
            },
            "space[0].condition.parent",
        ),
        ({"constraints": ["x <= nobody"]}, "constraints[0]"),
        ({"constraints": ["__import__('os').system('true')"]}, "constraints[0]"),
        ({"objectives": []}, "objectives"),
        ({"objectives": [pb.Objective(metric="loss")]}, "objectives[0].goal"),
        ({"objectives": [pb.Objective(goal=pb.Objective.GOAL_MINIMIZE)]}, "objectives[0].metric"),
        ({"algorithm": pb.Algorithm(name="oracle")}, "algorithm"),
        ({"seed": -1}, "seed"),
        ({"budget": pb.Budget(max_trials=0)}, "budget.max_trials"),
        ({"budget": pb.Budget(max_time=Duration(seconds=-5))}, "budget.max_seconds"),
        ({"execution": pb.Execution(application="a")}, "execution.component"),
        ({"execution": pb.Execution(component="c", parallelism=-1)}, "execution.parallelism"),
    ],
)
def test_a_bad_spec_names_the_field_and_makes_nothing(
    tuning: TuningServiceStub, changes: dict[str, Any], field: str
) -> None:
    name = unique()
    error = refusal(tuning.CreateStudy, pb.CreateStudyRequest(name=name, spec=spec(**changes)))
    assert error.status == grpc.StatusCode.INVALID_ARGUMENT
    assert error.data["field"].startswith(field)
    assert error.data["field"] in error.message
    assert error.data["allowed"]
    assert refusal(tuning.GetStudy, pb.GetStudyRequest(name=name)).code == "study_not_found"


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 64, "ü", "a\0b"])
def test_a_bad_name(tuning: TuningServiceStub, name: str) -> None:
    error = refusal(tuning.CreateStudy, pb.CreateStudyRequest(name=name, spec=spec()))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "name")


def test_list_by_pages_and_filters(tuning: TuningServiceStub) -> None:
    prefix = unique("list")
    names = [f"{prefix}-{index}" for index in range(5)]
    for name in names:
        tuning.CreateStudy(pb.CreateStudyRequest(name=name, spec=spec()))
    tuning.UpdateStudyState(pb.UpdateStudyStateRequest(name=names[0], state=pb.STUDY_STATE_PAUSED))
    found: list[str] = []
    token = ""
    while True:
        page = tuning.ListStudies(pb.ListStudiesRequest(name_prefix=prefix, page_size=2, page_token=token))
        assert page.total_count == 5
        assert len(page.studies) <= 2
        found += [study.name for study in page.studies]
        token = page.next_page_token
        if not token:
            break
    assert found == names[::-1]
    paused = tuning.ListStudies(pb.ListStudiesRequest(name_prefix=prefix, states=[pb.STUDY_STATE_PAUSED]))
    assert [study.name for study in paused.studies] == [names[0]]
    assert not tuning.ListStudies(pb.ListStudiesRequest(name_prefix=prefix, component="none")).studies
    # no wildcard of SQL's
    assert not tuning.ListStudies(pb.ListStudiesRequest(name_prefix=prefix[:-1] + "_")).studies


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ListStudiesRequest(states=[77]), "states[0]"),  # type: ignore[list-item]
        (pb.ListStudiesRequest(states=[0]), "states[0]"),  # type: ignore[list-item]
        (pb.ListStudiesRequest(page_size=-1), "page_size"),
        (pb.ListStudiesRequest(page_token="nonsense"), "page_token"),
    ],
)
def test_bad_listings(tuning: TuningServiceStub, request_: pb.ListStudiesRequest, field: str) -> None:
    error = refusal(tuning.ListStudies, request_)
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)


def test_states(tuning: TuningServiceStub) -> None:
    name = create(tuning)

    def to(state: pb.StudyState.ValueType, reason: str = "") -> pb.UpdateStudyStateRequest:
        return pb.UpdateStudyStateRequest(name=name, state=state, reason=reason)

    paused = tuning.UpdateStudyState(to(pb.STUDY_STATE_PAUSED, "lunch"))
    assert (paused.state, paused.state_reason) == (pb.STUDY_STATE_PAUSED, "lunch")
    assert tuning.UpdateStudyState(to(pb.STUDY_STATE_PAUSED, "lunch")) == paused
    error = refusal(tuning.SuggestTrials, pb.SuggestTrialsRequest(study=name, count=1))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "study_not_active")
    tuning.UpdateStudyState(to(pb.STUDY_STATE_ACTIVE))
    tuning.UpdateStudyState(to(pb.STUDY_STATE_ABORTED, "enough"))
    error = refusal(tuning.UpdateStudyState, to(pb.STUDY_STATE_ACTIVE))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "invalid_step")
    error = refusal(tuning.UpdateStudyState, to(pb.STUDY_STATE_UNSPECIFIED))
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "state")


def test_budget_and_space_of_a_search_that_goes_on(tuning: TuningServiceStub) -> None:
    name = unique()
    tuning.CreateStudy(pb.CreateStudyRequest(name=name, spec=rich_spec()))

    def extend(paths: list[str], **budget: Any) -> pb.ExtendBudgetRequest:
        return pb.ExtendBudgetRequest(study=name, budget=pb.Budget(**budget), fields=FieldMask(paths=paths))

    reported = tuning.ExtendBudget(
        extend(["max_trials", "max_node_hours"], max_trials=70, max_node_hours=1.5)
    ).spec.budget
    assert (reported.max_trials, reported.max_time.seconds, reported.max_node_hours) == (70, 90, 1.5)
    reported = tuning.ExtendBudget(extend(["max_time"])).spec.budget
    assert (reported.HasField("max_time"), reported.max_trials) == (False, 70)
    assert refusal(tuning.ExtendBudget, extend(["max_tries"])).data["field"] == "fields"

    def change(ranges: dict[str, pb.Range], only: bool = False) -> pb.ChangeSpaceRequest:
        return pb.ChangeSpaceRequest(study=name, ranges=ranges, validate_only=only)

    ranges = {
        "n": pb.Range(max=value(2**50)),
        "block": pb.Range(values=pb.Values(values=[value(4), value(64.5), value(128)])),
    }
    assert tuning.ChangeSpace(change(ranges, True)).study.space_version == 1
    changed = tuning.ChangeSpace(change(ranges)).study
    assert changed == tuning.GetStudy(pb.GetStudyRequest(name=name))
    assert (changed.space_version, changed.spec.space[2].integer.max) == (2, 2**50)
    assert [one.number or one.integer for one in changed.spec.space[3].ordinal.values] == [4, 64.5, 128]
    error = refusal(tuning.ChangeSpace, change({"huge": pb.Range(values=pb.Values(values=[value(True)]))}))
    assert (error.code, error.data["field"]) == ("parameter_unchangeable", "ranges.huge.values")
    error = refusal(tuning.ChangeSpace, change({"x": pb.Range(max=value(1e21))}))
    assert (error.code, error.data["field"]) == ("default_outside", "ranges.x.max")


def test_an_edited_space_of_a_search_that_goes_on(tuning: TuningServiceStub) -> None:
    name = unique()
    tuning.CreateStudy(pb.CreateStudyRequest(name=name, spec=rich_spec()))
    cache = pb.Parameter(name="cache", integer=IntRange(min=1, max=64), default=value(8))

    def edit(**changes: Any) -> pb.EditSpaceRequest:
        return pb.EditSpaceRequest(study=name, **changes)

    request = edit(add=[cache], fix={"huge": value(False)}, request_id=unique())
    would = tuning.EditSpace(pb.EditSpaceRequest(study=name, add=[cache], validate_only=True))
    assert (would.study.space_version, would.trials.total) == (1, 0)
    answer = tuning.EditSpace(request)
    assert answer.study == tuning.GetStudy(pb.GetStudyRequest(name=name))
    assert tuning.EditSpace(request) == answer
    study = answer.study
    assert (study.space_version, study.fixed["huge"].flag, study.imputed["cache"].integer) == (2, False, 8)
    assert [parameter.name for parameter in study.spec.space][-1] == "cache"
    (record,) = study.space_edits
    assert (record.version, list(record.added), record.fixed["huge"]) == (2, ["cache"], value(False))
    assert record.made_at.seconds > 0
    assert record.trials.text == "0 of 0 trials are used."
    removed = tuning.EditSpace(edit(remove={"cache": pb.Value()}, free=["huge"])).study
    assert (dict(removed.fixed), removed.removed["cache"].integer) == ({}, 8)
    error = refusal(tuning.EditSpace, edit(fix={"cache": value(8)}))
    assert (error.code, error.data["field"]) == ("unknown_parameter", "fix.cache")
    error = refusal(tuning.EditSpace, edit(fix={"huge": pb.Value()}))
    assert error.data["field"] == "fix.huge"
    extended = edit(
        fix={"huge": value(True)}, budget=pb.Budget(max_trials=99), budget_fields=FieldMask(paths=["max_trials"])
    )
    assert tuning.EditSpace(extended).study.spec.budget.max_trials == 99


def test_delete(tuning: TuningServiceStub, grpc_service: GrpcService) -> None:
    name = create(tuning)
    tuning.SuggestTrials(pb.SuggestTrialsRequest(study=name, count=2))
    tuning.DeleteStudy(pb.DeleteStudyRequest(name=name))
    tuning.DeleteStudy(pb.DeleteStudyRequest(name=name))
    error = refusal(tuning.GetStudy, pb.GetStudyRequest(name=name))
    assert (error.status, error.code) == (grpc.StatusCode.NOT_FOUND, "study_not_found")
    assert refusal(tuning.DeleteStudy, pb.DeleteStudyRequest(name=unique())).code == "study_not_found"
    # the name is free again
    tuning.CreateStudy(pb.CreateStudyRequest(name=name, spec=spec()))


def struct(content: dict[str, Any]) -> Struct:
    made = Struct()
    made.update(content)
    return made


def test_a_study_comes_back_with_its_policies(tuning: TuningServiceStub) -> None:
    wanted = spec(
        space=[pb.Parameter(name="x", float=FloatRange(min=0, max=1), default=value(0.5))],
        outcome_constraints=["mb <= 4096"],
        resampling=pb.Policy(name="static", options=struct({"n": 3})),
        estimator=pb.Policy(name="mean"),
        pruning=[pb.Policy(name="default"), pb.Policy(name="limit", options=struct({"seconds": 60}))],
        stopping=struct({"any": [{"rule": "trials", "trials": 50}, {"rule": "seconds", "seconds": 3600}]}),
        final_check=pb.FinalCheck(width=0.1),
        budget=pb.Budget(max_node_hours=2.5),
    )
    found = tuning.CreateStudy(pb.CreateStudyRequest(name=unique(), spec=wanted)).spec
    assert list(found.outcome_constraints) == ["mb <= 4096"]
    assert (found.resampling.name, found.resampling.options["n"]) == ("static", 3)
    assert found.estimator.name == "mean"
    assert [policy.name for policy in found.pruning] == ["default", "limit"]
    assert found.pruning[1].options["seconds"] == 60
    rules = found.stopping.fields["any"].list_value.values
    assert [rule.struct_value.fields["rule"].string_value for rule in rules] == ["trials", "seconds"]
    assert found.final_check.width == 0.1
    # What was left out is filled in.
    assert found.final_check.max_trials >= 8
    assert found.final_check.effects == 32
    assert found.budget.max_node_hours == 2.5


def test_a_study_without_policies_says_so(tuning: TuningServiceStub) -> None:
    study = tuning.CreateStudy(pb.CreateStudyRequest(name=unique(), spec=spec()))
    assert study.spec.resampling.name == "none"
    assert not study.spec.HasField("stopping")
    assert study.spec.final_check.off
    assert study.search_end_reason == ""


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"resampling": pb.Policy(name="often")}, "resampling.name"),
        ({"estimator": pb.Policy(name="mean", options=struct({"q": 1}))}, "estimator.options.q"),
        ({"pruning": [pb.Policy(name="limit", options=struct({"seconds": -1}))]}, "pruning[0].options.seconds"),
        ({"stopping": struct({"any": [{"rule": "trials", "trials": 0}]})}, "stopping.any[0].trials"),
        ({"final_check": pb.FinalCheck(level=2.0)}, "final_check.level"),
        ({"outcome_constraints": ["mb <"]}, "outcome_constraints[0]"),
    ],
)
def test_a_bad_policy_names_its_field(tuning: TuningServiceStub, changes: dict[str, Any], field: str) -> None:
    error = refusal(tuning.CreateStudy, pb.CreateStudyRequest(name=unique(), spec=spec(**changes)))
    assert (error.status, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_argument")
    assert error.data["field"] == field
