"""The dead man's switch of `trimtab follow`: settings go back when the process that watches them dies.

A lease file exists as long as settings may be in force. It has the revert command, so that the next start takes back
what an earlier process has left. A watchdog process reads signs of life from a pipe. If the pipe closes without a
farewell, the controller has died; if there is no sign for a while, it hangs, and is killed. Then the watchdog runs the
revert command.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# Attempts of the watchdog to take the settings back, and seconds between two of them.
ATTEMPTS, RETRY_SECONDS = 3, 1.0
COMMAND_SECONDS = 60.0
SIGN, FAREWELL = b".", b"x"
# Seconds between two signs of life, and without one until the controller counts as dead.
SIGN_SECONDS, SILENCE = 1.0, 10.0


class Lease:
    """The right of one controller to have its settings in force."""

    def __init__(self, file: Path, revert: Sequence[str]) -> None:
        """Start the watchdog of the revert command."""
        self._file, self._revert = file, list(revert)
        reader, self._writer = os.pipe()
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__)), str(reader), str(file)],
            stdin=subprocess.DEVNULL,
            pass_fds=[reader],
            # Ctrl-C and the end of a terminal are for the controller alone.
            start_new_session=True,
        )
        os.close(reader)
        self._closed = threading.Event()
        self._signs = threading.Thread(target=self._give_signs, daemon=True)
        self._signs.start()

    def hold(self) -> None:
        """Note, durably, that settings may be in force from now on.

        Raises:
            OSError: the file cannot be written.
        """
        new = self._file.with_name(f"{self._file.name}.new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"pid": os.getpid(), "revert": self._revert, "since": time.time()}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._file)

    def give_up(self) -> None:
        """Note that no settings are in force."""
        self._file.unlink(missing_ok=True)

    def close(self) -> None:
        """End the watchdog: the settings stay, or were taken back."""
        self._closed.set()
        self._signs.join()
        with suppress(OSError):
            os.write(self._writer, FAREWELL)
        os.close(self._writer)
        self._watchdog.wait()

    def _give_signs(self) -> None:
        with suppress(OSError):  # the watchdog has died
            while not self._closed.wait(SIGN_SECONDS):
                os.write(self._writer, SIGN)


def left(file: Path) -> list[str]:
    """Return the revert command that an earlier process has left with its settings; empty if there is none.

    Raises:
        ValueError: the file is not a lease file.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))["revert"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file} is not a lease file of trimtab follow. Choose another file") from None
    return [str(word) for word in found]


def run(words: Sequence[str]) -> str:
    """Run the revert command; return "", or why it has failed."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
            errors="replace",
        )
    except OSError as error:
        return f"{words[0]} cannot be run: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return f"{words[0]} was still running after {COMMAND_SECONDS:g} s"
    return f"{words[0]} ended with code {done.returncode}: {done.stderr.strip()[-300:]}" if done.returncode else ""


def _watch(reader: int, file: Path) -> None:
    """Wait for the controller's end, and take its settings back if it gave no farewell."""
    controller = os.getppid()
    while select.select([reader], [], [], SILENCE)[0]:
        read = os.read(reader, 4096)
        if FAREWELL in read:
            return
        if not read:
            break
    else:
        # It must not believe later that its settings are in force.
        if os.getppid() == controller:
            os.kill(controller, signal.SIGKILL)
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(RETRY_SECONDS)
        words = left(file)
        if not words:
            return  # no settings are in force
        if not run(words):
            file.unlink(missing_ok=True)
            return


if __name__ == "__main__":
    _watch(int(sys.argv[1]), Path(sys.argv[2]))
