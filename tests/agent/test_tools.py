"""Metrics from the output of benchmark tools: of recorded runs, and of the tools themselves."""

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.embedded.postgres import programs
from tests.agent.conftest import run_agent_command
from tests.factories.patience import PATIENCE
from tests.factories.service import lack, require_program
from trimtab_agent.metrics.extract import NoValueError
from trimtab_agent.metrics.tools import by_tool
from trimtab_components import tools
from trimtab_components.schema import Component

RECORDED = Path(__file__).parents[1] / "data" / "tool_outputs"


def field(tool: str, name: str, of: str = "") -> dict[str, Any]:
    return {"tool": tool, "output_field": name, "of": of, "source": "stdout"}


# file, field, of, value
VALUES: list[tuple[str, str, str, float]] = [
    ("hyperfine.json", "mean", "", 0.0219615676),
    ("hyperfine.json", "user", "sleep 0.02", 0.00077),
    ("pytest-benchmark.json", "median", "", 1.039599999330676e-05),
    ("pytest-benchmark.json", "ops", "test_x.py::test_a", 69773.21617400047),
    ("pytest-benchmark.json", "min", "test_a", 1.0184999950979545e-05),
    ("google-benchmark.json", "real_time", "", 2.9012394089851218e-07),
    ("google-benchmark.json", "items_per_second", "BM_sum/1000", 3.5003311698278022e09),
    ("jmh.json", "score", "x.B.sum thrpt n=10", 86162312.52175143),
    ("jmh.json", "score", "x.B.sum avgt n=100", 7.685479948914899e-08),
    ("jmh.json", "p99.9", "x.B.sum sample n=10", 1.41e-07),
    ("k6.json", "mean", "", 0.0020952258715862877),
    ("k6.json", "p95", "http_req_duration{expected_response:true}", 0.007170377),
    ("k6.json", "max", "iteration_duration", 0.015503554),
    ("k6.json", "requests", "", 859.5413136042661),
    ("k6.json", "failures", "", 0),
    ("k6.json", "checks", "", 1),
    ("fio.json", "read_iops", "", 10553.446553),
    ("fio.json", "read_bandwidth", "t", 43226917),
    ("fio.json", "read_clat_mean", "", 6.562408529e-05),
    ("fio.json", "read_clat_p99.9", "", 0.001875968),
    ("pgbench.txt", "tps", "", 370.716764),
    ("pgbench.txt", "latency_mean", "", 0.005383),
    ("pgbench.txt", "latency_stddev", "", 0.005206),
    ("pgbench.txt", "transactions", "", 744),
    ("pgbench.txt", "failures", "", 0),
    ("wrk.txt", "requests", "", 945.99),
    ("wrk.txt", "bandwidth", "", 172.75 * 1024),
    ("wrk.txt", "latency_mean", "", 0.0026),
    ("wrk.txt", "latency_stddev", "", 0.00281),
    ("wrk.txt", "latency_max", "", 0.0187),
    ("wrk.txt", "latency_p99", "", 0.01185),
    ("wrk.txt", "errors", "", 0),
    ("wrk-errors.txt", "errors", "", 1092),
    ("sysbench.txt", "transactions", "", 1152.06),
    ("sysbench.txt", "queries", "", 23041.18),
    ("sysbench.txt", "events", "", 3462 / 3.0044),
    ("sysbench.txt", "errors", "", 0),
    ("sysbench.txt", "latency_min", "", 0.00056),
    ("sysbench.txt", "latency_mean", "", 0.00347),
    ("sysbench.txt", "latency_percentile", "", 0.0123),
    ("sysbench-cpu.txt", "events", "", 3074 / 1.0002),
    ("sysbench-cpu.txt", "latency_max", "", 0.03238),
    ("db_bench.txt", "ops", "fillrandom", 126830),
    ("db_bench.txt", "latency_mean", "readrandom", 2.727e-6),
    ("db_bench.txt", "bandwidth", "readrandom", 25.5 * 1024**2),
    ("db_bench.txt", "found", "readrandom", 12569),
    ("db_bench.txt", "found", "seekrandom", 12693),
    ("db_bench.txt", "latency_p99", "fillrandom", 8.30e-6),
    ("db_bench.txt", "latency_p99.9", "readrandom", 16.17e-6),
    ("kafka-producer-perf-test.txt", "records", "", 7996.8),
    ("kafka-producer-perf-test.txt", "bandwidth", "", 1.53 * 1024**2),
    ("kafka-producer-perf-test.txt", "latency_mean", "", 0.0075),
    ("kafka-producer-perf-test.txt", "latency_max", "", 0.391),
    ("kafka-producer-perf-test.txt", "latency_p95", "", 0.039),
    ("kafka-producer-perf-test.txt", "latency_p99.9", "", 0.062),
]


