"""Traces: one request through all processes of the service and through an agent, to a real receiver of OTLP."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import trimtab
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, write_component
from tests.factories.collector import Collector, Received, collector
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab.study import Study

tracer = TracerProvider(shutdown_on_exit=False).get_tracer("a program of a user")


@pytest.fixture(scope="module")
def receiver() -> Iterator[Collector]:
    with collector() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def service(
    receiver: Collector, tmp_path_factory: pytest.TempPathFactory, programs_start: None
) -> Iterator[EmbeddedService]:
    more = {"OTEL_EXPORTER_OTLP_HEADERS": "key=for-the-collector", "TRIMTAB_LOG_FORMAT": "json"}
    with EmbeddedService(tmp_path_factory.mktemp("traced"), receiver.environment | more) as service:
        yield service


@pytest.fixture(scope="module")
def client(service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(service.grpc_address, service.token) as client:
        yield client


def new_name() -> str:
    return f"traced-{uuid.uuid4().hex[:10]}"


def create(client: trimtab.Client, **options: object) -> Study:
    space = [trimtab.Float("secret-parameter", 0.0, 1.0)]
    return client.create_study(new_name(), space, [trimtab.Minimize("loss")], **options)  # type: ignore[arg-type]


def header(span: trace.SpanContext) -> str:
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-01"


def arrived(receiver: Collector, trace_id: str, *names: str) -> dict[str, Received]:
    """Wait until a trace has spans of these names, and return its spans by name."""
    found: dict[str, Received] = {}

    def complete() -> bool:
        found.update({span.name: span for span in receiver.spans(trace_id)})
        return set(names) <= set(found)

    wait_for(complete, lambda: f"{names} of {trace_id} arrive; there are {sorted(found)}")
    return found


def unconnected(spans: list[Received], root: str) -> list[Received]:
    known = {root, *(span.id for span in spans)}
    return [span for span in spans if span.parent not in known]


def lines(service: EmbeddedService, process: str, trace_id: str) -> list[dict[str, object]]:
    """Return the lines of a process's log that name the trace."""
    text = (service.data_dir / "logs" / f"{process}.log").read_text()
    return [json.loads(line) for line in text.splitlines() if trace_id in line and line.startswith("{")]


def test_an_ask_and_the_suggestion_of_a_worker_are_one_trace(
    receiver: Collector, service: EmbeddedService, client: trimtab.Client
) -> None:
    study = create(client, algorithm="gp")
    for index in range(24):
        # The start of the search is measured, so the next suggestion needs a worker.
        study.add_trial({"secret-parameter": index / 24}, {"loss": index / 7})
    with tracer.start_as_current_span("the program") as span:
        own = span.get_span_context()
        [trial] = study.ask(1)
    trace_id, root = f"{own.trace_id:032x}", f"{own.span_id:016x}"
    ask = "trimtab.tuning.v1.TuningService/SuggestTrials"
    spans = arrived(
        receiver,
        trace_id,
        ask,
        "transaction study.suggest",
        "compute_operation",
        "operation",
        "suggest",
        "transaction operation.claim",
        "transaction operation.succeed",
    )
    assert unconnected(receiver.spans(trace_id), root) == []
    assert spans[ask].parent == root
    assert spans[ask].server
    assert spans[ask].process == "trimtab-grpc"
    assert spans["transaction study.suggest"].parent == spans[ask].id
    assert spans["compute_operation"].parent == spans["transaction study.suggest"].id
    assert spans["compute_operation"].process == "trimtab-worker"
    assert spans["operation"].parent == spans["compute_operation"].id
    assert spans["transaction operation.succeed"].parent == spans["operation"].id
    assert spans[ask].attributes["trimtab.study"] == study.name
    assert not any(span.failed for span in spans.values())
    assert receiver.headers[-1]["key"] == "for-the-collector"
    wait_for(lambda: bool(lines(service, "worker", trace_id)), "the worker's log names the trace")
    assert all(line["trace"] == trace_id for line in lines(service, "worker", trace_id))
    for hidden in ("secret-parameter", service.token, repr(trial.params["secret-parameter"]), "SELECT"):
        assert hidden not in receiver.text()


