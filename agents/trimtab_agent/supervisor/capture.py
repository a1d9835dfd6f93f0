"""Keeps the head and the tail of an output of any length, in bounded memory and on a bounded piece of disk."""

import os


class Capture:
    """Writes the first half of `limit` bytes to a file as they come, and the last half when the output ends.

    The file only grows, so that a reader may follow it. `recent` holds the last bytes since `forget`, for messages.
    """

    RECENT = 4096

    def __init__(self, path: str, limit: int) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._half = limit // 2
        self._written = 0
        self._tail = bytearray()
        self._dropped = 0
        self.recent = bytearray()
        # why output was lost, where it was
        self.failure = ""

    def add(self, data: bytes) -> None:
        """Takes the next bytes of the output."""
        self.recent += data[-self.RECENT :]
        del self.recent[: -self.RECENT]
        head = data[: max(0, self._half - self._written)]
        if head:
            self._write(head)
            self._written += len(head)
        if len(head) < len(data):
            self._tail += data[len(head) :]
            # in large pieces: the bytes kept are moved at each cut
            if len(self._tail) > 2 * self._half:
                self._dropped += len(self._tail) - self._half
                del self._tail[: -self._half]

    def forget(self) -> None:
        """Empties `recent`."""
        self.recent.clear()

    def close(self) -> None:
        """Writes the tail."""
        if len(self._tail) > self._half:
            self._dropped += len(self._tail) - self._half
            del self._tail[: -self._half]
        if self._dropped:
            self._write(b"\n[... %d bytes left out ...]\n" % self._dropped)
        self._write(bytes(self._tail))
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._file, left) :]
            except OSError as error:
                # a full disk must not end the trial: what is lost is output alone, and a metric that needs it says so
                self.failure = error.strerror or str(error)
                return


def last_lines(data: bytes, lines: int = 12, characters: int = 1500) -> str:
    """The end of an output as text that fits a message: without NULs, which a database does not store."""
    text = data.replace(b"\0", b"").decode("utf-8", "replace").strip()
    return "\n".join(text.splitlines()[-lines:])[-characters:]
