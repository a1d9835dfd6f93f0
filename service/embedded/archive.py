"""The file of a backup: a ZIP archive of the database's dump and the secrets, with a manifest of their checksums."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

# The layout of the file. A change that an older `restore` cannot read gets the next number.
FORMAT = 1
MANIFEST = "manifest.json"
DUMP = "database.dump"
# The files of the data folder that nothing else could replace.
SECRETS = ("admin-token", "secret-key")
CHUNK_BYTES = 1024 * 1024
# The largest manifest and the largest secret. A few bytes of a ZIP archive can stand for gigabytes.
MOST_MANIFEST_BYTES = 4 * 1024 * 1024
MOST_SECRET_BYTES = 4096


class BackupError(Exception):
    """A backup cannot be written or restored; the message says why and what to do."""


@dataclass(frozen=True)
class Member:
    """Size and checksum of one member of the archive."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of a backup. `taken_at`: UTC in ISO 8601. `migrations`: those applied, as `label.name`."""

    format: int
    service_version: str
    postgresql_version: int
    taken_at: str
    migrations: list[str]
    members: dict[str, Member]

    def text(self) -> str:
        """Return the manifest as JSON."""
        return json.dumps(asdict(self), indent=2) + "\n"


def add(archive: zipfile.ZipFile, name: str, source: IO[bytes], seen: Callable[[int], None]) -> Member:
    """Copy `source` into the archive and return its size and checksum. `seen` gets the bytes of each step."""
    digest, size = hashlib.sha256(), 0
    with archive.open(name, "w", force_zip64=True) as member:
        while chunk := source.read(CHUNK_BYTES):
            member.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            seen(len(chunk))
    return Member(size, digest.hexdigest())


@contextmanager
def opened(file: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """Open a backup and read its manifest. Raises BackupError, also for damage that is found later."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive, _manifest(file, archive)
    except OSError as error:
        raise BackupError(f"The backup {file} cannot be read: {error.strerror or error}.") from error
    # zipfile raises RuntimeError for an encrypted member, and NotImplementedError for an unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise BackupError(f"{file} is no backup, or it is incomplete or damaged: {error}.") from error


def check(file: Path, archive: zipfile.ZipFile, manifest: Manifest) -> None:
    """Compare all members with the checksums of the manifest. Raises BackupError."""
    names = sorted(set(archive.namelist()) - {MANIFEST})
    if names != sorted(manifest.members) or names != sorted([DUMP, *SECRETS]):
        raise BackupError(f"{file} is damaged: it contains {names}, which is not what its manifest lists.")
    if large := [name for name in SECRETS if manifest.members[name].bytes > MOST_SECRET_BYTES]:
        raise BackupError(f"{file} is damaged: {large[0]} has more than {MOST_SECRET_BYTES} bytes.")
    total = sum(member.bytes for member in manifest.members.values())
    with progress("Checking", total) as seen:
        for name, expected in manifest.members.items():
            digest, size = hashlib.sha256(), 0
            with archive.open(name) as member:
                # More than the manifest says is not read, and the checksum is then another one.
                while size <= expected.bytes and (chunk := member.read(CHUNK_BYTES)):
                    digest.update(chunk)
                    size += len(chunk)
                    seen(len(chunk))
            if digest.hexdigest() != expected.sha256:
                raise BackupError(
                    f"{file} is damaged: the checksum of {name} is {digest.hexdigest()}, and the manifest says"
                    f" {expected.sha256}. Use another backup."
                )


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show the progress on a terminal; `total` is in bytes. Yields a function that takes the bytes of each step."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(what, total=total)
        yield lambda count: shown.advance(task, count)


def _manifest(file: Path, archive: zipfile.ZipFile) -> Manifest:
    try:
        with archive.open(MANIFEST) as member:
            text = member.read(MOST_MANIFEST_BYTES + 1)
        if len(text) > MOST_MANIFEST_BYTES:
            raise ValueError("too large")
        found: dict[str, Any] = json.loads(text)
        if found["format"] != FORMAT:
            raise BackupError(
                f"{file} has the format {found['format']}, and this version reads {FORMAT}. Restore it with version"
                f" {found['service_version']} of the service."
            )
        return Manifest(**{**found, "members": {name: Member(**of) for name, of in found["members"].items()}})
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BackupError(f"{file} is no backup of Trimtab: it has no readable {MANIFEST}.") from error
