/* The preload library: what an application reads from and writes to files below BURST_DIRECTORY goes through the daemon
 * of BURST_BUFFER.
 *
 * Files are opened in the directory itself, and the daemon keeps their sizes there true: so names, descriptors, file
 * positions, dup, fork, stat, rename and unlink are the system's own, and only content has to be asked for. A position
 * is moved before the bytes are, which the system does atomically for all who share it.
 *
 * A file that is used in a way that cannot be followed (stdio, mmap, sendfile, ...) is given up by the daemon first. So
 * is one that becomes standard input, output or error.
 *
 * Hooks block signals while they use a thread's connection, so that no handler finds it in use. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "protocol.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
_Static_assert(sizeof(off_t) == 8, "functions are taken for their 64-bit twins");

enum { DESCRIPTORS = 1 << 16, OUR_DESCRIPTORS = 600, MOST = 0x7ffff000 };

/* What a descriptor stands for: nothing known, not ours to watch, our own socket, or the handle of a file. */
enum { UNKNOWN, PLAIN, OURS, FIRST_HANDLE };
static _Atomic uint64_t descriptors[DESCRIPTORS];
/* How often it was written to since the last flush: what may be lost with the daemon. */
static _Atomic uint32_t unflushed[DESCRIPTORS];
/* Whether its file was buffered when the daemon was killed: others may have written what was lost. */
static atomic_bool doubted[DESCRIPTORS];

static char directory[PATH_MAX], buffer[PATH_MAX];
static size_t directory_length;
static dev_t directory_device;
static atomic_bool active;
static pthread_key_t connection_key;
static pid_t process; /* whose memory this is */

struct connection {
    int socket;
    bool lost;
    struct area *area;
};
static __thread struct connection *mine __attribute__((tls_model("initial-exec")));

/* The functions behind ours; null until they are looked for. */
static struct {
    int (*fcntl)(int, int, ...);
    FILE *(*fopen)(const char *, const char *);
    FILE *(*freopen)(const char *, const char *, FILE *);
    FILE *(*fdopen)(int, const char *);
    int (*fclose)(FILE *);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                       char *const[], char *const[]);
    int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                        char *const[], char *const[]);
} real;

__attribute__((constructor(101))) static void start(void);

/* --- the connection */

static void disconnect(void *given)
{
    struct connection *connection = given;
    if (connection->area)
        munmap(connection->area, sizeof *connection->area);
    if (connection->socket >= 0) {
        if (connection->socket < DESCRIPTORS)
            atomic_store(&descriptors[connection->socket], UNKNOWN);
        syscall(SYS_close, connection->socket);
    }
    munmap(connection, sizeof *connection);
    mine = NULL;
}

