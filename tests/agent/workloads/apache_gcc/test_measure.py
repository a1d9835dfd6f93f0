"""Tests of measure.py: the answers of the server, the programs that it needs, and its end."""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.workloads.apache_gcc.httpd import WORKLOAD, outliving, run_measure, running
from tests.agent.workloads.shared import module_of, run
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program

measure = module_of(WORKLOAD, "measure")


def with_program(folder: Path, script: str) -> Path:
    """Return a copy of measure.py that has another CGI program."""
    folder.mkdir()
    shutil.copy(WORKLOAD / "measure.py", folder)
    (folder / "page.pl").write_text(f"#!/bin/sh\n{script}\n")
    return folder / "measure.py"


HEAD = r"printf 'Content-Type: text/plain\r\n\r\n'"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"{HEAD}; GOOD | tr . ,", "/cgi/page.pl?2048: the answer differs from byte 1 on"),
        (f"{HEAD}; GOOD | head -c 2000", "/cgi/page.pl?2048: the answer has 2000 bytes, not 2048"),
        (f"{HEAD}; GOOD | tr 0-9 1", "/cgi/page.pl?2048: two answers have the same numbers"),
        ("exit 1", "/cgi/page.pl?2048: status 500"),
        # right at first, but too short under load
        (f"{HEAD}; echo >> LOG; [ $(wc -l < LOG) -gt 2 ] && echo short || GOOD", "failed, 0 had another status"),
        (f"echo >> LOG; [ $(wc -l < LOG) -gt 2 ] && exit 1; {HEAD}; GOOD", "had another status than 2xx"),
    ],
)
def test_wrong_answers(built: Path, tmp_path: Path, script: str, words: str) -> None:
    good = f"perl {WORKLOAD}/page.pl | tail -n 1"
    broken = with_program(tmp_path / "broken", script.replace("GOOD", good).replace("LOG", str(tmp_path / "n")))
    done = run_measure(built, tmp_path, "cgi-2k", broken)
    assert done.returncode == 1, done
    assert words in done.stderr
    assert done.stdout == ""
    assert running(built / "httpd") == []


