"""Another tenant's caller and one whom nobody knows, at every REST route and every gRPC method.

The routes are those of the OpenAPI schema and the methods those of the protocol, so a new one is either tried here or
fails the test. Each is tried with the application's own condition on the tenant, and once more without it, so that
row-level security alone has to hold.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import pkgutil
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import grpc
import psycopg
import pytest
from django.db import connection
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from service import _gen
from service._gen import matching_pb2, tuning_pb2
from service.api.authentication import CONSOLE_HEADER
from service.api.v1 import tenancy as tenancy_views
from service.core.errors import Unauthenticated
from service.embedded.postgres import OWNER
from service.identity import sessions
from service.rpc import interceptors
from service.rpc.server import serve_until
from service.tenancy import access, tenants
from service.tenancy.cursor import TenantCursor
from service.tenancy.principal import Principal
from service.tenancy.protection import tables
from tests.factories.domain import make_execution, make_principal, make_spec
from tests.factories.furnished import AGENT, LIVE, SECRET, STUDY, Furnished, as_owner, furnish, register_agent
from tests.factories.grpc_service import spec
from tests.factories.patience import PATIENCE

# What is about the caller's own tenant, or about nothing that a tenant owns: it may answer, and must tell nothing of
# the other one. Everything else must be refused.
OWN = {
    *("getSession", "signIn", "signOut", "listStudies", "createStudy", "listAgents"),
    *("listAuditEntries", "exportAudit", "exportTenant", "getQuota"),
    *("getSignIn", "listApiTokens", "listMembers", "createEnrolment", "revokeAccess"),
    *("CreateStudy", "ParseStudyFile", "ListStudies", "ListAgents", "ListBestSettings", "ListLive", "Register"),
    *("GetSignIn", "WhoAmI", "ListApiTokens", "CreateEnrolment", "RevokeAccess", "RenewCredential"),
    "ListAuditEntries",
    *("getStudyFacets", "listMethods", "planStudy", "askDryRun", "listComponents", "writeComponent", "checkComponent"),
    "getGallery",
    "readBatchScript",
    *("checkStudyName", "getSampleData", "createSampleData", "deleteSampleData"),
    *("listNotices", "readNotices", "listChannels", "createChannel"),
    *("Match", "ReportJobs", "ListRecords", "ListJobs", "GetSettings", "UpdateSettings"),
    *("matchJob", "listRecords", "listJobs", "getMatchingSettings", "updateMatchingSettings", "getMatchingQuality"),
    *("getMatchingApproval", "updateMatchingApproval", "GetApproval", "UpdateApproval"),
}
# Says to each caller, without an end, that something of the caller's own tenant has changed: tests/api/test_events.py.
ENDLESS = {"watchTenant"}
# Nobody has to sign in before signing in.
OPEN = {"getSignIn", "signIn", "signOut", "GetSignIn"}


@pytest.fixture
def victim(transactional_db: None) -> Furnished:
    return furnish()


@pytest.fixture
def stranger(victim: Furnished) -> Principal:
    """An administrator of another tenant, who has an agent of the same component."""
    principal = make_principal()
    register_agent(principal, "strange")
    return principal


@pytest.fixture
def fingerprint(victim: Furnished, postgres_url: str) -> Iterator[Callable[..., str]]:
    """A hash of every table, or of one tenant's rows in each."""
    name = connection.settings_dict["NAME"]
    with psycopg.connect(postgres_url, dbname=name, user=OWNER, autocommit=True) as owner:
        found = owner.execute(
            "SELECT c.relname, EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid"
            " AND a.attname = 'tenant_id')"
            " FROM pg_class AS c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
        ).fetchall()

        def take(tenant_id: int | None = None) -> str:
            digest = hashlib.sha256()
            for table, owned in found:
                # What is used is counted, whoever asks.
                if table == "tenancy_usage" or (tenant_id is not None and not owned):
                    continue
                where = f" WHERE tenant_id = {tenant_id}" if tenant_id is not None else ""
                rows = owner.execute(f'SELECT t::text FROM "{table}" AS t{where} ORDER BY 1'.encode()).fetchall()
                digest.update(repr((table, rows)).encode())
            return digest.hexdigest()

        yield take


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application's own condition on the tenant is taken out of every statement."""
    condition = re.compile(r'(?:(?:"\w+"|\w+)\.)?"?\btenant_id\b"? = %s')
    execute = TenantCursor.execute

    def without(self: TenantCursor, query: Any, params: Any = None, **options: Any) -> TenantCursor:
        if isinstance(query, str) and query.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
            query = condition.sub("%s::bigint IS NOT NULL", query)
        return execute(self, query, params, **options)

    monkeypatch.setattr(TenantCursor, "execute", without)


