"""A PostgreSQL cluster in a folder of its own: made, filled, started with settings, changed, killed, stopped.

The server listens on a Unix socket only, and ends with this program. It runs as `nobody` if this program runs as root,
because PostgreSQL refuses to run as root.
"""

import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

NEEDED = ("initdb", "postgres", "pgbench", "psql")
START_SECONDS = 60.0
ACCOUNT = "nobody"
# The rest of the configuration is the server's built-in default (boot_val), with what a trial sets.
BASE = """\
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = on
full_page_writes = on
synchronous_commit = on
"""


class ClusterError(Exception):
    """The server refused its settings or a statement: the configuration cannot work."""


class MachineError(Exception):
    """A program is missing or cannot run here: no configuration is to blame."""


def programs() -> Path:
    """Return the folder of PostgreSQL's programs: in PGBIN, PATH, or Debian's newest. Raise MachineError."""
    found = [Path(folder) for folder in (os.environ.get("PGBIN", ""), *os.get_exec_path()) if folder]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    for folder in found:
        if all(os.access(folder / name, os.X_OK) for name in NEEDED):
            return folder
    raise MachineError(
        f"there is no folder with {', '.join(NEEDED)} in PGBIN, PATH or /usr/lib/postgresql. "
        "Install PostgreSQL (Debian package postgresql)."
    )


def _version(folder: Path) -> float:
    return float(folder.parent.name) if re.fullmatch(r"\d+(\.\d+)?", folder.parent.name) else 0.0


def _as_account() -> list[str]:
    """Return the words before a command of the server, by which it does not run as root, and ends with this program."""
    if shutil.which("setpriv") is None:
        raise MachineError("the program setpriv is missing. Install util-linux.")
    user = ["--reuid", ACCOUNT, "--regid", "nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *user, "--pdeathsig", "KILL"]


class Cluster:
    """A cluster in `folder`, whose path must be short; `process` is its server while it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "db"
        self._bin = programs()
        self._log = folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._settings: dict[str, object] = {}

    # --- the files

    def create(self) -> None:
        """Make the cluster. Raise MachineError."""
        command = [*_as_account(), str(self._bin / "initdb"), "--pgdata", str(self.data), "--no-sync"]
        self._run([*command, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"])

    def save(self, file: Path) -> None:
        """Write the stopped cluster as a tar archive."""
        with tarfile.open(file, "w") as archive:
            archive.add(self.data, "db")

    def restore(self, file: Path) -> None:
        """Make the cluster from an archive of `save`. Raise MachineError."""
        self._run([*_as_account(), "tar", "--extract", "--directory", str(self.folder)], file)

    # --- the server

    def start(self, settings: Mapping[str, object]) -> None:
        """Start the server with these settings, and wait until it has recovered. Raise ClusterError with its log."""
        self._write(settings)
        log = self._log.open("ab")
        begin = self._log.stat().st_size
        with log:
            command = [*_as_account(), str(self._bin / "postgres"), "-D", str(self.data)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                with self._log.open("rb") as written:
                    written.seek(begin)
                    said = written.read().decode(errors="replace").strip()
                raise ClusterError(f"the server did not start:\n{said[-2000:]}")
            time.sleep(0.05)

    def apply(self, settings: Mapping[str, object]) -> bool:
        """Change the running server to these settings; return whether that needed a restart. Raise ClusterError.

        Only a setting whose context is `postmaster` needs one. Others are reloaded, and new sessions have them.
        """
        names = {*self._settings, *settings}
        changed = {name for name in names if self._settings.get(name) != settings.get(name)}
        if changed & set(self.query("select name from pg_settings where context = 'postmaster'")):
            self.stop()
            self.start(settings)
            return True
        loaded = self.query("select pg_conf_load_time()")
        self._write(settings)
        if wrong := self.query("select name || ': ' || error from pg_file_settings where error is not null"):
            raise ClusterError(f"the server refused settings: {'; '.join(wrong)}")
        self.query("select pg_reload_conf()")
        end = time.monotonic() + START_SECONDS
        while self.query("select pg_conf_load_time()") == loaded:  # it reads the file after the call has returned
            if time.monotonic() > end:
                raise ClusterError(f"the server did not reload its settings within {START_SECONDS:g} s")
            time.sleep(0.02)
        return False

    def stop(self) -> None:
        """Stop the server, if it runs, without waiting for its sessions."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server's processes as a crash would: nothing is written any more."""
        if self.process is None:
            return
        os.kill(self.process.pid, signal.SIGSTOP)  # it must not start others in the meantime
        killed = self.processes()
        for process in killed:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._end(signal.SIGKILL)
        # a server cannot start while another one has the shared memory
        while any(Path(f"/proc/{process}/exe").exists() for process in killed):
            time.sleep(0.01)

    def _end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def processes(self) -> list[int]:
        """Return the ids of the server's processes: the postmaster and its children."""
        if self.process is None:
            return []
        post = self.process.pid
        try:
            children = Path(f"/proc/{post}/task/{post}/children").read_text()
        except OSError:
            return []
        return [post, *map(int, children.split())]

    def memory_bytes(self) -> int:
        """Return the proportional memory (PSS) of the server's processes: shared memory counts once."""
        total = 0
        for process in self.processes():
            try:
                found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{process}/smaps_rollup").read_text(), re.MULTILINE)
            except OSError:  # it has ended
                continue
            total += 1024 * int(found[1]) if found else 0
        return total

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server's processes and of those that have ended, in seconds."""
        total = 0.0
        for process in self.processes():
            with suppress(OSError):  # it has ended, and its parent has its time
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return total

    # --- clients

    def query(self, statement: str) -> list[str]:
        """Return the rows of a statement, with `|` between columns. Raise ClusterError."""
        done = subprocess.run(
            [*self.client("psql"), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, "postgres"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ClusterError(f"{statement!r} failed: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def client(self, name: str) -> list[str]:
        """Return the first words of a client's command, such as pgbench."""
        return [str(self._bin / name), "--host", str(self.folder), "--username=postgres"]

    def _answers(self) -> bool:
        try:
            self.query("select 1")
        except ClusterError:
            return False
        return True

    # --- inner parts

    def _write(self, settings: Mapping[str, object]) -> None:
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        (self.data / "postgresql.conf").write_text("\n".join([BASE.format(folder=self.folder), *lines, ""]))
        self._settings = dict(settings)

    def _run(self, command: Sequence[str], stdin: Path | None = None) -> None:
        with (stdin or Path("/dev/null")).open("rb") as source:
            done = subprocess.run(command, stdin=source, capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode:
            raise MachineError(f"{command[-4:]} ended with status {done.returncode}: {done.stderr.strip()[-500:]}")


@contextmanager
def temporary() -> Iterator[Cluster]:
    """Yield a cluster in a new folder with a short path; stop its server and remove the folder at the end."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, ACCOUNT, "nogroup")
        cluster = Cluster(folder)
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
