"""`trimtab vizier` against a real service: by messages of its protocol, and by OSS Vizier's own client."""

import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import grpc
import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService, lack
from trimtab._gen import vizier_pb2 as vz
from trimtab._gen import vizier_pb2_grpc
from trimtab.errors import Forbidden, InvalidInput
from trimtab.integrations.vizier import peers
from trimtab.integrations.vizier.server import Endpoint
from trimtab.integrations.vizier.servicer import VizierServicer
from trimtab.integrations.vizier.store import Store

Spec = vz.StudySpec.ParameterSpec
Stub = vizier_pb2_grpc.VizierServiceStub
# The newest version of the client, and one of the year before.
VERSIONS = ("0.1.24", "0.1.21")


@pytest.fixture
def endpoint(client: trimtab.Client, tmp_path: Path) -> Iterator[Endpoint]:
    made = Endpoint(client, "127.0.0.1:0", tmp_path / "state" / "vizier.db")
    yield made
    made.close()


@pytest.fixture
def stub(endpoint: Endpoint) -> Iterator[Stub]:
    with grpc.insecure_channel(endpoint.address) as channel:
        yield Stub(channel)


@pytest.fixture
def owner() -> str:
    return f"owners/o{uuid.uuid4().hex[:8]}"


def child(name: str, *values: str) -> Spec.ConditionalParameterSpec:
    made = Spec.ConditionalParameterSpec(parameter_spec=Spec(parameter_id=name))
    made.parameter_spec.integer_value_spec.min_value, made.parameter_spec.integer_value_spec.max_value = 1, 9
    made.parent_categorical_values.values.extend(values)
    return made


def specification() -> vz.StudySpec:
    spec = vz.StudySpec(algorithm="RANDOM_SEARCH")
    spec.metrics.add(metric_id="loss value", goal=vz.StudySpec.MetricSpec.MINIMIZE)
    spec.parameters.add(
        parameter_id="rate", double_value_spec=Spec.DoubleValueSpec(min_value=1e-3, max_value=1), scale_type=2
    )
    spec.parameters.add(parameter_id="v[0]", discrete_value_spec=Spec.DiscreteValueSpec(values=[1, 2.5, 8]))
    spec.parameters.add(parameter_id="only", discrete_value_spec=Spec.DiscreteValueSpec(values=[3]), external_type=2)
    flag = spec.parameters.add(
        parameter_id="flag", categorical_value_spec=Spec.CategoricalValueSpec(values=["False", "True"]), external_type=1
    )
    flag.conditional_parameter_specs.append(child("depth", "True"))
    return spec


def create(stub: Stub, owner: str, spec: vz.StudySpec | None = None, name: str = "a study (1)") -> vz.Study:
    study = vz.Study(display_name=name, study_spec=spec or specification())
    return stub.CreateStudy(vz.CreateStudyRequest(parent=owner, study=study))


def suggest(stub: Stub, study: vz.Study, count: int = 1, client_id: str = "worker") -> list[vz.Trial]:
    request = vz.SuggestTrialsRequest(parent=study.name, suggestion_count=count, client_id=client_id)
    operation = stub.SuggestTrials(request)
    assert operation.done
    return list(vz.SuggestTrialsResponse.FromString(operation.response.value).trials)


def measured(value: float, step: int = 0) -> vz.Measurement:
    return vz.Measurement(step_count=step, metrics=[vz.Measurement.Metric(metric_id="loss value", value=value)])


def values(trial: vz.Trial) -> dict[str, float | str]:
    return {one.parameter_id: one.value.string_value or one.value.number_value for one in trial.parameters}


def refused(error: pytest.ExceptionInfo[grpc.RpcError]) -> tuple[grpc.StatusCode, str]:
    call = error.value
    assert isinstance(call, grpc.Call)
    return call.code(), call.details() or ""


