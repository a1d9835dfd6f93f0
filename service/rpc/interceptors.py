"""What happens around every call: limits, authentication, errors, counting."""

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import Message
from prometheus_client import Counter, Histogram

from service.core.errors import ResourceExhausted
from service.identity.principals import authenticate_header
from service.rpc import errors
from service.rpc.threads import DatabaseThreads
from service.tenancy.principal import Principal

# Generic for the type checker alone.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 4 * 1024 * 1024
# Not for callers to know of: gRPC's own health and reflection services.
OPEN_SERVICES = ("/grpc.health.", "/grpc.reflection.")

CALLS = Counter("trimtab_grpc_calls", "Calls that have ended.", ["method", "status"])
SECONDS = Histogram(
    "trimtab_grpc_seconds",
    "Time from a call's arrival to its end; of a waiting call, with the wait.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)

_principal: ContextVar[Principal] = ContextVar("principal")


def current_principal() -> Principal:
    """Who makes the call that is being served."""
    return _principal.get()


class Around(grpc.aio.ServerInterceptor):
    """An interceptor that is a context manager around the call. A call has one request message, never a stream."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    @abstractmethod
    def around(self, method: str, request: Message, context: Context) -> AbstractAsyncContextManager[None]:
        """Entered before the method runs, left when it has ended, with its exception if it raised one."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Wraps a method's handler, once."""
        method = handler_call_details.method
        wrapped = self._handlers.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None or method.startswith(OPEN_SERVICES):
                return handler
            wrapped = self._handlers[method] = self._wrap(method, handler)
        return wrapped

    def _wrap(self, method: str, handler: Handler) -> Handler:
        if handler.response_streaming:
            stream = handler.unary_stream
            assert stream is not None

            async def answer_many(request: Message, context: Context) -> AsyncIterator[Message]:
                async with self.around(method, request, context):
                    async for message in stream(request, context):
                        yield message

            return grpc.unary_stream_rpc_method_handler(
                answer_many, handler.request_deserializer, handler.response_serializer
            )
        unary = handler.unary_unary
        assert unary is not None

        async def answer_one(request: Message, context: Context) -> Message:
            async with self.around(method, request, context):
                return await unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer_one, handler.request_deserializer, handler.response_serializer
        )


class Errors(Around):
    """Ends a call that raised with the status and the details of its error; counts and times every call."""

    @asynccontextmanager
    async def around(self, method: str, request: Message, context: Context) -> AsyncIterator[None]:
        """Outermost: nothing but gRPC's own abort leaves it."""
        started = time.perf_counter()
        status = grpc.StatusCode.OK
        try:
            yield
        except asyncio.CancelledError:
            status = grpc.StatusCode.CANCELLED
            raise
        except Exception as error:  # noqa: BLE001 - the caller gets an answer whatever it was
            known = errors.translate(error, method)
            status = errors.status_of(known)
            message, details = errors.details_of(known)
            await context.abort(status, message, ((errors.DETAILS_KEY, details),))
        finally:
            seconds = time.perf_counter() - started
            CALLS.labels(method, status.name).inc()
            SECONDS.labels(method).observe(seconds)
            logger.debug("%s %s %.1f ms from %s", method, status.name, seconds * 1000, context.peer())


class SizeLimit(Around):
    """Refuses large requests with an error that says so.

    gRPC's own limit, which protects the memory, lies higher (server.py): beyond it the connection's other end gets a
    bare RESOURCE_EXHAUSTED.
    """

    @asynccontextmanager
    async def around(self, method: str, request: Message, context: Context) -> AsyncIterator[None]:
        """Before anything else looks at the request."""
        size = request.ByteSize()
        if size > MAX_REQUEST_BYTES:
            raise ResourceExhausted(
                "message_too_large",
                f"The request has {size} bytes; at most {MAX_REQUEST_BYTES} are allowed.",
                size=size,
                allowed=MAX_REQUEST_BYTES,
            )
        yield


class Authentication(Around):
    """Finds out who calls, from the metadata `authorization: Bearer TOKEN`."""

    # How long a token is believed without a look at its present state.
    TRUST_SECONDS = 10.0
    MAX_REMEMBERED = 10_000

    def __init__(self, threads: DatabaseThreads) -> None:
        super().__init__()
        self._threads = threads
        self._remembered: dict[str, tuple[float, Principal]] = {}

    @asynccontextmanager
    async def around(self, method: str, request: Message, context: Context) -> AsyncIterator[None]:
        """Sets the principal for the call's task."""
        _principal.set(await self._authenticate(context))
        yield

    async def _authenticate(self, context: Context) -> Principal:
        metadata = context.invocation_metadata() or ()
        header = next((str(value) for key, value in metadata if key == "authorization"), None)
        now = time.monotonic()
        until, principal = self._remembered.get(header or "", (0.0, None))
        if principal is not None and now < until:
            return principal
        principal = await self._threads.run(authenticate_header, header)
        if len(self._remembered) >= self.MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[header or ""] = (now + self.TRUST_SECONDS, principal)
        return principal
