"""Faults of the agent and of the plug-in on a real Slurm: none of them fails a submission."""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agent.matching.conftest import Matching
from tests.agent.matching.slurm.cluster import PATIENT, Cluster, settings
from tests.marks import slow_cases

UNCHANGED = "the job is submitted unchanged"


@pytest.fixture(autouse=True, scope="module")
def hurried(cluster: Cluster) -> Iterator[None]:
    """The plug-in waits as long as it does on clusters."""
    cluster.install(500)
    yield
    cluster.install(PATIENT)


def no_agent(cluster: Cluster) -> None:
    """There is no socket."""


def stale(cluster: Cluster) -> None:
    """The agent was killed and has left its socket."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(cluster.socket))


def no_library(cluster: Cluster) -> None:
    """Somebody has removed the library, which is a Lua error."""
    stale(cluster)
    cluster.library.rename(cluster.library.with_suffix(".away"))


def no_permission(cluster: Cluster) -> None:
    """The path is not a socket."""
    cluster.socket.mkdir()


@pytest.mark.parametrize("fault", [no_agent, stale, no_library, no_permission])
def test_without_an_agent(cluster: Cluster, out: Path, fault: Callable[[Cluster], None]) -> None:
    fault(cluster)
    try:
        _, said = cluster.sbatch(out)
        assert (UNCHANGED in said) == (fault is not no_agent)
        assert settings(out) == {}
    finally:
        with suppress(OSError):
            cluster.library.with_suffix(".away").rename(cluster.library)
        with suppress(OSError):
            cluster.socket.rmdir() if cluster.socket.is_dir() else cluster.socket.unlink()


def silence(link: socket.socket) -> None:
    """The other side reads nothing and says nothing."""


def half(link: socket.socket) -> None:
    """The connection ends within the answer."""
    link.recv(65536)
    link.sendall(b"trimtab-match 1\nset SOLVER_THREADS=8\n")
    link.close()


def garbage(link: socket.socket) -> None:
    """The answer is of another protocol."""
    link.recv(65536)
    link.sendall(b"HTTP/1.1 400 Bad Request\n\nend\n")


def malformed(link: socket.socket) -> None:
    """A line of the answer is wrong; the good line before it must not count."""
    link.recv(65536)
    link.sendall(b"trimtab-match 1\nset SOLVER_THREADS=8\nset =x\nend\n")


def endless(link: socket.socket) -> None:
    """The answer has no end."""
    link.recv(65536)
    link.sendall(b"trimtab-match 1\n")
    with suppress(OSError):
        while True:
            link.sendall(b"note " + b"x" * 4096 + b"\n")


def slow(link: socket.socket) -> None:
    """The answer comes byte by byte."""
    link.recv(65536)
    with suppress(OSError):
        for byte in b"trimtab-match 1\nset SOLVER_THREADS=8\nend\n" * 10:
            link.sendall(bytes([byte]))
            time.sleep(0.1)


@pytest.mark.parametrize("behave", [silence, half, garbage, malformed, endless, slow])
@pytest.mark.parametrize(
    "tool",
    [
        "sbatch",
        *slow_cases("the plug-in is the same for each tool", "srun", "salloc"),
    ],
)
def test_an_agent_that_answers_nonsense(
    cluster: Cluster, out: Path, behave: Callable[[socket.socket], None], tool: str
) -> None:
    links = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(cluster.socket))
        listening.listen(8)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    link, _ = listening.accept()
                    links.append(link)
                    behave(link)

        threading.Thread(target=serve, daemon=True).start()
        try:
            done = cluster.run(tool, *(["--output=/dev/null"] if tool == "sbatch" else []), cluster.script, out)
            assert UNCHANGED in done.stderr
            assert settings(out) == {}
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for link in links:
                link.close()
            cluster.socket.unlink()


def test_a_full_queue_of_connections(cluster: Cluster, out: Path) -> None:
    links = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(cluster.socket))
        listening.listen(1)
        try:
            with pytest.raises(BlockingIOError):  # noqa: PT012  the queue is full at some time
                while True:
                    link = socket.socket(socket.AF_UNIX)
                    links.append(link)
                    link.setblocking(False)
                    link.connect(str(cluster.socket))
            _, said = cluster.sbatch(out)
            assert f"{UNCHANGED}: the agent cannot be reached" in said
            assert settings(out) == {}
        finally:
            for link in links:
                link.close()
            cluster.socket.unlink()


def test_a_stopped_agent(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    assert matching.agent.process
    matching.agent.process.send_signal(signal.SIGSTOP)
    try:
        _, said = cluster.sbatch(out)
        assert f"{UNCHANGED}: the agent has not answered in time" in said
        assert settings(out) == {}
    finally:
        matching.agent.process.send_signal(signal.SIGCONT)


def test_a_request_that_is_too_long(cluster: Cluster, matching: Matching, out: Path) -> None:
    matching.start()
    job, said = cluster.sbatch(out, **{f"VARIABLE_{'x' * 60}_{number}": "" for number in range(1200)})
    assert UNCHANGED in said
    assert settings(out) == {}
    assert job
