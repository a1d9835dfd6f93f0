"""A simulated Ray dashboard, for situations that a real Ray seldom creates."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.factories.patience import PATIENCE
from trimtab_agent.runners.base import JobResult
from trimtab_agent.runners.ray import RayRunner


async def ended(runner: RayRunner, folder: Path) -> JobResult:
    return await asyncio.wait_for(runner.wait(folder), PATIENCE)


class Board(BaseHTTPRequestHandler):
    """A dashboard that gives prepared answers and runs nothing."""

    jobs: dict[str, dict[str, Any]]
    calls: list[tuple[str, str]]
    # what is answered to the next submissions: a status, and whether the job is taken all the same
    failures: list[tuple[int, str, bool]]

    def do_GET(self) -> None:
        self.calls.append(("GET", self.path))
        self.server.headers_seen = dict(self.headers)  # type: ignore[attr-defined]
        if self.path == "/api/jobs/":
            self._answer(200, list(self.jobs.values()))
        else:
            node = {"state": "ALIVE", "resources_total": {"CPU": 4.0, "memory": 1e9}}
            self._answer(200, {"data": {"result": {"result": [node]}}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        self.calls.append(("POST", self.path))
        if self.path != "/api/jobs/":
            self._answer(200, {"stopped": True})
            return
        name = body["submission_id"]
        status, text, taken = self.failures.pop(0) if self.failures else (200, "", True)
        if name in self.jobs:
            status, text, taken = (
                400,
                f"Traceback\nValueError: Job with submission_id {name} already exists. Use",
                False,
            )
        if taken:
            self.jobs[name] = {"submission_id": name, "status": "PENDING", **body}
        self._answer(status, text or {"submission_id": name})

    def _answer(self, status: int, body: object) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Far:
    """A running `Board`."""

    def __init__(self) -> None:
        class OneBoard(Board):
            pass

        self.board = OneBoard
        OneBoard.jobs, OneBoard.calls, OneBoard.failures = {}, [], []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.board)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self, folder: Path, **fields: Any) -> None:
        self.board.jobs[(folder / "job").read_text()].update(fields)