/* Receives the shared memory. NULL with errno: EMFILE where there is no descriptor for it. */
static struct area *receive_area(int socket)
{
    char byte;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    errno = ECONNRESET;
    if (syscall(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC) != 1)
        return NULL;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    errno = EMFILE;
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return NULL;
    int file;
    memcpy(&file, CMSG_DATA(header), sizeof file);
    void *area = (void *)syscall(SYS_mmap, NULL, sizeof(struct area), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    return area == MAP_FAILED ? NULL : area;
}

/* This thread's connection; NULL with errno. Signals are blocked. */
static struct connection *connect_to_daemon(void)
{
    if (mine && !mine->lost)
        return mine;
    if (mine) {
        pthread_setspecific(connection_key, NULL);
        disconnect(mine);
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = (int)syscall(SYS_openat, AT_FDCWD, buffer, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return NULL;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", folder); /* however long the path */
    int found = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool fine = found >= 0 && syscall(SYS_connect, found, &address, sizeof address) == 0;
    int why = errno;
    syscall(SYS_close, folder);
    errno = why;
    /* out of the way of applications that choose numbers themselves */
    int socket = fine ? (int)syscall(SYS_fcntl, found, F_DUPFD_CLOEXEC, OUR_DESCRIPTORS) : -1;
    if (socket >= 0)
        syscall(SYS_close, found);
    else
        socket = found;
    errno = fine ? 0 : why;
    struct area *area = fine ? receive_area(socket) : NULL;
    struct connection *made = MAP_FAILED;
    if (area)
        made = (void *)syscall(SYS_mmap, NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        int error = errno;
        if (area)
            munmap(area, sizeof *area);
        if (socket >= 0)
            syscall(SYS_close, socket);
        errno = error;
        return NULL;
    }
    *made = (struct connection){.socket = socket, .area = area};
    if (socket < DESCRIPTORS)
        atomic_store(&descriptors[socket], OURS);
    mine = made;
    pthread_setspecific(connection_key, made);
    return made;
}

/* Whether this is a child that uses its parent's memory, as after vfork: it has descriptors of its own, so nothing may be
 * noted of them. */
static bool is_borrowed(void)
{
    return syscall(SYS_getpid) != process;
}

/* Blocks signals, and gives such a child a connection of its own. */
struct hook {
    sigset_t signals;
    bool child;
    struct connection *parents;
};

static void enter(struct hook *hook)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &hook->signals);
    hook->child = is_borrowed();
    hook->parents = mine;
    if (hook->child)
        mine = NULL;
}

static void leave(struct hook *hook)
{
    if (hook->child) {
        if (mine)
            disconnect(mine);
        mine = hook->parents;
        pthread_setspecific(connection_key, mine);
    }
    pthread_sigmask(SIG_SETMASK, &hook->signals, NULL);
}

enum { NO_DAEMON = -6000, NO_ANSWER = -6001 };

/* Sends the byte, for ATTACH with a descriptor, and waits for the answer. 0, NO_DAEMON or NO_ANSWER. */
static int64_t exchange(struct connection *connection, int descriptor)
{
    char byte = 0;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    long sent, got;
    while ((sent = syscall(SYS_sendmsg, connection->socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    if (sent != 1)
        return NO_DAEMON;
    while ((got = syscall(SYS_recvfrom, connection->socket, &byte, 1, 0, NULL, NULL)) < 0 && errno == EINTR)
        ;
    return got == 1 ? 0 : NO_ANSWER;
}

/* One request; its result. `data` is sent with WRITE and APPEND, and filled by READ. NO_DAEMON: it is gone, and has
 * done nothing of it; NO_ANSWER: it went when it had been asked. */
static int64_t request(struct message *message, void *data, int descriptor)
{
    struct hook hook;
    enter(&hook);
    int64_t result = NO_DAEMON;
    struct connection *connection = connect_to_daemon();
    if (connection) {
        connection->area->message = *message;
        if (message->operation == WRITE || message->operation == APPEND)
            memcpy(connection->area->data, data, message->length);
        result = exchange(connection, message->operation == ATTACH ? descriptor : -1);
        if (!result) {
            message->offset = connection->area->message.offset;
            result = connection->area->message.result;
            if (message->operation == READ && result > 0)
                memcpy(data, connection->area->data, (size_t)result);
        } else {
            connection->lost = true;
        }
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        result = -errno; /* nothing is wrong with the daemon */
    }
    leave(&hook);
    return result;
}

/* Whether this thread is connected to a daemon now. */
static bool is_daemon(void)
{
    struct hook hook;
    enter(&hook);
    bool found = connect_to_daemon() != NULL;
    leave(&hook);
    return found;
}

/* Without a daemon: waits until what the file level held is in the directory. 0: files may be used themselves;
 * -EIO: that has not happened, or cannot be seen, so that they are not what they should be; ANOTHER: another daemon was
 * started on the buffer since. */
enum { ANOTHER = 1 };
static int64_t wait_for_recovery(void)
{
    static atomic_bool told;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/lock", buffer);
    int lock = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (lock >= 0) {
        bool another = false;
        while (syscall(SYS_flock, lock, LOCK_SH | LOCK_NB) != 0 && !(another = is_daemon()))
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        syscall(SYS_close, lock);
        if (another)
            return ANOTHER;
    }
    snprintf(path, sizeof path, "%s/journal", buffer);
    int why = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0 ? 0 : errno;
    bool left = why != ENOENT;
    if (!atomic_exchange(&told, true) && !getenv("BURST_TOLD")) {
        setenv("BURST_TOLD", "1", 1); /* processes that are started by this one need not tell it again */
        dprintf(STDERR_FILENO, "burst: no daemon %s %s; files below %s %s\n",
                !why || why == ENOENT ? "at" : "can be reached at", buffer, directory,
                why == ENOENT ? "are used without a buffer"
                : why         ? "cannot be used by this user"
                              : "cannot be used until burst recover has been run");
    }
    return left ? -EIO : 0;
}

/* --- descriptors */

static void forget(int descriptor)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS &&
        atomic_load_explicit(&descriptors[descriptor], memory_order_relaxed) != OURS && !is_borrowed()) {
        atomic_store(&descriptors[descriptor], UNKNOWN);
        atomic_store(&unflushed[descriptor], 0);
        atomic_store(&doubted[descriptor], false);
    }
}

static void note(int descriptor, uint64_t meaning)
{
    if (descriptor < DESCRIPTORS && !is_borrowed())
        atomic_store_explicit(&descriptors[descriptor], meaning, memory_order_release);
}

static bool is_ours(int descriptor)
{
    return descriptor >= 0 && descriptor < DESCRIPTORS &&
           atomic_load_explicit(&descriptors[descriptor], memory_order_relaxed) == OURS;
}

/* After a descriptor was made from another one: the same is known of both. */
static int copied(int from, int made)
{
    forget(made);
    if (made >= 0 && made < DESCRIPTORS && from < DESCRIPTORS && !is_ours(from) && !is_ours(made) && !is_borrowed()) {
        atomic_store(&unflushed[made], atomic_load(&unflushed[from]));
        atomic_store(&doubted[made], atomic_load(&doubted[from]));
        atomic_store(&descriptors[made], atomic_load(&descriptors[from]));
    }
    return made;
}

/* Whether it is the directory or below it. */
static bool within(int descriptor)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long length = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = 0;
    return strncmp(path, directory, directory_length) == 0 &&
           (path[directory_length] == '/' || !path[directory_length] || directory_length == 1);
}

/* The handle of a descriptor's file, whatever is known of it. Otherwise PLAIN, or below 0 an error. */
static int64_t look_up(int descriptor)
{
    int before = errno;
    struct stat found = {.st_mode = 0};
    int64_t result = PLAIN, waited = 0;
    if (syscall(SYS_fstat, descriptor, &found) == 0 && S_ISREG(found.st_mode) && within(descriptor)) {
        do {
            struct message message = {.operation = ATTACH};
            result = request(&message, NULL, descriptor);
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
    } else if (S_ISREG(found.st_mode)) { /* pipes, sockets and folders may be closed by calls that are not seen */
        note(descriptor, PLAIN);
    }
    errno = before;
    return result;
}

/* The same; what is known counts, unless it is a handle and `again`. */
static int64_t meaning(int descriptor, bool again)
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

/* One request about a descriptor's file. NOT_BUFFERED: it is to be done with the file itself. */
static int64_t ask(int descriptor, struct message *message, void *data)
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
        /* What was written and not flushed may be lost: this descriptor tells it until it is closed. What others have
         * written to the file may be lost, too: an fsync must not say that it is not. */
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
        if (atomic_load(&unflushed[descriptor])) /* it was given up by the daemon, which has written all */
            atomic_store(&unflushed[descriptor], 0);
        note(descriptor, PLAIN);
    }
    return result;
}

