/* The preload library: reads and writes of files below BURST_DIRECTORY go through the daemon of BURST_BUFFER, or on
 * another host through the data node BURST_NODE with the token in the file BURST_TOKEN.
 *
 * Files are opened in the directory itself, and the daemon keeps their sizes there correct. So the system handles
 * names, descriptors, file positions, dup, fork, stat, rename and unlink, and the library asks the daemon only for
 * content. It moves a position before it moves the bytes, which the system does atomically for all processes that
 * share the position.
 *
 * Before an application uses a file in a way that the library does not see (stdio, mmap, sendfile, ...), the daemon
 * ends the buffering of this file, as also when the file becomes standard input, output or error. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Atomic uint64_t descriptors[DESCRIPTORS];
_Atomic uint32_t unflushed[DESCRIPTORS];
atomic_bool doubted[DESCRIPTORS];
char directory[PATH_MAX], buffer[PATH_MAX];
struct node node;
bool remote;
dev_t directory_device;
atomic_bool active;
struct real real;
static size_t directory_length;
enum { RENAMED_MOST = 100 };

__attribute__((constructor(101))) void start(void);

/* --- descriptors */

void forget(int descriptor)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS &&
        atomic_load_explicit(&descriptors[descriptor], memory_order_relaxed) != OURS && !is_borrowed()) {
        atomic_store(&descriptors[descriptor], UNKNOWN);
        atomic_store(&unflushed[descriptor], 0);
        atomic_store(&doubted[descriptor], false);
    }
}

void note(int descriptor, uint64_t meaning)
{
    if (descriptor < DESCRIPTORS && !is_borrowed())
        atomic_store_explicit(&descriptors[descriptor], meaning, memory_order_release);
}

bool is_ours(int descriptor)
{
    return descriptor >= 0 && descriptor < DESCRIPTORS &&
           atomic_load_explicit(&descriptors[descriptor], memory_order_relaxed) == OURS;
}

int copied(int from, int made)
{
    forget(made);
    if (made >= 0 && made < DESCRIPTORS && from < DESCRIPTORS && !is_ours(from) && !is_ours(made) && !is_borrowed()) {
        atomic_store(&unflushed[made], atomic_load(&unflushed[from]));
        atomic_store(&doubted[made], atomic_load(&doubted[from]));
        atomic_store(&descriptors[made], atomic_load(&descriptors[from]));
    }
    return made;
}