class Trial:
    """The attempts of one caller over one interface, and all faults that they find."""

    def __init__(self, victim: Furnished, fingerprint: Callable[..., str]) -> None:
        self.victim = victim
        self.tried: list[str] = []
        self.faults: list[str] = []
        self._fingerprint = fingerprint

    def attempt(self, name: str, call: Callable[[], tuple[bool, str]], *, own: bool) -> None:
        """Run `call`, which returns whether it was refused as not found or not allowed, and the answer."""
        tenant_id = self.victim.principal.tenant_id if own else None
        before = self._fingerprint(tenant_id)
        refused, reported = call()
        self.tried.append(name)
        if not refused and not own:
            self.faults.append(f"{name} was answered: {reported[:300]}")
        shown = {word for word in self.victim.words if word in reported and not refused}
        if shown:
            self.faults.append(f"{name} shows {shown}")
        if self._fingerprint(tenant_id) != before:
            self.faults.append(f"{name} changed something")


STUDY_FILE = "objectives: {seconds: minimize}\nparameters: {x: {type: float, min: 0, max: 1}}\n"

# --- REST

BODIES: dict[str, Any] = {
    "createStudy": {"name": "strange", "spec": make_spec()},
    "updateStudy": {"state": "ABORTED"},
    "changeSpace": {"ranges": {"x": {"max": 0.9}}},
    "editSpace": {"edit": {"fix": {"n": 2}}},
    "extendBudget": {"max_trials": 9, "max_seconds": None},
    "checkStudy": {"max_trials": 8},
    "suggestTrials": {"count": 1, "client_id": SECRET},
    "renewTrials": {"trials": [1], "lease_seconds": 60},
    "enqueueTrials": {"params": {"x": 0.5, "n": 2}},
    "addTrial": {"params": {"x": 0.5, "n": 2}, "metrics": {"seconds": 1.0}},
    "completeTrial": {"metrics": {"seconds": 1.0}},
    "completeTrials": {"results": [{"trial": 1, "metrics": {"seconds": 1.0}}]},
    "failTrial": {"infeasible": False, "reason": "x"},
    "stopTrial": {},
    "stopLive": {"reason": "strange"},
    "approvePlan": {},
    "declinePlan": {"reason": "strange"},
    "replaceParams": {"params": {"x": 0.5, "n": 2}},
    "reportMeasurement": {"step": 2, "metrics": {"seconds": 1.0}},
    "signIn": {"token": "wrong"},
    "createTenant": {"slug": "mine"},
    "changeTenant": {"disabled": True},
    "createApiToken": {"name": "strange", "scopes": ["read"], "study": STUDY},
    "createEnrolment": {"minutes": 5},
    "revokeAccess": {"person": "tester"},
    "updateAgent": {"draining": True},
    "orderComponent": {"component": "redis", "action": "install"},
    "planStudy": {"spec": make_spec()},
    "askDryRun": {"spec": make_spec(execution=make_execution())},
    "writeComponent": {"text": "name: strange\napplications: {main: {command: [own]}}\n"},
    "checkComponent": {"text": "name: c"},
    "readBatchScript": {"text": "TILE=64"},
    "changeStudyNote": {"text": "strange"},
    "changeTrialNote": {"text": "strange", "tags": ["strange"], "attributes": {"strange": 1}},
    "readNotices": {"through": 1},
    "createChannel": {"medium": "webhook", "target": "https://strange.example/", "kinds": ["study.ended"]},
    "changeRecord": {"state": "WITHDRAWN"},
    "matchJob": {"job": {"user": "ada"}},
    "updateMatchingApproval": {"required": False},
    "updateMatchingSettings": {"threshold": 0.5, "weights": {}, "night_from": 22, "night_until": 6},
    # What another tenant has called a study is free to whoever asks.
    "checkStudyName": {"name": STUDY},
}
# Operations about a live study.
OF_LIVE = {"getLive", "stopLive", "approvePlan", "declinePlan", "getLiveResult"}
QUERIES = {"getLiveBoard": f"?study={LIVE}", "compareStudies": f"?study={STUDY}", "getStudySettings": "?format=env"}


