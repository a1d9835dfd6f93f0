"""The targets: how each is started, loaded and checked.

A target's program is in the folder `bin` of a build. It listens on the loopback interface or on a socket in the working
folder, and writes there only.
"""

import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

from serving import (  # in the parent folder
    PORT_ATTEMPTS,
    MachineError,
    PortTakenError,
    ServerError,
    bind_child,
    free_port,
    listens,
    processor_seconds,
    running,
)

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER / "source"
CLIENTS = 4

HTTPD_CONFIGURATION = """
ServerRoot "{root}"
ServerName localhost
Listen 127.0.0.1:{port}
PidFile httpd.pid
ErrorLog error.log
LogLevel crit
{user}
Mutex pthread
StartServers 1
ServerLimit 1
ThreadsPerChild 16
ThreadLimit 16
MinSpareThreads 1
MaxRequestWorkers 16
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
LogFormat "%h %l %u %t \\"%r\\" %>s %b \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
CustomLog /dev/null combined
TypesConfig /dev/null
ScriptSock socket
DocumentRoot "{root}/pages"
<Directory "{root}/pages">
    Options +Indexes
    IndexOptions FancyIndexing
    Require all granted
</Directory>
<Location /status>
    SetHandler server-status
</Location>
"""
# path, share of the requests, and status; together they run more of the server than one page does
PAGES = (("/2048", 0.4, 200), ("/32768", 0.2, 200), ("/list/", 0.2, 200), ("/missing", 0.1, 404), ("/status", 0.1, 200))


@dataclass(frozen=True)
class Server:
    """A running target."""

    process: "subprocess.Popen[bytes]"
    connection: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Loaded:
    """The result of a load: requests or transactions, the seconds that they took, and the server's processor time."""

    requests: int
    seconds: float
    user_seconds: float
    system_seconds: float


@dataclass(frozen=True)
class Target:
    """A program whose functions can be placed.

    `start` runs the program of a build; `send` loads it with a number of requests and returns the seconds; `requests`
    is that number in a trial, some seconds of work.
    """

    name: str
    program: str
    start: Callable[[Path, Path, Sequence[int], Mapping[str, str]], "contextlib.AbstractContextManager[Server]"]
    send: Callable[[Server, int, Sequence[int]], float]
    requests: int

    @property
    def place(self) -> Path:
        """Return where prepare.py puts the target."""
        return SOURCE / self.name

    @property
    def source(self) -> Path:
        """Return the folder that prepare.py has made. Raise MachineError if there is none."""
        if not (self.place / "link.json").is_file():
            raise MachineError(f"no {self.name} to link: run python3 {FOLDER / 'prepare.py'} {self.name}")
        return self.place

    def load(self, server: Server, requests: int, cpus: Sequence[int]) -> Loaded:
        """Send requests and return the times. Raise ServerError or MachineError."""
        before = processor_seconds(server.process.pid)
        seconds = self.send(server, requests, cpus)
        after = processor_seconds(server.process.pid)
        return Loaded(requests, seconds, after[0] - before[0], after[1] - before[1])


