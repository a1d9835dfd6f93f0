"""Keep the head and the tail of an output of any length, with bounded memory and disk space."""

import os


class Capture:
    """Writes the first half of `limit` bytes to a file as they arrive, and the last half at the end.

    The file only grows, so a reader may follow it. `recent` holds the last bytes since `forget`, for messages.
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
        # Why output was lost; empty if it was not.
        self.failure = ""

    def add(self, data: bytes) -> None:
        """Add the next bytes of the output."""
        self.recent += data[-self.RECENT :]
        del self.recent[: -self.RECENT]
        head = data[: max(0, self._half - self._written)]
        if head:
            self._write(head)
            self._written += len(head)
        if len(head) < len(data):
            self._tail += data[len(head) :]
            # Cut in large pieces, because each cut moves the remaining bytes.
            if len(self._tail) > 2 * self._half:
                self._dropped += len(self._tail) - self._half
                del self._tail[: -self._half]

    def forget(self) -> None:
        """Clear `recent`."""
        self.recent.clear()

    def close(self) -> None:
        """Write the tail and close the file."""
        if len(self._tail) > self._half:
            self._dropped += len(self._tail) - self._half
            del self._tail[: -self._half]
        if self._dropped:
            self._write(b"\n[... %d bytes omitted ...]\n" % self._dropped)
        self._write(bytes(self._tail))
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._file, left) :]
            except OSError as error:
                # A full disk must not end the trial. Only output is lost, and a metric that needs it reports that.
                self.failure = error.strerror or str(error)
                return


def last_lines(data: bytes, lines: int = 12, characters: int = 1500) -> str:
    """Return the end of an output as text for a message, without NULs, which a database cannot store."""
    text = data.replace(b"\0", b"").decode("utf-8", "replace").strip()
    return "\n".join(text.splitlines()[-lines:])[-characters:]
