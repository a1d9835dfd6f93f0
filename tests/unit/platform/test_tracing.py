"""Traces: when they are on, what they cost while they are off, sampling, links, and a collector that is lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from service.core.errors import InvalidInput, kind_of
from service.platform import log_context, tracing
from service.platform.spans import Bounded, Traces
from tests.factories.patience import PATIENCE
from tests.factories.ports import free_port

ON = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"}
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# Every module of the service's processes, then a start, a span and a request as in them.
PROCESS = """
import os, sys, django
os.environ["DJANGO_SETTINGS_MODULE"] = "service.config.settings.test"
django.setup()
import service.config.asgi, service.config.celery, service.config.urls, service.rpc.server, service.workers.tasks
from service.core.errors import kind_of
from service.platform import tracing
tracing.start("grpc", 100, kind_of)
with tracing.span("block"):
    assert tracing.serve("call", "CALLER", 0) is None
    assert tracing.trace() == tracing.traceparent() == ""
print(*sorted(name for name in sys.modules if name.startswith("opentelemetry")))
""".replace("CALLER", CALLER)
LOST = """
import atexit, threading
# Called after the service's own functions at exit: whether the last spans are still on their way.
atexit.register(lambda: print(any(thread.name == "last-spans" for thread in threading.enumerate())))
from service.core.errors import kind_of
from service.platform import tracing
tracing.start("web", 1_000_000, kind_of)
for number in range(5_000):
    with tracing.span("block"):
        pass
"""


AGENT = """
import sys, trimtab_agent.agent
from trimtab_agent import tracing
tracing.start()
with tracing.span("trial", link="CALLER"):
    assert tracing.metadata() == ()
print(*sorted(name for name in sys.modules if name.startswith("opentelemetry")))
""".replace("CALLER", CALLER)


@pytest.fixture
def finished() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch, finished: InMemorySpanExporter) -> Iterator[None]:
    """Traces of this process that stay in it."""
    for key, value in {**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}.items():
        monkeypatch.setenv(key, value)
    traces = Traces("test", 1_000_000, kind_of)
    traces._provider.add_span_processor(SimpleSpanProcessor(finished))
    monkeypatch.setattr(tracing, "_traces", traces)
    yield
    traces.close()


def run(code: str, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=kept | environment,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("code", [PROCESS, AGENT], ids=["service", "agent"])
def test_nothing_of_opentelemetry_is_imported_while_traces_are_off(code: str, programs_start: None) -> None:
    assert run(code) == ""


@pytest.mark.parametrize(
    "more",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_variables_that_switch_traces_off(more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in ON.items():
        monkeypatch.setenv(key, value)
    assert tracing.wanted()
    for key, value in more.items():
        monkeypatch.setenv(key, value)
    assert not tracing.wanted()


def test_only_the_span_of_a_task_is_one_of_a_consumer(traces: None, finished: InMemorySpanExporter) -> None:
    with tracing.span("task", task=True), tracing.span("block"):
        pass
    kinds = {span.name: span.kind for span in finished.get_finished_spans()}
    assert kinds == {"task": api.SpanKind.CONSUMER, "block": api.SpanKind.INTERNAL}


def test_another_protocol_is_a_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for key, value in {**ON, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}.items():
        monkeypatch.setenv(key, value)
    tracing.start("web", 100, kind_of)
    assert "the protocol is not supported: use grpc, port 4317 protocol=http/protobuf" in caplog.text
    assert tracing.trace() == ""


def test_a_part_of_another_trace_links_to_the_current_span(traces: None, finished: InMemorySpanExporter) -> None:
    with tracing.span("message"), tracing.span("operation", parent=CALLER), tracing.span("suggest"):
        assert tracing.trace() == CALLER[3:35]
    suggest, operation, message = finished.get_finished_spans()
    assert operation.parent is not None
    assert api.format_span_id(operation.parent.span_id) == CALLER[36:52]
    assert [link.context for link in operation.links] == [message.context]
    assert suggest.parent == operation.context
    assert message.context.trace_id != operation.context.trace_id


@pytest.mark.parametrize(
    "parent", ["", "00-zz", "garbage\x00", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "9" * 10_000]
)
def test_a_damaged_reference_is_none(parent: str, traces: None, finished: InMemorySpanExporter) -> None:
    with tracing.span("block", parent=parent, root=False):
        assert tracing.trace() == ""
    with tracing.span("block", parent=parent):
        assert len(tracing.traceparent()) == tracing.LENGTH
    [span] = finished.get_finished_spans()
    assert span.parent is None


def test_a_span_has_the_fields_of_the_log_and_no_text_of_an_error(traces: None, finished: InMemorySpanExporter) -> None:
    log_context.begin("mine")
    log_context.bind(study="s", actor="ann@example.org")
    with pytest.raises(InvalidInput), tracing.span("expected"):
        raise InvalidInput("params.depth", "seven", "1 to 9")
    with pytest.raises(ValueError), tracing.span("unexpected"):
        raise ValueError("seven")
    expected, unexpected = finished.get_finished_spans()
    assert expected.attributes == {"trimtab.request": "mine", "trimtab.study": "s", "error.type": "invalid_argument"}
    assert unexpected.attributes is not None
    assert unexpected.attributes["error.type"] == "ValueError"
    assert (expected.status.is_ok, unexpected.status.is_ok) == (True, False)
    assert not expected.events
    assert not unexpected.events
    assert "seven" not in expected.to_json() + unexpected.to_json()


def test_the_number_of_sampled_traces_in_a_second_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    tracer = TracerProvider(sampler=Bounded(ALWAYS_ON, 3), shutdown_on_exit=False).get_tracer("test")
    caller = api.set_span_in_context(
        api.NonRecordingSpan(api.SpanContext(1, 2, is_remote=True, trace_flags=api.TraceFlags(1)))
    )
    roots = [tracer.start_span("root", caller if number % 2 else None) for number in range(6)]
    assert [span.is_recording() for span in roots] == [True] * 3 + [False] * 3
    # A part follows its parent, and does not count.
    assert tracer.start_span("part", api.set_span_in_context(roots[0])).is_recording()
    assert not tracer.start_span("part", api.set_span_in_context(roots[5])).is_recording()
    now += 1.0
    assert tracer.start_span("root").is_recording()


@pytest.mark.parametrize("kind", ["away", "silent"])
def test_a_process_ends_before_a_lost_collector_answers(kind: str, programs_start: None) -> None:
    with nullcontext() if kind == "away" else socket.create_server(("127.0.0.1", 0)) as listening:
        port = free_port() if listening is None else listening.getsockname()[1]
        endpoint = f"http://127.0.0.1:{port}"
        # OpenTelemetry tries to send for so many seconds.
        tried = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1000", "OTEL_BSP_SCHEDULE_DELAY": "10"}
        assert run(LOST, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, **tried) == "True"
