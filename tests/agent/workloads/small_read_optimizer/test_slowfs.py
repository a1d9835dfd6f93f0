"""Tests of slowfs, the slow file server."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.agent.workloads.shared import compile_c, run
from tests.agent.workloads.small_read_optimizer.preload import SOURCES
from tests.factories.patience import PATIENCE


def test_answers_are_late(built: Path, mounts: None, tmp_path: Path) -> None:
    """25 misses take at least 20 ms each, and a megabyte takes the time of 4 MB a second."""
    server = [built / "slowfs", "--latency", "20000", built, tmp_path / "mount"]
    answer = run([*server, built / "fakeapp", "-N", "25", "-l", "100k", tmp_path / "mount" / "data"])
    assert json.loads(answer.stdout)["seconds"] >= 25 * 0.02
    server = [built / "slowfs", "--latency", "0", "--bandwidth", "4", built, tmp_path / "mount"]
    pattern = ["-N", "1", "-w", "1000000", tmp_path / "mount" / "data"]
    assert json.loads(run([*server, built / "fakeapp", *pattern]).stdout)["seconds"] >= 0.25


def test_servers_of_one_folder_share_a_line(built: Path, mounts: None, tmp_path: Path) -> None:
    begun = time.monotonic()
    running = []
    for number in range(4):
        server = [built / "slowfs", "--bandwidth", "10", built, tmp_path / f"mount{number}", built / "fakeapp"]
        direction = ["-x"] if number % 2 else []
        command = [*server, *direction, "-N", "1", "-w", "1000000", tmp_path / f"mount{number}" / "data"]
        running.append(subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL))
    assert [process.wait(PATIENCE) for process in running] == [0] * 4
    assert time.monotonic() - begun >= 0.4


def test_a_mount_ends_with_its_command(built: Path, mounts: None, tmp_path: Path) -> None:
    server = [built / "slowfs", built, tmp_path / "mount"]
    seen = run([*server, "sh", "-c", f"ls {tmp_path}/mount; grep -c {tmp_path}/mount /proc/self/mounts; exit 7"])
    assert seen.returncode == 7
    assert {"data", "libsro.so", "1"} <= set(seen.stdout.split())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert list((tmp_path / "mount").iterdir()) == []
    assert run([*server, "sh", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL
    assert run([*server, "no-such-program"]).returncode == 127
    # the command of a killed server ends with it
    process = subprocess.Popen([str(item) for item in [*server, "sleep", "1234.5"]], stdout=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (child := children.read_text().strip()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    while Path(f"/proc/{child}").exists():
        time.sleep(0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="everything else here runs as another user then")
def test_no_root_is_needed(built: Path, mounts: None) -> None:
    shared = Path(built.root) / "tmp" / f"slowfs-test-{os.getpid()}"
    try:
        (shared / "files").mkdir(parents=True)
        for name in ("slowfs", "fakeapp"):
            shutil.copy(built / name, shared)
        shutil.copy(built / "data", shared / "files")
        subprocess.run(["chmod", "-R", "777", shared], check=True)
        # /dev/fuse as udev makes it: where that does not run, it may be root's alone
        (shared / "dev").mkdir()
        device = f"mount -t tmpfs none {shared}/dev && mknod -m 666 {shared}/dev/fuse c 10 229"
        bound = f'{device} && mount --bind {shared}/dev/fuse /dev/fuse && exec "$@"'
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        server = [shared / "slowfs", shared / "files", shared / "mount"]
        application = ["sh", "-c", f"id -u; {shared}/fakeapp -N 20 -S 1M {shared}/mount/data"]
        answer = run(["unshare", "--mount", "sh", "-c", bound, "-", *user, *server, *application])
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith("65534\n")
    finally:
        shutil.rmtree(shared)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--latency", "-1", "/tmp", "/tmp/m", "true"], 2, "--latency: '-1' is not allowed. Use 0 to 10000000"),
        (["--bandwidth", "0", "/tmp", "/tmp/m", "true"], 2, "--bandwidth: '0' is not allowed. Use 1 to 1000000"),
        (["/tmp", "/tmp/m"], 2, "usage: slowfs"),
        (["/no-folder", "/tmp/m", "true"], 3, "cannot open the folder: No such file"),
    ],
)
def test_the_file_server_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    answer = run([built / "slowfs", *arguments])
    assert answer.returncode == status
    assert message in answer.stderr


@pytest.mark.slow("builds it twice with sanitizers")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing_in_the_file_server(built: Path, mounts: None, tmp_path: Path, sanitizer: str) -> None:
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    program = compile_c(tmp_path / "slowfs", *flags, SOURCES / "slowfs.c")
    pattern = ["-N", "500", "-S", "1M", "-L", "6", "-w", "1", "-W", "300k", "-t", "6", "-a", "mixed"]
    script = 'cd "$1" && ls && "$2" $3 data && "$2" -x $3 data && cat nothing; stat -f . >/dev/null'
    server = [program, "--latency", "10", "--bandwidth", "4000", built, tmp_path / "mount"]
    answer = run([*server, "sh", "-c", script, "sh", tmp_path / "mount", built / "fakeapp", " ".join(pattern)])
    assert answer.returncode == 0, answer.stderr
    assert "No such file" in answer.stderr
    assert "Sanitizer" not in answer.stderr
