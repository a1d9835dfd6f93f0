"""Cache of build outputs, so that one configuration is built once for many trials and restarts of the agent.

For each key there are `KEY/` (the output), `KEY.done` (written when the output is complete; its time is the last use)
and `KEY.lock`. A user holds the lock shared, a builder holds it exclusively. The kernel releases it when the holder
dies, so an incomplete output is built again. The output is built at its final path, because many build systems write
that path into their output.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable

from trimtab_agent.files import write_atomically

LOCK_INTERVAL = 0.02


def use(entry: str, limit: int, make: Callable[[], None], stopped: Callable[[], bool]) -> tuple[int, float | None]:
    """Build the output if needed, and keep it from being evicted while the handle is open.

    Args:
        entry: the output's folder.
            limit: maximum size of all outputs in bytes; the least recently used are removed, never those in use.
            make: builds into the folder, which exists and is empty; raises an exception if the build fails.
            stopped: called while another process builds the same output; True ends the wait.

    Returns:
        A handle to close when the output is no longer needed, and the duration of the build in seconds, or None if the
        output came from the cache.

    Raises:
        InterruptedError: `stopped` returned True.
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
    """Return the lock file, open and locked."""
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
        os.close(handle)  # evicted between opening and locking


def _is_same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _is_done(entry: str) -> bool:
    return os.path.exists(f"{entry}.done") and os.path.isdir(entry)


def _size(folder: str) -> int:
    """Return the size on disk in bytes."""
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
            # The mark goes first: without it the output counts as incomplete.
            for path in (f"{entry}.done", f"{entry}.lock"):
                if os.path.exists(path):
                    os.unlink(path)
            shutil.rmtree(entry, ignore_errors=True)
            total -= size
        finally:
            os.close(handle)
