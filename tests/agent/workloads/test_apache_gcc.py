"""The workload for Apache httpd: built from its sources by GCC, under real load, on both runners, and its tuner."""

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trimtab
from tests.agent.conftest import AgentProcess, processes_of, wait_until
from tests.factories.ports import free_port
from tests.factories.service import EmbeddedService, lack, require_program
from tests.factories.slurm import Slurm
from trimtab_agent.components.arguments import effective_values, render
from trimtab_agent.components.generated import Generator
from trimtab_agent.components.loader import load
from trimtab_agent.components.schema import Choices, Component

WORKLOADS = Path(__file__).parents[3] / "agents" / "workloads"
WORKLOAD = WORKLOADS / "apache-gcc"
NONE: Mapping[str, str] = MappingProxyType({})
LEVELS = ("O0", "O1", "O2", "O3", "Os", "Ofast")
# the level that compiles fastest
QUICK = "opt-level=O0"


def module(name: str) -> ModuleType:
    """A file of the workload. The others of its folder can be imported by it."""
    spec = importlib.util.spec_from_file_location(f"apache_gcc_{name}", WORKLOAD / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # where dataclasses look for it
    sys.path.insert(0, str(WORKLOAD))
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(WORKLOAD))
    return made


analysis, build, measure, prepare, tuner = map(module, ("analysis", "build", "measure", "prepare", "tune"))


def command(
    *argv: str | Path, cwd: Path | None = None, variables: Mapping[str, str] = NONE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(item) for item in argv],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def copy(folder: Path) -> Path:
    """The workload without sources, and what it shares with another one."""
    for name in ("apache-gcc", "gcc-flags"):
        shutil.copytree(WORKLOADS / name, folder / name, ignore=shutil.ignore_patterns("source", ".part"))
    return folder / "apache-gcc"


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with its sources: those that this checkout has already, or fetched now."""
    for program, package in (
        ("gcc", "gcc"),
        ("make", "make"),
        ("ab", "apache2-utils"),
        ("valgrind", "valgrind"),
        ("pcre2-config", "libpcre2-dev"),
    ):
        require_program(program, package)
    folder = copy(tmp_path_factory.mktemp("workloads"))
    if (WORKLOAD / "source").is_dir():
        (folder / "source").symlink_to(WORKLOAD / "source")
        return folder
    prepared = command(sys.executable, folder / "prepare.py")
    if prepared.returncode != 0:
        lack(f"no sources of Apache httpd: {prepared.stderr}")
    return folder


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent's state: httpd is built once for all tests."""
    return tmp_path_factory.mktemp("state")


def attempt(components: Path, state: Path, application: str, *arguments: str) -> str:
    """One trial; what `try` prints."""
    program = [sys.executable, "-m", "trimtab_agent.main", "try", "apache-gcc", "--components", str(components)]
    return command(*program, "--state-dir", state, "--application", application, *arguments).stdout


def metrics_in(printed: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^metric (\w+) = (\S+)$", printed, re.MULTILINE)}


@pytest.fixture(scope="module")
def built(workload: Path, state: Path) -> Path:
    """A folder with httpd, as a trial has left it in the cache."""
    printed = attempt(workload, state, "static-2k", "--metric", "binary_bytes", "--set", QUICK)
    assert "outcome: completed" in printed, printed
    [entry] = (state / "builds").glob("*/httpd")
    return entry.parent


def running(program: Path) -> list[int]:
    """The processes of a program."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "exe").readlink() == program:
                    found.append(int(process.name))
            except OSError:
                continue
    return found


def outliving(program: Path) -> list[str]:
    """Shared memory, semaphores in it included, by which a program's processes would leave something when killed."""
    maps: list[str] = []
    for pid in running(program):
        with suppress(OSError):  # one that was about to become a page's program
            maps += Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in maps if "/SYSV" in line or "/dev/shm" in line]


# --- trials


