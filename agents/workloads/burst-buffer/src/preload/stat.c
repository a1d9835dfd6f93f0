/* Hooks of stat: files below the directory have no holes. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Whether a file that seems to have holes is below the directory. Data that is not in the directory yet has no blocks
 * there, and programs that copy files leave out parts without blocks. `path` and `flags` are as in fstatat. */
static bool may_be_buffered(int folder, const char *path, int flags)
{
    if (!*path)
        return within(folder);
    int before = errno, how = O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
    int descriptor = (int)syscall(SYS_openat, folder, path, how);
    bool found = descriptor < 0 || within(descriptor); /* too many blocks lose no data */
    if (descriptor >= 0)
        syscall(SYS_close, descriptor);
    errno = before;
    return found;
}

static int looked(int result, int folder, const char *path, struct stat *found, int flags)
{
    if (result == 0 && atomic_load_explicit(&active, memory_order_relaxed) && found->st_dev == directory_device &&
        S_ISREG(found->st_mode) && found->st_blocks < (found->st_size + 511) / 512 && may_be_buffered(folder, path, flags))
        found->st_blocks = (found->st_size + 511) / 512;
    return result;
}

EXPORTED int fstatat(int folder, const char *path, struct stat *found, int flags)
{
    return looked((int)syscall(SYS_newfstatat, folder, path, found, flags), folder, path, found, flags);
}

EXPORTED int stat(const char *path, struct stat *found)
{
    return fstatat(AT_FDCWD, path, found, 0);
}

EXPORTED int lstat(const char *path, struct stat *found)
{
    return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

EXPORTED int fstat(int descriptor, struct stat *found)
{
    return looked((int)syscall(SYS_fstat, descriptor, found), descriptor, "", found, 0);
}

EXPORTED int statx(int folder, const char *path, int flags, unsigned mask, struct statx *found)
{
    int result = (int)syscall(SYS_statx, folder, path, flags, mask, found);
    if (result == 0 && atomic_load_explicit(&active, memory_order_relaxed) && found->stx_mask & STATX_BLOCKS &&
        makedev(found->stx_dev_major, found->stx_dev_minor) == directory_device && S_ISREG(found->stx_mode) &&
        found->stx_blocks < (found->stx_size + 511) / 512 && may_be_buffered(folder, path, flags))
        found->stx_blocks = (found->stx_size + 511) / 512;
    return result;
}

/* The names in programs that were built with a glibc before 2.33. */
EXPORTED int __xstat(int version, const char *path, struct stat *found)
{
    (void)version;
    return stat(path, found);
}

EXPORTED int __lxstat(int version, const char *path, struct stat *found)
{
    (void)version;
    return lstat(path, found);
}

EXPORTED int __fxstat(int version, int descriptor, struct stat *found)
{
    (void)version;
    return fstat(descriptor, found);
}

EXPORTED int __fxstatat(int version, int folder, const char *path, struct stat *found, int flags)
{
    (void)version;
    return fstatat(folder, path, found, flags);
}

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "they are taken for their 64-bit twins");
EXPORTED int fstatat64(int, const char *, struct stat64 *, int) __attribute__((alias("fstatat")));
EXPORTED int stat64(const char *, struct stat64 *) __attribute__((alias("stat")));
EXPORTED int lstat64(const char *, struct stat64 *) __attribute__((alias("lstat")));
EXPORTED int fstat64(int, struct stat64 *) __attribute__((alias("fstat")));
EXPORTED int __xstat64(int, const char *, struct stat64 *) __attribute__((alias("__xstat")));
EXPORTED int __lxstat64(int, const char *, struct stat64 *) __attribute__((alias("__lxstat")));
EXPORTED int __fxstat64(int, int, struct stat64 *) __attribute__((alias("__fxstat")));
EXPORTED int __fxstatat64(int, int, const char *, struct stat64 *, int) __attribute__((alias("__fxstatat")));