def test_a_trial_of_an_agent_is_a_trace_that_links_to_its_cause(
    receiver: Collector,
    service: EmbeddedService,
    client: trimtab.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in receiver.environment.items():
        monkeypatch.setenv(key, value)
    components = write_component(tmp_path / "components", tmp_path / "runs", delay=0.0)
    with RealAgent(tmp_path, service.grpc_address, service.data_dir / "admin-token", components):
        with tracer.start_as_current_span("the program") as span:
            own = span.get_span_context()
            study = client.create_study(
                new_name(),
                objectives=[trimtab.Minimize("value")],
                component=COMPONENT,
                application=APPLICATION,
                algorithm="random",
                max_trials=2,
                final_check=False,
            )
        wait_for(lambda: study.refresh().state is trimtab.StudyState.COMPLETED, "the study ends")

        def trials() -> list[Received]:
            return [
                one for one in receiver.spans() if one.name == "trial" and one.attributes["trimtab.study"] == study.name
            ]

        wait_for(lambda: len(trials()) == 2, "the spans of both trials arrive")
    settle = "trimtab.agent.v1.AgentService/SettleLease"
    for one in trials():
        spans = arrived(
            receiver, one.trace, "prepare", "command", "metrics", "report", settle, "transaction lease.settle"
        )
        assert one.process == "trimtab-agent"
        assert one.attributes["trimtab.outcome"] == "completed"
        assert spans["prepare"].parent == spans["command"].parent == spans["report"].parent == one.id
        assert spans["command"].seconds > 0
        assert spans[settle].parent == spans["report"].id
        assert spans[settle].process == "trimtab-grpc"
        assert spans["transaction lease.settle"].parent == spans[settle].id
        assert unconnected(receiver.spans(one.trace), one.parent) == []
        # Both trials are created with the study, which the program's span has caused.
        [(cause, _)] = one.links
        assert cause == f"{own.trace_id:032x}"


def test_errors_name_the_trace(service: EmbeddedService, client: trimtab.Client, receiver: Collector) -> None:
    with tracer.start_as_current_span("the program") as span:
        own = span.get_span_context()
        with pytest.raises(trimtab.errors.NotFound) as caught:
            client.get_study("no-such-study")
    trace_id = f"{own.trace_id:032x}"
    assert caught.value.data["trace"] == trace_id
    arrived(receiver, trace_id, "trimtab.tuning.v1.TuningService/GetStudy")
    headers = {"traceparent": header(own), "Authorization": f"Bearer {service.token}"}
    answer = httpx.get(f"{service.http_url}/api/v1/studies/no-such-study", headers=headers, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["trace"]) == (404, trace_id)
    spans = arrived(receiver, trace_id, "GET /api/v1/studies/<str:name>")
    assert spans["GET /api/v1/studies/<str:name>"].attributes["http.response.status_code"] == 404
    wait_for(lambda: bool(lines(service, "web", trace_id)), "the log of the web process names the trace")


def test_a_caller_without_a_token_has_no_trace(service: EmbeddedService, receiver: Collector) -> None:
    with tracer.start_as_current_span("a stranger") as span:
        own = span.get_span_context()
        with (
            pytest.raises(trimtab.errors.Unauthenticated) as caught,
            trimtab.Client(service.grpc_address, "tra_wrong") as client,
        ):
            client.get_study("any")
    assert "trace" not in caught.value.data
    headers = {"traceparent": header(own), "Authorization": "Bearer tra_wrong"}
    answer = httpx.get(f"{service.http_url}/api/v1/studies", headers=headers, timeout=PATIENCE)
    assert answer.status_code == 401
    assert "trace" not in answer.json()
    # A later request of a known caller has arrived, so an earlier one would have.
    with tracer.start_as_current_span("a known caller") as span:
        later = span.get_span_context()
        headers = {"traceparent": header(later), "Authorization": f"Bearer {service.token}"}
        assert httpx.get(f"{service.http_url}/api/v1/studies", headers=headers, timeout=PATIENCE).status_code == 200
    arrived(receiver, f"{later.trace_id:032x}", "GET /api/v1/studies")
    assert receiver.spans(f"{own.trace_id:032x}") == []


@pytest.mark.slow("tests/unit/platform/test_tracing.py shows the same without a service")
def test_a_silent_collector_breaks_nothing(own_service: EmbeddedService) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        own_service.environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_BSP_MAX_QUEUE_SIZE": "20",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10",
        }
        own_service.start()
        with trimtab.Client(own_service.grpc_address, own_service.token) as client:
            study = create(client, algorithm="random")
            # Several times as many spans as the queue holds.
            for _ in range(30):
                [trial] = study.ask(1)
                study.tell(trial, {"loss": 0.0})
            assert len(study.trials()) == 30
        assert "restarts in" not in own_service.output
        assert own_service.stop() == 0


def test_nothing_is_sent_while_traces_are_off(embedded_service: EmbeddedService, receiver: Collector) -> None:
    with trimtab.Client(embedded_service.grpc_address, embedded_service.token) as client:
        study = create(client, algorithm="random")
        with tracer.start_as_current_span("the program") as span:
            own = span.get_span_context()
            study.ask(1)
            with pytest.raises(trimtab.errors.NotFound) as caught:
                client.get_study("no-such-study")
    assert "trace" not in caught.value.data
    assert receiver.spans(f"{own.trace_id:032x}") == []
