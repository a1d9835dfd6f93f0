/* Hooks of calls after which the library does not see a file's use: streams, mappings, copies, other names, other
 * programs. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *streamed(FILE *stream, bool empty)
{
    if (!stream || !atomic_load(&active))
        return stream;
    int descriptor = fileno(stream);
    forget(descriptor);
    int64_t result = empty ? truncated(descriptor) : 0;
    result = result ? result : bypass(descriptor);
    if (result) {
        real.fclose(stream);
        failed(result);
        return NULL;
    }
    return stream;
}

EXPORTED FILE *fopen(const char *path, const char *mode)
{
    if (!real.fopen)
        start();
    return streamed(real.fopen(path, mode), mode[0] == 'w');
}

EXPORTED FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    if (!real.freopen)
        start();
    if (stream)
        closing(fileno(stream));
    return streamed(real.freopen(path, mode, stream), mode[0] == 'w');
}

EXPORTED FILE *fdopen(int descriptor, const char *mode)
{
    if (!real.fdopen)
        start();
    int64_t result = bypass(descriptor);
    if (result) {
        failed(result);
        return NULL;
    }
    return real.fdopen(descriptor, mode);
}

EXPORTED int fclose(FILE *stream)
{
    if (!real.fclose)
        start();
    if (stream)
        forget(fileno(stream));
    return real.fclose(stream);
}

EXPORTED FILE *fopen64(const char *, const char *) __attribute__((alias("fopen")));
EXPORTED FILE *freopen64(const char *, const char *, FILE *) __attribute__((alias("freopen")));

EXPORTED void *mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    int64_t result = flags & MAP_ANONYMOUS ? 0 : bypass(descriptor);
    if (result) {
        failed(result);
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, descriptor, offset);
}

EXPORTED void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

static int64_t bypass_both(int one, int other)
{
    int64_t result = bypass(one);
    return result ? result : bypass(other);
}

EXPORTED ssize_t sendfile(int to, int from, off_t *offset, size_t bytes)
{
    int64_t result = bypass_both(to, from);
    return result ? failed(result) : syscall(SYS_sendfile, to, from, offset, bytes);
}

EXPORTED ssize_t sendfile64(int, int, off_t *, size_t) __attribute__((alias("sendfile")));

EXPORTED ssize_t copy_file_range(int from, off_t *at, int to, off_t *there, size_t bytes, unsigned flags)
{
    int64_t result = bypass_both(to, from);
    return result ? failed(result) : syscall(SYS_copy_file_range, from, at, to, there, bytes, flags);
}

EXPORTED ssize_t splice(int from, off_t *at, int to, off_t *there, size_t bytes, unsigned flags)
{
    int64_t result = bypass_both(to, from);
    return result ? failed(result) : syscall(SYS_splice, from, at, to, there, bytes, flags);
}

EXPORTED int ioctl(int descriptor, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int64_t result = 0;
    if (request == FICLONE)
        result = bypass_both(descriptor, (int)(intptr_t)argument);
    else if (request == FICLONERANGE && argument)
        result = bypass_both(descriptor, (int)((struct file_clone_range *)argument)->src_fd);
    else if (request == FS_IOC_FIEMAP) /* reports where there are holes */
        result = bypass(descriptor);
    return result ? (int)failed(result) : (int)syscall(SYS_ioctl, descriptor, request, argument);
}

/* Ends the buffering of a file before it gets a name outside the directory, under which the library does not see it.
 * Returns 0 or -errno. */
