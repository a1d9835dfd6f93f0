"""`trimtab-service up`: all processes of the service under one supervisor, with one data folder."""

import errno
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from service.embedded.postgres import OWNER, SERVICE, Postgres, tail
from service.embedded.processes import PYTHON, Child, service_command, stop
from service.embedded.signals import Waiting
from service.platform.addresses import is_loopback
from service.platform.disk import is_full
from service.platform.predecessor import NAME_VARIABLE
from trimtab_components.terminal import write

DATABASE = "trimtab"
# A busy machine needs most of a minute for each step.
START_SECONDS = 180.0
# A service that has just been killed may still hold its ports.
PORT_SECONDS = 3.0
WILDCARDS = ("0.0.0.0", "::", "")  # these are compared with, not bound to  # nosec B104


class StartError(Exception):
    """The service cannot start; the message says why and what to do."""


class _Stopped(Exception):
    """SIGINT, SIGTERM or SIGHUP has arrived."""


@dataclass(frozen=True)
class Options:
    """The options of `trimtab-service up`. A port of 0 selects a free one."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8470
    grpc_port: int = 8471
    workers: int = 1
    plaintext: bool = False


class Supervisor:
    """The supervisor: it starts the processes of the service, restarts those that die, and stops all together.

    It has one thread. It looks at signals only while it pauses, so none interrupts other work, and a second Ctrl-C
    during the stop has no effect.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._data = options.data.expanduser().resolve()
        self._logs = self._data / "logs"
        self._children: list[Child] = []
        self._once: Child | None = None
        numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # under nohup it is ignored
            numbers.add(signal.SIGHUP)
        self._signals = Waiting(numbers)

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM. Raises StartError if the service cannot start."""
        lock = self._prepare_folder()
        write(f"Starting with the data in {self._data} ...", error=True)
        try:
            self._start()
            while True:
                self._keep_alive()
                self._pause(1.0)
        except _Stopped:
            write("Stopping ...", error=True)
        finally:
            self._stop()
            self._signals.ignore()
            lock.close()

    def _prepare_folder(self) -> "Lock":
        try:
            self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_others_out(self._data)
            for folder in (self._logs, self._data / "alive"):
                folder.mkdir(mode=0o700, exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            raise StartError(f"The data folder {self._data} cannot be used: {error.strerror}.") from error
        lock = Lock(self._data / "service.lock")
        for name in ("admin-token", "secret-key"):
            _write_secret_once(self._data / name)
        # The database knows all work, so messages of an earlier run are not needed.
        shutil.rmtree(self._data / "broker", ignore_errors=True)
        for folder in (self._data / "broker", self._data / "broker" / "control"):
            folder.mkdir(mode=0o700)
        return lock

    def _start(self) -> None:
        host = self._options.host
        if not is_loopback(host) and not self._options.plaintext:
            raise StartError(
                f"Other machines can reach {host}, and this command does not encrypt. Put a proxy with TLS in front of"
                " both ports and use --plaintext."
            )
        port = _usable_port(host, self._options.port, "--port")
        grpc_port = _usable_port(host, self._options.grpc_port, "--grpc-port")
        shown = "127.0.0.1" if host in WILDCARDS else f"[{host}]" if ":" in host else host
        console, address = f"http://{shown}:{port}", f"{shown}:{grpc_port}"

        postgres = Postgres(self._data / "postgres")
        try:
            postgres.prepare(self._pause)
            server = self._add(postgres.child(self._logs / "postgres.log"))
            self._prepare_database(postgres, server)
        except RuntimeError as error:
            raise StartError(str(error)) from error

        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "service.config.settings.embedded",
            "TRIMTAB_DATA_DIR": str(self._data),
            "TRIMTAB_GRPC_PORT": str(grpc_port),
            "DATABASE_URL": postgres.url(DATABASE, SERVICE),
        }
        if host in WILDCARDS:
            environment.setdefault("TRIMTAB_ALLOWED_HOSTS", "*")
        else:
            environment.setdefault("TRIMTAB_ALLOWED_HOSTS", host)
        as_owner = environment | {"TRIMTAB_OWNER_DATABASE_URL": postgres.url(DATABASE, OWNER)}
        self._run_once("migrate", service_command("migrate"), as_owner, self._logs / "migrate.log")
        rpc = ["grpc", "--host", host, "--port", str(grpc_port), *(["--plaintext"] if self._options.plaintext else [])]
        self._add(self._child("web", service_command("web", "--host", host, "--port", str(port)), environment))
        self._add(self._child("grpc", service_command(*rpc), environment))
        found = {"pid": os.getpid(), "console": console, "grpc": address, "database_url": environment["DATABASE_URL"]}
        (self._data / "service.json").write_text(json.dumps(found))
        announce = [*PYTHON, "service.embedded.announce", console, address]
        self._run_once("announce", announce, environment, None)
        # These start last, because importing PyTorch would slow the start of the others. Operations wait meanwhile.
        # Nobody waits for a periodic task, so its queue need not be read as often as that of the computations.
        self._add(self._child("beat", service_command("beat"), environment | {"TRIMTAB_POLLING_SECONDS": "0.2"}))
        for number in range(1, self._options.workers + 1):
            name = "worker" if self._options.workers == 1 else f"worker-{number}"
            # All workers of earlier runs are gone too, and this one replaces the one of its number.
            named = environment | {NAME_VARIABLE: f"worker-{number}"}
            self._add(self._child(name, service_command("worker"), named))

    def _prepare_database(self, postgres: Postgres, server: Child) -> None:
        """Wait for PostgreSQL and make the database; again if a connection breaks meanwhile. Raises RuntimeError."""
        end = time.monotonic() + START_SECONDS
        while True:
            postgres.wait_until_ready(server, START_SECONDS, self._pause)
            try:
                postgres.ensure_database(DATABASE)
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > end:
                    raise RuntimeError(f"PostgreSQL does not stay up: {error}") from error
            self._pause(0.2)

    def _child(self, name: str, argv: Sequence[str], environment: dict[str, str]) -> Child:
        alive = self._data / "alive" / name
        return Child(
            name, argv, environment | {"TRIMTAB_ALIVE_FILE": str(alive)}, self._logs / f"{name}.log", alive=alive
        )

    def _add(self, child: Child) -> Child:
        child.start()
        self._children.append(child)
        return child

    def _run_once(self, name: str, argv: Sequence[str], environment: dict[str, str], log: Path | None) -> None:
        """Run a command to its end while the other processes are kept alive. Raises StartError if it fails."""
        self._once = Child(name, argv, environment, log)
        self._once.start()
        end = time.monotonic() + 2 * START_SECONDS
        while self._once.running():
            if time.monotonic() > end:
                raise StartError(f"The step `{name}` of the start does not end. See the logs in {self._logs}.")
            self._keep_alive()
            self._pause(0.5)
        if self._once.process is None or self._once.process.returncode != 0:
            detail = f":\n{tail(log)}" if log else f"; see {self._logs}."
            raise StartError(f"The step `{name}` of the start failed{detail}")
        self._once = None

    def _keep_alive(self) -> None:
        for child in self._children:
            if happened := child.keep_alive():
                write(f"trimtab-service: {happened}", error=True)
                if child.name == "postgres" and is_full(self._data):
                    full = f"The disk of {self._data} is full. PostgreSQL runs again when there is space."
                    write(f"trimtab-service: {full}", error=True)
            child.trim_log()

    def _pause(self, seconds: float) -> None:
        """Wait for `seconds`, or less if a child has died or is due to start. Raises _Stopped."""
        due = [child.not_before - time.monotonic() for child in self._children if child.process is None]
        if self._signals.wait(max(0.0, min([seconds, *due]))) - {signal.SIGCHLD}:
            raise _Stopped

    def _stop(self) -> None:
        """Stop every process, the database last, so that the others can finish their writes."""
        others = [child for child in self._children if child.name != "postgres"]
        if self._once:
            others.append(self._once)
        stop(others)
        stop([child for child in self._children if child.name == "postgres"])
        with suppress(FileNotFoundError):
            (self._data / "service.json").unlink()


class Lock:
    """A lock that allows one running service for each data folder. The kernel releases it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+")  # held as long as the service runs
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise StartError(
                f"The data folder {path.parent} is in use by the service that runs as process {holder}. "
                "Stop that service, or choose another folder with --data-dir."
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _keep_others_out(folder: Path) -> None:
    """Take the right to write from all other users. Whoever can write here can replace the secrets and the messages.

    Raises OSError if another user owns the folder and others may write to it.
    """
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o022:
        folder.chmod(mode & ~0o022)


def _write_secret_once(path: Path) -> None:
    """Write a new secret to `path`, which only this user can read, unless the file has one."""
    if path.exists() and path.read_text().strip():
        return
    unfinished = path.with_suffix(".unfinished")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def _usable_port(host: str, port: int, option: str) -> int:
    """Return `port`, or a free port for 0. Raises StartError if the port is not available."""
    end = time.monotonic() + PORT_SECONDS
    while True:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
                return int(probe.getsockname()[1])
        except (OSError, OverflowError) as error:
            if time.monotonic() > end or not _may_pass(error):
                raise StartError(
                    f"Port {port} of {host} cannot be used: {error}. Choose another with {option} (0: any free one)."
                ) from error
            time.sleep(0.1)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE
