"""The check of known vulnerabilities in `make lint`, with databases inside the test."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.factories.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
ADVISORY = {"id": "GHSA-test", "modified": "2026-01-01T00:00:00Z", "summary": "bad"}
pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed")


class Databases:
    """The used part of the interfaces of OSV and npm. `bad`: names of packages with a vulnerability."""

    def __init__(self) -> None:
        self.bad: set[str] = set()
        self.asked: set[str] = set()
        databases = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not self.path.startswith("/v1/"):
                    # npm looks for a version of the package without a vulnerability
                    name = unquote(self.path[1:])
                    self.say({"name": name, "dist-tags": {}, "versions": {"0.0.1": {"name": name, "version": "0.0.1"}}})
                    return
                everything = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}]
                packages = [{"ecosystem": "PyPI", "name": name} for name in databases.bad]
                self.say({**ADVISORY, "affected": [{"package": item, "ranges": everything} for item in packages]})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.startswith("/v1/querybatch"):
                    names = [query["package"]["name"] for query in json.loads(body)["queries"]]
                    found = [{"vulns": [ADVISORY]} if name in databases.bad else {} for name in names]
                    self.say({"results": found})
                else:
                    names = []
                    bulk = {"id": 1, "url": "x", "title": "bad", "severity": "high", "vulnerable_versions": "*"}
                    self.say({name: [bulk] for name in databases.bad})
                databases.asked |= set(names)

            def say(self, content: Any) -> None:
                text = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def audit(self) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TRIMTAB_OSV_URL": self.url, "npm_config_registry": f"{self.url}/"}
        return subprocess.run(
            [ROOT / "deploy/checkout/audit.sh"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def databases() -> Iterator[Databases]:
    made = Databases()
    yield made
    made.close()


def test_shipped_packages_are_checked_and_a_vulnerability_fails(databases: Databases, programs_start: None) -> None:
    done = databases.audit()
    assert done.returncode == 0, done.stderr
    assert "NOT looked up" not in done.stderr
    assert {"django", "grpcio", "torch"} <= databases.asked
    # Development tools are not shipped. pytest is, for authors of algorithms (the extra `testing`).
    assert not {"mypy", "playwright", "ruff"} & databases.asked
    for name, part in (
        ("django", "Python: see the vulnerabilities above"),
        ("react", "console: see the vulnerabilities above"),
    ):
        databases.bad = {name}
        done = databases.audit()
        assert done.returncode == 1, done.stderr
        assert part in done.stderr


def test_an_unreachable_database_is_reported_and_does_not_fail(databases: Databases, programs_start: None) -> None:
    databases.close()
    done = databases.audit()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NOT checked, the database did not answer") == 2
