"""Bounds on bodies, streams and threads, on a real ASGI server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

import pytest

from service.config.bodies import MAX_ANONYMOUS_BYTES
from tests.factories.patience import PATIENCE
from tests.factories.web import web_server

TOKEN = "Authorization: Bearer test-token\r\n"


@pytest.fixture
def port(transactional_db: None) -> Iterator[int]:
    with web_server() as port:
        yield port


def exchange(port: int, headers: str, *parts: bytes) -> tuple[int, dict[str, Any]]:
    """Send a request in parts and return status and body, read until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(f"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:  # the server has already refused
            pass
        answer = b""
        with suppress(ConnectionResetError):  # the server has not read all that was sent
            while data := connection.recv(65536):
                answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def chunks(size: int, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield b"%x\r\n" % size + b"x" * size + b"\r\n"


@pytest.mark.parametrize(("credential", "allowed"), [("", MAX_ANONYMOUS_BYTES), (TOKEN, 1024 * 1024)])
def test_a_large_body_is_refused_before_it_is_stored(port: int, credential: str, allowed: int) -> None:
    status, problem = exchange(port, f"{credential}Content-Length: {300 * 2**20}\r\n")
    assert (status, problem["code"], problem["data"]["allowed"]) == (413, "message_too_large", allowed)
    status, problem = exchange(
        port, f"{credential}Transfer-Encoding: chunked\r\n", *chunks(2**16, allowed // 2**16 + 1)
    )
    assert (status, problem["code"], problem["data"]["allowed"]) == (413, "message_too_large", allowed)


def test_a_body_that_does_not_arrive_is_refused(port: int, settings: Any) -> None:
    settings.TRIMTAB_HTTP_BODY_SECONDS = 0.3
    status, problem = exchange(port, "Content-Length: 100\r\n", b"{")
    assert (status, problem["code"], problem["retryable"]) == (408, "request_too_slow", True)


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: localh",
        # A request after another one on the same connection has no more time.
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nX: ",
    ],
)
def test_a_connection_without_complete_headers_is_closed(port: int, settings: Any, begun: bytes) -> None:
    settings.TRIMTAB_HTTP_HEADER_SECONDS = 0.5
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(begun)
        received = b""
        # The server closes it. Without that this waits for longer than the patience.
        while data := connection.recv(65536):
            received += data
    assert received.startswith(b"HTTP/1.1 200 OK") if b"\r\n\r\n" in begun else received == b""


def test_a_wait_between_requests_does_not_close_a_connection(port: int, settings: Any) -> None:
    settings.TRIMTAB_HTTP_HEADER_SECONDS = 0.5
    connection = HTTPConnection("127.0.0.1", port, PATIENCE)
    for _ in range(2):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        connection.sock.settimeout(1.5)
        with pytest.raises(TimeoutError):
            connection.sock.recv(1)
        connection.sock.settimeout(PATIENCE)
    connection.close()