static bool watched(int descriptor)
{
    return meaning(descriptor, false) != PLAIN;
}

static int64_t failed(int64_t result)
{
    errno = (int)-result;
    return -1;
}

/* What the system would say of a descriptor: its flags, or -errno where it may not be used so. */
static int64_t flags_for(int descriptor, bool writes)
{
    long flags = syscall(SYS_fcntl, descriptor, F_GETFL);
    if (flags < 0)
        return -errno;
    return (flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY) || flags & O_PATH ? -EBADF : flags;
}

/* --- reading and writing */

/* At `offset`; NOT_BUFFERED only where nothing has been moved yet. */
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
        /* the rest of a write to the end must follow what is there of it already */
        operation = operation == APPEND ? WRITE : operation;
    } while (done < bytes);
    return done ? (int64_t)done : result;
}

static int64_t flush_descriptor(int descriptor, uint32_t operation)
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

/* Before a file is used by means that are not followed. 0, or -errno. */
static int64_t bypass(int descriptor)
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

/* The same of a descriptor that was just opened, whatever its number stood for. */
static int64_t bypass_anew(int descriptor)
{
    int64_t result = atomic_load(&active) ? look_up(descriptor) : 0;
    struct message message = {.operation = BYPASS, .handle = (uint64_t)result};
    if (result >= FIRST_HANDLE)
        result = request(&message, NULL, -1);
    return result < 0 && result > UNKNOWN_HANDLE ? result : 0;
}

/* At a place (`offset` 0 or more), or at the file position, which is moved. -1 with errno; NOT_BUFFERED. */
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

/* Parts of memory are gathered, so that they are one write to the file position or the end. */
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

/* What programs call that were built with -D_FORTIFY_SOURCE: the size of the buffer is checked. */
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

/* --- to the disk, sizes, positions */

/* 0, -errno, or NOT_BUFFERED. */
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

