"""`trimtab-service grpc --processes N`: several gRPC processes that share one port.

A Python process uses one core, so one gRPC process serves only as many calls as one core can. The kernel distributes
connections over all processes that listen on the port with SO_REUSEPORT. A process that has died is restarted; its
clients connect to another one meanwhile.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from service.embedded.keeping import SIGNALS, keep
from service.embedded.processes import Child
from service.embedded.signals import Waiting


def reserved(host: str, port: int) -> socket.socket:
    """Return a socket that keeps the port for the processes of this user that share it. It receives no connections.

    Raises OSError if another process uses the port, even if that one would share it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
    kept = socket.socket(family, socket.SOCK_STREAM)
    try:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind((host, port))
    except OSError:
        kept.close()
        raise
    return kept


def run(commands: Sequence[Sequence[str]], host: str, port: int) -> None:
    """Keep one process for each command alive until SIGTERM or SIGINT, and exit with a message if the port is taken.

    The commands serve on the port with SO_REUSEPORT. They share this process's output.
    """
    signals = Waiting(SIGNALS)
    try:
        kept = reserved(host, port)
    except OSError as error:
        sys.exit(f"trimtab-service: gRPC cannot listen on {host}:{port}: {error.strerror}. Another process may use it.")
    with kept, tempfile.TemporaryDirectory(prefix="trimtab-grpc-") as folder:
        children = [_child(number, command, Path(folder)) for number, command in enumerate(commands, 1)]
        keep(children, signals)


def _child(number: int, command: Sequence[str], folder: Path) -> Child:
    alive = folder / f"grpc-{number}"
    return Child(f"grpc-{number}", command, {**os.environ, "TRIMTAB_ALIVE_FILE": str(alive)}, None, alive=alive)
