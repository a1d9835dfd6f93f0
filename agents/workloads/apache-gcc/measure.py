"""Start the httpd of a build on a free loopback port, load it with `ab`, and print the measured values as JSON.

    python3 measure.py BUILD static-2k [--count]

The pages have the sizes of the published study: 2 KiB and 32 KiB, as files and from a CGI program; `mixed` loads all
four in turn. The script compares every kind of page byte by byte before and after the load; ab compares the status and
the length of each answer. All figures are medians over rounds. `context_switches`, `cache_misses` and `instructions`
are for 1,000 requests.

With --count, instructions and cache misses are counted: by the processor's counters through `perf` if the machine has
them, otherwise simulated by `valgrind --tool=cachegrind` on `httpd -X` in a separate run. `simulated` is 1 for the
latter.

httpd writes only into the working folder. The exit status is 1 for a wrong answer or a server that does not work, and 3
if the machine is the cause.
"""

import argparse
import contextlib
import ctypes
import errno
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MACHINE = 3
CONCURRENCY = 8
ROUNDS = 5
# attempts: another process may take a port that was free a moment ago
PORT_ATTEMPTS = 20
# long enough under valgrind on a busy machine
START_SECONDS, STOP_SECONDS = 60.0, 20.0
# as in many current processors; given here, since valgrind would use the sizes that a virtual machine invents
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")
# requests under valgrind, as a share of a round's: enough for a spread of 1 or 2 %
SIMULATED_SHARE = 0.1
PR_SET_PDEATHSIG = 1

CONFIGURATION = """
ServerRoot "{root}"
ServerName localhost
Listen 127.0.0.1:{port}
PidFile httpd.pid
ErrorLog error.log
LogLevel warn
{user}
# a killed server leaves nothing behind
Mutex pthread
StartServers 1
ServerLimit 1
ThreadsPerChild {threads}
ThreadLimit {threads}
MinSpareThreads 1
MaxRequestWorkers {threads}
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
# log lines are formatted as on any server, but not stored
LogFormat "%h %l %u %t \\"%r\\" %>s %b \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
CustomLog /dev/null combined
TypesConfig /dev/null
# this path has the same depth wherever the working folder is: httpd looks at each folder on the way, and the path of
# a socket must be short
DocumentRoot {place}/pages
ScriptSock {place}/socket
ScriptAlias /cgi/ {place}/programs/
<Directory {place}>
    Require all granted
</Directory>
"""


class WrongAnswerError(Exception):
    """The server gives a wrong answer or none: the build is the cause."""


class MachineError(Exception):
    """A program is missing or fails, or there is no free port: the machine is the cause."""


class PortTakenError(Exception):
    """Another process has taken the port."""


@dataclass(frozen=True)
class Page:
    """A page of the server. `requests` is the number of requests in a round."""

    path: str
    bytes: int
    requests: int


