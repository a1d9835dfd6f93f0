"""The files that a trial has left and that its component names, as they are sent to the service at its end."""

import hashlib
import logging
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

# characters of a name, as far as the service takes them
NAME_LENGTH = 255
# files that are told of without their content, where there are more than are sent
TOLD = 20
# entries of a work folder that are looked at
LOOKED_AT = 10_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Artifact:
    """A file in a work folder; `name` is its path there. `left_out`: why its content is not sent."""

    name: str
    size: int
    sha256: str = ""
    data: bytes = b""
    left_out: str = ""


def collect(work: Path, patterns: Sequence[str], *, most: int, largest: int) -> Iterator[Artifact]:
    """The files of a work folder that match, in the order of the patterns and then of their names.

    No link is followed: a trial names its own files, not those of the machine.

    Args:
        work: the folder.
        patterns: those of `Path.glob`, relative to it.
        most: files whose content is given; 0: none is even told of.
        largest: bytes of a file whose content is given.
    """
    if not most:
        return
    for number, (name, path) in enumerate(_matching(work, patterns)):
        if number >= most + TOLD:
            return
        artifact = _read(name, path, largest if number < most else -1)
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
            logger.info("%s: %s", work, error)
        seen.update(found)
        for path in sorted(found):
            yield str(path.relative_to(work)), path


def _has_links(work: Path, path: Path) -> bool:
    return any(part.is_symlink() for part in (path, *path.parents) if part != work and work in part.parents)


def _read(name: str, path: Path, largest: int) -> Artifact | None:
    """One file; None where it is none, or its name fits into no message. `largest` -1: there were enough before it."""
    try:
        name.encode()
        # what waits for a writer is opened without waiting, and then is no file
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, UnicodeEncodeError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or len(name) > NAME_LENGTH or _CONTROL.search(name):
            return None
        size = status.st_size
        if largest < 0:
            return Artifact(name, size, left_out="more files than an agent here sends of a trial")
        if size > largest:
            return Artifact(name, size, left_out=f"larger than the {_bytes(largest)} that an agent here sends")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(largest)
    except OSError as error:
        return Artifact(name, 0, left_out=f"cannot be read: {error.strerror}")
    finally:
        os.close(handle)
    return Artifact(name, len(data), hashlib.sha256(data).hexdigest(), data)


def _bytes(count: int) -> str:
    return f"{count / (1 << 20):g} MiB" if count >= 1 << 20 else f"{count / 1024:g} KiB"
