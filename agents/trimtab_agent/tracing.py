"""Traces of trials (OpenTelemetry), off unless the environment names a collector.

While they are off, nothing of OpenTelemetry is imported and the functions here do nothing. Spans wait in a queue of
bounded length, and a thread sends them, so a collector that is slow or away costs spans and no time.
"""

import atexit
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING

from trimtab_agent.logger import Logger
from trimtab_agent.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

logger = Logger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
# Seconds for the last spans when the agent ends.
FAREWELL = 1.0

_tracer: "Tracer | None" = None


def start() -> None:
    """Trace this process if the environment says so. A mistake there is a warning in the log and stops nothing."""
    global _tracer
    if not any(os.environ.get(name) for name in ENDPOINTS) or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        os.environ.setdefault("OTEL_SERVICE_NAME", "trimtab-agent")
        provider = TracerProvider(resource=Resource.create({"service.version": VERSION}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ModuleNotFoundError as error:
        logger.warning("there are no traces, install trimtab-agent[tracing]", error=error)
        return
    except Exception:  # a value that OpenTelemetry refuses
        logger.warning("there are no traces, OpenTelemetry cannot be set up", exc_info=True)
        return
    _tracer = provider.get_tracer("trimtab-agent", VERSION)
    atexit.register(_close, provider)


def _close(provider: "TracerProvider") -> None:
    # OpenTelemetry itself would wait for up to 30 seconds.
    last = Thread(target=provider.shutdown, daemon=True)
    last.start()
    last.join(FAREWELL)


@contextmanager
def span(name: str, *, link: str = "", attributes: Mapping[str, str | int] | None = None) -> Iterator[None]:
    """Measure a block as one span, whose parent is the current one. `link` is the `traceparent` of a cause."""
    if _tracer is None:
        yield
        return
    from opentelemetry.trace import Link, StatusCode, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    cause = get_current_span(TraceContextTextMapPropagator().extract({"traceparent": link})).get_span_context()
    with _tracer.start_as_current_span(
        name,
        attributes=attributes,
        links=[Link(cause)] if link and cause.is_valid else [],
        # The text of an error may quote a value.
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield
        except Exception as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(StatusCode.ERROR)
            raise


def note(name: str, value: str) -> None:
    """Add an attribute to the current span."""
    if _tracer is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attribute(name, value)


def past(name: str, began: float, ended: float) -> None:
    """Add a span that is over, below the current one. Times are in seconds since 1970."""
    if _tracer is not None:
        _tracer.start_span(name, start_time=int(began * 1e9)).end(int(ended * 1e9))


def metadata() -> tuple[tuple[str, str], ...]:
    """Return gRPC metadata with the `traceparent` of the current span; nothing without one."""
    if _tracer is None:
        return ()
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return tuple((key, value) for key, value in carrier.items() if key == "traceparent")
