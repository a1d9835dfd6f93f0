"""A real Ray for tests: a head with its dashboard on this machine, on ports of its own."""

import json
import os
import shutil
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

import psutil

from service.embedded.processes import Child
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port

CPUS = 8
# below a test's own limit, for what Ray has to say to be seen
# in the environment of all that a Ray starts, jobs included: the folder that it is in
MARK = "TRIMTAB_TEST_RAY"
# ... and the same for a node other than the head: the name of the node
NODE_MARK = "TRIMTAB_TEST_RAY_NODE"
# A memory monitor would see the whole machine's memory, and kill jobs that other tests' processes leave no room.
# Whoever has used Ray here has a token (~/.ray/auth_token), and a head would want it of everybody.
ENVIRONMENT = {"RAY_memory_monitor_refresh_ms": "0", "RAY_AUTH_MODE": "disabled"}


class RayHead:
    """`ray start --head` on this machine. After `start`: `address` for drivers, `dashboard` for jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # those that stay the same when it is started again, as on a cluster
        self._ports = {name: free_port() for name in ("port", "dashboard-port", "ray-client-server-port")}
        self.address = f"127.0.0.1:{self._ports['port']}"
        self.dashboard = f"http://127.0.0.1:{self._ports['dashboard-port']}"
        self._child: Child | None = None
        # of this head and of those before it
        self._sessions: set[int] = set()

    def start(self) -> None:
        """Start the head and wait until all of its parts answer."""
        ports = {**self._ports, "dashboard-agent-listen-port": free_port(), "min-worker-port": 0, "max-worker-port": 0}
        argv = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats"]
        argv += ["--include-dashboard=true", "--include-log-monitor=false", f"--temp-dir={self.folder}"]
        # the least that it takes
        argv += [f"--num-cpus={CPUS}", f"--object-store-memory={80_000_000}"]
        argv += [f"--{name}={port}" for name, port in ports.items()]
        environment = {**os.environ, **ENVIRONMENT, MARK: str(self.folder)}
        self._child = Child("ray", argv, environment, self.folder / "head.log")
        _begin(self._child, self._sessions, self._is_whole, "all of Ray's parts answer")

    @contextmanager
    def joined(self, name: str, *options: str) -> Iterator["RayNode"]:
        """Another node on this machine, whose own name is `name` there, as it is on a cluster."""
        node = RayNode(self, name, options)
        try:
            node.start()
            yield node
        finally:
            node.end()

    def stop(self) -> None:
        """End all processes of the head and its jobs."""
        processes = self.processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if self._child is not None and self._child.process is not None:
            self._child.process.wait()
        _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
        assert not alive, f"outlived Ray: {alive}"

    def lose(self) -> None:
        """Kill the processes of Ray itself, as if the head's machine had failed. Its jobs keep running."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                if process.name() in ("ray", "gcs_server", "raylet") or "dashboard" in " ".join(process.cmdline()):
                    process.kill()

    def processes(self) -> list[psutil.Process]:
        """Return all processes that this Ray has started and that still run."""
        return [one for one in psutil.process_iter() if _is_of(one, self._sessions, MARK, str(self.folder))]

    def hosts(self) -> list[str]:
        """Return the host names of all nodes that are alive."""
        return [node["nodeManagerHostname"] for node in self._nodes()]

    def knows(self, name: str) -> bool:
        """Return whether a machine of this name has a node that is alive."""
        with _unless_it_starts():
            return name in self.hosts()
        return False

    def _nodes(self) -> list[dict[str, str]]:
        """Return the nodes that are alive, from the dashboard."""
        with urllib.request.urlopen(f"{self.dashboard}/nodes?view=summary", timeout=PATIENCE) as answer:
            nodes = [node["raylet"] for node in json.load(answer)["data"]["summary"]]
        return [node for node in nodes if node["state"] == "ALIVE"]

    def _is_whole(self) -> bool:
        """Return whether the dashboard answers and lists a node, and the server for remote drivers accepts connections.

        Ray exits if that server starts too late.
        """
        with _unless_it_starts():
            for node in self._nodes():
                server = (node["nodeManagerAddress"], self._ports["ray-client-server-port"])
                with (
                    urllib.request.urlopen(f"{self.dashboard}/api/jobs/", timeout=10) as answer,
                    socket.create_connection(server, timeout=10),
                ):
                    return bool(answer.status == 200)
        return False


class RayNode:
    """A node of a head's cluster other than the head."""

    def __init__(self, head: RayHead, name: str, options: Sequence[str]) -> None:
        self.head, self.name = head, name
        # a name of its own for the machine, in a namespace
        other = ["unshare", "--uts", *([] if os.getuid() == 0 else ["--map-root-user"])]
        argv = [*other, "sh", "-c", 'hostname "$0" && exec "$@"', name, str(Path(sys.executable).with_name("ray"))]
        argv += ["start", f"--address={head.address}", "--block", "--disable-usage-stats"]
        argv += ["--include-log-monitor=false", f"--object-store-memory={80_000_000}", *options]
        argv += ["--min-worker-port=0", "--max-worker-port=0", f"--dashboard-agent-listen-port={free_port()}"]
        environment = {**os.environ, **ENVIRONMENT, MARK: str(head.folder), NODE_MARK: name}
        self._child = Child(name, argv, environment, head.folder / f"{name}.log")
        self._sessions: set[int] = set()

    def start(self) -> None:
        """Start the node and wait until the head lists it."""
        _begin(self._child, self._sessions, lambda: self.head.knows(self.name), f"{self.name} has joined Ray")

    def end(self) -> None:
        """Kill all processes of the node and its jobs, as if its machine had failed."""
        for process in psutil.process_iter():
            if _is_of(process, self._sessions, NODE_MARK, self.name):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        if self._child.process is not None:
            self._child.process.wait()


def _unless_it_starts() -> suppress:
    """Ignore the errors of a call to a dashboard that still starts: no answer, or an incomplete one."""
    return suppress(OSError, HTTPException, ValueError, KeyError)


def _begin(child: Child, sessions: set[int], ready: Callable[[], bool], what: str) -> None:
    """Start the child and wait until it is ready. `sessions` receives the identifiers of its sessions.

    Ray ends itself if one of its parts takes too long to start. It is then started again.
    """

    def is_ready() -> bool:
        if not child.running():
            child.start()
            assert child.process is not None
            sessions.add(child.process.pid)
        return ready()

    try:
        wait_for(is_ready, what)
    except AssertionError as error:
        said = child.log.read_text()[-3000:] if child.log else ""
        raise AssertionError(f"{error}\n{said}") from None


def _is_of(process: psutil.Process, sessions: set[int], mark: str, value: str) -> bool:
    """Return whether a process is in one of these sessions or has the mark in its environment.

    Jobs have their own sessions, so the mark identifies them. Ray's agents overwrite their environment with their
    titles, so the session identifies them.
    """
    with suppress(OSError, psutil.Error):
        return os.getsid(process.pid) in sessions or process.environ().get(mark) == value
    return False


@contextmanager
def ray_head() -> Iterator[RayHead]:
    """Run a head of Ray."""
    # sockets have short paths
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    head = RayHead(folder)
    try:
        head.start()
        yield head
    finally:
        head.stop()
        shutil.rmtree(folder, ignore_errors=True)
