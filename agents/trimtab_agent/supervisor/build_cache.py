"""Keeps what builds make, so that one configuration is built once, however many trials and agents' restarts share it.

For each key there are `KEY/` (the output), `KEY.done` (written when it is whole; its time is that of the last use) and
`KEY.lock`. A user holds the lock shared, a builder alone; the kernel lets go of it when the holder dies, so that a
half-made output is made again. The output is built at its final place, since many build systems write that place into
what they make.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable

from trimtab_agent.supervisor.files import write_atomically

LOCK_INTERVAL = 0.02


def use(entry: str, limit: int, make: Callable[[], None], stopped: Callable[[], bool]) -> tuple[int, float | None]:
    """Makes sure that the output is there, and that it stays for the time being.

    Args:
        entry: the output's folder.
        limit: bytes that the outputs beside it may take together; the least recently used go first, those in use never.
        make: builds into the folder, which is there and empty; raises where it cannot.
        stopped: asked while another process builds the same; True ends the waiting.

    Returns:
        A handle to close when the output is no longer needed, and the seconds that the build took: None where there
        was none to do.

    Raises:
        InterruptedError: `stopped` said so.
        OSError: the cache cannot be written.
    """
    os.makedirs(os.path.dirname(entry), exist_ok=True)
    lock = _lock(entry, fcntl.LOCK_SH, stopped)
    while not _is_done(entry):
        os.close(lock)
        lock = _lock(entry, fcntl.LOCK_EX, stopped)
        if not _is_done(entry):
            started = time.monotonic()
            shutil.rmtree(entry, ignore_errors=True)
            os.mkdir(entry)
            try:
                make()
            except BaseException:
                os.close(lock)
                raise
            seconds = time.monotonic() - started
            write_atomically(f"{entry}.done", json.dumps({"bytes": _size(entry), "seconds": seconds}).encode())
            fcntl.flock(lock, fcntl.LOCK_SH)
            _evict(os.path.dirname(entry), limit)
            return lock, seconds
        fcntl.flock(lock, fcntl.LOCK_SH)
    os.utime(f"{entry}.done")
    return lock, None


def _lock(entry: str, kind: int, stopped: Callable[[], bool]) -> int:
    """The lock file, open and locked."""
    path = f"{entry}.lock"
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stopped():
                    os.close(handle)
                    raise InterruptedError from None
                time.sleep(LOCK_INTERVAL)
        if _is_same_file(handle, path):
            return handle
        os.close(handle)  # it was evicted between the opening and the locking


def _is_same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _is_done(entry: str) -> bool:
    return os.path.exists(f"{entry}.done") and os.path.isdir(entry)


def _size(folder: str) -> int:
    """Bytes on disk."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _evict(cache: str, limit: int) -> None:
    outputs = []
    for name in os.listdir(cache):
        if name.endswith(".done"):
            path = os.path.join(cache, name)
            try:
                with open(path, "rb") as file:
                    outputs.append((os.stat(path).st_mtime, json.load(file)["bytes"], path.removesuffix(".done")))
            except (FileNotFoundError, ValueError):
                continue
    total = sum(size for _, size, _ in outputs)
    for _, size, entry in sorted(outputs):
        if total <= limit:
            return
        handle = os.open(f"{entry}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # in use
        else:
            # the mark first: without it the output does not count as whole
            for path in (f"{entry}.done", f"{entry}.lock"):
                if os.path.exists(path):
                    os.unlink(path)
            shutil.rmtree(entry, ignore_errors=True)
            total -= size
        finally:
            os.close(handle)
