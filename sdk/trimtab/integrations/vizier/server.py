"""The server of the endpoint.

It has no encryption and no login of its own, so it listens on this machine alone, and answers this user alone.
"""

import ipaddress
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from trimtab._gen import vizier_pb2_grpc
from trimtab.client import Client
from trimtab.errors import InvalidInput
from trimtab.integrations.vizier.servicer import VizierServicer
from trimtab.integrations.vizier.store import Store

# Calls at the same time; a suggestion may take seconds.
THREADS = 64


class Endpoint:
    """A running endpoint; `address` is HOST:PORT.

    Args:
        client: the login under which all calls are made.
        listen: HOST:PORT of a loopback address; port 0 selects a free one.
        state: the file for what the service has no place for.

    Raises:
        InvalidInput: the address is not one of this machine alone, or it is in use.
    """

    def __init__(self, client: Client, listen: str, state: Path) -> None:
        host, _, port = listen.rpartition(":")
        if not _is_loopback(host) or not port.isdigit() or int(port) > 65535:
            allowed = "a loopback address such as 127.0.0.1:6006, because clients of Vizier send no token and no TLS"
            raise InvalidInput.of("listen", listen, allowed)
        self._store = Store(state)
        self._server = grpc.server(ThreadPoolExecutor(THREADS), options=[("grpc.so_reuseport", 0)])
        servicer = VizierServicer(client, self._store)
        vizier_pb2_grpc.add_VizierServiceServicer_to_server(servicer, self._server)
        try:
            bound = self._server.add_insecure_port(listen)
        except RuntimeError:
            bound = 0
        if bound == 0:
            raise InvalidInput.of("listen", listen, "an address that no other program listens on")
        self.address = f"{host}:{bound}"
        servicer.port = bound
        self._server.start()

    def wait(self) -> None:
        """Wait until the endpoint is closed."""
        self._server.wait_for_termination()

    def close(self) -> None:
        """Stop. Calls that are in progress have ten seconds."""
        self._server.stop(10.0).wait()
        self._store.close()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
