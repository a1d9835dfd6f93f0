"""The interceptor of every call: limits, authentication, permissions, errors, metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import unquote

import grpc
from django.conf import settings
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from prometheus_client import Counter, Histogram

from service.core.errors import InvalidInput
from service.identity import enrolment
from service.identity.principals import authenticate_header, remembered_header
from service.logger import Logger
from service.platform import log_context, tracing
from service.platform.addresses import within
from service.platform.admission import Caller
from service.rpc import errors
from service.rpc.admission import (
    ANONYMOUS_SECONDS,
    MAX_ANONYMOUS_BYTES,
    CallAdmission,
    Context,
    most_bytes,
    receive,
)
from service.rpc.entries import check_entries
from service.rpc.lists import check_lists
from service.rpc.threads import DatabaseThreads, choose_lane
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

# Generic for the type checker alone.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

logger = Logger(__name__)

TENANT_KEY = "trimtab-tenant"
# The identity of the study that the call is about (`Principal.study_uid`).
STUDY_KEY = "trimtab-study-uid"
REQUEST_KEY = "x-request-id"
FORWARDED_KEY = "x-forwarded-for"
# Fields of requests that the log names: the name in the log, and the field.
LOGGED = (("study", "study"), ("trial", "trial"), ("lease", "lease"), ("agent", "agent_id"))
# Requests whose `name` is a study's.
NAMES_STUDY = ("CreateStudyRequest", "GetStudyRequest", "UpdateStudyStateRequest", "DeleteStudyRequest")
# The health check of gRPC needs no token. Reflection accepts every valid token.
HEALTH, REFLECTION = "/grpc.health.", "/grpc.reflection."

# Agents make these calls all the time, mostly without a result. Their spans are wanted only if the caller has a trace.
POLLS = ("AcquireLeases", "RenewLeases")
# The statuses for which the service is at fault, and not the caller.
FAULTS = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN)

CALLS = Counter("trimtab_grpc_calls", "Calls that have ended.", ["method", "status"])
SECONDS = Histogram(
    "trimtab_grpc_seconds",
    "Time from the arrival of a call to its end, including the time that a call is held.",
    ["method"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declared:
    """The action of a method, and the fields of the request that name its study and the agent that calls."""

    action: Action | None
    study: str = ""
    agent: str = ""


# The key is the module and name of the servicer's method.
DECLARED: dict[str, Declared] = {}

_principal: ContextVar[Principal] = ContextVar("principal")
_admit_again: ContextVar[Callable[[], Awaitable[None]]] = ContextVar("admit_again")


def requires(action: Action | None, *, study: str = "", agent: str = "") -> Callable[[Method], Method]:
    """Declare the action of a servicer's method for the matrix of permissions. Every method needs this decorator.

    `study` is the field of the request that names the study. `agent` is the field that names the calling agent: an
    enrolled agent may call only in its own name. If the action is None, anybody may call without a token.
    """

    def declare(method: Method) -> Method:
        DECLARED[f"{method.__module__}.{method.__qualname__}"] = Declared(action, study, agent)
        return method

    return declare


def current_principal() -> Principal:
    """Return the principal of the current call."""
    return _principal.get()


async def expect_admitted() -> None:
    """Check that the caller of the current call may still make it: a held call may outlive the caller's credential.

    Raises Unauthenticated and Forbidden.
    """
    await _admit_again.get()()


def declared_for(method: Any) -> Declared:
    """Return the declaration of a servicer's method. Raises KeyError for a method without `requires`."""
    return DECLARED[f"{method.__module__}.{method.__qualname__}"]


class Authentication:
    """Authentication by the metadata `authorization: Bearer TOKEN` and, for members of several tenants,
    `trimtab-tenant: NAME`.
    """

    def __init__(self, threads: DatabaseThreads) -> None:
        self._threads = threads

    async def principal(self, context: Context) -> Principal:
        """Return the principal. Raises Unauthenticated, and Forbidden if it is not a member of the tenant."""
        header = tenant = forwarded = ""
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                header = str(value)
            elif key == TENANT_KEY:
                tenant = str(value)
            elif key == FORWARDED_KEY:
                forwarded = str(value)
        address = address_of(context.peer(), forwarded)
        known = remembered_header(header, tenant, address)
        if known is not None:
            return known
        return await self._threads.run(authenticate_header, header, tenant, address)


