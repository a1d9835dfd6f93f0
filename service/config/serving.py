"""The web server: uvicorn with the bounds of this service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from django.conf import settings
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.config import liveness

APPLICATION = "service.config.asgi:application"


class Http(H11Protocol):
    """One connection. It is closed if the headers of a request do not arrive within TRIMTAB_HTTP_HEADER_SECONDS.

    uvicorn bounds the time between two requests of a connection, but not the time before the first one, nor the time
    of a request that has begun.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Expect the first request."""
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._stop_expecting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on to the next request, a part of which may have arrived during the response."""
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop_expecting()
        elif self._deadline is None and self.conn.trailing_data[0]:
            self._expect_headers()

    def _expect_headers(self) -> None:
        self._deadline = self.loop.call_later(settings.TRIMTAB_HTTP_HEADER_SECONDS, self.transport.close)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server(host: str, port: int, application: str | Callable[..., Any] = APPLICATION) -> uvicorn.Server:
    """Return the server of the application, which has not been started."""
    config = uvicorn.Config(
        application,
        callback_notify=liveness.touch,
        timeout_notify=int(liveness.EVERY_SECONDS),
        http=Http,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=bool(settings.TRIMTAB_BELIEVED_PROXIES),
        forwarded_allow_ips=[str(network) for network in settings.TRIMTAB_BELIEVED_PROXIES],
        # This is longer than clients and proxies keep an idle connection (Caddy: two minutes). If the server closed it
        # first, a request that has just been sent would fail.
        timeout_keep_alive=200,
        limit_concurrency=settings.TRIMTAB_HTTP_CONNECTIONS,
        # An event stream stays open while a browser shows the page, so the stop does not wait for it.
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)
