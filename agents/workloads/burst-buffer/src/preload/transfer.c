/* Hooks of reads and writes. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 0x7ffff000 };

/* Reads or writes at `offset`. Returns NOT_BUFFERED only before any byte has been moved. */
static int64_t move(int descriptor, uint32_t operation, uint8_t *data, size_t bytes, off_t *offset)
{
    size_t done = 0;
    int64_t result = 0;
    do {
        size_t part = bytes - done < AREA_BYTES ? bytes - done : AREA_BYTES;
        struct message message = {.operation = operation, .length = (uint32_t)part, .offset = *offset + (off_t)done};
        result = ask(descriptor, &message, data + done);
        if (operation == APPEND && !done && result > 0)
            *offset = message.offset;
        if (result > 0) {
            done += (size_t)result;
            if (operation != READ)
                atomic_fetch_add(&unflushed[descriptor], 1);
        }
        if (result != (int64_t)part)
            break;
        /* the rest of an append must follow its first part */
        operation = operation == APPEND ? WRITE : operation;
    } while (done < bytes);
    return done ? (int64_t)done : result;
}

/* Reads or writes at `offset` if it is 0 or more, or at the file position, which it moves. Returns -1 and sets
 * errno, or returns NOT_BUFFERED. */
static int64_t transfer(int descriptor, bool writes, void *data, size_t bytes, off_t offset, bool here)
{
    if (!watched(descriptor))
        return NOT_BUFFERED;
    int64_t flags = flags_for(descriptor, writes), result;
    if (flags < 0)
        return failed(flags);
    if (!here && offset < 0)
        return failed(-EINVAL);
    if (!bytes)
        return 0;
    bytes = bytes < MOST ? bytes : MOST;
    off_t at = offset;
    if (writes && flags & O_APPEND) {
        at = 0;
        result = move(descriptor, APPEND, data, bytes, &at);
        if (here && result > 0)
            lseek(descriptor, at + result, SEEK_SET);
    } else {
        if (here) {
            off_t end = (off_t)syscall(SYS_lseek, descriptor, (off_t)bytes, SEEK_CUR);
            if (end < 0)
                return -1;
            at = end - (off_t)bytes;
        }
        result = move(descriptor, writes ? WRITE : READ, data, bytes, &at);
        off_t excess = (off_t)bytes - (result > 0 ? (off_t)result : 0);
        if (here && excess)
            syscall(SYS_lseek, descriptor, -excess, SEEK_CUR);
    }
    if (writes && result > 0 && flags & O_DSYNC) {
        int64_t synced = flush_descriptor(descriptor, SYNC);
        if (synced < 0 && synced != NOT_BUFFERED)
            return failed(synced);
    }
    return result == NOT_BUFFERED || result >= 0 ? result : failed(result);
}

EXPORTED ssize_t read(int descriptor, void *to, size_t bytes)
{
    int64_t result = transfer(descriptor, false, to, bytes, 0, true);
    return result != NOT_BUFFERED ? result : syscall(SYS_read, descriptor, to, bytes);
}

EXPORTED ssize_t pread(int descriptor, void *to, size_t bytes, off_t offset)
{
    int64_t result = transfer(descriptor, false, to, bytes, offset, false);
    return result != NOT_BUFFERED ? result : syscall(SYS_pread64, descriptor, to, bytes, offset);
}

EXPORTED ssize_t write(int descriptor, const void *from, size_t bytes)
{
    int64_t result = transfer(descriptor, true, (void *)(uintptr_t)from, bytes, 0, true);
    return result != NOT_BUFFERED ? result : syscall(SYS_write, descriptor, from, bytes);
}

EXPORTED ssize_t pwrite(int descriptor, const void *from, size_t bytes, off_t offset)
{
    int64_t result = transfer(descriptor, true, (void *)(uintptr_t)from, bytes, offset, false);
    return result != NOT_BUFFERED ? result : syscall(SYS_pwrite64, descriptor, from, bytes, offset);
}

