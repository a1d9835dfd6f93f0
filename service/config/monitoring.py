"""An endpoint for Prometheus in processes that have no other HTTP port."""

from __future__ import annotations

from prometheus_client import start_http_server


class BadAddress(ValueError):
    """The address is not HOST:PORT, or the port is not available."""


def serve(address: str) -> None:
    """Answer HTTP requests with this process's metrics, in a thread. Raises BadAddress.

    `address`: HOST:PORT, where HOST is an IP address. The metrics contain only numbers, so no token is needed.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise BadAddress(f"--metrics: {address!r} is not allowed. Use HOST:PORT, such as 127.0.0.1:9470.")
    try:
        start_http_server(int(port), host.strip("[]"))
    except OSError as error:
        raise BadAddress(f"--metrics: {address!r} is not available: {error.strerror or error}") from None
