/* Functions of all parts of the daemon: settings, counters, identities of files and of the machine's start, claims of
 * directories, and the end after an error. */

#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings settings = {
    .polling_threads = 2,
    .worker_threads = 10,
    .ram_destagers = 10,
    .flash_destagers = 10,
    .ram_cache_size = 64,
    .flash_cache_size = 256,
    .ram_cache_threshold = 80,
    .flash_cache_threshold = 80,
    .connections = 256,
};
struct node served;
struct counters *counters;

void die(const char *format, ...)
{
    int error = errno;
    char what[PATH_MAX + 200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "burst: cannot %s: %s\n", what, strerror(error));
    exit(MACHINE);
}

/* A process that claims a directory takes a read lock on one of its bytes from OWN on, and on one of the bytes from
 * BELOW on of each directory above it in the same file system. Then it asks which locks would block a writer there.
 * The number of the byte says which process has the lock. These locks never block an application: it would have to
 * open a directory for writing. */
static const off_t OWN = (off_t)1 << 40, BELOW = (off_t)1 << 41, PROCESSES = (off_t)1 << 32;

/* Locks a byte of an open directory from `own` on. Returns another process' lock in the first `bytes` from OWN on;
 * 0: there is none, or the file system has no locks. */
static off_t lock_folder(int folder, off_t own, off_t bytes)
{
    struct flock mine = {.l_type = F_RDLCK, .l_start = own + getpid(), .l_len = 1};
    for (int tries = 0;; tries++) {
        struct flock theirs = {.l_type = F_WRLCK, .l_start = OWN, .l_len = bytes};
        if (fcntl(folder, F_OFD_SETLK, &mine) != 0 || fcntl(folder, F_OFD_GETLK, &theirs) != 0)
            return 0; /* a file system without locks */
        if (theirs.l_type == F_UNLCK || tries == 20)
            return theirs.l_type == F_UNLCK ? 0 : theirs.l_start;
        usleep(10000); /* that process may just be ending */
    }
}

void claim(struct claim *claim, const char *directory)
{
    char path[PATH_MAX];
    struct stat own, found;
    claim->count = 0;
    for (strcpy(path, directory);;) {
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        bool first = !claim->count, seen = folder >= 0 && fstat(folder, first ? &own : &found) == 0;
        if (first && !seen)
            die("use the directory %s", directory);
        if (seen && !first && found.st_dev != own.st_dev) { /* another file system above it */
            close(folder);
            return;
        }
        off_t other = 0;
        if (seen) { /* otherwise this user may not see it */
            claim->folders[claim->count++] = folder;
            other = lock_folder(folder, first ? OWN : BELOW, first ? BELOW + PROCESSES - OWN : PROCESSES);
        }
        if (other) {
            fprintf(stderr,
                    "burst: %s%s is buffered by process %d. Stop it first: "
                    "a directory and all below it have one buffer.\n",
                    other < BELOW ? "" : "a directory below ", path, (int)(other % PROCESSES));
            exit(MACHINE);
        }
        char *last = strrchr(path, '/');
        if (!last || !path[1])
            return;
        last[last == path] = 0;
    }
}

void give_up(struct claim *claim)
{
    while (claim->count)
        close(claim->folders[--claim->count]);
}

uint64_t born(int descriptor)
{
    struct statx found;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &found) != 0 || !(found.stx_mask & STATX_BTIME))
        return 0;
    return (uint64_t)found.stx_btime.tv_sec * 1000000000 + found.stx_btime.tv_nsec;
}

void boot_id(char into[40])
{
    memset(into, 0, 40);
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, into, 36) < 0)
        into[0] = 0;
    if (file >= 0)
        close(file);
}
