"""A disk that a test watches and holds up, for real processes: a library that is loaded before the C library."""

from tests.factories.preloaded import Preloaded

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


class Disk(Preloaded):
    """The disk of the processes that have its `variables`."""

    def __init__(self) -> None:
        super().__init__("disk", SOURCE)
        self._count, self._gate = self.folder / "count", self.folder / "gate"
        self._count.touch()
        self._count.chmod(0o666)
        self.variables |= {"TEST_DISK_COUNT": str(self._count), "TEST_DISK_GATE": str(self._gate)}

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
