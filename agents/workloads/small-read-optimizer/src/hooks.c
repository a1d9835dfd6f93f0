/* The functions by which applications read, which replace the C library's.
 *
 * The library examines a descriptor at its first read, so it does not matter which function or process has opened
 * the file; it must only see that descriptors are closed. It asks the system for positions, so it need not see
 * seeks, dup and fork. It does not see mmap, stdio other than fread, io_uring, aio and direct system calls. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "sro.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef fread_unlocked /* a macro in optimised builds */
_Static_assert(sizeof(off_t) == 8, "read and pread are taken for their 64-bit twins");

#define EXPORTED __attribute__((visibility("default")))

/* The functions that ours replace. Until they are found (another library's start may call), system calls. */
static struct {
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*pread)(int, void *, size_t, off_t);
    ssize_t (*readv)(int, const struct iovec *, int);
    ssize_t (*preadv)(int, const struct iovec *, int, off_t);
    ssize_t (*preadv2)(int, const struct iovec *, int, off_t, int);
    size_t (*fread)(void *, size_t, size_t, FILE *);
    size_t (*fread_unlocked)(void *, size_t, size_t, FILE *);
    int (*fclose)(FILE *);
    int (*close)(int);
    int (*dup2)(int, int);
    int (*dup3)(int, int, int);
    int (*execve)(const char *, char *const[], char *const[]);
    int (*execv)(const char *, char *const[]);
    int (*execvp)(const char *, char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*fexecve)(int, char *const[], char *const[]);
} real;

static atomic_bool watching;

