"""Run httpd with one of three caches on manual pages, load it by siege, and print the measured values as JSON.

    python3 load.py BUILD --server tm --exponent 2 --threads 8

`none` is httpd without a cache. Pages are made by man2html, a CGI program, and requested by Zipf's law. Before and
after the load, the script compares answers with the output of man2html, byte by byte, also those from the cache.
`ms_per_request` is the mean latency that siege saw.

The exit status is 1 for a wrong answer or a server that does not work, and 3 if the machine is the cause.
"""

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path += [str(FOLDER), str(FOLDER.parent)]

from serving import (  # noqa: E402
    PORT_ATTEMPTS,
    MachineError,
    PortTakenError,
    ServerError,
    bind_child,
    free_port,
    listens,
    processor_seconds,
    processors,
    running,
)
from zipf import draw  # noqa: E402

MACHINE = 3
SOURCE = FOLDER / "source"
SERVERS = ("none", "lock", "tm")
METHODS = ("serialirr", "serialirr_onwrite", "serial", "gl_wt", "ml_wt", "htm")
CLIENTS, WORKERS = 8, 16
WARM_UP_SECONDS = 2
LIST_LENGTH = 20000
CHECKED = 5
NOBODY = 65534

CONFIGURATION = """
ServerRoot "{root}"
ServerName localhost
Listen 127.0.0.1:{port}
PidFile httpd.pid
ErrorLog error.log
LogLevel warn
LoadModule mpm_worker_module {modules}/mod_mpm_worker.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule alias_module {modules}/mod_alias.so
LoadModule env_module {modules}/mod_env.so
LoadModule cgid_module {modules}/mod_cgid.so
Mutex pthread
StartServers {processes}
ServerLimit {processes}
ThreadsPerChild {threads}
ThreadLimit {threads}
MaxRequestWorkers {workers}
MinSpareThreads 1
MaxSpareThreads {workers}
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
ScriptSock {root}/socket
SetEnv PAGES "{root}/pages"
SetEnv PATH "{path}"
# httpd otherwise ignores the length that a CGI program states
SetEnv ap_trust_cgilike_cl 1
ScriptAlias /man "{root}/page.sh"
<Directory "{root}">
    Require all granted
</Directory>
"""
CACHE = """
LoadModule cache_module {modules}/mod_cache.so
LoadModule stm_cache_module "{root}/mod_stm_cache.so"
CacheEnable mem /man
StmCacheBytes {bytes}
StmCacheEntries {entries}
StmCachePolicy {policy}
StmCacheCleanUp {cleanup}
<Location /cache-status>
    SetHandler stm-cache-status
</Location>
"""
SIEGE = """
verbose = false
quiet = true
json_output = true
logging = false
protocol = HTTP/1.1
connection = keep-alive
parser = false
cache = false
accept-encoding =
benchmark = true
"""


