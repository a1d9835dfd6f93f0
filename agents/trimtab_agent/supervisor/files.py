"""Files that are whole or not there."""

import os


def write_atomically(path: str | os.PathLike[str], data: bytes, *, durable: bool = False) -> None:
    """Writes a file that a reader finds whole or not at all.

    Args:
        path: the file.
        data: its whole content.
        durable: wait until it would survive a power cut.

    Raises:
        OSError: it cannot be written; what stood there before stands there still.
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


def is_there(folder: str | os.PathLike[str], name: str) -> bool:
    """Whether a folder has an entry of this name. Reads the folder, so that the client of a network file system asks
    its server: that a file is not there may be what this machine remembers."""
    return name in os.listdir(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Makes the names in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