def test_a_study_is_created_once_and_read_back(stub: Stub, client: trimtab.Client, owner: str) -> None:
    study = create(stub, owner)
    assert study.name == f"{owner}/studies/a study (1)"
    assert study.study_spec == specification()
    assert create(stub, owner, vz.StudySpec()) == study
    assert list(stub.ListStudies(vz.ListStudiesRequest(parent=owner)).studies) == [study]
    own = next(one for one in client.list_studies() if owner.removeprefix("owners/") in one.name)
    space = {parameter.name: parameter for parameter in own.spec.space}
    rate = space["rate"]
    assert isinstance(rate, trimtab.Float)
    assert (rate.min, rate.max, rate.log) == (1e-3, 1, True)
    assert space["depth"].when in (("flag", ("True",)), {"flag": ["True"]}, {"flag": ("True",)})
    assert own.algorithm == "random"
    stub.DeleteStudy(vz.DeleteStudyRequest(name=study.name))
    with pytest.raises(grpc.RpcError) as error:
        stub.GetStudy(vz.GetStudyRequest(name=study.name))
    assert refused(error)[0] == grpc.StatusCode.NOT_FOUND


def test_a_search_from_suggestion_to_optimum(stub: Stub, owner: str) -> None:
    study = create(stub, owner)
    trials = suggest(stub, study, 6)
    assert [trial.id for trial in trials] == ["1", "2", "3", "4", "5", "6"]
    for trial in trials:
        given = values(trial)
        assert given["only"] == 3
        assert given["v[0]"] in (1, 2.5, 8)
        assert ("depth" in given) == (given["flag"] == "True")
    # The same client gets its trials again, another one gets others.
    assert [trial.id for trial in suggest(stub, study, 2)] == ["1", "2"]
    assert [trial.id for trial in suggest(stub, study, 1, "other")] == ["7"]
    for trial in trials[:3]:
        told = stub.CompleteTrial(
            vz.CompleteTrialRequest(name=trial.name, final_measurement=measured(float(trial.id), 4))
        )
        assert (told.state, told.final_measurement) == (vz.Trial.SUCCEEDED, measured(float(trial.id), 4))
        assert told.HasField("end_time")
    optimal = stub.ListOptimalTrials(vz.ListOptimalTrialsRequest(parent=study.name)).optimal_trials
    assert [trial.id for trial in optimal] == ["1"]
    with pytest.raises(grpc.RpcError) as error:
        stub.CompleteTrial(vz.CompleteTrialRequest(name=trials[0].name, final_measurement=measured(-99)))
    assert refused(error)[0] == grpc.StatusCode.FAILED_PRECONDITION
    assert stub.GetTrial(vz.GetTrialRequest(name=trials[0].name)).final_measurement == measured(1, 4)


def test_measurements_stopping_and_infeasible_trials(stub: Stub, owner: str) -> None:
    study = create(stub, owner)
    first, second, third = suggest(stub, study, 3)
    for value, step in ((5, 0), (4, 0), (3, 7)):  # many clients do not count steps
        stub.AddTrialMeasurement(
            vz.AddTrialMeasurementRequest(trial_name=first.name, measurement=measured(value, step))
        )
    check = vz.CheckTrialEarlyStoppingStateRequest(trial_name=first.name)
    assert not stub.CheckTrialEarlyStoppingState(check).should_stop
    assert stub.StopTrial(vz.StopTrialRequest(name=first.name)).state == vz.Trial.STOPPING
    assert stub.CheckTrialEarlyStoppingState(check).should_stop
    assert first.id not in [trial.id for trial in suggest(stub, study, 2)]
    ended = stub.CompleteTrial(vz.CompleteTrialRequest(name=first.name))
    assert [(one.step_count, one.metrics[0].value) for one in ended.measurements] == [(0, 5), (1, 4), (7, 3)]
    assert ended.final_measurement.metrics[0].value == 3
    with pytest.raises(grpc.RpcError) as error:
        stub.CompleteTrial(vz.CompleteTrialRequest(name=second.name))
    assert refused(error)[0] == grpc.StatusCode.FAILED_PRECONDITION
    failed = stub.CompleteTrial(
        vz.CompleteTrialRequest(name=second.name, trial_infeasible=True, infeasible_reason="no memory")
    )
    assert (failed.state, failed.infeasible_reason) == (vz.Trial.INFEASIBLE, "no memory")
    stub.DeleteTrial(vz.DeleteTrialRequest(name=third.name))
    listed = stub.ListTrials(vz.ListTrialsRequest(parent=study.name)).trials
    assert [trial.id for trial in listed] == ["1", "2"]


