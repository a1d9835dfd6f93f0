"""A disk that a test watches and holds up, for real processes: a library that is loaded before the C library."""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.factories.service import require_program

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int fsync(int descriptor)
{
    static int (*real)(int);
    if (!real)
        real = dlsym(RTLD_NEXT, "fsync");
    const char *count = getenv("TEST_DISK_COUNT"), *gate = getenv("TEST_DISK_GATE");
    int file = count ? open(count, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file >= 0) {
        if (write(file, "x", 1) != 1)
            abort();
        close(file);
    }
    while (gate && access(gate, F_OK) == 0)
        usleep(10000);
    return real(descriptor);
}
"""


class Disk:
    """`variables`: the environment of processes that use this disk."""

    def __init__(self) -> None:
        compiler = require_program("gcc", "gcc")
        # not in a test's own folder: PostgreSQL runs as another user
        self._folder = tempfile.TemporaryDirectory(prefix="trimtab-disk-")
        place = Path(self._folder.name)
        place.chmod(0o755)
        self._count, self._gate = place / "count", place / "gate"
        self._count.touch()
        self._count.chmod(0o666)
        library = place / "disk.so"
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", str(library), "-ldl"],
            input=SOURCE.encode(),
            check=True,
        )
        preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
        self.variables = {
            "LD_PRELOAD": preload,
            "TEST_DISK_COUNT": str(self._count),
            "TEST_DISK_GATE": str(self._gate),
        }

    @property
    def flushes(self) -> int:
        """How often a process has asked for a file to be on the disk (fsync)."""
        return self._count.stat().st_size

    def hold(self) -> None:
        """Let no flush end until `release`."""
        self._gate.touch()

    def release(self) -> None:
        """Let all flushes end."""
        self._gate.unlink()

    def close(self) -> None:
        """Remove the library. Processes that have loaded it keep it."""
        self._folder.cleanup()
