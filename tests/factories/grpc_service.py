"""A gRPC process of its own, as an operator starts it, over a database of its own; and the calls that tests make."""

import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any

import grpc
import psycopg
import pytest
from google.rpc import status_pb2
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from service._gen import agent_pb2_grpc, errordetails_pb2, tuning_pb2, tuning_pb2_grpc
from service.embedded.postgres import OWNER, SERVICE
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port

TOKEN = "rpc-test-token"


@dataclass
class GrpcService:
    """`trimtab-service grpc` against a database named `database` of the server at `server_url`."""

    server_url: str
    broker_url: str
    database: str
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    channels: list[grpc.Channel] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        parts: dict[str, Any] = conninfo_to_dict(self.server_url) | {"dbname": self.database}
        make = psycopg.conninfo.make_conninfo
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "service.config.settings.hosted",
            "DATABASE_URL": make(**parts | {"user": SERVICE}),
            "TRIMTAB_OWNER_DATABASE_URL": make(**parts | {"user": OWNER}),
            "CELERY_BROKER_URL": self.broker_url,
            "TRIMTAB_SECRET_KEY": "for tests alone",
            "TRIMTAB_ADMIN_TOKEN": TOKEN,
            # an agent that a test leaves alone for this long is offline
            "TRIMTAB_LEASE_SECONDS": "300",
        }

    def manage(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "service.main", *arguments], env=self.environment, check=True, capture_output=True
        )

    def start(self) -> None:
        if self.port == 0:
            self.port = free_port()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "service.main", "grpc", "--port", str(self.port)], env=self.environment
        )
        with grpc.insecure_channel(self.address, options=(("grpc.max_reconnect_backoff_ms", 200),)) as channel:
            ready = grpc.channel_ready_future(channel)
            wait_for(lambda: ready.done() or self.process is None or self.process.poll() is not None)
            assert self.process.poll() is None, "the gRPC process has ended"

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def channel(self, token: str | None = TOKEN, *, own_connection: bool = False) -> grpc.Channel:
        """Return a channel whose calls carry the token. Without `own_connection` it shares one with the others."""
        options = [("grpc.max_reconnect_backoff_ms", 200), ("grpc.max_send_message_length", -1)]
        options.append(("grpc.use_local_subchannel_pool", int(own_connection)))
        plain = grpc.insecure_channel(self.address, options=options)
        self.channels.append(plain)
        return plain if token is None else grpc.intercept_channel(plain, WithToken(token))

    def tuning(self, token: str | None = TOKEN, *, own_connection: bool = False) -> tuning_pb2_grpc.TuningServiceStub:
        return tuning_pb2_grpc.TuningServiceStub(self.channel(token, own_connection=own_connection))

    def agents(self, token: str | None = TOKEN) -> agent_pb2_grpc.AgentServiceStub:
        return agent_pb2_grpc.AgentServiceStub(self.channel(token))

    def execute(self, statement: str, database: str = "") -> list[Any]:
        """Run SQL with the database server's own rights; `{}` stands for the name of the service's database."""
        parts: dict[str, Any] = conninfo_to_dict(self.server_url) | ({"dbname": database} if database else {})
        with psycopg.connect(**parts, autocommit=True) as connection:
            done = connection.execute(sql.SQL(statement).format(sql.Identifier(self.database)))
            return done.fetchall() if done.description else []

    def cut_connections(self) -> None:
        """End all connections to the service's database, and wait until they are gone."""
        self.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{self.database}'")

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.execute("DROP DATABASE {} WITH (FORCE)")


class WithToken(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):
    """Adds the token to each call's metadata."""

    def __init__(self, token: str) -> None:
        self._metadata = (("authorization", f"Bearer {token}"),)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._with_metadata(client_call_details), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._with_metadata(client_call_details), request)

    def _with_metadata(self, details: Any) -> Any:
        return details._replace(metadata=(*(details.metadata or ()), *self._metadata))


