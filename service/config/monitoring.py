"""An endpoint for Prometheus in processes that have no other HTTP port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server


class BadAddress(ValueError):
    """The address is not HOST:PORT, or the port is not available."""


def serve(address: str) -> None:
    """Answer HTTP requests with this process's metrics, in a thread. Raises BadAddress.

    `address`: HOST:PORT, where HOST is an IP address. The metrics contain only numbers, so no token is needed.
    """
    with _available(address) as (host, port):
        start_http_server(port, host)


def check(address: str) -> None:
    """Raise BadAddress unless a process could serve metrics at this address now. A parent asks for its children."""
    with _available(address) as (host, port):
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()


@contextmanager
def _available(address: str) -> Iterator[tuple[str, int]]:
    """Give host and port. Raises BadAddress, also in place of an OSError of the block."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise BadAddress(f"--metrics: {address!r} is not allowed. Use HOST:PORT, such as 127.0.0.1:9470.")
    try:
        yield host.strip("[]"), int(port)
    except OSError as error:
        raise BadAddress(f"--metrics: {address!r} is not available: {error.strerror or error}") from None