def client(command: Sequence[str], cpus: Sequence[int], package: str, env: Mapping[str, str] | None = None) -> str:
    """Return the output of a program that loads a server. Raise ServerError, or MachineError if it is not installed."""
    if shutil.which(command[0]) is None:
        raise MachineError(f"{command[0]} is not in PATH: install it (Debian package {package})")
    done = subprocess.run(
        list(command),
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: bind_child(cpus),
    )
    if done.returncode:
        raise ServerError(f"{command[0]} ended with {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def number(pattern: str, report: str) -> float:
    """Return the number in a program's report. Raise MachineError."""
    found = re.search(pattern, report, re.MULTILINE)
    if found is None:
        raise MachineError(f"no {pattern!r} in the report:\n{report[-500:]}")
    return float(found[1])


# --- httpd


def write_pages(root: Path) -> None:
    """Write the pages of httpd."""
    (root / "pages" / "list").mkdir(parents=True, exist_ok=True)
    for size in (2048, 32768):
        (root / "pages" / str(size)).write_bytes(page(size))
    for entry in range(20):
        (root / "pages" / "list" / f"{entry}.txt").write_bytes(page(entry))


def page(size: int) -> bytes:
    """Return the content of a page."""
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


@contextlib.contextmanager
def httpd_running(
    program: Path, root: Path, cpus: Sequence[int], env: Mapping[str, str], before: Sequence[str] = ()
) -> Iterator[Server]:
    """Run httpd in a folder; with a program `before` it, without worker processes. Raise ServerError, MachineError."""
    write_pages(root)
    # as root httpd would otherwise become another user, who may be unable to read the pages
    user = f"User #{os.getuid()}\nGroup #{os.getgid()}" if os.getuid() == 0 else ""
    (root / "httpd.pid").unlink(missing_ok=True)
    for _ in range(PORT_ATTEMPTS):
        port = free_port()
        configuration = root / "httpd.conf"
        configuration.write_text(HTTPD_CONFIGURATION.format(root=root, port=port, user=user))
        command = [*before, str(program), "-d", str(root), "-f", str(configuration)]
        command += ["-X"] if before else ["-D", "FOREGROUND"]
        try:
            with running(
                command,
                ready=lambda port=port: (root / "httpd.pid").exists() and listens(port),
                log=root / "server.log",
                cpus=cpus,
                env=env,
            ) as made:
                check_pages(port)
                yield Server(made, [str(port)])
                return
        except PortTakenError:
            continue
    raise MachineError(f"no free port: {PORT_ATTEMPTS} in a row were taken before httpd listened")


def check_pages(port: int) -> None:
    """Check an answer of each page. Raise ServerError."""
    for path, _, status in PAGES:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                raise ServerError(f"{path}: no answer: {error!r}") from None
        name = path[1:]
        if answer.status != status or (name.isdigit() and body != page(int(name))):
            raise ServerError(f"{path}: the answer is wrong: status {answer.status}, {len(body)} bytes")


def load_httpd(server: Server, requests: int, cpus: Sequence[int], clients: int = CLIENTS) -> float:
    """Send requests for each page; return the seconds. Raise ServerError or MachineError."""
    seconds = 0.0
    for path, share, _ in PAGES:
        count = max(round(share * requests), clients)
        # the answers of /status differ in length
        command = ["ab", "-q", "-k", "-l", "-s", "60", "-c", str(clients), "-n", str(count)]
        report = client([*command, f"http://127.0.0.1:{server.connection[0]}{path}"], cpus, "apache2-utils")
        if number(r"^Failed requests:\s+(\d+)", report):
            raise ServerError(f"{path}: requests failed:\n{report[-500:]}")
        seconds += number(r"^Time taken for tests:\s+([\d.]+)", report)
    return seconds


# --- PostgreSQL


@contextlib.contextmanager
def postgres_running(
    program: Path, data: Path, folder: Path, cpus: Sequence[int], env: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run PostgreSQL on a data folder, with its socket in a short path. Raise ServerError."""
    # the path of a socket is limited to 107 bytes
    place = f"/proc/{os.getpid()}/cwd" if folder == Path.cwd() else str(folder)
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": place,
        "fsync": "off",
        "shared_buffers": "64MB",
        "autovacuum": "off",
        "max_connections": "20",
    }
    command = [
        str(program),
        "-D",
        str(data),
        *(item for name, value in settings.items() for item in ("-c", f"{name}={value}")),
    ]
    libraries = {"LD_LIBRARY_PATH": str(program.resolve().parent.parent / "lib")}
    pid = data / "postmaster.pid"
    pid.unlink(missing_ok=True)

    def ready() -> bool:
        return pid.exists() and "ready" in pid.read_text()

    with running(
        command, ready=ready, log=folder / "server.log", cpus=cpus, env={**(env or {}), **libraries}, stop=signal.SIGINT
    ) as made:
        yield Server(made, ["-h", place, "-U", "bench", "postgres"], libraries)


@contextlib.contextmanager
def postgres_copied(program: Path, root: Path, cpus: Sequence[int], env: Mapping[str, str]) -> Iterator[Server]:
    """Run PostgreSQL on a copy of the prepared database."""
    data = root / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(POSTGRES.source / "data", data)
    with postgres_running(program, data, root, cpus, env) as server:
        yield server


def load_postgres(server: Server, requests: int, cpus: Sequence[int]) -> float:
    """Run transactions of pgbench, reads, updates and small reports; return the seconds."""
    pgbench = POSTGRES.source / "installed" / "bin" / "pgbench"
    scripts = ["-b", "select-only@6", "-b", "tpcb-like@1", "-f", f"{FOLDER / 'reports.sql'}@3"]
    command = [str(pgbench), *server.connection[:-1], "-n", "-c", str(CLIENTS), "-t", str(max(requests // CLIENTS, 1))]
    report = client([*command, *scripts, server.connection[-1]], cpus, "postgresql", server.env)
    if number(r"^number of failed transactions: (\d+)", report):
        raise ServerError(f"transactions failed:\n{report[-500:]}")
    return requests / number(r"^tps = ([\d.]+)", report)


HTTPD = Target("httpd", "httpd", httpd_running, load_httpd, 15000)
POSTGRES = Target("postgres", "postgres", postgres_copied, load_postgres, 6000)
TARGETS = {target.name: target for target in (HTTPD, POSTGRES)}
