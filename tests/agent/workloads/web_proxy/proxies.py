"""The web proxy, its pages, and requests to it."""

import gzip
import http.client
import os
import socket
from pathlib import Path

from tests.agent.workloads.shared import WORKLOADS, compile_c
from tests.factories.patience import PATIENCE

WORKLOAD = WORKLOADS / "web-proxy"
SOURCES = WORKLOAD / "src"
PROXY = [SOURCES / f"{name}.c" for name in ("main", "settings", "cache", "disk", "pages", "serve", "control")]
PAGES = 6


def compile_proxy(folder: Path, *flags: str) -> None:
    """Compile the proxy and its load generator into a folder."""
    compile_c(folder / "proxy", *flags, *PROXY, "-lz")
    compile_c(folder / "load", *flags, SOURCES / "load.c", "-lz", "-lm")


def page(built: Path, number: int, form: str = "raw") -> bytes:
    """Return the bytes of a page's file."""
    return (built / "pages" / f"{number}.html{'.gz' if form == 'gzip' else ''}").read_bytes()


def fetch(port: int, number: int, form: str = "raw") -> bytes:
    """Request a page in a form, check the answer's headers, and return the page's plain text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", f"/{number}.html", headers={"Accept-Encoding": "gzip" if form == "gzip" else "identity"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200
    assert answer.getheader("Content-Encoding") == ("gzip" if form == "gzip" else None)
    assert answer.getheader("Vary") == "Accept-Encoding"
    return gzip.decompress(body) if form == "gzip" else body


def talk(port: int, request: bytes) -> bytes:
    """Send bytes, close this direction, and return everything that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answers:
            return answers.read()


ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
