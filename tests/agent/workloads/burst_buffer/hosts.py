"""Hosts of tests: network namespaces, or without them this host's loopback interface."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tests.agent.workloads.burst_buffer.place import Place, daemon_of
from tests.agent.workloads.shared import run
from tests.factories.patience import wait_for
from tests.factories.ports import free_port

CLIENTS = 2


class Host:
    """A host by the command that runs others on it, and the address at which it reaches the data node."""

    def __init__(self, entering: Sequence[str] = (), address: str = "127.0.0.1") -> None:
        self.entering, self.address = list(entering), address


@contextmanager
def namespaces() -> Iterator[tuple[Host, list[Host]]]:
    """Make the data node's host, and clients that only it can reach, each in a network namespace of its own."""
    with ExitStack() as ending:

        def host(address: str = "") -> Host:
            holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
            ending.callback(holder.wait)
            ending.callback(holder.kill)
            # unshare becomes sleep after it has made the namespace
            wait_for(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n", "a namespace")
            return Host(["nsenter", "--net", "--target", str(holder.pid)], address)

        node = host()
        clients = [host(f"10.77.{number}.1") for number in range(CLIENTS)]
        for number, client in enumerate(clients):
            script = f"""set -e
                ip link add client{number} type veth peer name node netns {client.entering[-1]}
                ip address add 10.77.{number}.1/24 dev client{number}
                ip link set client{number} up"""
            subprocess.run([*node.entering, "sh", "-c", script], check=True)
            script = f"set -e; ip address add 10.77.{number}.2/24 dev node; ip link set node up"
            subprocess.run([*client.entering, "sh", "-c", script], check=True)
        yield node, clients


@contextmanager
def hosts() -> Iterator[tuple[Host, list[Host]]]:
    """Yield the data node's host and the clients' hosts."""
    if os.getuid() == 0 and shutil.which("ip") and run(["unshare", "--net", "true"]).returncode == 0:
        with namespaces() as made:
            yield made
    else:
        yield Host(), [Host() for _ in range(CLIENTS)]


class DataNode:
    """A data node for the directory of a place, and its clients."""

    def __init__(self, place: Place, node: Host, clients: list[Host]) -> None:
        self.place, self.node, self.clients = place, node, clients
        self.token, self.port = place.folder / "token", free_port()
        self.processes: list[psutil.Process] = []

    def start(self, *options: object) -> None:
        """Start the data node in the background."""
        address = "0.0.0.0" if self.node.entering else "127.0.0.1"  # in a namespace of its own
        own = ["--listen", f"{address}:{self.port}", "--token", self.token, "--buffer", self.place.buffer]
        command = [*self.node.entering, self.place.built / "burst", "start", *own, *options, self.place.target]
        with (self.place.folder / "errors").open("w") as errors:  # which the guardian keeps open
            subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=errors, check=True)
        guardian = self.place.guardian
        self.processes += [psutil.Process(guardian), psutil.Process(daemon_of(guardian))]

    def stop(self) -> None:
        """Have all data written to the directory and end the data node."""
        assert run([self.place.built / "burst", "stop", "--buffer", self.place.buffer]).returncode == 0

    def end(self) -> None:
        """Kill whatever is left of it."""
        for process in self.processes:
            # It may end on its own at any moment.
            with suppress(psutil.NoSuchProcess):
                process.kill()
        wait_for(lambda: not any(alive(process) for process in self.processes), "the data node has ended")

    @property
    def guardian(self) -> psutil.Process:
        """The guardian of the last start."""
        return self.processes[-2]

    @property
    def daemon(self) -> psutil.Process:
        """The daemon of the last start."""
        return self.processes[-1]

    def line(self, client: int, *command: object, directory: Path | None = None) -> list[str]:
        """Return the command line that runs a command on a client's host."""
        host = self.clients[client]
        own = ["run", "--node", f"{host.address}:{self.port}", "--token", self.token, directory or self.place.target]
        return list(map(str, [*host.entering, self.place.built / "burst", *own, *command]))

    def run(self, client: int, *command: object, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command on a client's host."""
        return run(self.line(client, *command, directory=directory))

    def popen(self, client: int, *command: object) -> "subprocess.Popen[str]":
        """Start such a command, which ends with the test."""
        pipe = subprocess.PIPE
        line = self.line(client, *command)
        process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.processes.insert(0, psutil.Process(process.pid))
        return process


def alive(process: psutil.Process) -> bool:
    """Return whether a process runs; one that nobody has waited for does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it has ended between the two
        return False
