/* Hooks of fsync and similar calls, of sizes and of positions. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns 0, -errno or NOT_BUFFERED. */
static int64_t sync_descriptor(int descriptor)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS && atomic_load(&doubted[descriptor]))
        return -EIO;
    return watched(descriptor) ? flush_descriptor(descriptor, SYNC) : NOT_BUFFERED;
}

EXPORTED int fsync(int descriptor)
{
    int64_t result = sync_descriptor(descriptor);
    if (result == NOT_BUFFERED)
        return (int)syscall(SYS_fsync, descriptor);
    return result < 0 ? (int)failed(result) : 0;
}

EXPORTED int fdatasync(int) __attribute__((alias("fsync")));

EXPORTED int sync_file_range(int descriptor, off_t offset, off_t bytes, unsigned flags)
{
    int64_t result = sync_descriptor(descriptor);
    if (result < 0 && result != NOT_BUFFERED)
        return (int)failed(result);
    return (int)syscall(SYS_sync_file_range, descriptor, offset, bytes, flags);
}

int64_t sync_daemon(void)
{
    for (;;) {
        struct message message = {.operation = SYNC_ALL};
        int64_t result = request(&message, NULL, -1);
        if (result != NO_DAEMON && result != NO_ANSWER)
            return result;
        result = wait_for_recovery();
        if (result != ANOTHER)
            return result;
    }
}

/* The same; also an error if an open file has lost written data. */
static int64_t sync_all(void)
{
    if (!atomic_load(&active))
        return 0;
    int64_t result = sync_daemon();
    for (int i = 0; i < DESCRIPTORS; i++) {
        uint64_t known = atomic_load_explicit(&descriptors[i], memory_order_relaxed);
        int64_t own = known >= FIRST_HANDLE || atomic_load_explicit(&doubted[i], memory_order_relaxed) ? sync_descriptor(i) : 0;
        if (own < 0 && own != NOT_BUFFERED)
            result = own;
    }
    return result;
}

EXPORTED void sync(void)
{
    int before = errno;
    sync_all();
    syscall(SYS_sync);
    errno = before;
}

EXPORTED int syncfs(int descriptor)
{
    struct stat found;
    int64_t result = 0;
    if (syscall(SYS_fstat, descriptor, &found) == 0 && found.st_dev == directory_device)
        result = sync_all();
    int done = (int)syscall(SYS_syncfs, descriptor);
    return done == 0 && result < 0 ? (int)failed(result) : done;
}

EXPORTED int ftruncate(int descriptor, off_t size)
{
    int64_t result = NOT_BUFFERED;
    if (size >= 0 && watched(descriptor)) {
        int64_t flags = flags_for(descriptor, true);
        if (flags < 0)
            return (int)failed(-EINVAL);
        struct message message = {.operation = TRUNCATE, .offset = size};
        result = ask(descriptor, &message, NULL);
    }
    if (result == NOT_BUFFERED)
        return (int)syscall(SYS_ftruncate, descriptor, size);
    return result < 0 ? (int)failed(result) : 0;
}

EXPORTED int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));

int64_t truncated(int descriptor)
{
    int before = errno;
    struct message message = {.operation = TRUNCATE};
    int64_t result = watched(descriptor) ? ask(descriptor, &message, NULL) : 0;
    errno = before;
    return result == NOT_BUFFERED ? 0 : result;
}

EXPORTED int truncate(const char *path, off_t size)
{
    if (!atomic_load(&active))
        return (int)syscall(SYS_truncate, path, size);
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return (int)syscall(SYS_truncate, path, size);
    forget(descriptor);
    int result = watched(descriptor) ? ftruncate(descriptor, size) : (int)syscall(SYS_truncate, path, size);
    int error = errno;
    forget(descriptor);
    syscall(SYS_close, descriptor);
    errno = error;
    return result;
}

EXPORTED int truncate64(const char *, off_t) __attribute__((alias("truncate")));

EXPORTED int fallocate(int descriptor, int mode, off_t offset, off_t bytes)
{
    int64_t result = mode ? bypass(descriptor) : 0;
    if (result)
        return (int)failed(result);
    int done = (int)syscall(SYS_fallocate, descriptor, mode, offset, bytes);
    if (!done && watched(descriptor))
        meaning(descriptor, true); /* its size may have grown */
    return done;
}

EXPORTED int posix_fallocate(int descriptor, off_t offset, off_t bytes)
{
    int before = errno, done = fallocate(descriptor, 0, offset, bytes) ? errno : 0;
    errno = before;
    return done;
}

EXPORTED int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));
EXPORTED int posix_fallocate64(int, off_t, off_t) __attribute__((alias("posix_fallocate")));

EXPORTED off_t lseek(int descriptor, off_t offset, int whence)
{
    struct stat found;
    /* the daemon may have content for holes of the file in the directory: all of it counts as data */
    if ((whence == SEEK_DATA || whence == SEEK_HOLE) && watched(descriptor) &&
        syscall(SYS_fstat, descriptor, &found) == 0) {
        if (offset < 0 || offset >= found.st_size)
            return failed(-ENXIO);
        offset = whence == SEEK_DATA ? offset : found.st_size;
        whence = SEEK_SET;
    }
    return (off_t)syscall(SYS_lseek, descriptor, offset, whence);
}

EXPORTED off_t lseek64(int, off_t, int) __attribute__((alias("lseek")));