/* Gathers parts of memory, so that they are one write to the file position or the end. */
static int64_t transfer_parts(int descriptor, bool writes, const struct iovec *parts, int count, off_t offset, bool here)
{
    if (!watched(descriptor))
        return NOT_BUFFERED;
    if (count < 0 || count > IOV_MAX)
        return failed(-EINVAL);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > SSIZE_MAX - bytes)
            return failed(-EINVAL);
        bytes += parts[i].iov_len;
    }
    bytes = bytes < MOST ? bytes : MOST;
    if (!bytes)
        return transfer(descriptor, writes, NULL, 0, offset, here);
    uint8_t *all = malloc(bytes);
    if (!all)
        return failed(-ENOMEM);
    size_t at = 0;
    for (int i = 0; writes && i < count && at < bytes; i++) {
        size_t part = parts[i].iov_len < bytes - at ? parts[i].iov_len : bytes - at;
        memcpy(all + at, parts[i].iov_base, part);
        at += part;
    }
    int64_t result = transfer(descriptor, writes, all, bytes, offset, here);
    int64_t left = writes ? 0 : result;
    for (int i = 0; i < count && left > 0; i++) {
        size_t part = parts[i].iov_len < (size_t)left ? parts[i].iov_len : (size_t)left;
        memcpy(parts[i].iov_base, all + (result - left), part);
        left -= (int64_t)part;
    }
    int error = errno;
    free(all);
    errno = error;
    return result;
}

EXPORTED ssize_t readv(int descriptor, const struct iovec *parts, int count)
{
    int64_t result = transfer_parts(descriptor, false, parts, count, 0, true);
    return result != NOT_BUFFERED ? result : syscall(SYS_readv, descriptor, parts, count);
}

EXPORTED ssize_t writev(int descriptor, const struct iovec *parts, int count)
{
    int64_t result = transfer_parts(descriptor, true, parts, count, 0, true);
    return result != NOT_BUFFERED ? result : syscall(SYS_writev, descriptor, parts, count);
}

EXPORTED ssize_t preadv(int descriptor, const struct iovec *parts, int count, off_t offset)
{
    int64_t result = transfer_parts(descriptor, false, parts, count, offset, false);
    return result != NOT_BUFFERED ? result : syscall(SYS_preadv, descriptor, parts, count, offset, 0);
}

EXPORTED ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset)
{
    int64_t result = transfer_parts(descriptor, true, parts, count, offset, false);
    return result != NOT_BUFFERED ? result : syscall(SYS_pwritev, descriptor, parts, count, offset, 0);
}

EXPORTED ssize_t preadv2(int descriptor, const struct iovec *parts, int count, off_t offset, int flags)
{
    int64_t result = flags ? bypass(descriptor) : 0;
    if (result)
        return failed(result);
    result = transfer_parts(descriptor, false, parts, count, offset, offset == -1);
    return result != NOT_BUFFERED ? result : syscall(SYS_preadv2, descriptor, parts, count, offset, 0, flags);
}

EXPORTED ssize_t pwritev2(int descriptor, const struct iovec *parts, int count, off_t offset, int flags)
{
    int64_t result = flags ? bypass(descriptor) : 0;
    if (result)
        return failed(result);
    result = transfer_parts(descriptor, true, parts, count, offset, offset == -1);
    return result != NOT_BUFFERED ? result : syscall(SYS_pwritev2, descriptor, parts, count, offset, 0, flags);
}

EXPORTED ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
EXPORTED ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")));
EXPORTED ssize_t preadv64(int, const struct iovec *, int, off_t) __attribute__((alias("preadv")));
EXPORTED ssize_t pwritev64(int, const struct iovec *, int, off_t) __attribute__((alias("pwritev")));
EXPORTED ssize_t preadv64v2(int, const struct iovec *, int, off_t, int) __attribute__((alias("preadv2")));
EXPORTED ssize_t pwritev64v2(int, const struct iovec *, int, off_t, int) __attribute__((alias("pwritev2")));

/* The names in programs that were built with -D_FORTIFY_SOURCE; they check the size of the buffer. */
extern void __chk_fail(void) __attribute__((noreturn));

EXPORTED ssize_t __read_chk(int descriptor, void *to, size_t bytes, size_t room)
{
    if (bytes > room)
        __chk_fail();
    return read(descriptor, to, bytes);
}

EXPORTED ssize_t __pread_chk(int descriptor, void *to, size_t bytes, off_t offset, size_t room)
{
    if (bytes > room)
        __chk_fail();
    return pread(descriptor, to, bytes, offset);
}

EXPORTED ssize_t __pread64_chk(int, void *, size_t, off_t, size_t) __attribute__((alias("__pread_chk")));
