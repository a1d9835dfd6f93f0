/* Opening and closing. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static int opened(int descriptor, int flags)
{
    forget(descriptor);
    if (descriptor >= 0 && flags & O_TRUNC && atomic_load_explicit(&active, memory_order_relaxed)) {
        int64_t result = truncated(descriptor);
        if (result < 0) {
            forget(descriptor);
            syscall(SYS_close, descriptor);
            return (int)failed(result);
        }
    } else if (descriptor >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
        meaning(descriptor, false); /* a child may write before the daemon is killed, and we call fsync after it */
    }
    if (descriptor >= 0 && descriptor <= STDERR_FILENO)
        bypass_new(descriptor);
    return descriptor;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(arguments, int) : 0;
}

EXPORTED int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened((int)syscall(SYS_openat, folder, path, flags, mode), flags);
}

EXPORTED int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), flags);
}

EXPORTED int creat(const char *path, mode_t mode)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

EXPORTED int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

EXPORTED int __openat_2(int folder, const char *path, int flags)
{
    return openat(folder, path, flags);
}

EXPORTED int open64(const char *, int, ...) __attribute__((alias("open")));
EXPORTED int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
EXPORTED int creat64(const char *, mode_t) __attribute__((alias("creat")));
EXPORTED int __open64_2(const char *, int) __attribute__((alias("__open_2")));
EXPORTED int __openat64_2(int, const char *, int) __attribute__((alias("__openat_2")));

int64_t closing(int descriptor)
{
    int64_t result = 0;
    if (descriptor >= 0 && descriptor < DESCRIPTORS && atomic_load(&unflushed[descriptor])) {
        int before = errno;
        result = flush_descriptor(descriptor, FLUSH);
        result = result == NOT_BUFFERED ? 0 : result;
        errno = before;
    }
    forget(descriptor);
    return result;
}

EXPORTED int close(int descriptor)
{
    if (is_ours(descriptor))
        return (int)failed(-EBADF);
    int64_t flushed = closing(descriptor);
    int result = (int)syscall(SYS_close, descriptor);
    return result == 0 && flushed < 0 ? (int)failed(flushed) : result;
}

EXPORTED int close_range(unsigned first, unsigned last, int flags)
{
    int result = 0;
    for (unsigned from = first; from <= last && !result;) { /* up to the next descriptor of ours, or all */
        unsigned end = from;
        for (; end < DESCRIPTORS && end <= last && !is_ours((int)end); end++)
            if (!(flags & CLOSE_RANGE_CLOEXEC))
                closing((int)end);
        if (end > last || end >= DESCRIPTORS)
            return (int)syscall(SYS_close_range, from, last, flags);
        if (end > from)
            result = (int)syscall(SYS_close_range, from, end - 1, flags);
        from = end + 1;
    }
    return result;
}

EXPORTED void closefrom(int first)
{
    close_range(first < 0 ? 0 : (unsigned)first, UINT_MAX, 0);
}

EXPORTED int dup3(int from, int to, int flags)
{
    if (is_ours(from) || is_ours(to))
        return (int)failed(-EBADF);
    if (from != to)
        closing(to);
    int result = (int)syscall(SYS_dup3, from, to, flags);
    copied(from, result);
    if (result >= 0 && to <= STDERR_FILENO)
        bypass_new(to);
    return result;
}

EXPORTED int dup2(int from, int to)
{
    if (from == to)
        return syscall(SYS_fcntl, from, F_GETFL) < 0 ? -1 : to;
    return dup3(from, to, 0);
}

EXPORTED int dup(int from)
{
    return copied(from, (int)syscall(SYS_dup, from));
}

EXPORTED int fcntl(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!real.fcntl)
        start();
    int result = real.fcntl(descriptor, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(descriptor, result) : result;
}

EXPORTED int fcntl64(int, int, ...) __attribute__((alias("fcntl")));