static int64_t leaving(int from, const char *old, int to, const char *new)
{
    if (!atomic_load(&active) || strlen(new) >= PATH_MAX)
        return 0;
    int before = errno, file = (int)syscall(SYS_openat, from, old, O_PATH | O_NOFOLLOW | O_CLOEXEC), folder = -1;
    if (file >= 0 && within(file)) {
        char path[PATH_MAX];
        size_t length = strlen(strcpy(path, new));
        while (length > 1 && path[length - 1] == '/')
            path[--length] = 0;
        char *last = strrchr(path, '/');
        strcpy(last ? last + 1 : path, ".");
        folder = (int)syscall(SYS_openat, to, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    int64_t result = 0;
    if (folder >= 0 && !within(folder)) {
        struct stat found;
        if (syscall(SYS_fstat, file, &found) == 0 && S_ISDIR(found.st_mode))
            result = sync_daemon();
        else
            result = bypass_new(file);
    }
    if (file >= 0) {
        forget(file);
        syscall(SYS_close, file);
    }
    if (folder >= 0)
        syscall(SYS_close, folder);
    errno = before;
    return result;
}

EXPORTED int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    int64_t result = leaving(from, old, to, new);
    return result ? (int)failed(result) : (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

EXPORTED int renameat(int from, const char *old, int to, const char *new)
{
    return renameat2(from, old, to, new, 0);
}

EXPORTED int rename(const char *old, const char *new)
{
    return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0);
}

EXPORTED int linkat(int from, const char *old, int to, const char *new, int flags)
{
    int64_t result = leaving(from, old, to, new);
    return result ? (int)failed(result) : (int)syscall(SYS_linkat, from, old, to, new, flags);
}

EXPORTED int link(const char *old, const char *new)
{
    return linkat(AT_FDCWD, old, AT_FDCWD, new, 0);
}

/* Flushes all open descriptors, without a way to report an error. */
static void flush_all(void)
{
    int before = errno;
    for (int i = 0; i < DESCRIPTORS; i++)
        if (atomic_load_explicit(&unflushed[i], memory_order_relaxed))
            flush_descriptor(i, FLUSH);
    errno = before;
}

/* At exit, where the system closes the files that the program has left open. */
__attribute__((destructor(101))) static void finish(void)
{
    if (atomic_load(&active))
        flush_all();
}

/* Flushes before a program is executed, because the program cannot know that data of a descriptor that it inherits is
 * lost. The program's own file is no longer buffered: the system reads it, and not while somebody may write to it. */
static void executed(const char *path)
{
    if (!atomic_load(&active))
        return;
    flush_all();
    if (!path || !strchr(path, '/')) /* a folder in PATH is hardly ever below the directory */
        return;
    int before = errno, descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0) {
        bypass_new(descriptor);
        forget(descriptor);
        syscall(SYS_close, descriptor);
    }
    errno = before;
}

EXPORTED int execve(const char *path, char *const given[], char *const environment[])
{
    executed(path);
    return (int)syscall(SYS_execve, path, given, environment);
}

EXPORTED int execv(const char *path, char *const given[])
{
    return execve(path, given, environ);
}

EXPORTED int execvpe(const char *path, char *const given[], char *const environment[])
{
    executed(path);
    return real.execvpe(path, given, environment);
}

EXPORTED int execvp(const char *path, char *const given[])
{
    return execvpe(path, given, environ);
}

/* Copies the arguments from `first` to the null pointer into an array, if there is one. Returns their number with
 * it. */
static size_t gather(const char *first, va_list *others, const char **into)
{
    for (size_t count = 0;; first = va_arg(*others, const char *)) {
        if (into)
            into[count] = first;
        count++;
        if (!first)
            return count;
    }
}

#define GATHER(first) \
    va_list counted, others; \
    va_start(counted, first); \
    va_copy(others, counted); \
    const char *given[gather(first, &counted, NULL)]; \
    gather(first, &others, given); \
    va_end(counted)

EXPORTED int execl(const char *path, const char *first, ...)
{
    GATHER(first);
    va_end(others);
    return execve(path, (char *const *)given, environ);
}

EXPORTED int execlp(const char *path, const char *first, ...)
{
    GATHER(first);
    va_end(others);
    return execvpe(path, (char *const *)given, environ);
}

EXPORTED int execle(const char *path, const char *first, ...)
{
    GATHER(first);
    char *const *environment = va_arg(others, char *const *);
    va_end(others);
    return execve(path, (char *const *)given, environment);
}

EXPORTED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const given[], char *const environment[])
{
    executed(path);
    return real.posix_spawn(pid, path, actions, attributes, given, environment);
}

EXPORTED int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const given[], char *const environment[])
{
    executed(path);
    return real.posix_spawnp(pid, path, actions, attributes, given, environment);
}
