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

/* Returns this thread's connection; NULL and errno if there is none. Signals are blocked. */
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
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", folder); /* for paths of any length */
    int found = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool fine = found >= 0 && syscall(SYS_connect, found, &address, sizeof address) == 0;
    int why = errno;
    syscall(SYS_close, folder);
    errno = why;
    /* a high number, because applications may choose low numbers themselves */
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

/* Sends the byte, for ATTACH with a descriptor, and waits for the answer. Returns 0, NO_DAEMON or NO_ANSWER. */
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
    leave(&hook);
    return found;
}

int64_t wait_for_recovery(void)
{
    static atomic_bool reported;
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
