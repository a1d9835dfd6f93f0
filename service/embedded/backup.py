"""Write a backup of embedded mode into one file, while the service runs or while it is stopped.

The database is dumped by `pg_dump` and not copied by `pg_basebackup`, which needs a write-ahead log for replication:
embedded mode writes the minimal one. A dump is also smaller, and any later PostgreSQL can read it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psycopg

from service.embedded.archive import DUMP, FORMAT, MANIFEST, SECRETS, BackupError, Manifest, Member, add, progress
from service.embedded.postgres import OWNER, Postgres, programs
from service.embedded.processes import stop
from service.embedded.supervisor import DATABASE, Lock, StartError

START_SECONDS = 180.0
SERVICE = "trimtab-service"


def back_up(data: Path, file: Path) -> Manifest:
    """Write the backup of a data folder to `file` and return its manifest.

    The file appears when it is complete. It contains everything that the service acknowledged before the call. Raises
    BackupError.
    """
    if not (data / "postgres" / "PG_VERSION").exists():
        raise BackupError(f"The folder {data} has no data of a service. Name the service's folder with --data-dir.")
    if file.exists():
        raise BackupError(f"The file {file} exists already. Choose another name, or remove it first.")
    with _server(data) as postgres:
        try:
            with _atomically(file) as target, zipfile.ZipFile(target, "w") as archive:
                return _write(archive, data, postgres)
        except OSError as error:
            raise BackupError(f"The backup {file} cannot be written: {error.strerror or error}.") from error
        except psycopg.Error as error:
            raise BackupError(f"The database cannot be read: {error}".rstrip()) from error


def _write(archive: zipfile.ZipFile, data: Path, postgres: Postgres) -> Manifest:
    taken_at = datetime.now(UTC).isoformat(timespec="seconds")
    # As the role that owns the tables: a restored database may have functions of another origin.
    with psycopg.connect(postgres.url(DATABASE, OWNER), connect_timeout=10) as connection:
        rows = connection.execute("SELECT app || '.' || name FROM django_migrations ORDER BY id").fetchall()
        release = connection.info.server_version
    members = {}
    for name in SECRETS:
        with (data / name).open("rb") as source:
            members[name] = add(archive, name, source, lambda _: None)
    members[DUMP] = _dump(archive, postgres)
    manifest = Manifest(FORMAT, version(SERVICE), release, taken_at, [name for (name,) in rows], members)
    archive.writestr(MANIFEST, manifest.text())
    return manifest


def _dump(archive: zipfile.ZipFile, postgres: Postgres) -> Member:
    """Stream `pg_dump`'s output into the archive. Its transaction sees one moment of the database."""
    argv = [str(programs() / "pg_dump"), "--format=custom", "--no-password", postgres.url(DATABASE)]
    with tempfile.TemporaryFile() as said, progress("Backing up the database") as seen:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        try:
            assert process.stdout is not None
            member = add(archive, DUMP, process.stdout, seen)
            code = process.wait()
        finally:
            process.kill()
            process.wait()
        if code != 0:
            said.seek(0)
            raise BackupError(f"pg_dump failed: {said.read().decode(errors='replace')[-2000:].strip()}")
    return member


@contextmanager
def _server(data: Path) -> Iterator[Postgres]:
    """Yield the PostgreSQL of the running service. If no service runs, start it for this time. Raises BackupError."""
    postgres = Postgres(data / "postgres")
    try:
        lock = Lock(data / "service.lock")
    except StartError:  # it runs
        if not postgres.ready():
            raise BackupError(
                f"The service with the data folder {data} runs, and its PostgreSQL does not answer. Wait until the"
                " service is ready, and try again."
            ) from None
        yield postgres
        return
    server = postgres.child(data / "logs" / "postgres.log")
    try:
        server.start()
        postgres.wait_until_ready(server, START_SECONDS)
        yield postgres
    except RuntimeError as error:
        raise BackupError(str(error)) from error
    finally:
        stop([server])
        lock.close()


@contextmanager
def _atomically(file: Path) -> Iterator[Path]:
    """Yield a private file next to `file` that gets its name when it is complete and on the disk."""
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        yield unfinished
        os.fsync(descriptor)
        unfinished.rename(file)
        sync_folder(file.parent)
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