def migrated(server_url: str, broker_url: str) -> GrpcService:
    """Return a database with all tables, from which the databases of tests are copied."""
    template = GrpcService(server_url, broker_url, f"rpc_{uuid.uuid4().hex[:12]}")
    template.execute(f"CREATE DATABASE {{}} OWNER {OWNER}")
    template.manage("migrate")
    return template


def started(template: GrpcService) -> GrpcService:
    """Run a service on a new copy of the database `template`."""
    service = GrpcService(template.server_url, template.broker_url, f"rpc_{uuid.uuid4().hex[:12]}")
    service.execute("CREATE DATABASE {} TEMPLATE " + template.database)
    service.start()
    return service


@dataclass(frozen=True)
class Refusal:
    """An error as a client sees it."""

    status: grpc.StatusCode
    code: str
    message: str
    retryable: bool
    data: dict[str, Any]


def refusal(call: Any, request: Any, **options: Any) -> Refusal:
    """Return the error of a call that must fail."""
    try:
        answer = call(request, timeout=PATIENCE, **options)
        if not hasattr(answer, "DESCRIPTOR"):
            answer = list(answer)
    except grpc.RpcError as error:
        return refusal_of(error)
    pytest.fail(f"answered: {answer}")


def refusal_of(error: Any) -> Refusal:
    """Return the content of an error, which must have the documented form."""
    found = dict(error.trailing_metadata() or ())
    assert "grpc-status-details-bin" in found, f"no details: {error}"
    status = status_pb2.Status.FromString(found["grpc-status-details-bin"])
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    detail = errordetails_pb2.ErrorDetail()
    assert status.details[0].Unpack(detail)
    return Refusal(error.code(), detail.code, detail.message, detail.retryable, dict(detail.data.items()))


def unique(prefix: str = "study") -> str:
    """Return a name of a study that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def value(plain: float | int | str | bool) -> tuning_pb2.Value:
    if isinstance(plain, bool):
        return tuning_pb2.Value(flag=plain)
    if isinstance(plain, int):
        return tuning_pb2.Value(integer=plain)
    if isinstance(plain, float):
        return tuning_pb2.Value(number=plain)
    return tuning_pb2.Value(text=plain)


def plain(params: Any) -> dict[str, Any]:
    return {name: getattr(item, item.WhichOneof("kind")) for name, item in params.items()}


def spec(algorithm: str | tuning_pb2.Algorithm = "random", **changes: Any) -> tuning_pb2.StudySpec:
    """Return the spec of a study with a float `x` in [0, 1] and an integer `n` in 1..8 that minimises `loss`."""
    fields: dict[str, Any] = {
        "space": [
            tuning_pb2.Parameter(name="x", float=tuning_pb2.Parameter.FloatRange(min=0.0, max=1.0)),
            tuning_pb2.Parameter(name="n", integer=tuning_pb2.Parameter.IntRange(min=1, max=8)),
        ],
        "objectives": [tuning_pb2.Objective(metric="loss", goal=tuning_pb2.Objective.GOAL_MINIMIZE)],
        "algorithm": tuning_pb2.Algorithm(name=algorithm) if isinstance(algorithm, str) else algorithm,
        "noisy": True,
    }
    return tuning_pb2.StudySpec(**(fields | changes))


def create(tuning: tuning_pb2_grpc.TuningServiceStub, algorithm: str = "random", **changes: Any) -> str:
    """Create a study and return its name."""
    name = unique()
    tuning.CreateStudy(
        tuning_pb2.CreateStudyRequest(name=name, spec=spec(algorithm, **changes), request_id=unique("request")),
        timeout=PATIENCE,
    )
    return name


def ask(tuning: tuning_pb2_grpc.TuningServiceStub, study: str, count: int = 1, **fields: Any) -> tuning_pb2.Operation:
    return tuning.SuggestTrials(tuning_pb2.SuggestTrialsRequest(study=study, count=count, **fields), timeout=PATIENCE)


def tell(tuning: tuning_pb2_grpc.TuningServiceStub, study: str, number: int, loss: float) -> tuning_pb2.Trial:
    return tuning.CompleteTrial(
        tuning_pb2.CompleteTrialRequest(study=study, trial=number, metrics={"loss": loss}), timeout=PATIENCE
    )
