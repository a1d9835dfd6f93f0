"""Atomic and durable files."""

import errno
import os
import stat
from typing import BinaryIO


def write_atomically(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> None:
    """Write a file so that a reader sees all of it or none.

    Args:
        path: the file.
        data: its whole content.
        durable: wait until the file would survive a power cut.

    Raises:
        OSError: the file cannot be written; an existing file stays unchanged.
    """
    name = os.fspath(path)
    temporary = f"{name}.{os.getpid()}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, name)
    except OSError:
        os.unlink(temporary)
        raise
    if durable:
        sync_folder(os.path.dirname(name) or ".")


def open_regular(path: str | os.PathLike[str], owner: int | None = None) -> BinaryIO:
    """Open a file that a trial may have made, to read it. This never waits, as opening a named pipe would.

    `owner` is the user of the trial if it is not this process's user: a link could lead to what only this process may
    read.

    Raises:
        OSError: there is no such file, it is not a regular one, or it has another owner.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if owner is not None and status.st_uid != owner:
        os.close(handle)
        raise OSError(errno.EACCES, "not a file of the trial's user", os.fspath(path))
    return os.fdopen(handle, "rb")


def give(folder: str | os.PathLike[str], uid: int, gid: int) -> None:
    """Give a folder and everything in it to a user. Links are not followed.

    Raises:
        OSError: this process may not do that.
    """
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in (*folders, *files):
            os.chown(os.path.join(parent, name), uid, gid, follow_symlinks=False)
    os.chown(folder, uid, gid)


def is_there(folder: str | os.PathLike[str], name: str) -> bool:
    """Return whether a folder has an entry of this name. This reads the folder, because the client of a network file
    system may have cached that a file does not exist."""
    return name in os.listdir(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the entries of `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