def test_a_trial_of_all_pages(workload: Path, state: Path, built: Path) -> None:
    required = [item for name in ("requests_per_second", "context_switches") for item in ("--metric", name)]
    printed = attempt(workload, state, "mixed", *required, "--set", QUICK)
    assert "outcome: completed" in printed, printed
    assert "build: from the cache" in printed
    metrics = metrics_in(printed)
    assert metrics["requests_per_second"] * metrics["ms_per_request"] == pytest.approx(1000 * measure.CONCURRENCY)
    assert metrics["cpu_us_per_request"] > 0
    assert metrics["context_switches"] > 0
    assert metrics["binary_bytes"] == json.loads((built / "build.json").read_text())["binary_bytes"] > 500_000
    assert metrics["build_seconds"] > 0  # as it was when it was built
    assert "cache_misses" not in metrics
    assert running(built / "httpd") == []
    assert processes_of(state) == []


def test_counted(workload: Path, state: Path, built: Path) -> None:
    printed = attempt(workload, state, "static-2k-counted", "--set", QUICK)
    assert "outcome: completed" in printed, printed
    metrics = metrics_in(printed)
    assert metrics["simulated"] in (0, 1)
    # a request takes tens of thousands of instructions
    assert 10_000_000 < metrics["instructions"] < 1_000_000_000
    assert 0 < metrics["cache_misses"] < metrics["instructions"] / 4
    assert running(built / "httpd") == []


def test_on_slurm(workload: Path, state: Path, built: Path, slurm: Slurm) -> None:
    arguments = ["--metric", "requests_per_second", "--set", QUICK, "--runner", "slurm"]
    printed = attempt(workload, state, "static-32k", *arguments)
    assert "outcome: completed" in printed, printed
    assert "build: from the cache" in printed
    assert metrics_in(printed)["requests_per_second"] > 0
    assert running(built / "httpd") == []


def test_a_flag_that_the_compiler_refuses(workload: Path, tmp_path: Path) -> None:
    changed = copy(tmp_path)
    (changed / "source").symlink_to((workload / "source").resolve())
    file = changed / "component.yaml"
    assert "-flto=auto" in file.read_text()
    file.write_text(file.read_text().replace("-flto=auto", "-fno-such-flag"))
    printed = attempt(changed, tmp_path / "state", "static-2k", "--set", "lto=true")
    assert "outcome: infeasible" in printed
    assert "unrecognized command-line option '-fno-such-flag'" in printed
    assert "ended with exit code 1" in printed
    assert processes_of(tmp_path / "state") == []


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo 'fatal error: error writing to /tmp/a.s: No space left on device' >&2; exit 1", build.MachineError),
        ("echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1", build.MachineError),
        ("kill -KILL $$", build.MachineError),
        ("echo 'gcc: internal compiler error: Segmentation fault' >&2; exit 4", build.CompilerError),
    ],
)
def test_a_compiler_for_whose_failure_the_machine_is_to_blame(tmp_path: Path, script: str, error: type) -> None:
    with pytest.raises(error, match=r"sh ended with (exit code|signal) \d: a\.c"):
        build.run(["sh", "-c", script, "a.c"], tmp_path)


def test_sources_that_are_gone(workload: Path, tmp_path: Path) -> None:
    """It is not the configuration's fault."""
    changed = copy(tmp_path)
    (changed / "source").mkdir()
    (changed / "source" / "provenance.json").write_text("{}")
    printed = attempt(changed, tmp_path / "state", "static-2k")
    assert "outcome: failed" in printed
    assert f"run python3 {changed / 'prepare.py'}" in printed


def test_no_sources_is_told_at_once(tmp_path: Path) -> None:
    changed = copy(tmp_path)
    program = [sys.executable, "-m", "trimtab_agent.main", "check", str(changed)]
    done = command(*program, "--state-dir", tmp_path / "state")
    assert done.returncode == 2
    assert f"no source of Apache httpd: run python3 {changed / 'prepare.py'}" in done.stderr


# --- answers


def run_measure(
    build: Path, work: Path, pages: str, variables: Mapping[str, str] = NONE
) -> subprocess.CompletedProcess[str]:
    return command(sys.executable, WORKLOAD / "measure.py", build, pages, cwd=work, variables=variables)