# numbers of requests that take about the same time for each page: half a second on a processor of its own
PAGES = {
    "static-2k": Page("/2048", 2048, 6000),
    "static-32k": Page("/32768", 32768, 5000),
    "cgi-2k": Page("/cgi/page?2048", 2048, 400),
    "cgi-32k": Page("/cgi/page?32768", 32768, 400),
}
MIXED = "mixed"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the folder that build.py has filled")
    parser.add_argument("pages", choices=(*PAGES, MIXED))
    parser.add_argument("--count", action="store_true", help="also count instructions and cache misses")
    options = parser.parse_args(argv)
    pages = list(PAGES.values()) if options.pages == MIXED else [PAGES[options.pages]]
    # SIGTERM ends the server as well: the exit stops it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        built = json.loads((options.build / "build.json").read_text())
        found = built | measure(options.build.resolve(), pages, count=options.count)
    except WrongAnswerError as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    except (MachineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    print(json.dumps(found))
    return 0


def measure(build: Path, pages: Sequence[Page], *, count: bool) -> dict[str, float]:
    """Return all figures. Raise WrongAnswerError or MachineError."""
    if shutil.which("ab") is None:
        raise MachineError("ab is not in PATH: install it (Debian package apache2-utils)")
    write_pages(build)
    counters = hardware_counters() if count else ()
    if count and not counters and shutil.which("valgrind") is None:
        raise MachineError("this machine gives no hardware counters, and valgrind is not in PATH: install it")
    server_cpus, load_cpus = processors()
    # with only as many threads as clients, httpd would close connections that are kept alive: failures for ab
    with served(build, threads=4 * CONCURRENCY, cpus=server_cpus) as server:
        check_answers(server.port, pages)
        for page in pages:  # warms up
            load(server.port, page, page.requests // 4, CONCURRENCY, load_cpus)
        with counting(counters, server.processes()) as counted:
            rounds = [one_round(server, pages, load_cpus) for _ in range(ROUNDS)]
        check_answers(server.port, pages)
    found = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    thousands = ROUNDS * sum(page.requests for page in pages) / 1000
    if counters:
        found |= {name: value / thousands for name, value in counted.items()} | {"simulated": 0}
    elif count:
        found |= simulate(build, pages) | {"simulated": 1}
    return found


def one_round(server: "Server", pages: Sequence[Page], cpus: Sequence[int]) -> dict[str, float]:
    """Load each page once; return the figures."""
    before = server.usage()
    seconds = [load(server.port, page, page.requests, CONCURRENCY, cpus) for page in pages]
    after = server.usage()
    requests, total = sum(page.requests for page in pages), sum(seconds)
    return {
        "requests_per_second": requests / total,
        # as ab defines it: the time of a client between two answers
        "ms_per_request": 1000 * total * CONCURRENCY / requests,
        "context_switches": 1000 * (after.switches - before.switches) / requests,
        "cpu_us_per_request": 1e6 * (after.seconds - before.seconds) / requests,
    }


# --- pages and their check


def content(length: int) -> bytes:
    """Return the content of a page, as src/page.c prints it."""
    state, text = 1, bytearray()
    while len(text) < length:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        digits = ((state >> (4 * place)) % 10 for place in range(2, 10))
        text += b"0." + bytes(ord("0") + digit for digit in digits) + b" "
    return bytes(text[: length - 1]) + b"\n"


def write_pages(build: Path) -> None:
    """Write the static pages and the CGI program of the build into the working folder."""
    for folder in ("pages", "programs"):
        Path(folder).mkdir(exist_ok=True)
    for page in PAGES.values():
        if not page.path.startswith("/cgi"):
            Path("pages", page.path[1:]).write_bytes(content(page.bytes))
    shutil.copy(build / "page", "programs")


def check_answers(port: int, pages: Sequence[Page]) -> None:
    """Compare one answer for each page. Raise WrongAnswerError."""
    for page in pages:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
        try:
            connection.request("GET", page.path)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise WrongAnswerError(f"{page.path}: no answer: {error!r}\n{log_end()}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise WrongAnswerError(f"{page.path}: status {answer.status}\n{log_end()}")
        right = content(page.bytes)
        if body != right:
            at = next((at for at, (one, other) in enumerate(zip(body, right, strict=False)) if one != other), None)
            where = f"differs from byte {at} on" if at is not None else f"has {len(body)} bytes, not {len(right)}"
            raise WrongAnswerError(f"{page.path}: the answer {where}")


# --- load


def load(port: int, page: Page, requests: int, concurrency: int, cpus: Sequence[int]) -> float:
    """Send this number of requests; return their seconds. Raise WrongAnswerError or MachineError."""
    command = ["ab", "-q", "-k", "-s", "60", "-c", str(concurrency), "-n", str(requests)]
    command.append(f"http://127.0.0.1:{port}{page.path}")
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: bind_child(cpus),
    )
    if done.returncode != 0:
        raise WrongAnswerError(f"{page.path}: ab ended with {done.returncode}: {done.stderr.strip()}\n{log_end()}")
    return seconds_of(done.stdout, page, requests)


def seconds_of(report: str, page: Page, requests: int) -> float:
    """Return the seconds in ab's report, if all answers were right. Raise WrongAnswerError or MachineError."""

    def number(name: str, missing: float | None = None) -> float:
        match = re.search(rf"^{name}:\s+([\d.]+)", report, re.MULTILINE)
        if match is None and missing is None:
            raise MachineError(f"ab does not say {name!r}, but:\n{report[-500:]}")
        return float(match[1]) if match else missing or 0.0

    length, complete = number("Document Length"), number("Complete requests")
    failed, other = number("Failed requests"), number("Non-2xx responses", 0.0)
    if failed or other or complete != requests or length != page.bytes:
        kinds = re.search(r"^\s+\((Connect: .*)\)$", report, re.MULTILINE)
        raise WrongAnswerError(
            f"{page.path}: of {requests} requests {complete:g} were answered, {failed:g} failed"
            f"{f' ({kinds[1]})' if kinds else ''}, {other:g} had another status than 2xx; {length:g} bytes each,"
            f" not {page.bytes}\n{log_end()}"
        )
    seconds = number("Time taken for tests")
    if seconds <= 0:
        raise MachineError(f"ab took {seconds:g} s")
    return seconds


def processors() -> tuple[list[int], list[int]]:
    """Return the processors for the server and for ab: one each if this process may use two, which reduces noise."""
    usable = sorted(os.sched_getaffinity(0))
    return (usable[:1], usable[-1:]) if len(usable) > 1 else (usable, usable)


def bind_child(cpus: Sequence[int]) -> None:
    """In a child, before its program begins: bind it to processors, and have it end when this process ends."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, cpus)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


# --- the server


@dataclass(frozen=True)
class Usage:
    """The resources that the server's processes have used so far."""

    seconds: float
    switches: int


@dataclass(frozen=True)
class Server:
    """A running httpd."""

    process: "subprocess.Popen[bytes]"
    port: int

    def processes(self) -> list[int]:
        """Return httpd's processes: the first one, its workers and its starter of CGI programs."""
        found: list[int] = []
        waiting = [self.process.pid]
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError):
                process = Path(f"/proc/{pid}")
                if (process / "exe").readlink() == Path(f"/proc/{self.process.pid}/exe").readlink():
                    found.append(pid)
                    for children in process.glob("task/*/children"):
                        waiting += map(int, children.read_text().split())
        return found

    def usage(self) -> Usage:
        """Return the usage of all processes. The seconds include CGI programs that have ended."""
        seconds, switches = 0.0, 0
        for pid in self.processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            # user and system time of the process and of the children that it has waited for
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            for status in Path(f"/proc/{pid}/task").glob("*/status"):
                switches += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", status.read_text())))
        return Usage(seconds, switches)


@contextlib.contextmanager
def served(
    build: Path, *, threads: int, cpus: Sequence[int], before: Sequence[str] = (), single: bool = False
) -> Iterator[Server]:
    """Run a server of the pages.

    Args:
        build: the folder with httpd and the CGI program.
        threads: the number of threads that answer requests.
        cpus: the processors that it may use.
        before: a program that runs the server, with its arguments.
        single: one process without workers (`-X`).

    Raises:
        WrongAnswerError: the server does not start.
        MachineError: there is no free port.
    """
    for _ in range(PORT_ATTEMPTS):
        try:
            server = start(build, free_port(), threads=threads, cpus=cpus, before=before, single=single)
            break
        except PortTakenError:
            continue
    else:
        raise MachineError(
            f"no free port: {PORT_ATTEMPTS} in a row were taken by other processes before httpd listened"
        )
    try:
        yield server
    finally:
        stop(server.process)


def free_port() -> int:
    """Return a port that is free now. Raise MachineError."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError as error:
            raise MachineError(f"no free port: {error.strerror}") from None
        port: int = probe.getsockname()[1]
        return port


def start(build: Path, port: int, *, threads: int, cpus: Sequence[int], before: Sequence[str], single: bool) -> Server:
    """Start a server as `served` says. Raise PortTakenError as well."""
    root = Path.cwd()
    for name in ("httpd.pid", "error.log"):
        (root / name).unlink(missing_ok=True)
    # as root httpd would otherwise become another user, who may be unable to read the pages
    user = f"User #{os.getuid()}\nGroup #{os.getgid()}" if os.getuid() == 0 else ""
    place = f"/proc/{os.getpid()}/cwd"
    text = CONFIGURATION.format(root=root, port=port, threads=threads, user=user, place=place)
    (root / "httpd.conf").write_text(text)
    with (root / "server.out").open("wb") as out:
        process = subprocess.Popen(
            [*before, str(build / "httpd"), "-d", str(root), "-f", str(root / "httpd.conf")]
            + (["-X"] if single else ["-D", "FOREGROUND"]),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            preexec_fn=lambda: bind_child(cpus),
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (root / "httpd.pid").exists() or not listens(port):
            if process.poll() is not None:
                said = f"{(root / 'server.out').read_text(errors='replace')}{log_end()}"
                if os.strerror(errno.EADDRINUSE) in said:
                    raise PortTakenError
                raise WrongAnswerError(f"httpd ended with {process.returncode} at its start\n{said[-2000:]}")
            if time.monotonic() > deadline:
                raise WrongAnswerError(f"httpd does not listen after {START_SECONDS:g} s\n{log_end()}")
            time.sleep(0.01)
    except BaseException:
        stop(process)
        raise
    return Server(process, port)


def listens(port: int) -> bool:
    """Return whether the server accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End the server with all its processes."""
    if process.poll() is None:
        own = Server(process, 0).processes()
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            for pid in own:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def log_end() -> str:
    """Return the last lines of httpd's error log."""
    with contextlib.suppress(OSError):
        return "\n".join(Path("error.log").read_text(errors="replace").splitlines()[-5:])
    return ""


# --- counters

# perf's names -> ours
EVENTS = {"cache-misses": "cache_misses", "instructions": "instructions"}


def hardware_counters() -> tuple[str, ...]:
    """Return `EVENTS` if the processor counts all of them; none in most virtual machines."""
    if shutil.which("perf") is None:
        return ()
    try:
        with counting(tuple(EVENTS), [os.getpid()]):
            return tuple(EVENTS)
    except MachineError:
        return ()


def counts_of(report: str) -> dict[str, float]:
    """Return the counts in the output of `perf stat -x ,`, without events that were not counted."""
    counts = {}
    for line in report.splitlines():
        match = re.match(r"([\d.]+),[^,]*,([\w-]+)(?::[\w]+)?,", line)
        if match:
            counts[match[2]] = float(match[1])
    return counts


@contextlib.contextmanager
def counting(events: Sequence[str], processes: Sequence[int]) -> Iterator[dict[str, float]]:
    """Count events of these processes; the dictionary has the counts at the end. Raise MachineError."""
    counted: dict[str, float] = {}
    if not events:
        yield counted
        return
    report = Path("perf.out")
    report.unlink(missing_ok=True)
    command = [
        "perf",
        "stat",
        "-x",
        ",",
        "-o",
        str(report),
        "-e",
        ",".join(events),
        "-p",
        ",".join(map(str, processes)),
    ]
    ours, its = socket.socketpair()
    with ours:
        with its:
            perf = subprocess.Popen(
                [*command, "--delay", "-1", "--control", f"fd:{its.fileno()},{its.fileno()}"],
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[its.fileno()],
                preexec_fn=lambda: bind_child(sorted(os.sched_getaffinity(0))),
            )
        try:
            # perf answers when it counts; if it cannot, it ends without an answer.
            with contextlib.suppress(ConnectionError):
                ours.sendall(b"enable\n")
                ours.recv(16)
            yield counted
        finally:
            perf.send_signal(signal.SIGINT)
            _, said = perf.communicate()
    text = said + (report.read_text() if report.exists() else "")
    found = counts_of(text)
    if found.keys() != set(events):
        raise MachineError(f"perf counted no {', '.join(set(events) - found.keys())}:\n{text[-500:]}")
    counted.update({EVENTS.get(name, name): value for name, value in found.items()})


def simulate(build: Path, pages: Sequence[Page]) -> dict[str, float]:
    """Return instructions, and misses of the first level of simulated caches, for 1,000 requests.

    Two runs have different numbers of requests: their difference belongs to the requests alone, without the start.
    There are hardly any misses of the second level: everything that httpd needs for these pages fits into it.
    """
    few, many = (simulated(build, pages, share) for share in (0.0, SIMULATED_SHARE))
    more = {name: many[name] - few[name] for name in few}
    thousands = sum(simulated_requests(page, SIMULATED_SHARE) - simulated_requests(page, 0.0) for page in pages) / 1000
    return {
        "instructions": more["Ir"] / thousands,
        "cache_misses": (more["I1mr"] + more["D1mr"] + more["D1mw"]) / thousands,
    }


def simulated_requests(page: Page, share: float) -> int:
    """Return the number of requests: a few that warm up the server, and this share of a round's."""
    return 20 + round(page.requests * share)


def simulated(build: Path, pages: Sequence[Page], share: float) -> dict[str, float]:
    """Return the counts of one run under cachegrind with its start and end. Raise WrongAnswerError or MachineError."""
    for old in Path().glob("cachegrind.*"):
        old.unlink()
    cpus = sorted(os.sched_getaffinity(0))
    command = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", *CACHES]
    command.append("--cachegrind-out-file=cachegrind.%p")
    with served(build, threads=8, cpus=cpus, before=command, single=True) as server:
        for page in pages:
            load(server.port, page, simulated_requests(page, share), 1, cpus)
    if not Path(f"cachegrind.{server.process.pid}").exists():
        raise MachineError(f"no counts of httpd: it did not come to its end within {STOP_SECONDS:g} s under valgrind")
    totals: dict[str, float] = {}
    # for CGI pages also the process that starts the programs
    for file in Path().glob("cachegrind.*"):
        text = file.read_text(errors="replace")
        events, summary = (re.search(rf"^{name}: (.*)$", text, re.MULTILINE) for name in ("events", "summary"))
        if events is None or summary is None:
            raise MachineError(f"{file} is not what cachegrind writes: {text[:200]!r}")
        for name, count in zip(events[1].split(), summary[1].split(), strict=True):
            totals[name] = totals.get(name, 0.0) + float(count)
    return totals


if __name__ == "__main__":
    sys.exit(main())