def routes(victim: Furnished) -> Iterator[tuple[str, str, str, Any]]:
    """Name, method, path and body of every operation of the schema, aimed at what the victim has."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    values = {
        "name": STUDY,
        "number": "1",
        "operation_id": victim.operation,
        "artifact_id": victim.artifact,
        "agent_id": AGENT,
        "token_id": victim.token,
        "record_id": victim.record,
        "channel_id": victim.channel,
        "slug": tenants.slug_of(victim.principal.tenant_id),
    }
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            name = operation["operationId"]
            body = BODIES.get(name)
            assert (body is not None) == ("requestBody" in operation), f"{name} needs a body in BODIES"
            own = {**values, "name": LIVE} if name in OF_LIVE else values
            yield name, method.upper(), path.format_map(own) + QUERIES.get(name, ""), body


def rest(victim: Furnished, fingerprint: Callable[..., str], caller: Callable[[], Client]) -> Trial:
    trial = Trial(victim, fingerprint)
    for name, method, path, body in routes(victim):
        if name in ENDLESS and caller is not Client:
            continue

        def call(method: str = method, path: str = path, body: Any = body) -> tuple[bool, str]:
            # A new one each time: signing out would end what follows.
            answer: Any = caller().generic(method, path, _json(body), "application/json")
            reported = b"".join(answer) if answer.streaming else answer.content
            return answer.status_code in (401, 403, 404), f"{answer.status_code} {reported.decode()}"

        trial.attempt(name, call, own=name in OWN)
    assert len(trial.tried) >= 30
    return trial


def _json(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


@pytest.fixture
def in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloads that are made in this thread, whose statements the tests change."""
    monkeypatch.setattr(tenancy_views, "stream", iter)


def signed_in(principal: Principal) -> Callable[[], Client]:
    def client() -> Client:
        made = Client(headers={CONSOLE_HEADER: "1"})
        made.cookies[sessions.COOKIE_NAME] = sessions.issue(principal)
        return made

    return client


def test_every_table_has_something_to_hide(victim: Furnished) -> None:
    empty = [table for table, model in tables().items() if not access.rows(model, victim.principal).exists()]
    assert empty == []


def test_rest_refuses_unauthenticated_requests(victim: Furnished, fingerprint: Callable[..., str]) -> None:
    assert rest(victim, fingerprint, Client).faults == []
    client = Client()
    for name, method, path, body in routes(victim):
        if name not in OPEN:
            assert client.generic(method, path, _json(body), "application/json").status_code == 401, name


def test_rest_refuses_another_tenants_caller(
    victim: Furnished, stranger: Principal, fingerprint: Callable[..., str], in_this_thread: None
) -> None:
    assert rest(victim, fingerprint, signed_in(stranger)).faults == []


def test_rest_refuses_another_tenants_caller_by_row_level_security_alone(
    victim: Furnished, stranger: Principal, fingerprint: Callable[..., str], in_this_thread: None, unchecked: None
) -> None:
    assert rest(victim, fingerprint, signed_in(stranger)).faults == []


def test_without_both_checks_a_stranger_gets_in(
    victim: Furnished, stranger: Principal, fingerprint: Callable[..., str], in_this_thread: None, unchecked: None
) -> None:
    """The tests above rely on this: the application's condition is really absent, and they would notice a leak."""
    with as_owner():
        trial = rest(victim, fingerprint, signed_in(stranger))
    found = " ".join(trial.faults)
    for name in ("getStudy was answered", "listStudies shows", "getOperation was answered", "deleteStudy changed"):
        assert name in found, trial.faults


# --- gRPC

SERVICES = [
    service
    for module in pkgutil.iter_modules(_gen.__path__)
    if module.name.endswith("_pb2")
    for service in import_module(f"{_gen.__name__}.{module.name}").DESCRIPTOR.services_by_name.values()
]
REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND)
PARAMS = {"x": tuning_pb2.Value(number=0.5), "n": tuning_pb2.Value(integer=2)}
LEASE = Duration(seconds=60)
MEASUREMENT = tuning_pb2.Measurement(step=2, metrics={"seconds": 1.0})


