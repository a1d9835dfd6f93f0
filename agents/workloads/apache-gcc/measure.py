"""Start the httpd of a build on a free loopback port, load it with `ab`, and print the measured values as JSON.

    python3 measure.py BUILD static-2k [--count]

The pages have the sizes of the published study: 2 KiB and 32 KiB, as files and from page.pl, a CGI program that prints
fresh random numbers at each request. The script checks an answer of each page before and after the load: the bytes of
a file; the length and form of a CGI page, and that it is a new one. ab compares the status and the length of each
answer.

All figures are medians over rounds. Throughput is from the time of a round, and `ms_per_request` from the times of the
single requests, so that each can be checked against the other. Context switches, `cache_misses` and `instructions` are
for 1,000 requests. `context_switches` is the count of the whole machine in /proc/stat, as in the published study;
`httpd_context_switches` is the part of httpd's processes, without the CGI programs.

`all` measures the four pages one after another: it prints the figures of each page, and their geometric means.

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
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# requests under valgrind that warm up the server; the counts leave them out
WARM_UP = 20
PERL = "/usr/bin/perl"  # as page.pl names it
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
    """A page of the server.

    `requests` is the number of requests in a round, `simulated` the number under valgrind, enough for a spread of 1 or
    2 %.
    """

    path: str
    bytes: int
    requests: int
    simulated: int

    @property
    def is_cgi(self) -> bool:
        """Return whether a program makes the page."""
        return self.path.startswith("/cgi/")


# numbers of requests that take about the same time for each page: half a second on a processor of its own
PAGES = {
    "static-2k": Page("/2048", 2048, 6000, 600),
    "static-32k": Page("/32768", 32768, 5000, 500),
    "cgi-2k": Page("/cgi/page.pl?2048", 2048, 100, 40),
    "cgi-32k": Page("/cgi/page.pl?32768", 32768, 100, 40),
}
ALL = "all"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the folder that build.py has filled")
    parser.add_argument("pages", choices=(*PAGES, ALL))
    parser.add_argument("--count", action="store_true", help="also count instructions and cache misses")
    options = parser.parse_args(argv)
    pages = PAGES if options.pages == ALL else {options.pages: PAGES[options.pages]}
    # SIGTERM ends the server as well: the exit stops it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        built = json.loads((options.build / "build.json").read_text())
        found = built | summary(measure(options.build.resolve(), pages, count=options.count))
    except WrongAnswerError as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    except (MachineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    print(json.dumps(found))
    return 0


def summary(found: Mapping[str, Mapping[str, float]]) -> dict[str, object]:
    """Return the figures of the only page; of several pages, the geometric means, and the figures of each page."""
    if len(found) == 1:
        return dict(*found.values())
    means = {}
    for metric in next(iter(found.values())):
        values = [figures[metric] for figures in found.values()]
        means[metric] = statistics.geometric_mean(values) if min(values) > 0 else 0.0
    return {**means, **found}


def measure(build: Path, pages: Mapping[str, Page], *, count: bool) -> dict[str, dict[str, float]]:
    """Return all figures of each page. Raise WrongAnswerError or MachineError."""
    if shutil.which("ab") is None:
        raise MachineError("ab is not in PATH: install it (Debian package apache2-utils)")
    if not os.access(PERL, os.X_OK) and any(page.is_cgi for page in pages.values()):
        raise MachineError(f"{PERL} is missing: install it (Debian package perl)")
    write_pages()
    counters = hardware_counters() if count else ()
    if count and not counters and shutil.which("valgrind") is None:
        raise MachineError("this machine gives no hardware counters, and valgrind is not in PATH: install it")
    server_cpus, load_cpus = processors()
    found: dict[str, dict[str, float]] = {}
    # with only as many threads as clients, httpd would close connections that are kept alive: failures for ab
    with served(build, threads=4 * CONCURRENCY, cpus=server_cpus) as server:
        check_answers(server.port, pages.values())
        for name, page in pages.items():
            load(server.port, page, page.requests // 4, CONCURRENCY, load_cpus)  # warms up
            with counting(counters, server.processes()) as counted:
                rounds = [one_round(server, page, load_cpus) for _ in range(ROUNDS)]
            found[name] = {metric: statistics.median(one[metric] for one in rounds) for metric in rounds[0]}
            if counters:
                thousands = ROUNDS * page.requests / 1000
                found[name] |= {metric: value / thousands for metric, value in counted.items()} | {"simulated": 0}
        check_answers(server.port, pages.values())
    if count and not counters:
        for name, figures in simulate(build, pages).items():
            found[name] |= figures | {"simulated": 1}
    return found


def one_round(server: "Server", page: Page, cpus: Sequence[int]) -> dict[str, float]:
    """Load a page once; return the figures."""
    switches, before = machine_switches(), server.usage()
    loaded = load(server.port, page, page.requests, CONCURRENCY, cpus)
    after = server.usage()
    return {
        "requests_per_second": page.requests / loaded.seconds,
        "ms_per_request": loaded.ms_per_request,
        "context_switches": 1000 * (machine_switches() - switches) / page.requests,
        "httpd_context_switches": 1000 * (after.switches - before.switches) / page.requests,
        "cpu_us_per_request": 1e6 * (after.seconds - before.seconds) / page.requests,
    }


# --- pages and their check


def content(length: int) -> bytes:
    """Return the content of a static page: real numbers on one line, as page.pl prints them."""
    chance = random.Random(length)
    numbers = "".join(f"{chance.random():.8f} " for _ in range(length // len("0.00000000 ") + 1))
    return f"{numbers[: length - 1]}\n".encode()


def write_pages() -> None:
    """Write the static pages and the CGI program into the working folder."""
    for folder in ("pages", "programs"):
        Path(folder).mkdir(exist_ok=True)
    for page in PAGES.values():
        if not page.is_cgi:
            Path("pages", page.path[1:]).write_bytes(content(page.bytes))
    shutil.copy(Path(__file__).parent / "page.pl", "programs")
    Path("programs", "page.pl").chmod(0o755)


def check_answers(port: int, pages: Iterable[Page]) -> None:
    """Check an answer for each page; for CGI pages also that the next answer is another one. Raise WrongAnswerError."""
    for page in pages:
        body, right = answer(port, page), content(page.bytes)
        found, wanted = body, right
        if page.is_cgi:
            found, wanted = (re.sub(rb"\d", b"0", text) for text in (body, right))
            if body == answer(port, page):
                raise WrongAnswerError(f"{page.path}: two answers have the same numbers")
        if found != wanted:
            at = next((at for at, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), None)
            where = f"differs from byte {at} on" if at is not None else f"has {len(body)} bytes, not {len(right)}"
            raise WrongAnswerError(f"{page.path}: the answer {where}")


def answer(port: int, page: Page) -> bytes:
    """Return the body of one answer. Raise WrongAnswerError."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request("GET", page.path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise WrongAnswerError(f"{page.path}: no answer: {error!r}\n{log_end()}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise WrongAnswerError(f"{page.path}: status {response.status}\n{log_end()}")
    return body


