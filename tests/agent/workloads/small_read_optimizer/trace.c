/* Preloaded into fakeapp: writes a line "OFFSET BYTES" for each of its accesses to the file that $TRACE names. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *to;

__attribute__((constructor)) static void begin(void)
{
    to = fopen(getenv("TRACE"), "w");
}

static void trace(size_t bytes, off_t offset)
{
    fprintf(to, "%lld %zu\n", (long long)offset, bytes);
}

ssize_t pread(int descriptor, void *data, size_t bytes, off_t offset)
{
    trace(bytes, offset);
    return syscall(SYS_pread64, descriptor, data, bytes, offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    trace(bytes, offset);
    return syscall(SYS_pwrite64, descriptor, data, bytes, offset);
}
