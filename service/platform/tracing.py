"""Traces of requests through all processes (OpenTelemetry), off unless the environment names a collector.

While they are off, nothing of OpenTelemetry is imported and the functions here do nothing (spans.py does the
work). A trace refers to another process by a text, the W3C's `traceparent`, which is empty while traces are off.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from service.logger import Logger
from service.platform.trace_interface import HEADER, LENGTH, End, KindOf

if TYPE_CHECKING:
    from service.platform.spans import Traces

__all__ = ["HEADER", "LENGTH", "End", "is_on", "serve", "span", "start", "trace", "traceparent", "wanted"]

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

_NOTHING: AbstractContextManager[None] = nullcontext()
_traces: Traces | None = None

logger = Logger(__name__)


def wanted() -> bool:
    """Return whether OpenTelemetry's variables of the environment switch traces on."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or not _first(ENDPOINTS):
        return False
    return os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"


def start(process: str, per_second: int, kind_of: KindOf) -> None:
    """Trace this process if the environment says so. `process` is web, grpc, worker or beat.

    At most `per_second` traces begin or are continued for a caller in one second. The others are not sampled. `kind_of`
    returns what a span says about an error (`core.errors.kind_of`).

    Traces are for operators, so a mistake in their configuration is a warning in the log and stops nothing.
    """
    global _traces
    if not wanted():
        return
    protocol = _first(PROTOCOLS) or "grpc"
    if protocol != "grpc":
        logger.warning("there are no traces, the protocol is not supported: use grpc, port 4317", protocol=protocol)
        return
    try:
        from service.platform.spans import Traces
    except ModuleNotFoundError as error:
        logger.warning("there are no traces: install trimtab-service[tracing]", error=error)
        return
    try:
        _traces = Traces(process, per_second, kind_of)
    except Exception:  # a value that OpenTelemetry refuses
        logger.warning("there are no traces, OpenTelemetry cannot be set up", exc_info=True)


def is_on() -> bool:
    """Return whether this process is traced."""
    return _traces is not None


def span(name: str, *, parent: str = "", task: bool = False, root: bool = True) -> AbstractContextManager[None]:
    """Measure a block as one span with the fields of the log as attributes.

    Its parent is the current span. If `parent` refers to another trace, the span belongs to that trace and links to the
    current span. Without a parent it begins a trace, unless `root` is False: then nothing is measured. `task` says that
    the block serves a message.
    """
    if _traces is None:
        return _NOTHING
    return _traces.span(name, parent, task=task, root=root)


def serve(name: str, parent: str, began: int) -> End | None:
    """Begin the span of a request of an authenticated caller, and return the function that ends it.

    It is the current span until the present task or thread has served the request. `parent` is the caller's reference,
    `began` the time of arrival in nanoseconds since 1970.
    """
    return None if _traces is None else _traces.serve(name, parent, began)


def traceparent() -> str:
    """Return the reference to the current span; "" if there is none."""
    return "" if _traces is None else _traces.traceparent()


def trace() -> str:
    """Return the id of the current trace, 32 hexadecimal digits; "" if there is none."""
    return "" if _traces is None else _traces.trace()


def _first(names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := os.environ.get(name, ""))), "")