def test_a_requested_trial_comes_first_and_a_finished_one_is_added(stub: Stub, owner: str) -> None:
    study = create(stub, owner)
    wanted = vz.Trial(metadata=[vz.KeyValue(key="who", value="me")])
    for name, value in {"rate": 0.5, "v[0]": 8, "only": 3}.items():
        wanted.parameters.add(parameter_id=name).value.number_value = value
    wanted.parameters.add(parameter_id="flag").value.string_value = "False"
    stub.CreateTrial(vz.CreateTrialRequest(parent=study.name, trial=wanted))
    done = vz.Trial(state=vz.Trial.SUCCEEDED, parameters=wanted.parameters, final_measurement=measured(0.25))
    stub.CreateTrial(vz.CreateTrialRequest(parent=study.name, trial=done))
    trials = suggest(stub, study, 2)
    assert values(trials[0]) == values(wanted)
    assert list(trials[0].metadata) == list(wanted.metadata)
    [optimal] = stub.ListOptimalTrials(vz.ListOptimalTrialsRequest(parent=study.name)).optimal_trials
    assert optimal.final_measurement == measured(0.25)


def test_metadata_outlive_the_endpoint(
    stub: Stub, client: trimtab.Client, endpoint: Endpoint, owner: str, tmp_path: Path
) -> None:
    study = create(stub, owner)
    [trial] = suggest(stub, study)
    delta = [
        vz.UnitMetadataUpdate(metadatum=vz.KeyValue(key="a", ns=":x", value="1")),
        vz.UnitMetadataUpdate(metadatum=vz.KeyValue(key="b", value="2"), trial_id=trial.id),
    ]
    for _ in range(2):
        assert not stub.UpdateMetadata(vz.UpdateMetadataRequest(name=study.name, delta=delta)).error_details
    reserved = vz.UnitMetadataUpdate(metadatum=vz.KeyValue(key="PYTHIA_ENDPOINT", ns=":service", value="10.0.0.1:1"))
    answer = stub.UpdateMetadata(vz.UpdateMetadataRequest(name=study.name, delta=[reserved]))
    assert "PYTHIA_ENDPOINT are not allowed" in answer.error_details
    second = Endpoint(client, "127.0.0.1:0", tmp_path / "state" / "vizier.db")
    try:
        with grpc.insecure_channel(second.address) as channel:
            again = Stub(channel)
            assert list(again.GetStudy(vz.GetStudyRequest(name=study.name)).study_spec.metadata) == [delta[0].metadatum]
            assert list(again.GetTrial(vz.GetTrialRequest(name=trial.name)).metadata) == [delta[1].metadatum]
    finally:
        second.close()


def test_an_ended_study_suggests_nothing(stub: Stub, owner: str) -> None:
    study = create(stub, owner)
    state = stub.SetStudyState(vz.SetStudyStateRequest(parent=study.name, state=vz.Study.INACTIVE)).state
    assert state == vz.Study.INACTIVE
    with pytest.raises(grpc.RpcError) as error:
        suggest(stub, study)
    assert refused(error)[0] == grpc.StatusCode.FAILED_PRECONDITION
    assert not stub.ListTrials(vz.ListTrialsRequest(parent=study.name)).trials


def test_requests_that_the_service_cannot_meet_are_named(stub: Stub, client: trimtab.Client, owner: str) -> None:
    spec = specification()
    spec.parameters[0].scale_type = Spec.UNIT_REVERSE_LOG_SCALE
    with pytest.raises(grpc.RpcError) as error:
        create(stub, owner, spec)
    assert refused(error)[0] == grpc.StatusCode.UNIMPLEMENTED
    assert "'rate' has a reverse log scale" in refused(error)[1]
    with pytest.raises(grpc.RpcError) as error:
        create(stub, owner, vz.StudySpec(parameters=specification().parameters))
    assert refused(error) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "metrics: [] is not allowed. Use at least one objective. [invalid_argument]",
    )
    name = f"{owner.removeprefix('owners/')}.mine"
    client.create_study(name, [trimtab.Float("x", 0, 1)], [trimtab.Minimize("y")])
    with pytest.raises(grpc.RpcError) as error:
        create(stub, owner, name="mine")
    assert "does not come from an OSS Vizier client" in refused(error)[1]


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "example.org:80", "127.0.0.1", "127.0.0.1:99999", ":0"])
def test_the_endpoint_listens_on_this_machine_alone(client: trimtab.Client, tmp_path: Path, listen: str) -> None:
    with pytest.raises(InvalidInput, match="a loopback address"):
        Endpoint(client, listen, tmp_path / "vizier.db")


