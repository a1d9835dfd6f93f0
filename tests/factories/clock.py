"""A wall clock that a test sets, for real processes: a library that is loaded before the C library."""

from tests.factories.preloaded import Preloaded

# Monotonic clocks go on as they do when an administrator, or a virtual machine's host, sets the clock.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset(void)
{
    const char *path = getenv("TEST_CLOCK_OFFSET");
    char text[32] = "";
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return status;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
"""


class Clock(Preloaded):
    """The clock of the processes that have its `variables`."""

    def __init__(self) -> None:
        super().__init__("clock", SOURCE)
        self._offset = self.folder / "offset"
        self.set(0)
        self.variables |= {"TEST_CLOCK_OFFSET": str(self._offset)}

    def set(self, seconds: int) -> None:
        """Set the difference between the shown time and the time of the machine."""
        fresh = self._offset.with_suffix(".new")
        fresh.write_text(str(seconds))
        fresh.chmod(0o644)
        fresh.replace(self._offset)
