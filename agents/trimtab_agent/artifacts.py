"""Artifacts: the files of a trial that its component names, sent to the service after the trial."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trimtab_agent.logger import Logger
from trimtab_agent.redaction import Redactor

logger = Logger(__name__)

# Maximum length of a name that the service accepts.
NAME_LENGTH = 255
# Maximum number of further files that are reported without their content.
REPORTED = 20
# Maximum number of entries of a work folder to look at.
LOOKED_AT = 10_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Artifact:
    """A file in a work folder; `name` is its path there. `left_out` says why its content is not sent."""

    name: str
    size: int
    sha256: str = ""
    data: bytes = b""
    left_out: str = ""


def collect(work: Path, patterns: Sequence[str], *, most: int, largest: int, redactor: Redactor) -> Iterator[Artifact]:
    """Yield the files of a work folder that match, in the order of the patterns and then of their names.

    Symbolic links are not followed, so that a trial can only name its own files. Their content is without secrets.

    Args:
        work: the folder.
        patterns: patterns of `Path.glob`, relative to the folder.
        most: maximum number of files with content; 0: no files are reported.
        largest: maximum size of a file with content, in bytes.
        redactor: hides the secrets.
    """
    if not most:
        return
    for number, (name, path) in enumerate(_matching(work, patterns)):
        if number >= most + REPORTED:
            return
        artifact = _read(name, path, largest if number < most else -1, redactor)
        if artifact is not None:
            yield artifact


def _matching(work: Path, patterns: Sequence[str]) -> Iterator[tuple[str, Path]]:
    seen: set[Path] = set()
    looked = 0
    for pattern in patterns:
        found = []
        try:
            for path in work.glob(pattern):
                looked += 1
                if looked > LOOKED_AT:
                    break
                if path not in seen and not _has_links(work, path):
                    found.append(path)
        except OSError as error:
            logger.info("artifacts cannot be listed", folder=work, error=error)
        seen.update(found)
        for path in sorted(found):
            yield str(path.relative_to(work)), path


def _has_links(work: Path, path: Path) -> bool:
    return any(part.is_symlink() for part in (path, *path.parents) if part != work and work in part.parents)


def _read(name: str, path: Path, largest: int, redactor: Redactor) -> Artifact | None:
    """Return one file; None if it is not a regular file or has an unsuitable name. `largest` -1 omits its content."""
    try:
        name.encode()
        # O_NONBLOCK: opening a FIFO does not wait for a writer. The check for a regular file follows.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, UnicodeEncodeError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or len(name) > NAME_LENGTH or _CONTROL.search(name):
            return None
        size = status.st_size
        if largest < 0:
            return Artifact(name, size, left_out="the agent sends no more files of a trial")
        if size > largest:
            return Artifact(name, size, left_out=f"the file is larger than {_bytes(largest)}, the agent's limit")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = redactor.file(file.read(largest))
    except OSError as error:
        return Artifact(name, 0, left_out=f"cannot be read: {error.strerror}")
    finally:
        os.close(handle)
    return Artifact(name, len(data), hashlib.sha256(data).hexdigest(), data)


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):g} MiB" if count >= 1 << 20 else f"{count / 1024:g} KiB"
