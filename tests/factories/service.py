"""Real servers for tests: the embedded service, PostgreSQL, Redis."""

import atexit
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from service.embedded.postgres import OWNER, SERVICE, Postgres
from service.embedded.processes import Child, service_command, stop
from service.embedded.supervisor import DATABASE
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port

# An address of this machine that a test can send from, for the proxy in front of a service. Others are not believed.
PROXY = "127.0.0.2"


class EmbeddedService:
    """`trimtab-service up` as a user runs it, on free ports and with its data in `data_dir`.

    If that folder is empty, the first start finds a database with all tables in it (`_migrated`). `environment` adds to
    this process's, and may be changed before a start. After `start`: grpc_address ("127.0.0.1:PORT"), http_url, token,
    login_url.
    """

    def __init__(self, data_dir: Path, environment: Mapping[str, str] | None = None, *options: str) -> None:
        self.data_dir = data_dir
        self.grpc_address = ""
        self.http_url = ""
        self.login_url = ""
        self.environment = {**os.environ, **(environment or {})}
        self.environment.pop("DJANGO_SETTINGS_MODULE", None)
        self._options = options
        self._ports = (str(free_port()), str(free_port()))
        self._popen: subprocess.Popen[bytes] | None = None
        self.output = ""

    @property
    def token(self) -> str:
        """The administrator's token."""
        return (self.data_dir / "admin-token").read_text().strip()

    @property
    def pid(self) -> int:
        """The supervisor's process number."""
        assert self._popen is not None
        return self._popen.pid

    def command(self) -> list[str]:
        """Return the command line. After the first start it keeps the ports, so that clients find the service again."""
        ports = ["--port", self._ports[0], "--grpc-port", self._ports[1]]
        return [sys.executable, "-m", "service.main", "up", "--data-dir", str(self.data_dir), *ports, *self._options]

    def start(self) -> "EmbeddedService":
        """Start the service and wait for the line `ready`. Raises AssertionError with the output if it is missing."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not any(self.data_dir.iterdir()):
            shutil.copytree(_migrated(), self.data_dir / "postgres")
        self._popen = subprocess.Popen(
            self.command(), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.output = _read_until(self._popen, "ready console=")
        ready = re.search(r"^ready console=(\S+) grpc=(\S+)$", self.output, re.MULTILINE)
        link = re.search(r"https?://\S+/login\?code=\S+", self.output)
        if ready is None or link is None:
            self.kill()
            raise AssertionError(f"the service did not start:\n{self.output}\n{self.logs()}")
        self.http_url, self.grpc_address = ready.groups()
        self.login_url = link.group()
        self._ports = (self.http_url.rpartition(":")[2], self.grpc_address.rpartition(":")[2])
        return self

    def processes(self) -> dict[str, int]:
        """Return the ids of the service's processes by name: postgres, web, grpc, worker, beat."""
        found: dict[str, int] = {}
        for child in psutil.Process(self.pid).children():
            try:
                command = child.cmdline()
            except psutil.Error:  # it has just died
                continue
            if "service.main" in command:
                found[command[command.index("service.main") + 1]] = child.pid
            elif command and Path(command[0]).name == "postgres":
                found["postgres"] = child.pid
        return found

    def computing(self) -> list[int]:
        """Return the ids of the worker's two processes, for quick and for slow operations; none while it starts."""
        worker = self.processes().get("worker")
        return [] if worker is None else sorted(child.pid for child in psutil.Process(worker).children())

    def tree(self) -> list[psutil.Process]:
        """Return all processes of the service, with the supervisor and PostgreSQL's processes."""
        supervisor = psutil.Process(self.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor alone."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for the end of the supervisor and return its exit code."""
        assert self._popen is not None
        code = self._popen.wait(seconds)
        if self._popen.stdout:
            self._popen.stdout.close()
        return code

    def stop(self) -> int:
        """Stop the service as Ctrl-C does."""
        self.send(signal.SIGINT)
        return self.wait()

    def kill(self) -> None:
        """Kill the supervisor and wait until all processes that it has started are gone."""
        assert self._popen is not None
        if self._popen.poll() is None:
            tree = self.tree()
            self._popen.kill()
            self.wait()
            _, alive = psutil.wait_procs(tree, timeout=PATIENCE)
            assert not alive, f"outlived the supervisor: {alive}"

    def logs(self) -> str:
        """Return the end of every log, for the message of a failing test."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted((self.data_dir / "logs").glob("*.log"))
        )

    def __enter__(self) -> "EmbeddedService":
        return self.start() if self._popen is None else self

    def __exit__(self, *_: object) -> None:
        if self._popen is not None and self._popen.poll() is None:
            self.stop()


@cache
def _migrated() -> Path:
    """Return the folder of a stopped PostgreSQL with the tables of the service, which this process makes once.

    To make it takes half of the processor time of a first start, of which there are about thirty.
    """
    folder = Path(tempfile.mkdtemp(prefix="trimtab-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o711)  # PostgreSQL may run as another user
    (folder / "secret-key").write_text("of migrations alone")
    with postgres_server(folder) as server:
        server.ensure_database(DATABASE)
        environment = {
            "DJANGO_SETTINGS_MODULE": "service.config.settings.embedded",
            "TRIMTAB_DATA_DIR": str(folder),
            "DATABASE_URL": server.url(DATABASE, SERVICE),
            "TRIMTAB_OWNER_DATABASE_URL": server.url(DATABASE, OWNER),
        }
        subprocess.run(service_command("migrate"), env=os.environ | environment, stdout=subprocess.DEVNULL, check=True)
    return server.folder


@contextmanager
def postgres_server(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    servers: list[Child] | None = None,
    entering: Sequence[str] = (),
) -> Iterator[Postgres]:
    """PostgreSQL in `folder`, without the writes to disk that only a power failure would make matter.

    Its process is added to `servers`. `entering`: the beginning of its command line, if it runs on another machine
    (factories/network.py).
    """
    server = Postgres(folder / "postgres", {"fsync": "off", **(settings or {})})
    server.prepare()
    child = server.child(folder / "postgres.log")
    child.argv = [*entering, *child.argv]
    child.start()
    if servers is not None:
        servers.append(child)
    try:
        server.wait_until_ready(child, PATIENCE)
        yield server
    finally:
        stop([child])


@contextmanager
def redis_server(folder: Path, servers: list[Child] | None = None) -> Iterator[str]:
    """Run a real Redis and return its URL. Without Redis the test fails in CI, and is skipped elsewhere.

    Its process is added to `servers`.
    """
    program = require_program("redis-server", "redis-server")
    port = free_port()
    argv = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    child = Child("redis", argv, dict(os.environ), folder / "redis.log")
    child.start()
    if servers is not None:
        servers.append(child)
    try:
        wait_for(lambda: _accepts(port), "Redis listens")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        stop([child])


def require_program(name: str, package: str) -> str:
    """Return the path of a program that a test needs. Without it the test fails in CI, and is skipped elsewhere."""
    path = shutil.which(name)
    if path is None:
        lack(f"{name} is not installed (Debian package {package})")
    return path


def lack(message: str) -> NoReturn:
    """End a test that cannot run here, as `message` says: a failure in CI, elsewhere a skip."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def lives(process: psutil.Process) -> bool:
    """Return whether a process runs. A process that has ended stays listed until its parent or init waits for it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _read_until(popen: subprocess.Popen[bytes], text: str) -> str:
    """Return the output of a process up to the end of the line that contains `text`, or up to its end."""
    assert popen.stdout is not None
    output = b""
    end = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as selector:
        selector.register(popen.stdout, selectors.EVENT_READ)
        while time.monotonic() < end:
            if selector.select(0.2):
                more = os.read(popen.stdout.fileno(), 65536)
                output += more
                if not more or (text.encode() in output and output.endswith(b"\n")):
                    break
    return output.decode(errors="replace")
