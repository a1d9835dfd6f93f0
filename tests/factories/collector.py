"""A collector of traces: it receives spans by OTLP over gRPC and keeps them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class Received:
    """A span, and the process that it comes from. Identifiers are hexadecimal."""

    process: str
    name: str
    trace: str
    id: str
    parent: str
    server: bool
    failed: bool
    links: tuple[tuple[str, str], ...]
    attributes: Mapping[str, Any]
    seconds: float


@dataclass
class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """The spans that have arrived so far, in any order."""

    address: str = ""
    requests: list[pb.ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which a process sends its spans here, soon after they have ended."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{self.address}", "OTEL_BSP_SCHEDULE_DELAY": "100"}

    def Export(self, request: pb.ExportTraceServiceRequest, context: grpc.ServicerContext) -> Any:
        with self._lock:
            self.requests.append(request)
            self.headers.append({key: str(value) for key, value in context.invocation_metadata()})
        return pb.ExportTraceServiceResponse()

    def spans(self, trace: str = "") -> list[Received]:
        """Return all spans, or those of one trace."""
        with self._lock:
            found = [
                _received(part.resource, span)
                for request in self.requests
                for part in request.resource_spans
                for scope in part.scope_spans
                for span in scope.spans
            ]
        return [span for span in found if trace in ("", span.trace)]

    def text(self) -> str:
        """Return all that has arrived as text."""
        with self._lock:
            return "".join(map(str, self.requests))


def _received(resource: Any, span: Span) -> Received:
    named = _values(resource.attributes)
    return Received(
        named.get("service.name", ""),
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind == Span.SPAN_KIND_SERVER,
        span.status.code == span.status.STATUS_CODE_ERROR,
        tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        _values(span.attributes),
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@contextmanager
def collector(port: int = 0) -> Iterator[Collector]:
    """Run a collector on a port; 0: a free one."""
    receiver = Collector()
    server = grpc.server(ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(receiver, server)  # type: ignore[no-untyped-call]
    receiver.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    server.start()
    try:
        yield receiver
    finally:
        server.stop(None).wait()
