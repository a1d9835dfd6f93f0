"""Ports for servers that tests start."""

import os
import random
import socket
from contextlib import suppress
from itertools import cycle, islice

# Below those that the kernel gives to connections, which it would do while a server of ours is away for a moment. Each
# of the processes that test side by side has a thousand of its own.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST = 20_000 + 1000 * (_WORKER % 12)
_ports = cycle(random.sample(range(_FIRST, _FIRST + 1000), 1000))


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens, and which no other server of these tests gets."""
    for port in islice(_ports, 1000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"{_FIRST} to {_FIRST + 999}: none is free")