def with_page(built: Path, folder: Path, script: str) -> Path:
    """The build with another CGI program."""
    folder.mkdir()
    for name in ("httpd", "build.json"):
        shutil.copy(built / name, folder / name)
    (folder / "page").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "page").chmod(0o755)
    return folder


HEAD = r"printf 'Content-Type: text/plain\r\n\r\n'"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"{HEAD}; GOOD | tr 0 1", "/cgi/page?2048: the answer differs from byte 0 on"),
        (f"{HEAD}; GOOD | head -c 2000", "/cgi/page?2048: the answer has 2000 bytes, not 2048"),
        ("exit 1", "/cgi/page?2048: status 500"),
        # right at first, and too short under load
        (f"{HEAD}; [ -e COUNT ] && echo short || {{ touch COUNT; GOOD; }}", "failed, 0 had another status"),
        (f"[ -e COUNT ] && exit 1; touch COUNT; {HEAD}; GOOD", "had another status than 2xx"),
    ],
)
def test_wrong_answers(built: Path, tmp_path: Path, script: str, words: str) -> None:
    good = f"QUERY_STRING=$QUERY_STRING {built}/page | tail -n 1"
    broken = with_page(built, tmp_path / "broken", script.replace("GOOD", good).replace("COUNT", str(tmp_path / "n")))
    done = run_measure(broken, tmp_path, "cgi-2k")
    assert done.returncode == 1, done
    assert words in done.stderr
    assert done.stdout == ""
    assert running(broken / "httpd") == []


def test_a_server_that_does_not_start(built: Path, tmp_path: Path) -> None:
    broken = with_page(built, tmp_path / "broken", "")
    (broken / "httpd").write_text("#!/bin/sh\necho no such luck >&2\nexit 7\n")
    done = run_measure(broken, tmp_path, "static-2k")
    assert done.returncode == 1
    assert "httpd ended with 7 at its start\nno such luck" in done.stderr


def test_the_pages_are_those_of_the_program(built: Path) -> None:
    for length in (1, 11, 2048, 32768):
        printed = subprocess.run([built / "page"], env={"QUERY_STRING": str(length)}, capture_output=True, check=True)
        assert printed.stdout.partition(b"\r\n\r\n")[2] == measure.content(length)
    for query in ("", "x", "12x", "-1", "99999999"):
        printed = subprocess.run([built / "page"], env={"QUERY_STRING": query}, capture_output=True, check=True)
        assert printed.stdout.startswith(b"Status: 400 ")


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


# --- the machine


