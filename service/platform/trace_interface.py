"""The reference of a trace and the types of functions that `tracing` and its implementation `spans` share."""

from collections.abc import Callable, Mapping

# The key of gRPC's metadata and of a message's headers, and the name of HTTP's header.
HEADER = "traceparent"
# The longest text of a reference.
LENGTH = 55

# Ends the span of a request. It takes whether the service failed, and attributes.
End = Callable[[bool, Mapping[str, str | int]], None]
# Returns the code or class of an error, and whether the service failed. The text of an error may quote a value.
KindOf = Callable[[Exception], tuple[str, bool]]