/* All files of the daemon, whoever has written them. 0, or -errno. */
static int64_t sync_daemon(void)
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

/* The same; and an error where a file that is open here is no longer what was written to it. */
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

/* After a file was opened with O_TRUNC: what is buffered of it goes, too. 0, or -errno: it would come back. */
static int64_t truncated(int descriptor)
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
    /* holes of the directory's file may have content here: all of it is data */
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

/* --- how much room files take */

/* Whether a file that seems to have holes is below the directory: what is not there yet has no blocks there, and whoever
 * copies files leaves out what has none. `path` and `flags` as in fstatat. */
static bool may_be_buffered(int folder, const char *path, int flags)
{
    if (!*path)
        return within(folder);
    int before = errno, how = O_PATH | O_CLOEXEC | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
    int descriptor = (int)syscall(SYS_openat, folder, path, how);
    bool found = descriptor < 0 || within(descriptor); /* better too many than lost */
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

/* How programs call them that were built with a glibc before 2.33. */
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

/* --- opening and closing */

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
        meaning(descriptor, false); /* a child may be the one who writes, before a kill, and we who fsync after it */
    }
    if (descriptor >= 0 && descriptor <= STDERR_FILENO)
        bypass_anew(descriptor);
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

/* Before a descriptor is closed; -errno of what was written to it. */
static int64_t closing(int descriptor)
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
    for (unsigned from = first; from <= last && !result;) { /* up to the next one that is ours, or all */
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
        bypass_anew(to);
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

/* --- by means that are not followed */

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
    else if (request == FS_IOC_FIEMAP) /* tells where there are holes */
        result = bypass(descriptor);
    return result ? (int)failed(result) : (int)syscall(SYS_ioctl, descriptor, request, argument);
}

/* Before something gets a name elsewhere: if that is outside of the directory, nothing of it is asked for here any more.
 * 0, or -errno. */
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
            result = bypass_anew(file);
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

/* As close, of all that is open here, but nobody can be told an error. */
static void flush_all(void)
{
    int before = errno;
    for (int i = 0; i < DESCRIPTORS; i++)
        if (atomic_load_explicit(&unflushed[i], memory_order_relaxed))
            flush_descriptor(i, FLUSH);
    errno = before;
}

/* Before a program is executed. What was written to descriptors that it inherits is on the file level: it cannot know
 * what is lost otherwise. Programs are read by the system, and not while somebody may write to them. */
static void executed(const char *path)
{
    if (!atomic_load(&active))
        return;
    flush_all();
    if (!path || !strchr(path, '/')) /* a folder of PATH is hardly below the directory */
        return;
    int before = errno, descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0) {
        bypass_anew(descriptor);
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

/* The arguments from `first` to the null pointer, into an array where there is one; their number with it. */
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

/* --- the process */

/* In a process that was forked: the connections are its parent's. What is known of files holds for both. */
static void start_forked(void)
{
    for (int i = 0; i < DESCRIPTORS; i++) {
        uint64_t known = atomic_load_explicit(&descriptors[i], memory_order_relaxed);
        if (known == OURS) {
            syscall(SYS_close, i);
            atomic_store_explicit(&descriptors[i], UNKNOWN, memory_order_relaxed);
        }
    }
    process = getpid();
    if (mine) {
        munmap(mine->area, sizeof *mine->area);
        munmap(mine, sizeof *mine);
        mine = NULL;
        pthread_setspecific(connection_key, NULL);
    }
}

static void start(void)
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
    if (!given_buffer || !given_directory || !*given_buffer || !*given_directory)
        return;
    if (strlen(given_buffer) >= PATH_MAX || !realpath(given_directory, directory)) {
        dprintf(STDERR_FILENO, "burst: BURST_DIRECTORY is '%s', which cannot be found; nothing is buffered\n",
                given_directory);
        return;
    }
    strcpy(buffer, given_buffer);
    directory_length = strlen(directory);
    struct stat found;
    directory_device = syscall(SYS_newfstatat, AT_FDCWD, directory, &found, 0) == 0 ? found.st_dev : 0;
    if (pthread_key_create(&connection_key, disconnect) != 0)
        return;
    process = getpid();
    pthread_atfork(NULL, NULL, start_forked);
    atomic_store(&active, true);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) /* streams use them by calls that cannot be seen */
        bypass(i);
}

/* At the end by exit, where the system closes what the program has left open. */
__attribute__((destructor(101))) static void finish(void)
{
    if (atomic_load(&active))
        flush_all();
}