def path_without(folder: Path, *missing: str) -> str:
    """A PATH with every program but these."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).iterdir() if Path(place).is_dir() else []:
            link = folder / program.name
            if program.name not in missing and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_no_ab(built: Path, tmp_path: Path) -> None:
    done = run_measure(built, tmp_path, "static-2k", variables={"PATH": path_without(tmp_path / "bin", "ab")})
    assert done.returncode == 3
    assert done.stderr == "error: ab is not in PATH: install it (Debian package apache2-utils)\n"


def test_ab_that_prints_nonsense(built: Path, tmp_path: Path) -> None:
    bin_ = path_without(tmp_path / "bin", "ab")
    (tmp_path / "bin" / "ab").write_text("#!/bin/sh\nhead -c 5000 /dev/urandom\n")
    (tmp_path / "bin" / "ab").chmod(0o755)
    done = run_measure(built, tmp_path, "static-2k", variables={"PATH": bin_})
    assert done.returncode == 3
    assert "ab does not say 'Document Length'" in done.stderr
    assert running(built / "httpd") == []


def test_no_gcc(workload: Path, tmp_path: Path) -> None:
    bin_ = path_without(tmp_path / "bin", "gcc")
    program = [sys.executable, "-m", "trimtab_agent.main", "check", str(workload)]
    done = command(*program, "--state-dir", tmp_path / "state", variables={"PATH": bin_})
    assert done.returncode == 2
    assert "'gcc' is neither a file in " in done.stderr
    done = command(sys.executable, workload / "prepare.py", "--again", variables={"PATH": bin_})
    assert done.returncode == 1
    assert done.stderr.startswith("error: gcc is not in PATH: install gcc, make, ")


def test_ports(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    measure.write_pages(built)
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
    measure.write_pages(built)
    with pytest.raises(measure.MachineError, match="no counts of httpd: it did not come to its end within 0 s"):
        measure.simulated(built, [measure.PAGES["static-2k"]], 0.0)
    assert running(built / "httpd") == []


def test_counters_of_the_machine(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf, late, as on a busy machine, with events that every machine counts, in place of those of the processor."""
    require_program("perf", "linux-perf")
    late = tmp_path / "bin" / "perf"
    late.parent.mkdir()
    late.write_text(f'#!/bin/sh\nsleep 1\nexec {shutil.which("perf")} "$@"\n')
    late.chmod(0o755)
    monkeypatch.setenv("PATH", f"{late.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    measure.write_pages(built)
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


# --- the end


@pytest.fixture
def loaded(built: Path, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """measure.py while the server is under load."""
    process = subprocess.Popen([sys.executable, WORKLOAD / "measure.py", built, "mixed"], cwd=tmp_path)
    wait_until((tmp_path / "httpd.pid").exists)
    wait_until(lambda: len(running(built / "httpd")) >= 3)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left(built: Path, loaded: "subprocess.Popen[bytes]", number: int) -> None:
    assert outliving(built / "httpd") == []
    loaded.send_signal(number)
    loaded.wait(60)
    wait_until(lambda: not running(built / "httpd"))


def test_nothing_is_left_by_a_killed_supervisor(workload: Path, state: Path, built: Path) -> None:
    program = [sys.executable, "-m", "trimtab_agent.main", "try", "apache-gcc", "--components", str(workload)]
    arguments = ["--state-dir", str(state), "--application", "mixed", "--set", QUICK]
    with subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE, text=True) as trying:
        wait_until(lambda: len(running(built / "httpd")) >= 3)
        [pid] = (state / "tries").glob("*/pid")
        os.kill(int(pid.read_text().split()[0]), signal.SIGKILL)
        printed = trying.communicate(timeout=120)[0]
    assert "the trial's supervisor process was killed" in printed
    wait_until(lambda: not running(built / "httpd"))
    wait_until(lambda: not processes_of(state))


# --- the space


@pytest.fixture(scope="module")
def component(workload: Path, state: Path) -> Component:
    return load(workload / "component.yaml", Generator(state / "generated"))


def test_the_levels_alone_pass_nothing_else(component: Component) -> None:
    for level in LEVELS:
        assert render(component, effective_values(component, {"opt-level": level})).flags == {"": [f"-{level}"]}
    assert render(component, effective_values(component, {})).flags == {"": ["-O2"]}


def test_every_flag_can_be_switched_both_ways(component: Component) -> None:
    for pick, word in ((1, "-fgcse"), (2, "-fno-gcse")):
        given = {
            name: parameter.domain.values[pick]
            for name, parameter in component.parameters.items()
            if isinstance(parameter.domain, Choices) and name != "opt-level"
        }
        [flags] = render(component, effective_values(component, given)).flags.values()
        assert word in flags
        assert any(re.fullmatch(r"--param=max-inline-insns-auto=\d+", flag) for flag in flags)
        done = command("gcc", *flags, "-x", "c", "-c", "/dev/null", "-o", "/dev/null")
        assert done.returncode == 0, done.stderr


# --- preparing


def test_where_the_sources_come_from(workload: Path) -> None:
    known = json.loads((workload / "source" / "provenance.json").read_text())
    for part in prepare.PARTS:
        assert re.fullmatch(r"[0-9a-f]{64}", known[part]["sha256"])
    commands = json.loads((workload / "source" / "commands.json").read_text())
    compiled = {f"{folder}/{arguments[-1]}" for folder, arguments in commands["compile"]}
    assert {"server/core.c", "modules/generators/mod_cgid.c", "srclib/apr-util/buckets/apr_brigade.c"} <= compiled
    assert "srclib/apr/tables/apr_tables.c" in compiled
    assert not any(name.startswith("support/") for name in compiled)
    assert "-O0" not in {item for _, arguments in commands["compile"] for item in arguments}
    # done already: it says so, and where from
    again = command(sys.executable, workload / "prepare.py")
    assert again.returncode == 0
    assert known["httpd"]["sha256"] in again.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--httpd", "FILE"], "the tarballs belong together: --apr, --apr-util must be given as well"),
        (["--httpd", "FILE", "--apr", "nowhere", "--apr-util", "FILE"], "--apr is 'nowhere': there is no such file"),
        (["--httpd", f"FILE#sha256={'0' * 64}", "--apr", "FILE", "--apr-util", "FILE"], "--httpd: the SHA-256 of"),
        (["--httpd", "FILE", "--apr", "FILE", "--apr-util", "FILE"], "FILE cannot be unpacked"),
    ],
)
def test_prepare_refuses(tmp_path: Path, options: Sequence[str], message: str) -> None:
    changed = copy(tmp_path)
    file = tmp_path / "some.tar.gz"
    file.write_bytes(b"nothing of the kind")
    done = command(sys.executable, changed / "prepare.py", *(option.replace("FILE", str(file)) for option in options))
    assert done.returncode == 1
    assert message.replace("FILE", str(file)) in done.stderr
    assert not (changed / "source").exists()
    assert list((changed / ".part").glob("*")) == []