const char *name_below(int descriptor, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long length = syscall(SYS_readlink, link, path, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    path[length] = 0;
    bool below = strncmp(path, directory, directory_length) == 0 &&
                 (path[directory_length] == '/' || !path[directory_length] || directory_length == 1);
    return below ? path + directory_length + (path[directory_length] == '/') : NULL;
}

bool within(int descriptor)
{
    char path[PATH_MAX];
    return name_below(descriptor, path) != NULL;
}

/* Registers a descriptor's file with the daemon. Through TCP the daemon finds the file by its name, which another
 * process may be changing. A file without a name that the daemon does not know can only be used without it. */
static int64_t attach(int descriptor, const struct stat *before)
{
    if (remote && before->st_dev != directory_device)
        return NOT_BUFFERED;
    for (int tries = 0;; tries++) {
        struct message message = {.operation = ATTACH};
        struct stat found;
        int64_t result = request(&message, NULL, descriptor);
        if (result != OTHER_FILE)
            return result;
        if (syscall(SYS_fstat, descriptor, &found) == 0 && !found.st_nlink)
            return NOT_BUFFERED;
        if (tries == RENAMED_MOST)
            return -ESTALE;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

int64_t look_up(int descriptor)
{
    int before = errno;
    struct stat found = {.st_mode = 0};
    int64_t result = PLAIN, waited = 0;
    if (syscall(SYS_fstat, descriptor, &found) == 0 && S_ISREG(found.st_mode) && within(descriptor)) {
        do {
            result = attach(descriptor, &found);
            waited = result == NO_DAEMON || result == NO_ANSWER ? wait_for_recovery() : 0;
        } while (waited == ANOTHER);
        if (result == NO_DAEMON || result == NO_ANSWER) {
            result = waited ? waited : NOT_BUFFERED;
        } else if (result >= 0) {
            note(descriptor, (uint64_t)result);
        }
        if (result == NOT_BUFFERED) {
            result = PLAIN;
            note(descriptor, PLAIN);
        }
    } else if (S_ISREG(found.st_mode)) { /* calls that the library does not see may close pipes, sockets and folders */
        note(descriptor, PLAIN);
    }
    errno = before;
    return result;
}

int64_t meaning(int descriptor, bool again)
{
    if (!atomic_load_explicit(&active, memory_order_relaxed) || descriptor < 0 || descriptor >= DESCRIPTORS)
        return PLAIN;
    uint64_t known = atomic_load_explicit(&descriptors[descriptor], memory_order_acquire);
    if (known == OURS)
        return -EBADF;
    if (known == PLAIN || (known != UNKNOWN && !again))
        return (int64_t)known;
    return look_up(descriptor);
}

int64_t ask(int descriptor, struct message *message, void *data)
{
    int64_t meant = meaning(descriptor, false), result = NOT_BUFFERED;
    struct message asked = *message;
    while (meant >= FIRST_HANDLE) {
        *message = asked;
        message->handle = (uint64_t)meant;
        result = request(message, data, -1);
        int64_t waited = result == NO_DAEMON || result == NO_ANSWER ? wait_for_recovery() : 0;
        bool lost = result == NO_ANSWER && message->operation != READ;
        if (lost)
            atomic_fetch_add(&unflushed[descriptor], 1);
        /* Data that was written and not flushed may be lost: this descriptor returns an error until it is closed. Data of
         * other processes in the file may be lost, too, so that fsync must fail. */
        if (result == FORMER_HANDLE || result == NO_DAEMON || result == NO_ANSWER) {
            atomic_store(&doubted[descriptor], true);
            if (waited < 0 || message->operation == SYNC || atomic_load(&unflushed[descriptor]))
                return -EIO;
            result = waited == 0 && result != FORMER_HANDLE ? NOT_BUFFERED : UNKNOWN_HANDLE;
        }
        if (result != UNKNOWN_HANDLE)
            break;
        meant = meaning(descriptor, true);
        result = NOT_BUFFERED;
    }
    if (meant < 0)
        return meant;
    if (result == NOT_BUFFERED && meant >= FIRST_HANDLE) {
        if (atomic_load(&unflushed[descriptor])) /* the daemon has ended its buffering, and written all data */
            atomic_store(&unflushed[descriptor], 0);
        note(descriptor, PLAIN);
    }
    return result;
}

bool watched(int descriptor)
{
    return meaning(descriptor, false) != PLAIN;
}

int64_t failed(int64_t result)
{
    errno = (int)-result;
    return -1;
}

int64_t flags_for(int descriptor, bool writes)
{
    long flags = syscall(SYS_fcntl, descriptor, F_GETFL);
    if (flags < 0)
        return -errno;
    return (flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY) || flags & O_PATH ? -EBADF : flags;
}

int64_t flush_descriptor(int descriptor, uint32_t operation)
{
    struct message message = {.operation = operation};
    uint32_t flushed = 0;
    if (descriptor >= 0 && descriptor < DESCRIPTORS)
        flushed = atomic_load(&unflushed[descriptor]);
    int64_t result = ask(descriptor, &message, NULL);
    if (result == 0 && !is_borrowed()) /* unless another thread has written meanwhile */
        atomic_compare_exchange_strong(&unflushed[descriptor], &flushed, 0);
    return result;
}

int64_t bypass(int descriptor)
{
    if (!watched(descriptor))
        return 0;
    int before = errno;
    int64_t result = flush_descriptor(descriptor, BYPASS);
    if (result == 0)
        note(descriptor, PLAIN);
    errno = before;
    return result == NOT_BUFFERED ? 0 : result;
}

int64_t bypass_new(int descriptor)
{
    int64_t result = atomic_load(&active) ? look_up(descriptor) : 0;
    struct message message = {.operation = BYPASS, .handle = (uint64_t)result};
    if (result >= FIRST_HANDLE)
        result = request(&message, NULL, -1);
    return result < 0 && result > UNKNOWN_HANDLE ? result : 0;
}

/* --- the process */

/* In a child process after fork: the connections belong to the parent. Both know the same about files. */
static void start_forked(void)
{
    for (int i = 0; i < DESCRIPTORS; i++) {
        uint64_t known = atomic_load_explicit(&descriptors[i], memory_order_relaxed);
        if (known == OURS) {
            syscall(SYS_close, i);
            atomic_store_explicit(&descriptors[i], UNKNOWN, memory_order_relaxed);
        }
    }
    leave_connection();
}

void start(void)
{
    static atomic_bool begun;
    if (atomic_exchange(&begun, true))
        return;
    real.fcntl = dlsym(RTLD_NEXT, "fcntl64");
    if (!real.fcntl)
        real.fcntl = dlsym(RTLD_NEXT, "fcntl");
    real.fopen = dlsym(RTLD_NEXT, "fopen");
    real.freopen = dlsym(RTLD_NEXT, "freopen");
    real.fdopen = dlsym(RTLD_NEXT, "fdopen");
    real.fclose = dlsym(RTLD_NEXT, "fclose");
    real.execvpe = dlsym(RTLD_NEXT, "execvpe");
    real.posix_spawn = dlsym(RTLD_NEXT, "posix_spawn");
    real.posix_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
    const char *given_buffer = getenv("BURST_BUFFER"), *given_directory = getenv("BURST_DIRECTORY");
    const char *given_node = getenv("BURST_NODE"), *given_token = getenv("BURST_TOKEN");
    remote = given_node && *given_node;
    given_buffer = remote ? given_node : given_buffer;
    if (!given_buffer || !given_directory || !*given_buffer || !*given_directory)
        return;
    if (strlen(given_buffer) >= PATH_MAX || !realpath(given_directory, directory)) {
        dprintf(STDERR_FILENO, "burst: BURST_DIRECTORY is '%s', which cannot be found; nothing is buffered\n",
                given_directory);
        return;
    }
    strcpy(buffer, given_buffer);
    /* without these every use of the directory's files is an error */
    if (remote && !read_address(&node, given_node, false))
        dprintf(STDERR_FILENO, "burst: BURST_NODE: '%s' is not allowed. Use ADDRESS:PORT in numbers.\n", given_node);
    if (remote && !read_token(&node, given_token ? given_token : ""))
        dprintf(STDERR_FILENO, "burst: cannot read the token in BURST_TOKEN, '%s': %s\n",
                given_token ? given_token : "", strerror(errno));
    directory_length = strlen(directory);
    struct stat found;
    directory_device = syscall(SYS_newfstatat, AT_FDCWD, directory, &found, 0) == 0 ? found.st_dev : 0;
    if (!begin_connecting())
        return;
    pthread_atfork(NULL, NULL, start_forked);
    atomic_store(&active, true);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) /* streams use them by calls that the library does not see */
        bypass(i);
}
