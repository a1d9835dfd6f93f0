"""The traces of a process by means of OpenTelemetry. Only tracing.py imports this module, and only if they are on.

Spans wait in a queue of bounded length, and a thread sends them, so a collector that is slow or away costs spans and no
time. Attributes are identifiers that the log has as well: never values of parameters, SQL or texts of errors.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.platform import log_context
from service.platform.trace_interface import HEADER, End, KindOf

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, TraceState
    from opentelemetry.util.types import Attributes

# Seconds for the last spans when the process ends.
FAREWELL_SECONDS = 1.0
# Fields of the log that a span has as well.
FIELDS = ("request", "tenant", "study", "trial", "lease", "agent", "operation")

_propagator = TraceContextTextMapPropagator()


class Bounded(Sampler):
    """The sampler of the environment with a bound, because callers may ask for each of their requests to be sampled."""

    def __init__(self, inner: Sampler, per_second: int) -> None:
        self._inner = inner
        self._most = per_second
        self._lock = Lock()
        self._second = 0
        self._count = 0

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Follow a parent in this process, and otherwise the environment's sampler within the bound."""
        parent = api.get_current_span(parent_context).get_span_context()
        if parent.is_valid and not parent.is_remote:
            return SamplingResult(Decision.RECORD_AND_SAMPLE if parent.trace_flags.sampled else Decision.DROP)
        result = self._inner.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        if result.decision is Decision.RECORD_AND_SAMPLE and not self._take():
            return SamplingResult(Decision.DROP)
        return result

    def get_description(self) -> str:
        """Return a text for people."""
        return f"{self._inner.get_description()}, at most {self._most} in a second"

    def _take(self) -> bool:
        second = int(time.monotonic())
        with self._lock:
            if second != self._second:
                self._second, self._count = second, 0
            self._count += 1
            return self._count <= self._most


class Traces:
    """The spans of this process, on their way to the collector of the environment."""

    def __init__(self, process: str, per_second: int, kind_of: KindOf) -> None:
        named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        self._provider = TracerProvider(
            resource=Resource.create({} if named else {SERVICE_NAME: f"trimtab-{process}"}), shutdown_on_exit=False
        )
        self._provider.sampler = Bounded(self._provider.sampler, per_second)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("trimtab")
        self._kind_of = kind_of
        atexit.register(self.close)

    def close(self) -> None:
        """Send the last spans within FAREWELL_SECONDS."""
        # OpenTelemetry itself would wait for up to 30 seconds.
        last = Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        last.start()
        last.join(FAREWELL_SECONDS)

    @contextmanager
    def span(self, name: str, parent: str, *, task: bool, root: bool) -> Iterator[None]:
        """Measure a block; see tracing.span."""
        here = api.get_current_span().get_span_context()
        context, links = None, []
        if parent:
            there = _propagator.extract({HEADER: parent})
            other = api.get_current_span(there).get_span_context()
            if other.is_valid and other.trace_id != here.trace_id:
                context = there
                links = [api.Link(here)] if here.is_valid else []
        if context is None and not here.is_valid and not root:
            yield
            return
        kind = api.SpanKind.CONSUMER if task else api.SpanKind.INTERNAL
        with self._tracer.start_as_current_span(
            name, context, kind, links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except Exception as error:
                code, failed = self._kind_of(error)
                span.set_attribute("error.type", code)
                if failed:
                    span.set_status(api.StatusCode.ERROR)
                raise
            finally:
                span.set_attributes(_attributes())

    def serve(self, name: str, parent: str, began: int) -> End:
        """Begin the span of a request; see tracing.serve."""
        caller = _propagator.extract({HEADER: parent}, contexts.Context())
        span = self._tracer.start_span(name, caller, api.SpanKind.SERVER, start_time=began)
        # Each request has a context of its own, so this one need not be detached.
        contexts.attach(api.set_span_in_context(span))

        def end(failed: bool, attributes: Mapping[str, str | int]) -> None:
            span.set_attributes({**_attributes(), **attributes})
            if failed:
                span.set_status(api.StatusCode.ERROR)
            span.end()

        return end

    def traceparent(self) -> str:
        """Return the reference to the current span; "" if there is none."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get(HEADER, "")

    def trace(self) -> str:
        """Return the id of the current trace; "" if there is none."""
        current = api.get_current_span().get_span_context()
        return api.format_trace_id(current.trace_id) if current.is_valid else ""


def _attributes() -> dict[str, str | int]:
    known = log_context.fields()
    return {f"trimtab.{name}": _plain(known[name]) for name in FIELDS if name in known}


def _plain(value: object) -> str | int:
    return value if isinstance(value, int) else str(value)