def test_sources_of_apt() -> None:
    stanzas = (
        "# the main archive\nTypes: deb\nURIs: http://deb.example.org/debian\nSuites: trixie trixie-updates\n"
        "Components: main\nSigned-By: /usr/share/keyrings/a.gpg\n\n"
        "Types: deb\nURIs: http://deb.example.org/security\nSuites: trixie-security\nComponents: main\n"
    )
    wanted = (
        "Types: deb-src\nURIs: http://deb.example.org/debian\nSuites: trixie\n"
        "Components: main\nSigned-By: /usr/share/keyrings/a.gpg\n"
    )
    assert prepare.source_entries(stanzas, True, "trixie") == [wanted]
    lines = (
        "deb [arch=amd64 signed-by=/usr/share/keyrings/a.gpg] http://deb.example.org/debian trixie main # here\n"
        "# deb http://deb.example.org/debian trixie contrib\n"
        "deb-src http://deb.example.org/debian trixie main\n"
        "deb http://deb.example.org/debian trixie-updates main\n"
    )
    assert prepare.source_entries(lines, False, "trixie") == [wanted]
    assert prepare.source_entries(lines, False, "sid") == []


# --- what the trials say

SMALL, FAST = analysis.Criterion("bytes"), analysis.Criterion("rate", maximize=True)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=12))
def test_pareto_set(values: list[tuple[int, int]]) -> None:
    points = {str(at): {"bytes": one, "rate": other} for at, (one, other) in enumerate(values)}
    front = {tuple(points[name].values()) for name in analysis.pareto(points, [SMALL, FAST])}
    for one, other in values:
        beaten = any(a <= one and b >= other and (a, b) != (one, other) for a, b in values)
        assert ((one, other) in front) is not beaten


def test_medians_are_of_a_configuration() -> None:
    trials = [({"a": 1, "b": 2}, {"x": 1.0}), ({"b": 2, "a": 1}, {"x": 5.0}), ({"a": 2, "b": 2}, {"x": 7.0})]
    assert list(analysis.medians(trials).values()) == [{"x": 3.0}, {"x": 7.0}]


def test_gains() -> None:
    steady = analysis.gain_of([(80.0, 100.0)] * 6, SMALL)
    assert (steady.estimate, steady.low, steady.high) == pytest.approx((0.2, 0.2, 0.2))
    assert steady.proven
    assert analysis.gain_of([(120.0, 100.0)] * 6, FAST).estimate == pytest.approx(0.2)
    noisy = analysis.gain_of([(value, 100.0) for value in (70.0, 80.0, 90.0, 95.0, 85.0, 101.0)], SMALL)
    assert (noisy.low, noisy.high) == pytest.approx((-0.01, 0.3))
    assert not noisy.proven
    few = analysis.gain_of([(80.0, 100.0)] * 5, SMALL)
    assert (few.low, few.high) == (None, None)
    assert not few.proven