def test_an_address_in_use_is_named(endpoint: Endpoint, client: trimtab.Client, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no other program listens on"):
        Endpoint(client, endpoint.address, tmp_path / "other.db")


def test_asks_of_one_client_share_a_lock_that_does_not_stay(client: trimtab.Client, tmp_path: Path) -> None:
    servicer = VizierServicer(client, Store(tmp_path / "vizier.db"))
    first = servicer._turn("study", "client")
    assert servicer._turn("study", "client") is first
    assert servicer._turn("study", "other") is not first
    assert list(servicer._asking) == [("study", "client")]
    del first
    assert not servicer._asking


@pytest.mark.slow("installs OSS Vizier into an environment of its own")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_suite_of_viziers_client(embedded_service: EmbeddedService, tmp_path: Path, version: str) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:.cache/uv/bin:/usr/local/bin:/usr/bin")
    if uv is None:
        lack("uv is not installed, which makes an environment for google-vizier")
    command = [sys.executable, "-c", "from trimtab.cli.main import app; app()", "vizier", "--listen", "127.0.0.1:0"]
    login = {"TRIMTAB_URL": embedded_service.grpc_address, "TRIMTAB_TOKEN": embedded_service.token}
    served = subprocess.Popen(
        [*command, "--state", str(tmp_path / "vizier.db")], env=login, stderr=subprocess.PIPE, text=True
    )
    try:
        assert served.stderr is not None
        address = served.stderr.readline().strip().removeprefix("ready vizier=")
        suite = Path(__file__).with_name("vizier_client_suite.py")
        run = [uv, "run", "--quiet", "--isolated", "--no-project", "--with", f"google-vizier=={version}"]
        run += ["--with", "absl-py"]  # the suite needs it, and not every version says so
        owner = f"suite-{uuid.uuid4().hex[:8]}"
        done = subprocess.run([*run, str(suite), address, owner], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr[-3000:]
        assert "Ran 32 tests" in done.stderr
    finally:
        served.terminate()
        served.wait()


OTHERS = """
import os, sys
sys.path[:0] = sys.argv[2:]
import grpc
from trimtab._gen import vizier_pb2, vizier_pb2_grpc
os.setgid(65534), os.setuid(65534)
with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = vizier_pb2_grpc.VizierServiceStub(channel)
    try:
        print(stub.ListStudies(vizier_pb2.ListStudiesRequest(parent="owners/me")))
    except grpc.RpcError as error:
        print(error.code().name, error.details())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_other_users_of_the_machine_are_refused(endpoint: Endpoint, stub: Stub, owner: str) -> None:
    assert create(stub, owner).name
    command = [sys.executable, "-c", OTHERS, endpoint.address, *sys.path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert said.stdout.startswith("PERMISSION_DENIED This endpoint belongs to another user"), said.stderr


def test_only_the_user_of_a_connection_counts() -> None:
    for family, host, named in (
        (socket.AF_INET, "127.0.0.1", "ipv4:127.0.0.1"),
        (socket.AF_INET6, "::1", "ipv6:%5B::1%5D"),
    ):
        with socket.socket(family) as server:
            server.bind((host, 0))
            server.listen()
            port = server.getsockname()[1]
            with socket.create_connection((host, port)) as client:
                own = client.getsockname()[1]
                peers.expect_own(f"{named}:{own}", port)
                for peer, at in ((f"{named}:{own}", port + 1), (f"{named}:{port}", own + 1), (f"{named}:1", port)):
                    with pytest.raises(Forbidden):
                        peers.expect_own(peer, at)


@pytest.mark.parametrize("damage", ["no JSON", "another name", "a deep one"])
def test_a_description_that_somebody_has_forged_hides_its_study_alone(
    stub: Stub, client: trimtab.Client, owner: str, damage: str
) -> None:
    """Any member of the tenant can write a study with any description."""
    study = create(stub, owner)
    made = next(one for one in client.list_studies() if owner.removeprefix("owners/") in one.name)
    text = {
        "no JSON": made.spec.description[:-10],
        "another name": made.spec.description,
        "a deep one": made.spec.description.partition("{")[0] + '{"a":' * 1500,
    }[damage]
    client.create_study(
        f"{made.name[:50]}.f", [trimtab.Float("x", 0, 1)], [trimtab.Minimize("y")], algorithm="random", description=text
    )
    assert list(stub.ListStudies(vz.ListStudiesRequest(parent=owner)).studies) == [study]


def test_what_was_kept_of_a_deleted_study_does_not_reach_another_of_its_name(
    stub: Stub, client: trimtab.Client, owner: str
) -> None:
    first = create(stub, owner)
    [trial] = suggest(stub, first)
    stub.StopTrial(vz.StopTrialRequest(name=trial.name))
    stub.DeleteTrial(vz.DeleteTrialRequest(name=trial.name))
    client.delete_study(next(one.name for one in client.list_studies() if owner.removeprefix("owners/") in one.name))
    second = create(stub, owner)
    [again] = suggest(stub, second)
    assert (again.id, again.state) == (trial.id, vz.Trial.ACTIVE)
    assert not stub.CheckTrialEarlyStoppingState(
        vz.CheckTrialEarlyStoppingStateRequest(trial_name=again.name)
    ).should_stop


HOSTILE_NAMES = (
    "",
    "/",
    "owners/",
    "owners/a/studies/",
    "owners/../studies/..",
    "owners/a/studies/b/trials/0",
    "owners/a/studies/b/trials/999999999",
    "owners/a/studies/b/trials/-1",
    "owners/a/studies/b/trials/1'; DROP TABLE trials",
    "owners/%2e/studies/%00",
    "owners/a\x00/studies/b",
    "owners/a\n/studies/b\n",
    "owners/" + "a" * 5_000 + "/studies/b",
    "owners/\u202e/studies/\U0001f600/trials/1",
)


def code_of(call: Callable[[], object]) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_refused_or_not_found(stub: Stub, name: str) -> None:
    """No answer is UNKNOWN, which gRPC gives for an exception that nobody has handled."""
    requests: list[tuple[str, object]] = [
        ("GetStudy", vz.GetStudyRequest(name=name)),
        ("ListStudies", vz.ListStudiesRequest(parent=name)),
        ("DeleteStudy", vz.DeleteStudyRequest(name=name)),
        ("SetStudyState", vz.SetStudyStateRequest(parent=name, state=99)),  # type: ignore[arg-type]
        ("SuggestTrials", vz.SuggestTrialsRequest(parent=name, suggestion_count=-5, client_id=name[:300])),
        ("GetTrial", vz.GetTrialRequest(name=name)),
        ("ListTrials", vz.ListTrialsRequest(parent=name)),
        ("CompleteTrial", vz.CompleteTrialRequest(name=name)),
        ("DeleteTrial", vz.DeleteTrialRequest(name=name)),
        ("StopTrial", vz.StopTrialRequest(name=name)),
        ("AddTrialMeasurement", vz.AddTrialMeasurementRequest(trial_name=name)),
        ("CheckTrialEarlyStoppingState", vz.CheckTrialEarlyStoppingStateRequest(trial_name=name)),
        ("ListOptimalTrials", vz.ListOptimalTrialsRequest(parent=name)),
        ("UpdateMetadata", vz.UpdateMetadataRequest(name=name)),
    ]
    right = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}
    found = {method: code_of(partial(getattr(stub, method), request, timeout=PATIENCE)) for method, request in requests}
    assert set(found.values()) <= right, found


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1.7e308, -0.0])
def test_hostile_values_leave_the_study_usable(stub: Stub, owner: str, value: float) -> None:
    study = create(stub, owner)
    [trial] = suggest(stub, study)
    calls: list[Callable[[], object]] = [
        lambda: stub.AddTrialMeasurement(
            vz.AddTrialMeasurementRequest(trial_name=trial.name, measurement=measured(value, -(2**62)))
        ),
        lambda: stub.AddTrialMeasurement(
            vz.AddTrialMeasurementRequest(trial_name=trial.name, measurement=measured(value, 2**62))
        ),
        lambda: stub.CompleteTrial(vz.CompleteTrialRequest(name=trial.name, final_measurement=measured(value))),
        lambda: stub.CreateTrial(
            vz.CreateTrialRequest(
                parent=study.name,
                trial=vz.Trial(
                    state=vz.Trial.SUCCEEDED, parameters=trial.parameters, final_measurement=measured(value)
                ),
            )
        ),
    ]
    right = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}
    assert {code_of(call) for call in calls} <= right
    assert len(suggest(stub, study, 1, "other")) == 1
    stub.ListTrials(vz.ListTrialsRequest(parent=study.name))
