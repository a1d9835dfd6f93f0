"""The frame of most methods: translate, call one action or selector, and translate back, all in a database thread."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from service.rpc.admission import Context
from service.rpc.interceptors import current_principal
from service.rpc.threads import DatabaseThreads
from service.tenancy.principal import Principal


class Servicer:
    """A servicer whose methods use the database."""

    def __init__(self, threads: DatabaseThreads) -> None:
        self.threads = threads


S = TypeVar("S", bound=Servicer)
Request = TypeVar("Request")
Response = TypeVar("Response")


def in_thread(
    method: Callable[[S, Principal, Request], Response],
) -> Callable[[S, Request, Context], Coroutine[Any, Any, Response]]:
    """Make a gRPC method of a plain one, which runs in a database thread with the principal of the call."""

    @wraps(method)
    async def serve(self: S, request: Request, context: Context) -> Response:
        return await self.threads.run(method, self, current_principal(), request)

    return serve
