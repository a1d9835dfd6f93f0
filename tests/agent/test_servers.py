"""The use of servers: workers that come, go and are waited for, and whose it may be."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.factories.patience import wait_for
from trimtab_agent.supervisor.servers import NoServerError, Servers

NAME = "trimtab-server"
SERVER = f"""
import os, sys, threading, time
open("/proc/self/comm", "w").write("{NAME}")
def spin():
    until = time.thread_time() + 0.1
    while time.thread_time() < until: pass
print(flush=True)
for line in sys.stdin:
    if line == "worker\\n":
        if os.fork() == 0:
            spin()
            os._exit(0)
        os.wait()
    elif line == "lasting\\n":
        if os.fork() == 0:
            spin()
            print(flush=True)
            time.sleep(1000)
        continue
    elif line == "lost\\n":
        lost = os.fork()
        if lost == 0:
            open("/proc/self/comm", "w").write("{NAME}")
            if os.fork() != 0: os._exit(0)
            print(os.getpid(), flush=True)
            time.sleep(1000)
        os.wait()
        continue
    elif line == "thread\\n":
        thread = threading.Thread(target=spin)
        thread.start()
        thread.join()
    elif line == "write\\n":
        if os.fork() == 0:
            with open(sys.argv[1], "wb") as file:
                file.write(b"x" * 1_000_000)
            os._exit(0)
        os.wait()
    else:
        spin()
    print(flush=True)
"""


class Server:
    """A server that does what it is told."""

    def __init__(self, file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._answer()

    def do(self, work: str) -> str:
        """Let it work, and return its answer."""
        _of(self.process.stdin).write(f"{work}\n".encode())
        _of(self.process.stdin).flush()
        return self._answer()

    def _answer(self) -> str:
        return _of(self.process.stdout).readline().decode().strip()


def _of(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


@pytest.fixture
def server(tmp_path: Path, programs_start: None) -> Iterator[Server]:
    made = Server(tmp_path / "written")
    yield made
    os.killpg(made.process.pid, 9)
    made.process.communicate()


@pytest.mark.parametrize("work", ["itself", "worker", "lasting", "thread"])
def test_the_time_of_a_server_is_that_of_all_its_processes(server: Server, work: str) -> None:
    """Its workers may live on, or end before the run does; what they did before the run does not count."""
    server.do(work)
    observed = Servers([NAME], os.geteuid())
    server.do(work)
    assert 0.08 <= observed.seconds(NAME) < 0.18


def test_a_worker_that_has_ended_counts_without_its_time_before_the_run(server: Server) -> None:
    """Its parent counts all of its time when it waits for it."""
    server.do("lasting")
    observed = Servers([NAME], os.geteuid())
    assert observed.seconds(NAME) < 0.05
    (lasting,) = [pid for pid, process in observed._before[NAME].items() if process.parent == server.process.pid]
    os.kill(lasting, 9)
    server.do("worker")  # waits for the ended one
    server.do("itself")
    assert 0.05 <= observed.seconds(NAME) < 0.25


def test_the_time_of_a_process_that_nobody_of_the_server_waited_for_is_unknown(server: Server) -> None:
    lost = int(server.do("lost"))
    observed = Servers([NAME], os.geteuid())
    os.kill(lost, 9)
    wait_for(lambda: not Path(f"/proc/{lost}").exists())
    with pytest.raises(NoServerError, match="has ended during the run"):
        observed.seconds(NAME)


def test_only_servers_of_the_trials_user_count(server: Server) -> None:
    with pytest.raises(NoServerError, match=r"no process 'trimtab-server' of the trial's user \(uid 12345\)"):
        Servers([NAME], 12345).seconds(NAME)
    with pytest.raises(NoServerError, match="no process 'none' of any user"):
        Servers(["none"], 0).seconds("none")


def test_bytes_that_a_worker_has_written_count_when_it_has_ended(server: Server) -> None:
    server.do("write")
    observed = Servers([NAME], os.geteuid())
    assert observed.bytes_written(NAME) == 0
    server.do("write")
    if observed.bytes_written(NAME) == 0:
        pytest.skip("the file system of temporary files counts no written bytes")
    assert 1_000_000 <= observed.bytes_written(NAME) < 1_010_000