@dataclass(frozen=True)
class Options:
    """The server and its settings; `cores` are the processors that it may use, None: as `processors` says."""

    server: str
    bytes: int = 16 << 20
    entries: int = 1024
    policy: str = "LRU"
    cleanup: str = "deferred"
    threads: int = 16
    method: str | None = None
    cores: tuple[int, ...] | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the folder that build.py has filled")
    parser.add_argument("--server", choices=SERVERS, default="lock")
    parser.add_argument("--exponent", type=float, default=1.0, help="of Zipf's law (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="of load (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=Options.bytes, help="bound of the cache")
    parser.add_argument("--entries", type=int, default=Options.entries, help="bound of the cache")
    parser.add_argument("--policy", choices=("LRU", "GDSF"), default=Options.policy)
    parser.add_argument("--clean-up", choices=("deferred", "commit", "inside"), default=Options.cleanup)
    parser.add_argument("--threads", type=int, default=Options.threads, help="of a process; 16 in all processes")
    parser.add_argument("--method", choices=METHODS, help="of the transactions (default: libitm's choice)")
    given = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = Options(
        given.server, given.bytes, given.entries, given.policy, given.clean_up, given.threads, given.method
    )
    try:
        print(json.dumps(measure(given.build.resolve(), options, given.exponent, given.seconds)))
    except ServerError as error:
        print(f"wrong: {error}", file=sys.stderr)
        return 1
    except (MachineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return MACHINE
    return 0


def measure(build: Path, options: Options, exponent: float, seconds: int) -> dict[str, float]:
    """Return the figures of one load. Raise ServerError or MachineError."""
    _, load_cpus = processors()
    with serving_pages(build, options) as (process, port, root):
        names = sorted(page.name for page in (root / "pages").iterdir())
        check(port, root, names)
        urls = root / "urls"
        listed = draw(names, exponent, LIST_LENGTH)
        urls.write_text("".join(f"http://127.0.0.1:{port}/man/{name}\n" for name in listed))
        load(root, urls, WARM_UP_SECONDS, load_cpus)
        before, began = figures(port, options), processor_seconds(process.pid)
        report = load(root, urls, seconds, load_cpus)
        after, ended = figures(port, options), processor_seconds(process.pid)
        check(port, root, names)
    found = {
        "requests_per_second": report["transactions"] / report["elapsed_time"],
        "ms_per_request": 1000 * report["concurrency"] * report["elapsed_time"] / report["transactions"],
        "cpu_us_per_request": 1e6 * (sum(ended) - sum(began)) / report["transactions"],
    }
    # the status is that of one process
    if after and options.threads >= WORKERS:
        reads = after["hits"] + after["misses"] - before["hits"] - before["misses"]
        found["hit_ratio"] = (after["hits"] - before["hits"]) / max(reads, 1)
        found["evictions"] = after["evicted"] - before["evicted"]
    return found


@contextlib.contextmanager
def serving_pages(build: Path, options: Options) -> Iterator[tuple["subprocess.Popen[bytes]", int, Path]]:
    """Run httpd in a folder; yield its process, port and folder. Raise ServerError or MachineError."""
    for program, package in (("siege", "siege"), ("man2html", "man2html-base")):
        if shutil.which(program) is None:
            raise MachineError(f"{program} is not in PATH: install it (Debian package {package})")
    if not SOURCE.is_dir():
        raise MachineError(f"no manual pages: run python3 {FOLDER / 'prepare.py'}")
    program, modules = installed()
    # httpd does not serve as root; then another user must be able to read its folder
    user = NOBODY if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="stm-cache-") as name:
        root = Path(name)
        shutil.copytree(SOURCE, root / "pages")
        shutil.copy(FOLDER / "page.sh", root)
        (root / "page.sh").chmod(0o755)
        if options.server != "none":
            shutil.copy(build / options.server / "mod_stm_cache.so", root)
        if user is not None:
            os.chown(root, user, user)
        env = {"ITM_DEFAULT_METHOD": options.method} if options.method else {}
        cpus = options.cores or processors()[0]
        for _ in range(PORT_ATTEMPTS):
            port = free_port()
            (root / "httpd.conf").write_text(configuration(options, root, port, modules))
            command = [program, "-d", name, "-f", str(root / "httpd.conf"), "-D", "FOREGROUND"]
            try:
                with running(
                    command,
                    ready=lambda port=port: (root / "httpd.pid").exists() and listens(port),
                    log=root / "server.log",
                    cpus=list(cpus),
                    env=env,
                    user=user,
                ) as process:
                    yield process, port, root
                    return
            except PortTakenError:
                continue
    raise MachineError(f"no free port: {PORT_ATTEMPTS} in a row were taken before httpd listened")


def installed() -> tuple[str, str]:
    """Return httpd's program and the folder of its modules. Raise MachineError."""
    apxs = shutil.which("apxs") or shutil.which("apxs2")
    if apxs is None:
        raise MachineError("apxs is not in PATH: install httpd with its headers (Debian package apache2-dev)")
    answers = [
        subprocess.run([apxs, "-q", name], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("sbindir", "progname", "libexecdir")
    ]
    program = Path(answers[0], answers[1])
    if not program.exists():
        raise MachineError(f"{program} is missing: install httpd (Debian package apache2-bin)")
    return str(program), answers[2]


def configuration(options: Options, root: Path, port: int, modules: str) -> str:
    """Return the configuration of httpd."""
    processes = max(WORKERS // options.threads, 1)
    text = CONFIGURATION.format(
        root=root,
        port=port,
        modules=modules,
        processes=processes,
        threads=options.threads,
        workers=processes * options.threads,
        path=os.environ["PATH"],
    )
    if options.server == "none":
        return text
    return text + CACHE.format(
        root=root,
        modules=modules,
        bytes=options.bytes,
        entries=options.entries,
        policy=options.policy,
        cleanup=options.cleanup,
    )


# --- answers and load


def check(port: int, root: Path, names: Sequence[str]) -> None:
    """Compare answers for some pages, each asked for twice, with what man2html prints. Raise ServerError."""
    for name in names[:: max(len(names) // CHECKED, 1)][:CHECKED]:
        made = subprocess.run(
            [root / "page.sh"],
            env={**os.environ, "PAGES": str(root / "pages"), "PATH_INFO": f"/{name}"},
            capture_output=True,
            check=True,
        ).stdout
        wanted = re.split(rb"\r?\n\r?\n", made, maxsplit=1)[1]
        for _ in range(2):
            status, body = answer(port, f"/man/{name}")
            if status != 200 or body != wanted:
                raise ServerError(
                    f"/man/{name}: status {status}, {len(body)} bytes, not those of man2html ({len(wanted)})"
                )


def answer(port: int, path: str) -> tuple[int, bytes]:
    """Return the status and body of an answer. Raise ServerError."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"{path}: no answer: {error!r}") from None


def figures(port: int, options: Options) -> dict[str, int]:
    """Return the figures of the cache; none without a cache."""
    if options.server == "none":
        return {}
    found: dict[str, int] = json.loads(answer(port, "/cache-status")[1])
    return found


def load(root: Path, urls: Path, seconds: int, cpus: Sequence[int]) -> Mapping[str, float]:
    """Request the pages of a list for some seconds; return siege's report. Raise ServerError or MachineError."""
    settings = root / "siege.conf"
    settings.write_text(SIEGE)
    command = ["siege", "-R", str(settings), "-b", "-c", str(CLIENTS), "-t", f"{seconds}S", "-f", str(urls)]
    done = subprocess.run(
        command,
        env={**os.environ, "HOME": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=lambda: bind_child(cpus),
    )
    found = re.search(r"\{[^{}]*\}", done.stdout)
    if done.returncode or found is None:
        raise MachineError(f"siege ended with {done.returncode}:\n{done.stdout[-500:]}{done.stderr[-500:]}")
    report: dict[str, float] = json.loads(found[0])
    if not report["failed_transactions"] and not report["transactions"] and report["elapsed_time"] < 0.5 * seconds:
        # On a busy machine, the time may be over before the first request has begun.
        raise MachineError(f"siege ended before its first request: {found[0]}")
    if report["failed_transactions"] or not report["transactions"]:
        raise ServerError(f"requests failed: {found[0]}")
    return report


if __name__ == "__main__":
    sys.exit(main())