def test_rounds_in_which_a_trial_failed_are_left_out() -> None:
    """And the others stay together."""
    own = [{"rate": value} for value in (1.0, 2.0, 3.0)]
    other = [{"rate": 10.0}, None, {"rate": 30.0}]
    assert tuner.pairs(own, other, FAST) == [(1.0, 10.0), (3.0, 30.0)]
    assert tuner.middle(other) == {"rate": 20.0}


def synthetic(count: int, effect: Callable[[dict[str, object]], float], noise: float) -> list[tuple[object, float]]:
    """Configurations of twenty flags at two levels, and a value for each."""
    import numpy as np

    chance = np.random.default_rng(7)
    points: list[tuple[object, float]] = []
    for _ in range(count):
        params: dict[str, object] = {f"f{at}": str(chance.choice(["level", "on", "off"])) for at in range(20)}
        params["opt-level"] = str(chance.choice(["O2", "Os"]))
        value = 100.0 * (0.5 if params["opt-level"] == "Os" else 1.0) * effect(params)
        points.append((params, value * float(np.exp(chance.normal(0, noise)))))
    return points


DEFAULTS = {"opt-level": "O2", **{f"f{at}": "level" for at in range(20)}}


def test_effects_that_are_there() -> None:
    def effect(params: dict[str, object]) -> float:
        return (1.3 if params["f3"] == "on" else 1.0) * (0.9 if params["f7"] == "off" else 1.0)

    found, looked_at = analysis.effects(synthetic(80, effect, 0.02), "opt-level", DEFAULTS)
    shown = {(one.parameter, one.value): one for one in found if one.shown}
    assert set(shown) == {("f3", "on"), ("f7", "off")}
    assert looked_at == 40
    for (_, _), one, change in zip(shown, shown.values(), (0.3, -0.1), strict=True):
        assert one.low < change < one.high
        assert one.high - one.low < 0.1
    # and the first that is not shown, as such
    assert [one.shown for one in found] == [True, True, False]


def test_effects_of_chance_are_not_shown() -> None:
    found, _ = analysis.effects(synthetic(40, lambda _: 1.0, 0.05), "opt-level", DEFAULTS)
    assert [one.shown for one in found] == [False]


def test_effects_in_too_few_configurations() -> None:
    assert analysis.effects(synthetic(3, lambda _: 1.0, 0.05), "opt-level", DEFAULTS) == ([], 0)
    constant = [(params, 5.0) for params, _ in synthetic(40, lambda _: 1.0, 0.0)]
    assert analysis.effects(constant, "opt-level", DEFAULTS)[0] == []


# --- tune.py


def tune(arguments: Sequence[str], variables: Mapping[str, str] = NONE) -> subprocess.CompletedProcess[str]:
    return command(sys.executable, WORKLOAD / "tune.py", *arguments, variables=variables)


