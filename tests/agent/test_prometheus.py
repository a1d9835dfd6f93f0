"""Metrics by PromQL, from a real Prometheus server that scrapes a run."""

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.agent.conftest import run_agent_command
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program
from trimtab_agent.metrics.extract import NoValueError
from trimtab_agent.metrics.prometheus import QueryError, by_query

CONFIGURATION = """\
global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs: [{{job_name: run, static_configs: [{{targets: ["127.0.0.1:{target}"]}}]}}]
"""
# A program that exports a gauge, and ends when Prometheus has read it three times.
PROGRAM = """\
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Exporter(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"latency " + sys.argv[2].encode() + b"\\n")

    def log_message(self, *_):
        pass

server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Exporter)
for _ in range(3):
    server.handle_request()
"""
COMPONENT = """\
name: exporter
parameters:
  delay: {{type: int, min: 1, max: 99, default: 7}}
applications:
  main: {{command: [{python}, "{{component}}/program.py", "{port}", "{{delay}}"], timeout: 60}}
metrics:
  latency: {{type: prometheus, query: 'max_over_time(latency[$run])'{more}}}
  samples: {{type: prometheus, query: 'count_over_time(latency[$run])'{more}}}
"""


@dataclass(frozen=True)
class Prometheus:
    """A running server: its address, and the port that it scrapes."""

    url: str
    target: int


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    port, target = free_port(), free_port()
    (folder / "prometheus.yml").write_text(CONFIGURATION.format(target=target))
    program = require_program("prometheus", "prometheus")
    address = f"127.0.0.1:{port}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([program, *options, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        wait_for(lambda: server.poll() is None and is_ready(f"http://{address}/-/ready"), "Prometheus is ready")
        yield Prometheus(f"http://{address}", target)
    finally:
        server.terminate()
        server.wait(PATIENCE)


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def component(write: Callable[..., Path], prometheus: Prometheus, more: str = "") -> Path:
    path = write(COMPONENT.format(python=sys.executable, port=prometheus.target, more=more))
    path.with_name("program.py").write_text(PROGRAM)
    return path


def test_a_trial_reads_the_samples_of_its_own_run(
    prometheus: Prometheus, write_component: Callable[..., Path], tmp_path: Path
) -> None:
    # The last sample is stored a moment after the program has answered. Two of three are enough.
    path = component(write_component, prometheus, ", delay: 0.5")
    base = ["try", str(path), "--state-dir", str(tmp_path / "state"), "--json", "--metric", "latency"]
    for value in (70, 30):  # a longer range would still see the 70 of the earlier run
        done = run_agent_command([*base, f"--set=delay={value}", f"--prometheus-url={prometheus.url}"])
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads(done.stdout)
        assert result["metrics"]["latency"] == value, result
        assert 1 <= result["metrics"]["samples"] <= 3
    assert run_agent_command([*base, "--prometheus-url", "tmp/socket"]).returncode == 2
    done = run_agent_command(base)
    assert done.returncode == 1
    assert "has no Prometheus server. Start the agent with --prometheus-url" in done.stderr
    component(write_component, prometheus, f", url: '{prometheus.url}'")
    assert json.loads(run_agent_command(base).stdout)["metrics"]["latency"] == 7


def test_a_server_that_is_away_makes_the_trial_fail_and_not_the_configuration(
    write_component: Callable[..., Path], tmp_path: Path, programs_start: None
) -> None:
    path = write_component(
        "name: none\nparameters: {n: {type: int, min: 1, max: 2, default: 1, env: N}}\n"
        "applications: {main: {command: ['true']}}\n"
        f"metrics: {{m: {{type: prometheus, query: 'm[$run]', url: 'http://127.0.0.1:{free_port()}', timeout: 0.5}}}}\n"
    )
    done = run_agent_command(["try", str(path), "--state-dir", str(tmp_path / "state"), "--json", "--metric", "m"])
    result = json.loads(done.stdout)
    assert result["outcome"] == "failed"
    assert "has not answered within 0.5 s: [Errno 111] Connection refused" in result["reason"]


def query(url: str, text: str, token: str = "", *, own: bool = False) -> float:
    metric = {"query": text, "url": url if own else "", "delay": 0.0, "timeout": 10.0}
    return by_query(metric, {"url": url, "token_file": token}, time.time() - 2, time.time())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing[$run]", "the query gives a matrix, not one number"),
        ("rate(nothing[$run])", "has no data for the query in the 2 s of the run"),
        ('label_replace(vector(1), "a", "b", "", "") or vector(1)', r"gives 2 series \(\{a=b\}; \{\}\)"),
        ("sum(", r"refuses the query \(400\): .*parse error"),
    ],
)
def test_an_answer_that_is_not_one_number_is_named(prometheus: Prometheus, text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        query(prometheus.url, text)


@pytest.mark.parametrize("text", ["vector(0/0)", "0/0", "1/0"])
def test_nan_and_infinity_are_no_values(prometheus: Prometheus, text: str) -> None:
    with pytest.raises(NoValueError, match="is not a finite number"):
        query(prometheus.url, text)


def test_the_duration_of_the_run_stands_in_the_query(prometheus: Prometheus) -> None:
    assert query(prometheus.url, "count_over_time(vector(1)[$run:1s])") in (2.0, 3.0)
    assert query(prometheus.url + "/", "3 * 2") == 6


class Broken(BaseHTTPRequestHandler):
    """A server that is not Prometheus, or not yet. The path says how."""

    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_POST(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.path.split("/")[1]
        code = {"moved": 302, "busy": 503 if len(self.asked) < 2 else 200}.get(kind, 200)
        self.send_response(code)
        if kind == "moved":
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        right = json.dumps({"data": {"resultType": "scalar", "result": [0, "4"]}}).encode()
        bodies = {"huge": b"x" * (2 << 20), "page": b"<html>", "form": b"[]", "busy": right, "right": right}
        self.wfile.write(bodies.get(kind, b""))

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def broken() -> Iterator[str]:
    Broken.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Broken)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("huge", "the answer has more than 1 MiB"),
        ("page", "its answer is not JSON"),
        ("form", "its answer has another form"),
        ("moved", "redirects to .*/elsewhere. Give that address"),
    ],
)
def test_another_server_is_recognized(broken: str, kind: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        query(f"{broken}/{kind}", "x")
    assert len(Broken.asked) == 1, "a redirection is not followed"


def test_the_query_is_repeated_while_the_server_starts(broken: str) -> None:
    assert query(f"{broken}/busy", "x") == 4
    assert len(Broken.asked) == 2


def test_the_token_is_sent_to_the_agents_own_server_alone(broken: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    assert query(f"{broken}/right", "x", str(token)) == 4
    assert query(f"{broken}/right", "x", str(token), own=True) == 4
    assert [sent for _, sent in Broken.asked] == ["Bearer secret", None]