def test_a_server_that_does_not_start(built: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    shutil.copy(built / "build.json", broken)
    (broken / "httpd").write_text("#!/bin/sh\necho no such luck >&2\nexit 7\n")
    (broken / "httpd").chmod(0o755)
    done = run_measure(broken, tmp_path, "static-2k")
    assert done.returncode == 1
    assert "httpd ended with 7 at its start\nno such luck" in done.stderr


def page_of(query: str) -> bytes:
    """Return the output of the CGI program."""
    command = ["perl", str(WORKLOAD / "page.pl")]
    return subprocess.run(command, env={"QUERY_STRING": query}, capture_output=True, check=True).stdout


def test_the_cgi_program_prints_new_numbers_of_the_expected_form(programs_start: None) -> None:
    for length in (1, 11, 2048, 32768):
        head, _, body = page_of(str(length)).partition(b"\r\n\r\n")
        assert f"Content-Length: {length}".encode() in head
        assert re.sub(rb"\d", b"0", body) == re.sub(rb"\d", b"0", measure.content(length))
    assert page_of("2048") != page_of("2048")
    for query in ("", "x", "12x", "-1", "0", "1\n", "99999999"):
        assert page_of(query).startswith(b"Status: 400 ")


def test_static_pages_have_their_size() -> None:
    assert [len(measure.content(length)) for length in (1, 11, 2048, 32768)] == [1, 11, 2048, 32768]
    assert measure.content(2048) == measure.content(2048)


REPORT = """
Document Length:        2048 bytes
Time taken for tests:   0.500 seconds
Complete requests:      100
Failed requests:        0
"""


def test_reports_of_ab() -> None:
    page = measure.PAGES["static-2k"]
    assert measure.seconds_of(REPORT, page, 100) == 0.5
    for before, after in (
        ("Failed requests:        0", "Failed requests:        1"),
        ("Failed requests:        0", "Failed requests:        0\nNon-2xx responses:      100"),
        ("Complete requests:      100", "Complete requests:      99"),
        ("2048 bytes", "204 bytes"),
    ):
        with pytest.raises(measure.WrongAnswerError, match="of 100 requests"):
            measure.seconds_of(REPORT.replace(before, after), page, 100)
    for nonsense in ("", "\0\xff" * 1000, REPORT.replace("0.500", "0.000"), REPORT.replace("Time", "Tine")):
        with pytest.raises(measure.MachineError):
            measure.seconds_of(nonsense, page, 100)


def test_the_time_of_a_request_is_not_derived_from_the_throughput(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    """ab's requests took 3 ms each, though 100 in half a second would give 5 ms for each."""
    monkeypatch.chdir(tmp_path)
    Path("report").write_text(REPORT)
    Path("ab").write_text("#!/bin/sh\ncp table times.csv; cat report\n")
    Path("ab").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    rows = [f"{percent},{2 + percent / 49.5:.3f}" for percent in range(100)] + ["100,99.000"]
    Path("table").write_text("\n".join(["Percentage served,Time in ms", *rows, ""]))
    loaded = measure.load(1, measure.PAGES["static-2k"], 100, 1, sorted(os.sched_getaffinity(0)))
    assert loaded.seconds == 0.5
    assert loaded.ms_per_request == pytest.approx(3.0, abs=0.001)
    for broken in ("", "Percentage served,Time in ms\n0,0.100\n", "0,0.000\n" * 101):
        Path("table").write_text(broken)
        with pytest.raises(measure.MachineError, match="ab wrote no table of percentiles from 0 to 100"):
            measure.load(1, measure.PAGES["static-2k"], 100, 1, sorted(os.sched_getaffinity(0)))


def test_the_machine_counts_context_switches_of_all_processes() -> None:
    before = measure.machine_switches()
    own = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(50):
        time.sleep(0.001)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert measure.machine_switches() - before >= after.ru_nvcsw - own.ru_nvcsw >= 50


def test_the_clock_of_a_process_is_finer_than_a_tick_of_the_system() -> None:
    clock = measure.processor_clock(os.getpid())
    before = time.process_time_ns()
    found = time.clock_gettime_ns(clock)
    assert before <= found <= time.process_time_ns()
    assert time.clock_getres(clock) <= 1e-6


def test_a_summary_has_the_geometric_means_and_each_page() -> None:
    assert measure.summary({"a": {"x": 2.0}}) == {"x": 2.0}
    found = {"a": {"x": 2.0, "y": 0.0}, "b": {"x": 8.0, "y": 1.0}}
    assert measure.summary(found) == {"x": pytest.approx(4.0), "y": 0.0, **found}


def path_without(folder: Path, *missing: str) -> str:
    """Return a PATH with every program but these."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else []:
            link = folder / program.name
            if program.name not in missing and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_no_ab(built: Path, tmp_path: Path) -> None:
    done = run_measure(built, tmp_path, "static-2k", PATH=path_without(tmp_path / "bin", "ab"))
    assert done.returncode == 3
    assert done.stderr == "error: ab is not in PATH: install it (Debian package apache2-utils)\n"


def test_no_perl(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "PERL", "/nowhere/perl")
    with pytest.raises(measure.MachineError, match="/nowhere/perl is missing"):
        measure.measure(built, {"cgi-2k": measure.PAGES["cgi-2k"]}, count=False)


def test_ab_that_prints_nonsense(built: Path, tmp_path: Path) -> None:
    bin_ = path_without(tmp_path / "bin", "ab")
    (tmp_path / "bin" / "ab").write_text("#!/bin/sh\nhead -c 5000 /dev/urandom\n")
    (tmp_path / "bin" / "ab").chmod(0o755)
    done = run_measure(built, tmp_path, "static-2k", PATH=bin_)
    assert done.returncode == 3
    assert "ab does not say 'Document Length'" in done.stderr
    assert running(built / "httpd") == []


def test_no_gcc(workload: Path, tmp_path: Path) -> None:
    bin_ = path_without(tmp_path / "bin", "gcc")
    program = [sys.executable, "-m", "trimtab_agent.main", "check", str(workload)]
    done = run([*program, "--state-dir", tmp_path / "state"], PATH=bin_)
    assert done.returncode == 2
    assert "'gcc' is neither a file in " in done.stderr
    done = run([sys.executable, workload / "prepare.py", "--again"], PATH=bin_)
    assert done.returncode == 1
    assert done.stderr.startswith("error: gcc is not in PATH: install gcc, make, ")


def test_ports(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    measure.write_pages()
    cpus = sorted(os.sched_getaffinity(0))
    free = free_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        asked = iter([taken, taken, free])
        monkeypatch.setattr(measure, "free_port", lambda: next(asked))
        with measure.served(built, threads=2, cpus=cpus) as server:
            assert server.port == free
            measure.check_answers(server.port, measure.PAGES.values())
        monkeypatch.setattr(measure, "free_port", lambda: taken)
        monkeypatch.setattr(measure, "PORT_ATTEMPTS", 2)
        with (
            pytest.raises(measure.MachineError, match="no free port: 2 in a row"),
            measure.served(built, threads=2, cpus=cpus),
        ):
            pass
    assert running(built / "httpd") == []


def test_no_counts_of_a_server_that_had_to_be_killed(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "STOP_SECONDS", 0.0)
    measure.write_pages()
    with pytest.raises(measure.MachineError, match="no counts of httpd: it did not come to its end within 0 s"):
        measure.simulated(built, [(measure.PAGES["static-2k"], 1)])
    assert running(built / "httpd") == []


def test_counters_of_the_machine(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf answers late, as on a busy machine, and counts events of the system instead of the processor's."""
    require_program("perf", "linux-perf")
    late = tmp_path / "bin" / "perf"
    late.parent.mkdir()
    late.write_text(f'#!/bin/sh\nsleep 1\nexec {shutil.which("perf")} "$@"\n')
    late.chmod(0o755)
    monkeypatch.setenv("PATH", f"{late.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    measure.write_pages()
    page, cpus = measure.PAGES["static-2k"], sorted(os.sched_getaffinity(0))
    with measure.served(built, threads=16, cpus=cpus) as server:
        with measure.counting(("context-switches", "page-faults"), server.processes()) as counted:
            measure.load(server.port, page, 500, 4, cpus)
        assert counted["context-switches"] > 0
        with (
            pytest.raises(measure.MachineError, match="perf counted no no-such-event"),
            measure.counting(("no-such-event",), server.processes()),
        ):
            pass


def test_reports_of_perf() -> None:
    report = "# started on\n\n1234,,cache-misses:u,1000,100.00,,\n<not supported>,,instructions,0,100.00,,\n"
    assert measure.counts_of(report) == {"cache-misses": 1234}


@pytest.fixture
def loaded(built: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """measure.py while the server is under load."""
    process = subprocess.Popen([sys.executable, WORKLOAD / "measure.py", built, "all"], cwd=tmp_path)
    wait_for((tmp_path / "httpd.pid").exists)
    wait_for(lambda: len(running(built / "httpd")) >= 3)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_measurement_leaves_no_process(built: Path, loaded: "subprocess.Popen[bytes]", number: int) -> None:
    assert outliving(built / "httpd") == []
    loaded.send_signal(number)
    loaded.wait(PATIENCE)
    wait_for(lambda: not running(built / "httpd"))