def address_of(peer: str, forwarded: str = "") -> str:
    """Return the caller's address without the port, from gRPC's peer (`ipv4:127.0.0.1:51234`, `ipv6:%5B::1%5D:1`).

    If the peer is a trusted proxy, the last address in `forwarded` is the caller, since the proxy added it.
    """
    kind, _, rest = peer.partition(":")
    address = unquote(rest.rpartition(":")[0]).strip("[]") if kind in ("ipv4", "ipv6") else kind
    said = forwarded.rpartition(",")[2].strip()
    if said and within(address, settings.TRIMTAB_BELIEVED_PROXIES):
        try:
            return str(ip_address(said))
        except ValueError:
            return address
    return address


class Boundary(grpc.aio.ServerInterceptor):
    """The interceptor around every call: bounds, authentication, permissions, errors and metrics.

    gRPC would read and parse the request of a unary call before any code of the service runs. So each method is served
    as one whose requests are a stream: the caller is authenticated by the metadata, and then its one message is read.

    It is one interceptor without nested context managers, because it is on the hot path of ask and tell.
    """

    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication
        self._admission = CallAdmission()
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap the handler of a method once."""
        method = handler_call_details.method
        wrapped = self._handlers.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            wrapped = self._handlers[method] = self._wrap(method, handler)
        return wrapped

    def _wrap(self, method: str, handler: Handler) -> Handler:
        # The stubs have the types of gRPC's other server, the one without asyncio.
        unary: Callable[[Message, Context], Awaitable[Message]] | None = cast(Any, handler.unary_unary)
        stream: Callable[[Message, Context], AsyncIterator[Message]] | None = cast(Any, handler.unary_stream)
        both: Callable[[Any, Context], AsyncIterator[Message]] | None = cast(Any, handler.stream_stream)
        parse: Callable[[bytes], Message] = cast(Any, handler.request_deserializer)
        if both is not None:
            return self._wrap_reflection(method, handler, both)
        declared = Declared(None) if method.startswith(HEALTH) else declared_for(unary or stream)
        if unary is not None:

            async def answer(_: object, context: Context) -> Message | None:
                call = _Call(method, context)
                try:
                    caller = await self._admit(call, declared, context)
                    try:
                        return await unary(await self._receive(call, declared, parse, context), context)
                    finally:
                        self._admission.leave(caller)
                except Exception as error:  # noqa: BLE001 - the caller gets an answer for every error
                    await call.refuse(error)
                    return None
                except asyncio.CancelledError:
                    call.status = grpc.StatusCode.CANCELLED
                    raise
                finally:
                    call.count()

            return grpc.stream_unary_rpc_method_handler(answer, None, handler.response_serializer)
        assert stream is not None, f"{method} is of a kind that no .proto file has"

        async def answer_many(_: object, context: Context) -> AsyncIterator[Message]:
            call = _Call(method, context)
            try:
                caller = await self._admit(call, declared, context)
                try:
                    request = await self._receive(call, declared, parse, context)
                    async for message in stream(request, context):
                        # A stream may outlive the caller's credential.
                        await expect_admitted()
                        yield message
                finally:
                    self._admission.leave(caller)
            except Exception as error:  # noqa: BLE001 - as above
                await call.refuse(error)
            except asyncio.CancelledError:
                call.status = grpc.StatusCode.CANCELLED
                raise
            finally:
                call.count()

        return grpc.stream_stream_rpc_method_handler(answer_many, None, handler.response_serializer)

    def _wrap_reflection(
        self, method: str, handler: Handler, stream: Callable[[Any, Context], AsyncIterator[Message]]
    ) -> Handler:
        assert method.startswith(REFLECTION), f"{method} is of a kind that no .proto file has"

        async def answer(requests: Any, context: Context) -> AsyncIterator[Message]:
            call = _Call(method, context)
            try:
                caller = await self._admit(call, Declared(Action.SESSION_READ), context)
                try:
                    async for message in stream(requests, context):
                        yield message
                finally:
                    self._admission.leave(caller)
            except Exception as error:  # noqa: BLE001 - as above
                await call.refuse(error)
            finally:
                call.count()

        return grpc.stream_stream_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)

    async def _admit(self, call: _Call, declared: Declared, context: Context) -> Caller:
        """Authenticate the caller and count its call. Makes it the current principal, and begins the span of the call.

        Raises Unauthenticated, Forbidden, and ResourceExhausted for a caller with too many calls in progress.
        """
        principal = await self._authenticate(declared, context)
        if principal is not None:
            call.trace()
        return self._admission.enter(principal, address_of(context.peer()) if principal is None else "")

    async def _authenticate(self, declared: Declared, context: Context) -> Principal | None:
        if declared.action is None:
            return None
        principal = await self._authentication.principal(context)
        if declared.study:
            uid = next((str(value) for key, value in context.invocation_metadata() or () if key == STUDY_KEY), "")
            if uid:
                principal = replace(principal, study_uid=uid)
        log_context.bind(tenant=principal.tenant_id, actor=principal.actor)
        _principal.set(principal)
        return principal

    async def _receive(
        self,
        call: _Call,
        declared: Declared,
        parse: Callable[[bytes], Message],
        context: Context,
    ) -> Message:
        """Return the request. Raises ResourceExhausted if it is too large, InvalidInput, and Forbidden."""
        kind: Descriptor = cast(Any, parse).__self__.DESCRIPTOR
        if declared.action is None:
            raw = await receive(context, ANONYMOUS_SECONDS, MAX_ANONYMOUS_BYTES)
        else:
            most = most_bytes(kind)
            raw = await receive(context, settings.TRIMTAB_GRPC_REQUEST_SECONDS, most)
        try:
            check_entries(raw, kind)
            request = parse(raw)
        except DecodeError:
            raise InvalidInput("request", None, "", message="request: the message cannot be read.") from None
        call.note(request)
        _permit(declared, request)
        check_lists(request)

        async def admit_again() -> None:
            await self._authenticate(declared, context)
            _permit(declared, request)

        _admit_again.set(admit_again)
        return request


def _permit(declared: Declared, request: Message) -> None:
    """Refuse a request that the current principal may not make, and choose its lane. Raises Forbidden."""
    if declared.action is not None:
        study = getattr(request, declared.study) if declared.study else None
        principal = _principal.get()
        require(principal, declared.action, study)
        if declared.agent:
            enrolment.check_own(principal, getattr(request, declared.agent))
        choose_lane(principal.tenant_id, study or declared.action)


class _Call:
    """A call that is being served: its identifier, log fields, status and duration."""

    __slots__ = ("_began", "_context", "_end", "_metadata", "_method", "_started", "status")

    def __init__(self, method: str, context: Context) -> None:
        given = next((value for key, value in context.invocation_metadata() or () if key == REQUEST_KEY), "")
        self._metadata = ((REQUEST_KEY, log_context.begin(str(given))),)
        context.set_trailing_metadata(self._metadata)
        self._method = method
        self._context = context
        self._started = time.perf_counter()
        self._began = time.time_ns()
        self._end: tracing.End | None = None
        self.status = grpc.StatusCode.OK

    def trace(self) -> None:
        """Begin the span of the call, in the trace of its caller. Without a token there is no span."""
        if not tracing.is_on():
            return
        given = next(
            (str(value) for key, value in self._context.invocation_metadata() or () if key == tracing.HEADER), ""
        )
        if given or not self._method.endswith(POLLS):
            self._end = tracing.serve(self._method[1:], given, self._began)

    def note(self, request: Message) -> None:
        """Add the study, trial, lease and agent of the request to the log's fields."""
        log_context.bind(**{name: getattr(request, field) for name, field in _about(request.DESCRIPTOR)})

    async def refuse(self, error: Exception) -> None:
        """End the call with the status and the details of the error."""
        known = errors.translate(error, self._method)
        self.status = errors.status_of(known)
        message, details = errors.details_of(known)
        await self._context.abort(self.status, message, (*self._metadata, (errors.DETAILS_KEY, details)))

    def count(self) -> None:
        seconds = time.perf_counter() - self._started
        calls, histogram = _metrics(self._method, self.status)
        calls.inc()
        histogram.observe(seconds)
        if self._end is not None:
            self._end(self.status in FAULTS, {"rpc.system": "grpc", "rpc.grpc.status_code": int(self.status.value[0])})
        # There are too many asks and tells for a line each. TRIMTAB_LOG_LEVEL=DEBUG writes them.
        level = logging.DEBUG if self.status is grpc.StatusCode.OK else logging.INFO
        if logger.isEnabledFor(level):
            milliseconds = round(seconds * 1000, 1)
            logger.log(level, "call answered", method=self._method, status=self.status.name, milliseconds=milliseconds)


@cache
def _metrics(method: str, status: grpc.StatusCode) -> tuple[Counter, Histogram]:
    return CALLS.labels(method, status.name), SECONDS.labels(method)


@cache
def _about(message: Descriptor) -> tuple[tuple[str, str], ...]:
    """Return the fields of a request that the log names, with their names there."""
    known = message.fields_by_name
    found = [(name, field) for name, field in LOGGED if field in known]
    if message.name in NAMES_STUDY:
        found.append(("study", "name"))
    return tuple(found)
