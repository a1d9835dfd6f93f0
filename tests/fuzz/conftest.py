"""A running service that is there to be ill-treated, with something in it for requests to be about."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import httpx
import pytest
from hypothesis import HealthCheck, settings

from service._gen import (
    agent_pb2,
    agent_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    matching_pb2,
    matching_pb2_grpc,
    tuning_pb2,
    tuning_pb2_grpc,
)
from tests.factories.grpc_service import WithToken, spec, unique, value
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.factories.tuned import tune

# The same ones each time, so that a failure comes again.
EXAMPLES = int(os.environ.get("TRIMTAB_FUZZ_EXAMPLES", "10"))
FUZZING = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
# What a process writes down where something happened that nobody had thought of.
UNEXPECTED = re.compile(r"Traceback|failed unexpectedly|raised unexpected")


@dataclass
class Prey:
    """The tested service and the names of its objects."""

    service: EmbeddedService
    channel: grpc.Channel
    agent: str = field(default_factory=lambda: unique("agent"))
    component: str = field(default_factory=lambda: unique("component"))
    study: str = ""
    agents_study: str = ""
    operation: str = ""
    enrolment: str = ""
    tenant: str = ""
    # A record of a tuned application.
    record: str = ""
    notice_channel: str = ""
    leases: list[str] = field(default_factory=list)

    def renew(self) -> None:
        """Other studies, with a trial that runs and one that is finished, since the last ones may be gone."""
        tuning = tuning_pb2_grpc.TuningServiceStub(self.channel)
        agents = agent_pb2_grpc.AgentServiceStub(self.channel)
        self.study, self.agents_study, self.tenant = unique(), unique(), unique("t")
        httpx.post(
            f"{self.service.http_url}/api/v1/tenants",
            json={"slug": self.tenant},
            headers={"Authorization": f"Bearer {self.service.token}"},
            timeout=PATIENCE,
        ).raise_for_status()
        tuning.CreateStudy(tuning_pb2.CreateStudyRequest(name=self.study, spec=spec()), timeout=PATIENCE)
        asked = tuning.SuggestTrials(tuning_pb2.SuggestTrialsRequest(study=self.study, count=3), timeout=PATIENCE)
        self.operation = asked.id
        tuning.CompleteTrial(
            tuning_pb2.CompleteTrialRequest(study=self.study, trial=1, metrics={"loss": 0.5}), timeout=PATIENCE
        )
        identity = identity_pb2_grpc.IdentityServiceStub(self.channel)
        self.enrolment = identity.CreateEnrolment(identity_pb2.CreateEnrolmentRequest(), timeout=PATIENCE).secret
        parameter = tuning_pb2.Parameter(
            name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5)
        )
        component = agent_pb2.Component(
            name=self.component, digest="ab" * 32, applications=["small"], space=[parameter], metrics=["loss"]
        )
        request = agent_pb2.RegisterRequest(
            agent_id=self.agent, name=self.agent, slots=4, components=[component], session_id="fuzz:1"
        )
        agents.Register(request, timeout=PATIENCE)
        execution = tuning_pb2.Execution(component=self.component, application="small", parallelism=4)
        made = tuning_pb2.CreateStudyRequest(name=self.agents_study, spec=spec(space=[parameter], execution=execution))
        tuning.CreateStudy(made, timeout=PATIENCE)
        granted = agents.AcquireLeases(agent_pb2.AcquireLeasesRequest(agent_id=self.agent, count=2), timeout=PATIENCE)
        self.leases = [lease.id for lease in granted.leases]
        if not self.record:
            tuned = tune(tuning, agents, unique("component"), user="ada", name="ant")
            matching = matching_pb2_grpc.MatchingServiceStub(self.channel)
            (record,) = matching.ListRecords(matching_pb2.ListRecordsRequest(study=tuned), timeout=PATIENCE).records
            self.record = record.id
        if not self.notice_channel:
            # No name server knows this host.
            answer = httpx.post(
                f"{self.service.http_url}/api/v1/notice-channels",
                json={"medium": "webhook", "target": "https://hooks.invalid/1", "kinds": ["study.ended"]},
                headers={"Authorization": f"Bearer {self.service.token}"},
                timeout=PATIENCE,
            )
            self.notice_channel = answer.raise_for_status().json()["id"]

    def mishaps(self) -> str:
        """Return the unexpected errors in the logs of the processes."""
        found = []
        for path in sorted((self.service.data_dir / "logs").glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()
            marked = [number for number, line in enumerate(lines) if UNEXPECTED.search(line)]
            found += [f"{path.name}: {line}" for number in marked for line in lines[number : number + 40]]
        return "\n".join(found)


@pytest.fixture(scope="package")
def prey(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[Prey]:
    with (
        EmbeddedService(tmp_path_factory.mktemp("prey")) as service,
        grpc.insecure_channel(service.grpc_address) as plain,
    ):
        yield Prey(service, grpc.intercept_channel(plain, WithToken(service.token)))
