"""The bounds on event streams, and the threads that they do not keep."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client

from service.api import streaming, threads
from service.identity.login import create_code
from service.identity.principals import administrator
from service.studies import listen_notify
from service.tenancy import tenants
from service.tenancy.principal import Principal
from tests.api.conftest import Api
from tests.factories.patience import PATIENCE, wait_for, wait_for_async
from tests.factories.web import web_server


async def never() -> AsyncGenerator[str, None]:
    yield "begun"
    await asyncio.Event().wait()


def test_streams_that_begin_at_the_same_time_are_counted_before_they_are_sent(settings: Any) -> None:
    """All of 300 passed the check, and those beyond the bound failed when they were sent."""
    settings.TRIMTAB_STREAMS_PER_PRINCIPAL = 3

    async def run() -> None:
        principal = Principal.system(1)
        found = [await streaming.respond(principal, never()) for _ in range(5)]
        assert [one.status_code for one in found] == [200, 200, 200, 429, 429]
        # One that is closed in another thread, and one that nobody sends or closes, make room for others.
        await asyncio.to_thread(found[0].close)
        del found[1]
        gc.collect()
        await wait_for_async(lambda: streaming._streams._total == 1)
        again = [await streaming.respond(principal, never()) for _ in range(3)]
        assert [one.status_code for one in again] == [200, 200, 429]
        await _end([*found, *again])

    asyncio.run(run())


async def _end(responses: list[HttpResponseBase]) -> None:
    for one in responses:
        one.close()
    await wait_for_async(lambda: streaming._streams._total == 0)


def test_the_streams_of_a_tenant_take_half_of_the_threads(transactional_db: None) -> None:
    running, free = [0, 0], threading.Event()

    def work(tenant: int) -> None:
        running[tenant] += 1
        assert free.wait(PATIENCE)

    async def stream_of(tenant: int) -> None:
        threads.choose_tenant(tenant)
        await threads.in_thread(work, tenant)

    async def run() -> None:
        tasks = [asyncio.create_task(stream_of(0)) for _ in range(20)]
        await wait_for_async(lambda: running[0] == threads.THREADS // 2)
        tasks.append(asyncio.create_task(stream_of(1)))
        await wait_for_async(lambda: running[1] == 1 or tasks[-1].done())
        assert running[0] == threads.THREADS // 2
        free.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert running == [20, 1]


@pytest.fixture
def port(transactional_db: None) -> Iterator[int]:
    with web_server() as port:
        yield port


def stream(port: int, credential: str = "Authorization: Bearer test-token") -> tuple[socket.socket, bytes]:
    """Open a stream of the tenant's lists and return its connection and the beginning of the answer."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
    request = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n{credential}\r\n\r\n"
    connection.sendall(request.encode())
    answer = b""
    while b"event: ready" not in answer and b'"code"' not in answer:
        part = connection.recv(65536)
        assert part, answer
        answer += part
    return connection, answer


def test_a_stream_keeps_no_thread_and_one_too_many_gets_429(port: int, settings: Any) -> None:
    settings.TRIMTAB_STREAMS_PER_PRINCIPAL = 30
    with ExitStack() as open_streams:
        for _ in range(30):
            connection, answer = stream(port)
            open_streams.enter_context(connection)
            assert answer.startswith(b"HTTP/1.1 200")
        # The threads of asgiref have the name of their executor.
        wait_for(lambda: sum(one.name.startswith("ThreadPoolExecutor") for one in threading.enumerate()) < 5)
        connection, answer = stream(port)
        open_streams.enter_context(connection)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429")
        assert b"application/problem+json" in head
        assert json.loads(body)["code"] == "too_many_streams"
    # Their clients have gone.
    wait_for(lambda: streaming._streams._total == 0)


def expect_end(connection: socket.socket) -> None:
    """Read until the service ends the stream; a stream that goes on ends in a time-out."""
    found = b""
    while not found.endswith(b"0\r\n\r\n"):
        part = connection.recv(65536)
        assert part, found
        found += part


def signed_in() -> Client:
    browser = Client(headers={"X-Trimtab-Console": "1"})
    assert browser.get(f"/login?code={create_code()}").status_code == 302
    return browser


def test_a_stream_ends_when_its_reader_signs_out(port: int) -> None:
    browser, other = signed_in(), signed_in()
    with ExitStack() as open_streams:
        connections = []
        for one in (browser, other):
            connection, answer = stream(port, f"Cookie: trimtab_session={one.cookies['trimtab_session'].value}")
            assert answer.startswith(b"HTTP/1.1 200")
            connections.append(open_streams.enter_context(connection))
        assert browser.delete("/api/v1/session").status_code == 204
        listen_notify.notify_lists(administrator(), "agents")
        expect_end(connections[0])
        # The other session of the same person goes on.
        found = b""
        while b"agents" not in found:
            found += connections[1].recv(65536)


def test_a_stream_ends_when_its_tenant_is_disabled(port: int) -> None:
    connection, answer = stream(port)
    with connection:
        assert answer.startswith(b"HTTP/1.1 200")
        Api().ok("PATCH", "/tenants/default", {"disabled": True})
        # As in another process, which has remembered for some seconds that the tenant is open.
        tenants._open.clear()
        listen_notify.notify_lists(administrator(), "agents")
        expect_end(connection)