@pytest.fixture(scope="module")
def service(
    workload: Path,
    state: Path,
    built: Path,
    embedded_service: EmbeddedService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """The variables by which tune.py finds the service. Its agent builds httpd once, whatever the flags, and loads it
    for a moment."""
    folder = tmp_path_factory.mktemp("agent")
    changed = copy(folder / "workloads")
    (changed / "source").symlink_to((workload / "source").resolve())
    for name, before, after in (
        ("component.yaml", '"{build}", "{flags}"]]', '"{build}", -O0]]'),
        ("component.yaml", "\napplications:\n", '\nheader: [["true", "{flags}"]]\n\napplications:\n'),
        ("measure.py", "ROUNDS = 5", "ROUNDS = 1"),
        ("measure.py", "2048, 6000", "2048, 200"),
    ):
        text = (changed / name).read_text()
        assert before in text
        (changed / name).write_text(text.replace(before, after))
    agent = AgentProcess(folder, int(embedded_service.grpc_address.rpartition(":")[2]), embedded_service.token)
    agent.components = changed
    # what is built is the same
    agent.state.mkdir()
    (agent.state / "builds").symlink_to(state / "builds")
    agent.start()
    try:
        wait_until(lambda: "ready " in agent.log, 60)
        yield {"TRIMTAB_URL": embedded_service.grpc_address, "TRIMTAB_TOKEN": embedded_service.token}
    finally:
        agent.clear_away()


CRITERIA = "requests_per_second,binary_bytes"


def test_tune(service: dict[str, str]) -> None:
    asked = ["--pages", "static-2k", "--criteria", CRITERIA, "--trials", "11", "--repetitions", "1", "--rounds", "6"]
    asked += ["--screening", "2", "--algorithm", "random", "--name", "tested"]
    answer = tune(asked, service)
    assert answer.returncode == 0, answer.stderr
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        search, checked = client.get_study("tested-static-2k"), client.get_study("tested-static-2k-check")
        assert (search.state, checked.state) == ("COMPLETED", "COMPLETED")
        trials, rounds = search.trials(), [trial for trial in checked.trials() if trial.origin == "enqueued"]
        assert len(trials) == 11
        # the levels alone, each once in every round
        plain = [trial.params["opt-level"] for trial in trials if trial.origin == "enqueued"]
        assert plain == [*LEVELS, "O2", "O1"]  # the random ones: every second round goes backwards
        compared = {json.dumps(trial.params, sort_keys=True) for trial in rounds}
        assert len(rounds) == 6 * len(compared)
        once = rounds[: len(compared)]
        assert [trial.params for trial in rounds[len(compared) : 2 * len(compared)]] == [
            trial.params for trial in reversed(once)
        ]
        assert [trial.params["opt-level"] for trial in once[:6]] == list(LEVELS)
        assert 7 <= len(compared) <= 9
        # the same command again measures nothing anew, and says the same
        again = tune(asked, service)
        assert again.returncode == 0, again.stderr
        assert again.stdout == answer.stdout
        assert len(checked.trials()) == len(client.get_study(checked.name).trials())
    for words in ("Pareto set: ", "Final check, medians", "against -O2 (95 %)", "Which flags matter", "-Ofast"):
        assert words in answer.stdout
    # the program is always the same
    assert re.search(r"binary_bytes\s+its best\s+\+0\.0 % \(\+0\.0 to \+0\.0\) ", answer.stdout)
    assert "weak evidence" in answer.stdout


def test_a_study_that_was_interrupted_before_it_was_paused(service: dict[str, str]) -> None:
    """It has none of its first configurations, and its agents have gone on without."""
    name, criteria = "interrupted", [analysis.Criterion("binary_bytes")]
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        space = client.component("apache-gcc").space
        client.create_study(
            name,
            space=space,
            objectives=[tuner.objective(one) for one in criteria],
            component="apache-gcc",
            application="static-2k",
            algorithm="random",
            resampling="none",
            max_trials=20,
        )
        first = [tuner.plain(level, space) for level in LEVELS]
        study = tuner.open_study(client, name, tuner.arguments([]), criteria, space, [first], 20, "random")
        enqueued = [trial.params for trial in study.trials() if trial.origin == "enqueued"]
        assert (enqueued, study.state) == (first, "ACTIVE")
        study.complete("that is all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pages", "static"], "--pages is 'static'; allowed: one of static-2k, "),
        (["--criteria", "requests_per_second,speed"], "--criteria is 'speed'; allowed: requests_per_second, "),
        (["--criteria", ""], "--criteria is ''; allowed: requests_per_second, "),
        (["--trials", "30"], "--trials is 30; allowed: 31 or more: levels and random configurations alone take 28"),
        (["--screening", "-1"], "--screening is -1; allowed: 0 or more"),
        (["--repetitions", "0"], "--repetitions is 0; allowed: 1 or more"),
        (["--rounds", "5"], "--rounds is 5; allowed: 0, or 6 or more"),
    ],
)
def test_tune_refuses(arguments: list[str], message: str) -> None:
    answer = tune(arguments)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: {message}")
    assert answer.stdout == ""