static void resolve(void)
{
    struct {
        void *to;
        const char *name;
    } wanted[] = {
        {&real.read, "read"},       {&real.pread, "pread64"},
        {&real.readv, "readv"},     {&real.preadv, "preadv64"},
        {&real.preadv2, "preadv64v2"}, {&real.fread, "fread"},
        {&real.fread_unlocked, "fread_unlocked"}, {&real.fclose, "fclose"},
        {&real.close, "close"},     {&real.dup2, "dup2"},
        {&real.dup3, "dup3"},       {&real.execve, "execve"},
        {&real.execv, "execv"},     {&real.execvp, "execvp"},
        {&real.execvpe, "execvpe"}, {&real.fexecve, "fexecve"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        *(void **)wanted[i].to = dlsym(RTLD_NEXT, wanted[i].name);
}

__attribute__((constructor(101))) static void start(void)
{
    int before = errno;
    resolve();
    sro_read_settings();
    errno = before;
    if (!sro_settings.active)
        return;
    sro_start();
    pthread_atfork(NULL, NULL, sro_start_forked);
    atomic_store(&watching, true);
}

__attribute__((destructor)) static void end(void)
{
    sro_write_counters();
}

static ssize_t noted(int descriptor, off_t offset, ssize_t bytes)
{
    if (bytes > 0 && atomic_load_explicit(&watching, memory_order_relaxed))
        sro_note(descriptor, offset, (size_t)bytes);
    return bytes;
}

/* --- reading */

EXPORTED ssize_t read(int descriptor, void *to, size_t bytes)
{
    return noted(descriptor, SRO_HERE,
                 real.read ? real.read(descriptor, to, bytes) : syscall(SYS_read, descriptor, to, bytes));
}

EXPORTED ssize_t pread(int descriptor, void *to, size_t bytes, off_t offset)
{
    return noted(descriptor, offset,
                 real.pread ? real.pread(descriptor, to, bytes, offset)
                            : syscall(SYS_pread64, descriptor, to, bytes, offset));
}

EXPORTED ssize_t readv(int descriptor, const struct iovec *to, int count)
{
    return noted(descriptor, SRO_HERE,
                 real.readv ? real.readv(descriptor, to, count) : syscall(SYS_readv, descriptor, to, count));
}

EXPORTED ssize_t preadv(int descriptor, const struct iovec *to, int count, off_t offset)
{
    return noted(descriptor, offset,
                 real.preadv ? real.preadv(descriptor, to, count, offset)
                             : syscall(SYS_preadv, descriptor, to, count, offset, 0));
}

EXPORTED ssize_t preadv2(int descriptor, const struct iovec *to, int count, off_t offset, int flags)
{
    return noted(descriptor, offset, /* -1 means the file position here, too */
                 real.preadv2 ? real.preadv2(descriptor, to, count, offset, flags)
                              : syscall(SYS_preadv2, descriptor, to, count, offset, 0, flags));
}

/* off_t has 64 bits, so these are the same functions */
EXPORTED ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
EXPORTED ssize_t preadv64(int, const struct iovec *, int, off_t) __attribute__((alias("preadv")));
EXPORTED ssize_t preadv64v2(int, const struct iovec *, int, off_t, int) __attribute__((alias("preadv2")));

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

/* A stream reads by calls that the library does not see: it records the result of fread instead. */
static size_t streamed(FILE *stream, size_t size, size_t items)
{
    if (items > 0 && atomic_load_explicit(&watching, memory_order_relaxed)) {
        int before = errno, descriptor = fileno_unlocked(stream);
        if (sro_watches(descriptor)) {
            off_t end = ftello(stream);
            if (end >= (off_t)(items * size))
                sro_note(descriptor, end - (off_t)(items * size), items * size);
        }
        errno = before;
    }
    return items;
}

EXPORTED size_t fread(void *to, size_t size, size_t items, FILE *stream)
{
    if (!real.fread)
        resolve();
    return streamed(stream, size, real.fread(to, size, items, stream));
}

EXPORTED size_t fread_unlocked(void *to, size_t size, size_t items, FILE *stream)
{
    if (!real.fread_unlocked)
        resolve();
    return streamed(stream, size, real.fread_unlocked(to, size, items, stream));
}

EXPORTED size_t __fread_chk(void *to, size_t room, size_t size, size_t items, FILE *stream)
{
    if (size && items > room / size)
        __chk_fail();
    return fread(to, size, items, stream);
}

EXPORTED size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t items, FILE *stream)
{
    if (size && items > room / size)
        __chk_fail();
    return fread_unlocked(to, size, items, stream);
}

/* --- closing */

EXPORTED int close(int descriptor)
{
    sro_forget(descriptor);
    return real.close ? real.close(descriptor) : (int)syscall(SYS_close, descriptor);
}

EXPORTED int fclose(FILE *stream)
{
    if (!real.fclose)
        resolve();
    if (stream)
        sro_forget(fileno_unlocked(stream));
    return real.fclose(stream);
}

EXPORTED int close_range(unsigned first, unsigned last, int flags)
{
    sro_forget_range(first, last);
    return (int)syscall(SYS_close_range, first, last, flags);
}

EXPORTED void closefrom(int first)
{
    close_range(first < 0 ? 0 : (unsigned)first, UINT_MAX, 0);
}

EXPORTED int dup2(int from, int to)
{
    if (from != to)
        sro_forget(to);
    return real.dup2 ? real.dup2(from, to) : (int)syscall(SYS_dup2, from, to);
}

EXPORTED int dup3(int from, int to, int flags)
{
    sro_forget(to);
    return real.dup3 ? real.dup3(from, to, flags) : (int)syscall(SYS_dup3, from, to, flags);
}

/* --- ends without destructors */

EXPORTED void _exit(int status)
{
    sro_write_counters();
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORTED void _Exit(int status)
{
    _exit(status);
}

EXPORTED int execve(const char *path, char *const given[], char *const environment[])
{
    sro_write_counters();
    return real.execve ? real.execve(path, given, environment) : (int)syscall(SYS_execve, path, given, environment);
}

EXPORTED int execv(const char *path, char *const given[])
{
    if (!real.execv)
        resolve();
    sro_write_counters();
    return real.execv(path, given);
}

EXPORTED int execvp(const char *path, char *const given[])
{
    if (!real.execvp)
        resolve();
    sro_write_counters();
    return real.execvp(path, given);
}

EXPORTED int execvpe(const char *path, char *const given[], char *const environment[])
{
    if (!real.execvpe)
        resolve();
    sro_write_counters();
    return real.execvpe(path, given, environment);
}

EXPORTED int fexecve(int descriptor, char *const given[], char *const environment[])
{
    if (!real.fexecve)
        resolve();
    sro_write_counters();
    return real.fexecve(descriptor, given, environment);
}