# --- load


@dataclass(frozen=True)
class Loaded:
    """The result of a load: its seconds, and the mean time of a request without the slowest 1 %."""

    seconds: float
    ms_per_request: float


def load(port: int, page: Page, requests: int, concurrency: int, cpus: Sequence[int]) -> Loaded:
    """Send this number of requests; return the times. Raise WrongAnswerError or MachineError."""
    times = Path("times.csv")
    times.unlink(missing_ok=True)
    command = ["ab", "-q", "-k", "-s", "60", "-c", str(concurrency), "-n", str(requests), "-e", str(times)]
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
    seconds = seconds_of(done.stdout, page, requests)
    return Loaded(seconds, mean_of(times.read_text(errors="replace") if times.exists() else ""))


def mean_of(percentiles: str) -> float:
    """Return the mean time of a request from ab's table of percentiles, without the slowest 1 %. Raise MachineError.

    ab takes the time of each request, from its sending to the end of its answer. The mean that ab prints is not the
    mean of these times: it is derived from the time of the whole load.
    """
    found = [float(value) for value in re.findall(r"^\d+,([\d.]+)$", percentiles, re.MULTILINE)]
    if len(found) != 101 or not any(found):
        raise MachineError(f"ab wrote no table of percentiles from 0 to 100, but:\n{percentiles[:500]}")
    return statistics.fmean(found[:-1])


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


def processor_clock(pid: int) -> int:
    """Return the clock of a process's user and system time, in nanoseconds, as clock_getcpuclockid does on Linux."""
    return (~pid << 3) | 2


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
        """Return the usage of all processes. CGI programs are not included: httpd ignores how they end."""
        seconds, switches = 0.0, 0
        for pid in self.processes():
            # /proc has steps of 10 ms, which are 100 µs for each request of a round of CGI pages
            seconds += time.clock_gettime(processor_clock(pid))
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


def machine_switches() -> int:
    """Return the context switches of all processors since the machine's start."""
    return int(re.findall(r"^ctxt (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)[0])


def simulate(build: Path, pages: Mapping[str, Page]) -> dict[str, dict[str, float]]:
    """Return instructions and misses of the first level of simulated caches for 1,000 requests of each page.

    A run with the requests of a page is compared with a run that only warms up the server: the difference belongs to
    the requests alone, without the start. There are hardly any misses of the second level: everything that httpd needs
    for these pages fits into it.
    """
    warm_up = [(page, WARM_UP) for page in pages.values()]
    few = simulated(build, warm_up)
    found = {}
    for name, page in pages.items():
        many = simulated(build, [*warm_up, (page, page.simulated)])
        more = {event: (many[event] - few[event]) * 1000 / page.simulated for event in few}
        misses = more["I1mr"] + more["D1mr"] + more["D1mw"]
        found[name] = {"instructions": more["Ir"], "cache_misses": misses}
    return found


def simulated(build: Path, loads: Sequence[tuple[Page, int]]) -> dict[str, float]:
    """Return the counts of one run under cachegrind with its start and end, and these numbers of requests.

    Raises:
        WrongAnswerError: an answer is wrong.
        MachineError: there are no counts.
    """
    for old in Path().glob("cachegrind.*"):
        old.unlink()
    cpus = sorted(os.sched_getaffinity(0))
    command = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", *CACHES]
    command.append("--cachegrind-out-file=cachegrind.%p")
    with served(build, threads=8, cpus=cpus, before=command, single=True) as server:
        for page, requests in loads:
            load(server.port, page, requests, 1, cpus)
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
