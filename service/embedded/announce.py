"""Wait until the embedded service answers and print its addresses. The supervisor runs this as a separate process, so
that the supervisor itself stays small."""

import sys
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path

import django
import grpc
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service._gen import tuning_pb2, tuning_pb2_grpc
from service.platform.retries import retry_until
from trimtab_components.terminal import write

PATIENCE_SECONDS = 180.0
# Calls to this machine ignore the proxies that the environment names.
DIRECT_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))
DIRECT_GRPC = (("grpc.enable_http_proxy", 0),)


class ForeignService(Exception):
    """Another Trimtab service answers on the port of this one."""

    def __init__(self, address: str, option: str) -> None:
        super().__init__(f"Another service uses {address}. Choose another port with {option} (0: any free one).")


def wait_for_console(url: str, end: float) -> None:
    """Return when the REST port is ready. Raises TimeoutError."""
    while True:
        try:
            with DIRECT_HTTP.open(f"{url}/readyz", timeout=5):
                return
        except OSError as error:  # refused, reset, and every HTTP error status
            if time.monotonic() > end:
                raise TimeoutError(f"{url}/readyz does not answer: {error}") from error
            time.sleep(0.05)


def wait_for_grpc(address: str, end: float) -> None:
    """Return when the gRPC server serves. Raises TimeoutError."""
    # short pauses after a refused connection
    pauses = (("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 100))
    with grpc.insecure_channel(address, options=(*DIRECT_GRPC, *pauses)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while True:
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=5)
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
                why = "not serving yet"
            except grpc.RpcError as error:
                why = str(error.details()) if isinstance(error, grpc.Call) else str(error)
            if time.monotonic() > end:
                raise TimeoutError(f"gRPC at {address} does not answer: {why}")
            time.sleep(0.05)


def check_ours(console: str, address: str, token: str) -> None:
    """Check that both ports accept the token of this service.

    The ports were free when the supervisor tried them, but another service may have taken one since. Raises
    ForeignService.
    """
    bearer = f"Bearer {token}"
    try:
        with DIRECT_HTTP.open(
            urllib.request.Request(f"{console}/api/v1/studies?page_size=1", headers={"Authorization": bearer})
        ):
            pass
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.UNAUTHORIZED:
            raise ForeignService(console, "--port") from error
        raise
    with grpc.insecure_channel(address, options=DIRECT_GRPC) as channel:
        stub = tuning_pb2_grpc.TuningServiceStub(channel)
        try:
            stub.ListStudies(
                tuning_pb2.ListStudiesRequest(page_size=1), metadata=(("authorization", bearer),), timeout=30
            )
        except grpc.RpcError as error:
            if isinstance(error, grpc.Call) and error.code() == grpc.StatusCode.UNAUTHENTICATED:
                raise ForeignService(address, "--grpc-port") from error
            raise


def login_link(console: str) -> str:
    """Return a link that opens one session of the administrator within 15 minutes. Django must be set up."""
    from service.identity.login import create_code

    return f"{console}/login?code={create_code()}"


def main(console: str, address: str) -> None:
    """Print a login link and the line `ready` when everything answers. Raises TimeoutError, ForeignService."""
    end = time.monotonic() + PATIENCE_SECONDS
    django.setup()
    link = retry_until(lambda: login_link(console), (OperationalError, InterfaceError), end, connections.close_all)
    wait_for_grpc(address, end)
    wait_for_console(console, end)
    token = Path(settings.TRIMTAB_ADMIN_TOKEN_FILE).read_text().strip()
    # A process that dies in this moment is restarted by the supervisor.
    retry_until(lambda: check_ours(console, address, token), (OSError, grpc.RpcError), end)
    write(f"Sign in to the console, once, within 15 minutes: {link}")
    write(f"ready console={console} grpc={address}")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2])
    except (TimeoutError, ForeignService, urllib.error.URLError, grpc.RpcError) as error:
        write(error, error=True)
        sys.exit(1)
