"""The web process's application on a real ASGI server, in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.factories.patience import PATIENCE, wait_for


@contextmanager
def web_server() -> Iterator[int]:
    """Serve on a free port of 127.0.0.1 and give the port. The server uses the settings and database of the test."""
    from service.config import serving
    from service.config.asgi import application

    server = serving.server("127.0.0.1", 0, application)
    thread = threading.Thread(target=server.run, name="web", daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive(), "the web server has started")
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
