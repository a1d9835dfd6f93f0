"""The active span of the caller's program (OpenTelemetry), which continues in the service.

A program that has an active span has imported OpenTelemetry itself. The SDK never does.
"""

import sys


def metadata() -> tuple[tuple[str, str], ...]:
    """Return gRPC metadata with the W3C's `traceparent` of the active span; nothing without one."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return ()
    span = api.get_current_span().get_span_context()
    if not span.is_valid:
        return ()
    return (("traceparent", f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"),)