def tool_of(file: str) -> str:
    return Path(file).stem.removesuffix("-errors").removesuffix("-cpu")


@pytest.mark.parametrize(("file", "name", "of", "value"), VALUES)
def test_field_of_a_recorded_run(file: str, name: str, of: str, value: float) -> None:
    assert by_tool((RECORDED / file).read_text(), field(tool_of(file), name, of)) == pytest.approx(value)


# The selected benchmark has no such value: two iterations have no error, and the summary has no 99th percentile.
ABSENT = {("jmh", "error"), ("k6", "p99")}


@pytest.mark.parametrize("file", sorted({row[0] for row in VALUES} - {"wrk-errors.txt", "sysbench-cpu.txt"}))
def test_each_field_that_a_tool_offers_is_read(file: str) -> None:
    tool = tool_of(file)
    of = {"jmh": "x.B.sum sample n=10", "db_bench": "readrandom"}.get(tool, "")
    for name in tools.FIELDS[tool]:
        if (tool, name) not in ABSENT:
            assert by_tool((RECORDED / file).read_text(), field(tool, name, of)) >= 0, name


FIO_TWO = json.dumps({"jobs": [{"jobname": "a"}, {"jobname": "a"}]})
FIO_IDLE = json.dumps({"jobs": [{"jobname": "a", "read": {"total_ios": 0, "iops": 0}}]})
GOOGLE_ERROR = json.dumps({"benchmarks": [{"run_name": "a", "error_occurred": True, "error_message": "no file"}]})


@pytest.mark.parametrize(
    ("file", "name", "of", "words"),
    [
        ("jmh.json", "score", "x.B.sum", "has 6 benchmarks; set `of` to one of: x.B.sum thrpt n=10; "),
        ("jmh.json", "score", "x.B.prod", "has no 'x.B.prod'; it has: x.B.sum thrpt n=10"),
        ("jmh.json", "error", "x.B.sum thrpt n=10", "not a finite number"),
        ("hyperfine.json", "mean", "sleep 1", "it has: sleep 0.02"),
        ("k6.json", "p99", "", "--summary-trend-stats=avg,p(99)"),
        ("wrk-errors.txt", "latency_p99", "", "start wrk with --latency"),
        ("sysbench-cpu.txt", "transactions", "", "the output of sysbench has no transactions"),
        ("db_bench.txt", "ops", "", "has 3 benchmarks; set `of` to one of: fillrandom; readrandom; seekrandom"),
        ("db_bench.txt", "found", "fillrandom", "the output of db_bench has no found"),
    ],
)
def test_a_recorded_run_without_the_value(file: str, name: str, of: str, words: str) -> None:
    with pytest.raises(NoValueError) as raised:
        by_tool((RECORDED / file).read_text(), field(tool_of(file), name, of))
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("tool", "name", "text", "words"),
    [
        ("fio", "iops", FIO_TWO, "group_reporting"),
        ("fio", "read_iops", FIO_IDLE, "the job has no reads"),
        ("google-benchmark", "cpu_time", GOOGLE_ERROR, "reports an error: no file"),
        ("pgbench", "latency_stddev", "tps = 1 (without initial connection time)", "--progress or --rate"),
        *(
            (tool, fields[0], text, "")
            for tool, fields in tools.FIELDS.items()
            for text in ("", "[" * 9999, "{}", "[3]")
        ),
    ],
)
def test_text_without_the_value(tool: str, name: str, text: str, words: str) -> None:
    with pytest.raises(NoValueError) as raised:
        by_tool(text, field(tool, name))
    assert words in str(raised.value)


def test_other_lines_around_a_json_document_do_not_matter() -> None:
    text = "fio: this is a warning\n[ not JSON\n" + (RECORDED / "fio.json").read_text() + "\nRun status group 0\n"
    assert by_tool(text, field("fio", "read_iops")) == 10553.446553


# -- component files


def with_metric(metric: str) -> str:
    return f"name: c\napplications: {{m: {{command: [x]}}}}\nmetrics: {{t: {metric}}}\n"


def test_a_component_names_a_tool(component: Callable[..., Component]) -> None:
    made = component(with_metric("{jmh: p99, of: x.B.sum, from: out.json}")).metrics["t"]
    assert (made.kind, made.tool, made.output_field, made.of, made.source) == (
        "tool",
        "jmh",
        "p99",
        "x.B.sum",
        "out.json",
    )


