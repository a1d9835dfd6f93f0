"""The module that scripts of components share: results, checks, data, commands and servers."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.factories.patience import wait_for

SERVER = """
import os, socket, sys, time
server = socket.socket(socket.AF_UNIX)
held = b"x" * (30 << 20)
if os.fork() == 0:
    while time.process_time() < 0.1: pass
    os._exit(0)
os.wait()
server.bind(sys.argv[1])
server.listen()
while True:
    link = server.accept()[0]
    begin = time.process_time()
    while link.recv(1) == b"x":
        while time.process_time() < begin + 0.1: pass
        link.sendall(b"done")
"""


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return module_of(WORKLOADS / "redis", "trial").__dict__["bench"]  # type: ignore[no-any-return]


def script(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """Run a script next to a copy of the module, as a user has it."""
    (folder / "bench.py").write_text((WORKLOADS / "bench.py").read_text())
    (folder / "own.py").write_text(f"import bench\ndef measure():\n    {body}\nbench.main(measure)\n")
    command = [sys.executable, str(folder / "own.py"), "a=1", "b=x=y", "plain"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("body", "code", "printed"),
    [
        ("return {'n': 1.5} | bench.settings()", 0, {"n": 1.5, "a": "1", "b": "x=y"}),
        ("bench.expect([1], [2], 'the answer')", 1, "error: the answer: '[1]' instead of '[2]'"),
        (
            "bench.program('no-such', 'the package none')",
            3,
            "error: the program no-such is missing. Install the package",
        ),
        ("bench.run(['sh', '-c', 'echo so >&2; exit 4'])", 1, "error: sh ended with 4\nso"),
        ("bench.run(['./none'])", 3, "error: ./none cannot be started: No such file or directory"),
    ],
)
def test_a_script_prints_json_and_says_whose_fault_it_is(
    tmp_path: Path, programs_start: None, body: str, code: int, printed: Any
) -> None:
    done = script(tmp_path, body)
    assert done.returncode == code, done.stderr
    if code == 0:
        assert json.loads(done.stdout) == printed
    else:
        assert done.stdout == ""
        assert done.stderr.startswith(printed)


def test_a_command_is_measured_with_its_children(bench: ModuleType, programs_start: None) -> None:
    spin = "import time, sys\nwhile time.process_time() < 0.2: pass\nsys.stdout.write(sys.stdin.read())"
    done = bench.run(["sh", "-c", '"$0" -c "$1"; true', sys.executable, spin], data=b"given")
    assert done.output == b"given"
    assert 0.2 <= done.cpu_seconds <= done.seconds + 0.1


@pytest.fixture
def socket_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("socket")


def test_a_server_is_measured_and_ended(bench: ModuleType, socket_path: Path, programs_start: None) -> None:
    command = [sys.executable, "-c", SERVER, socket_path]
    with bench.server(command, ready=lambda: bench.listens(socket_path)) as server:
        before = server.cpu_seconds()
        assert before >= 0.1  # its child has spent that
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(socket_path))
            link.sendall(b"x")
            assert link.recv(9) == b"done"
        assert before + 0.09 <= server.cpu_seconds() < before + 0.2
        assert 30 << 20 <= server.peak_memory() < 100 << 20
        pid = server.process.pid
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_does_not_start_says_why(bench: ModuleType, programs_start: None) -> None:
    with (
        pytest.raises(bench.WrongError, match=r"sh ended with 1\nno such option"),
        bench.server(["sh", "-c", "echo no such option; exit 1"], ready=lambda: False),
    ):
        pass


def test_a_killed_server_leaves_no_process(bench: ModuleType, programs_start: None) -> None:
    with bench.server(["sh", "-c", "sleep 1000 & echo $! >&2; wait"], ready=lambda: True) as server:
        wait_for(lambda: len(server._processes()) == 2)
        pids = [pid for pid, _ in server._processes()]
        server.kill()
        wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids))


def test_data_is_restored_and_its_checksum_depends_on_every_byte(
    bench: ModuleType, tmp_path: Path, programs_start: None
) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    (source / "file").write_text("as it was")
    for _ in range(2):
        bench.restore(source, target)
        (target / "file").write_text("changed")
        (target / "more").write_text("")
    bench.restore(source, target)
    assert [file.name for file in target.iterdir()] == ["file"]
    assert bench.checksum(target / "file") == bench.checksum(source / "file")
    assert bench.checksum(["ab", "c"]) != bench.checksum(["a", "bc"])


def test_zipf_draws_small_numbers_more_often(bench: ModuleType) -> None:
    draws = bench.zipf(1000, 1.0, seed=1)
    found = [next(draws) for _ in range(20_000)]
    assert 0 <= min(found) <= max(found) < 1000
    # the first has a share of 1 / (1 + 1/2 + ... + 1/1000) = 0.134, and the second half of that
    assert 0.12 < found.count(0) / len(found) < 0.15
    assert 0.055 < found.count(1) / len(found) < 0.08