def fields(method: Any, victim: Furnished) -> dict[str, Any]:
    """Values for the request's fields, aimed at what the victim has."""
    known: dict[str, Any] = {
        "study": STUDY,
        "trial": 1,
        "id": victim.operation,
        "agent_id": AGENT,
        "lease": victim.lease,
        "leases": [victim.lease],
        "held_leases": [victim.lease],
        "count": 1,
        "metrics": {"seconds": 1.0},
        "data": b"x",
        "state": tuning_pb2.STUDY_STATE_ABORTED,
        "outcome": 1,
        "session_id": "s",
        "slots": 1,
        "token": victim.token,
        "credential_digest": hashlib.sha256(b"strange").hexdigest(),
        "scopes": ["read"],
        "person": "tester",
    }
    given = {name: known[name] for name in method.input_type.fields_by_name if name in known}
    by_method: dict[str, dict[str, Any]] = {
        "CreateStudy": {"name": "strange", "spec": spec()},
        "ParseStudyFile": {"name": "strange", "text": STUDY_FILE},
        "AddTrial": {"params": PARAMS, "state": tuning_pb2.TRIAL_STATE_COMPLETED},
        "CompleteTrials": {"results": [{"trial": 1, "metrics": {"seconds": 1.0}}]},
        "EnqueueTrials": {"params": PARAMS},
        "ReplaceParams": {"params": PARAMS},
        "ReportMeasurement": {"measurement": MEASUREMENT},
        "ChangeNote": {"text": "strange", "set_attributes": PARAMS},
        "SuggestTrials": {"lease": LEASE},
        "RenewTrials": {"trials": [1], "lease": LEASE},
        "Register": {"name": "strange", "agent_id": "strange"},
        "Match": {"explain": True},
        "Explore": {"record": victim.record, "submission": "0" * 32, "begin": True, "share": 0.1},
        "ListRecords": {"state": matching_pb2.RECORD_STATE_ACTIVE},
        "ChangeRecord": {"id": victim.record, "state": matching_pb2.RECORD_STATE_WITHDRAWN},
        "ListJobs": {"record": victim.record},
        "PutArtifact": {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()},
        "GetLive": {"study": LIVE},
        "DecidePlan": {"study": LIVE, "approve": True},
        "StopLive": {"study": LIVE},
        "ReportLive": {"instances": [tuning_pb2.LiveInstance(component="live", instance="one", state="idle")]},
    }
    if "name" in method.input_type.fields_by_name:
        given["name"] = STUDY
    return {**given, **by_method.get(method.name, {})}


def _bytes(message: Message) -> bytes:
    return message.SerializeToString()


@pytest.fixture
def channel(
    victim: Furnished, stranger: Principal, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], grpc.Channel]]:
    """A gRPC server in this process, to which the token `stranger` is the stranger's."""

    def authenticate(header: str, *_: Any) -> Principal:
        if header != "Bearer stranger":
            raise Unauthenticated("missing_token", "?")
        return replace(stranger, credential="test")

    monkeypatch.setattr(interceptors, "authenticate_header", authenticate)
    ready = threading.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        found["stop"], found["loop"] = asyncio.Event(), asyncio.get_running_loop()

        def note(port: int) -> None:
            found["port"] = port
            ready.set()

        await serve_until(found["stop"], "127.0.0.1:0", ready=note)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(PATIENCE)
    yield lambda token: grpc.insecure_channel(f"127.0.0.1:{found['port']}")
    found["loop"].call_soon_threadsafe(found["stop"].set)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def over_grpc(
    victim: Furnished, fingerprint: Callable[..., str], channel: grpc.Channel, token: str | None
) -> tuple[Trial, dict[str, grpc.StatusCode]]:
    trial = Trial(victim, fingerprint)
    statuses: dict[str, grpc.StatusCode] = {}
    metadata: Any = () if token is None else (("authorization", f"Bearer {token}"),)
    for service in SERVICES:
        for method in service.methods:
            name = method.name

            def call(method: Any = method, service: Any = service) -> tuple[bool, str]:
                request = GetMessageClass(method.input_type)(**fields(method, victim))
                path = f"/{service.full_name}/{method.name}"
                answers = GetMessageClass(method.output_type)
                try:
                    if method.server_streaming:
                        stream = channel.unary_stream(path, _bytes, answers.FromString)
                        reported = str(next(iter(stream(request, timeout=PATIENCE, metadata=metadata))))
                    else:
                        unary = channel.unary_unary(path, _bytes, answers.FromString)
                        reported = str(unary(request, timeout=PATIENCE, metadata=metadata))
                except grpc.RpcError as error:
                    statuses[f"{service.name}.{method.name}"] = error.code()
                    return error.code() in REFUSED, str(error)
                return False, reported

            trial.attempt(name, call, own=name in OWN)
    assert len(trial.tried) >= 35
    return trial, statuses


def test_grpc_refuses_unauthenticated_requests(
    victim: Furnished, fingerprint: Callable[..., str], channel: Callable[[str], grpc.Channel]
) -> None:
    with channel("") as anonymous:
        trial, statuses = over_grpc(victim, fingerprint, anonymous, None)
    assert trial.faults == []
    assert len(statuses) == len([name for name in trial.tried if name not in OPEN])
    assert set(statuses.values()) == {grpc.StatusCode.UNAUTHENTICATED}, statuses


def test_grpc_refuses_another_tenants_caller(
    victim: Furnished, fingerprint: Callable[..., str], channel: Callable[[str], grpc.Channel]
) -> None:
    with channel("stranger") as other:
        assert over_grpc(victim, fingerprint, other, "stranger")[0].faults == []


def test_grpc_refuses_another_tenants_caller_by_row_level_security_alone(
    victim: Furnished, fingerprint: Callable[..., str], channel: Callable[[str], grpc.Channel], unchecked: None
) -> None:
    with channel("stranger") as other:
        assert over_grpc(victim, fingerprint, other, "stranger")[0].faults == []