def test_check_names_the_tool_of_a_metric(write_component: Callable[..., Path], programs_start: None) -> None:
    path = write_component(with_metric("{fio: read_clat_p99, of: job1}"))
    checked = run_agent_command(["check", str(path.parents[1])])
    assert "metrics: t (fio read_clat_p99 of job1)" in checked.stdout


# -- the tools themselves


def check_all(tool: str, text: str, *but: str) -> None:
    for name in set(tools.FIELDS[tool]) - set(but):
        assert by_tool(text, field(tool, name)) >= 0, name


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a web server that answers every request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None: ...

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *arguments: object) -> None:
            """Ignore connections that wrk resets at its end."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_wrk(page: str, programs_start: None) -> None:
    program = require_program("wrk", "wrk")
    check_all("wrk", run([program, "-t1", "-c2", "-d1s", "--latency", page]))


def test_fio(tmp_path: Path, programs_start: None) -> None:
    program = require_program("fio", "fio")
    job = ["--name=one", "--rw=randrw", "--bs=4k", "--size=1m", f"--directory={tmp_path}", "--output-format=json"]
    check_all("fio", run([program, *job]))


def test_sysbench(programs_start: None) -> None:
    program = require_program("sysbench", "sysbench")
    text = run([program, "cpu", "--events=200", "run"])
    check_all("sysbench", text, "transactions", "queries", "errors")


def test_db_bench(tmp_path: Path, programs_start: None) -> None:
    program = require_program("db_bench", "rocksdb-tools")
    given = ["--num=2000", "--histogram=1", "--compression_type=none", f"--db={tmp_path}"]
    text = run([program, "--benchmarks=fillseq,readrandom", *given])
    for name in tools.FIELDS["db_bench"]:
        assert by_tool(text, field("db_bench", name, "readrandom")) >= 0, name


def test_pgbench(postgres_url: str) -> None:
    program = str(programs() / "pgbench")
    run([program, "--initialize", "--quiet", postgres_url])
    check_all("pgbench", run([program, "--transactions=20", "--progress=1", postgres_url]))


def test_pytest_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None) -> None:
    (tmp_path / "test_one.py").write_text("def test_sum(benchmark):\n    benchmark(sum, range(100))\n")
    # Without the plug-ins of this project's tests, which take seconds to import.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # It measures nothing if it finds itself among tests that run side by side.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_benchmark.plugin"]
    run([*command, "--benchmark-json=out.json", "--benchmark-max-time=0.1"], tmp_path)
    check_all("pytest-benchmark", (tmp_path / "out.json").read_text())


GOOGLE = """\
#include <benchmark/benchmark.h>
static void count(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(state.range(0));
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(8 * state.iterations());
}
BENCHMARK(count)->Arg(1);
BENCHMARK_MAIN();
"""


def test_google_benchmark(tmp_path: Path, programs_start: None) -> None:
    compiler = require_program("g++", "g++")
    if not Path("/usr/include/benchmark/benchmark.h").exists():
        lack("Google Benchmark is not installed (Debian package libbenchmark-dev)")
    (tmp_path / "count.cc").write_text(GOOGLE)
    run([compiler, "-O1", "count.cc", "-o", "count", "-lbenchmark", "-lpthread"], tmp_path)
    for more in ([], ["--benchmark_repetitions=2"]):
        text = run(["./count", "--benchmark_format=json", "--benchmark_min_time=0.01", *more], tmp_path)
        check_all("google-benchmark", text)
        assert by_tool(text, field("google-benchmark", "real_time")) < 1e-3


HYPERFINE = """\
name: sleeper
parameters:
  wait: {type: float, min: 0, max: 1, default: 0.01}
applications:
  main: {command: [hyperfine, -N, --runs, "3", --export-json, out.json, "sleep {wait}"]}
metrics:
  seconds: {hyperfine: median, from: out.json}
  slowest: {hyperfine: max, of: sleep 0.05, from: out.json}
"""


def test_hyperfine_in_a_trial_of_an_agent(
    write_component: Callable[..., Path], tmp_path: Path, programs_start: None
) -> None:
    require_program("hyperfine", "hyperfine")
    path = write_component(HYPERFINE)
    tried = run_agent_command(["try", str(path), "--state-dir", str(tmp_path / "state"), "--set", "wait=0.05"])
    assert tried.returncode == 0, tried.stdout + tried.stderr
    values = dict(line.split()[1::2] for line in tried.stdout.splitlines() if line.startswith("metric "))
    assert float(values["slowest"]) >= float(values["seconds"]) >= 0.05


def run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
