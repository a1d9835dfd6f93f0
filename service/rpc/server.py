"""The gRPC server: wiring, start and graceful stop."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress

import grpc
from django.conf import settings
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from service._gen import (
    agent_pb2,
    agent_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    matching_pb2,
    matching_pb2_grpc,
    tuning_pb2,
    tuning_pb2_grpc,
)
from service.logger import Logger
from service.rpc.admission import MAX_REQUEST_BYTES
from service.rpc.held_calls import Waits
from service.rpc.interceptors import Authentication, Boundary
from service.rpc.servicers.agent import AgentServicer
from service.rpc.servicers.identity import IdentityServicer
from service.rpc.servicers.matching import MatchingServicer
from service.rpc.servicers.tuning import TuningServicer
from service.rpc.threads import DatabaseThreads
from service.rpc.tls import TlsError, TlsFiles
from service.studies.listen_notify import listener
from service.tenancy import access

logger = Logger(__name__)

GRACE_SECONDS = 2.0
HEALTH_SECONDS = 5.0
SERVICES = (
    tuning_pb2.DESCRIPTOR.services_by_name["TuningService"].full_name,
    agent_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,
    identity_pb2.DESCRIPTOR.services_by_name["IdentityService"].full_name,
    matching_pb2.DESCRIPTOR.services_by_name["MatchingService"].full_name,
)
OPTIONS = (
    # Requests between the two limits get a typed error (admission.py). Larger requests are not read.
    ("grpc.max_receive_message_length", 2 * MAX_REQUEST_BYTES),
    ("grpc.max_concurrent_streams", 1000),
    # The most seconds in the queue of calls; gRPC's default is 30. If a client gives up, its call leaves the queue.
    ("grpc.server_max_unrequested_time_in_server", 300),
    # Pings find dead clients of long calls. The last option allows clients to find a dead server in the same way.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)


def run(
    host: str,
    port: int,
    tls: TlsFiles | None = None,
    *,
    shared: bool = False,
    alive: Callable[[], Coroutine[None, None, None]] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; see `serve`. Exit with a message if the port is not available.

    `alive` runs at the same time as the server, in its event loop, until the server ends.
    """

    async def both() -> None:
        sign = None if alive is None else asyncio.create_task(alive())
        try:
            await serve(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", tls=tls, shared=shared)
        finally:
            if sign is not None:
                sign.cancel()

    # The collector of cycles then looks at fewer objects less often: with 2,000 streams, opening one takes 7.2 ms of
    # processor time in place of 10.8.
    gc.freeze()
    gc.set_threshold(50_000)
    try:
        asyncio.run(both())
    except (OSError, TlsError) as error:
        sys.exit(f"trimtab-service: {error}")


async def serve(
    address: str,
    *,
    tls: TlsFiles | None = None,
    shared: bool = False,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve on `address` (HOST:PORT; port 0 selects a free one) until SIGTERM or SIGINT, then stop gracefully.

    A port that another process uses is an error, unless the port is `shared` by processes of this service.
    `ready` is called with the port as soon as the server answers calls. Runs in the main thread, with Django set up.
    Raises OSError if the port is not available, TlsError if a certificate cannot be read.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve_until(stop, address, tls=tls, shared=shared, ready=ready)


async def serve_until(
    stop: asyncio.Event,
    address: str,
    *,
    tls: TlsFiles | None = None,
    shared: bool = False,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve like `serve`, until `stop` is set."""
    credentials = None if tls is None else tls.credentials()
    threads = DatabaseThreads(settings.TRIMTAB_GRPC_THREADS)
    waits = Waits()
    server = grpc.aio.server(
        interceptors=(Boundary(Authentication(threads)),),
        options=(
            *OPTIONS,
            ("grpc.so_reuseport", int(shared)),
            ("grpc.server_handshake_timeout_ms", int(1000 * settings.TRIMTAB_GRPC_HANDSHAKE_SECONDS)),
            # Thousands of calls that come at once, as after a restart, wait for their turn. By default gRPC ends some
            # of more than 1,000 waiting calls with CANCELLED and without a reason.
            ("grpc.server.max_pending_requests", settings.TRIMTAB_GRPC_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", settings.TRIMTAB_GRPC_CALLS),
        ),
        # gRPC refuses further calls with RESOURCE_EXHAUSTED.
        maximum_concurrent_rpcs=settings.TRIMTAB_GRPC_CALLS,
    )
    tuning_pb2_grpc.add_TuningServiceServicer_to_server(TuningServicer(threads, waits), server)
    agent_pb2_grpc.add_AgentServiceServicer_to_server(AgentServicer(threads, waits), server)
    identity_pb2_grpc.add_IdentityServiceServicer_to_server(IdentityServicer(threads), server)
    matching_pb2_grpc.add_MatchingServiceServicer_to_server(MatchingServicer(threads), server)
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    try:
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen on {address}. Another process may use the port.") from error
    await server.start()
    await _set_health(health_servicer, health_pb2.HealthCheckResponse.NOT_SERVING)
    checking = asyncio.create_task(_keep_health(health_servicer, threads))
    logger.info("serving gRPC", port=port)
    if ready is not None:
        ready(port)
    try:
        await stop.wait()
    finally:
        checking.cancel()
        with suppress(asyncio.CancelledError):
            await checking
        await health_servicer.enter_graceful_shutdown()
        waits.stop()
        await server.stop(GRACE_SECONDS)
        await listener().close()
        await asyncio.to_thread(threads.close)


async def _keep_health(servicer: health.aio.HealthServicer, threads: DatabaseThreads) -> None:
    """Keep the health status current: the services are SERVING while the database answers."""
    while True:
        try:
            await threads.run(_ask_database)
            status = health_pb2.HealthCheckResponse.SERVING
        except Exception as error:  # noqa: BLE001 - any error means that the database cannot be used
            logger.warning("the database does not answer", error=error)
            status = health_pb2.HealthCheckResponse.NOT_SERVING
        await _set_health(servicer, status)
        await asyncio.sleep(HEALTH_SECONDS)


def _ask_database() -> None:
    access.answers()


async def _set_health(servicer: health.aio.HealthServicer, status: int) -> None:
    for name in (health.OVERALL_HEALTH, *SERVICES):
        await servicer.set(name, status)
