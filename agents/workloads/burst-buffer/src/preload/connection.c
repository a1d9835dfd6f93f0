/* Requests of a thread to the daemon, and what happens when the daemon is gone.
 *
 * Hooks block signals while they use a thread's connection, so that no signal handler finds it in use. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int socket;
    bool lost;
    struct area *area;
};
static __thread struct connection *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t connection_key;
static pid_t process; /* the process to which this memory belongs */
enum { OUR_DESCRIPTORS = 600 };

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

/* Receives the shared memory. Returns NULL and sets errno, to EMFILE if there is no free descriptor. */
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

/* Returns a socket to the daemon; -1 and errno if it cannot be reached. */
static int reach_daemon(void)
{
    uint64_t number;
    if (remote)
        return connect_to_node(&node, &number);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int folder = (int)syscall(SYS_openat, AT_FDCWD, buffer, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", folder); /* for paths of any length */
    int found = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool fine = found >= 0 && syscall(SYS_connect, found, &address, sizeof address) == 0;
    int why = errno;
    syscall(SYS_close, folder);
    if (!fine && found >= 0)
        syscall(SYS_close, found);
    errno = why;
    return fine ? found : -1;
}

/* Returns new memory of this process; MAP_FAILED and errno if there is none. */
static void *own_memory(size_t bytes)
{
    return (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Returns this thread's connection; NULL and errno if there is none. Signals are blocked. */
static struct connection *connect_to_daemon(void)
{
    if (mine && !mine->lost)
        return mine;
    if (mine) {
        pthread_setspecific(connection_key, NULL);
        disconnect(mine);
    }
    int found = reach_daemon();
    if (found < 0)
        return NULL;
    /* a high number, because applications may choose low numbers themselves */
    int socket = (int)syscall(SYS_fcntl, found, F_DUPFD_CLOEXEC, OUR_DESCRIPTORS);
    if (socket >= 0)
        syscall(SYS_close, found);
    else
        socket = found;
    errno = 0;
    struct area *area = remote ? own_memory(sizeof *area) : receive_area(socket);
    area = area == MAP_FAILED ? NULL : area;
    struct connection *made = area ? own_memory(sizeof *made) : MAP_FAILED;
    if (made == MAP_FAILED) {
        int error = errno;
        if (area)
            munmap(area, sizeof *area);
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

bool is_borrowed(void)
{
    return syscall(SYS_getpid) != process;
}

/* Blocks signals, and gives a child that uses its parent's memory a separate connection. */
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

/* Writes into the area how a data node finds a descriptor's file. Returns whether that succeeded. */
static bool name_file(struct area *area, int descriptor)
{
    struct named_file *named = (struct named_file *)area->data;
    char path[PATH_MAX];
    const char *name = name_below(descriptor, path);
    struct statx found;
    if (!name || syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &found) != 0)
        return false;
    named->inode = found.stx_ino;
    named->born = (uint64_t)found.stx_btime.tv_sec * 1000000000 + found.stx_btime.tv_nsec;
    if (!(found.stx_mask & STATX_BTIME))
        named->born = 0;
    area->message.length = (uint32_t)(offsetof(struct named_file, name) + strlen(strcpy(named->name, name)) + 1);
    return true;
}

/* Sends the byte, for ATTACH with a descriptor, and waits for the answer. Returns 0, NO_DAEMON or NO_ANSWER. */
static int64_t exchange(struct connection *connection, int descriptor)
{
    if (remote) {
        if (descriptor >= 0 && !name_file(connection->area, descriptor)) {
            connection->area->message.result = OTHER_FILE;
            return 0;
        }
        return exchange_with_node(connection->socket, connection->area) ? 0 : NO_ANSWER;
    }
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

int64_t request(struct message *message, void *data, int descriptor)
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
        result = -errno; /* the daemon is not the cause */
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
    int why = errno;
    leave(&hook);
    errno = why;
    return found;
}

int64_t wait_for_recovery(void)
{
    static atomic_bool reported;
    if (remote) {
        if (is_daemon())
            return ANOTHER;
        int why = errno;
        if (!atomic_exchange(&reported, true))
            dprintf(STDERR_FILENO, "burst: no data node can be reached at %s: %s; files below %s cannot be used\n",
                    buffer, strerror(why), directory);
        return -EIO;
    }
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
    if (!atomic_exchange(&reported, true) && !getenv("BURST_REPORTED")) {
        setenv("BURST_REPORTED", "1", 1); /* child processes need not print it again */
        dprintf(STDERR_FILENO, "burst: no daemon %s %s; files below %s %s\n",
                !why || why == ENOENT ? "at" : "can be reached at", buffer, directory,
                why == ENOENT ? "are used without a buffer"
                : why         ? "cannot be used by this user"
                              : "cannot be used until burst recover has been run");
    }
    return left ? -EIO : 0;
}

bool begin_connecting(void)
{
    process = getpid();
    return pthread_key_create(&connection_key, disconnect) == 0;
}

void leave_connection(void)
{
    process = getpid();
    if (mine) {
        munmap(mine->area, sizeof *mine->area);
        munmap(mine, sizeof *mine);
        mine = NULL;
        pthread_setspecific(connection_key, NULL);
    }
}
