/* Receives requests. Each polling thread waits for announcements on a part of the connections, and queues them; worker
 * threads carry the requests out and answer. Connections of clients on other hosts carry the requests themselves, which
 * the polling threads receive. */

#define _GNU_SOURCE
#include "daemon.h"
#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct connection {
    int socket, passed; /* the descriptor that came with the last announcement, or -1 */
    struct area *area;
    bool remote; /* of a client on another host: the area is not shared */
    int set;     /* the polling thread's */
    atomic_size_t received; /* of the request, in bytes; the worker sets 0 when it is done with the area */
    atomic_int users;
    TAILQ_ENTRY(connection) queued;
    LIST_ENTRY(connection) known;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next five */
static pthread_cond_t is_work = PTHREAD_COND_INITIALIZER;
static TAILQ_HEAD(, connection) queue = TAILQ_HEAD_INITIALIZER(queue);
static LIST_HEAD(, connection) connections = LIST_HEAD_INITIALIZER(connections);
static bool ending;
static size_t remote_connections;
static int wake_pollers; /* readable when the daemon ends */
enum { POLLING_MOST = 16 };
static int sets[POLLING_MOST]; /* the polling threads' */
static atomic_size_t next_set;

static void leave(struct connection *connection)
{
    if (atomic_fetch_sub(&connection->users, 1) > 1)
        return;
    pthread_mutex_lock(&lock);
    LIST_REMOVE(connection, known);
    remote_connections -= connection->remote;
    pthread_mutex_unlock(&lock);
    munmap(connection->area, sizeof *connection->area);
    close(connection->socket);
    if (connection->passed >= 0)
        close(connection->passed);
    free(connection);
}

/* --- workers */

static int64_t attach(struct connection *connection, uint32_t bytes)
{
    if (connection->remote)
        return attach_named(connection->area->data, bytes);
    int descriptor = connection->passed;
    connection->passed = -1;
    int64_t result = descriptor < 0 ? -EBADF : store_attach(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    return result;
}

/* Waits for the next request, or the next part of one, of a client on another host. */
static void expect(struct connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = connection};
    epoll_ctl(connection->set, EPOLL_CTL_MOD, connection->socket, &event);
}

static void answer(struct connection *connection, const struct message *asked)
{
    struct message *message = &connection->area->message;
    if (!connection->remote) {
        send(connection->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    size_t bytes = asked->operation == READ && message->result > 0 ? (size_t)message->result : 0;
    if (!send_all(connection->socket, message, sizeof *message, bytes > 0) ||
        !send_all(connection->socket, connection->area->data, bytes, false))
        shutdown(connection->socket, SHUT_RDWR);
    atomic_store(&connection->received, 0);
    expect(connection);
}

static void serve_one(struct connection *connection)
{
    struct message *shared = &connection->area->message, asked = *shared;
    uint8_t *data = connection->area->data;
    /* an application can change the shared memory at any time: only the copy counts */
    bool fits = asked.length <= AREA_BYTES && asked.offset >= 0 && asked.offset <= INT64_MAX - AREA_BYTES;
    int64_t result = -EINVAL;
    bool former = asked.operation != ATTACH && asked.operation != SYNC_ALL && !store_issued(asked.handle);
    atomic_fetch_add(&counters->requests, 1);
    switch (fits && !former ? asked.operation : 0) {
    case ATTACH: result = attach(connection, asked.length); break;
    case READ: result = store_read(asked.handle, (uint64_t)asked.offset, data, asked.length); break;
    case WRITE: result = store_write(asked.handle, (uint64_t)asked.offset, data, asked.length); break;
    case APPEND: result = store_append(asked.handle, &shared->offset, data, asked.length); break;
    case TRUNCATE: result = store_truncate(asked.handle, (uint64_t)asked.offset); break;
    case FLUSH: result = store_flush(asked.handle); break;
    case SYNC: result = store_sync(asked.handle); break;
    case BYPASS: result = store_bypass(asked.handle); break;
    case SYNC_ALL: result = store_sync_all(); break;
    default: result = former ? FORMER_HANDLE : result;
    }
    shared->result = result;
    answer(connection, &asked);
}

static void *work(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct connection *connection = TAILQ_FIRST(&queue);
        if (connection) {
            TAILQ_REMOVE(&queue, connection, queued);
            pthread_mutex_unlock(&lock);
            serve_one(connection);
            leave(connection);
            pthread_mutex_lock(&lock);
        } else if (ending) {
            break;
        } else {
            pthread_cond_wait(&is_work, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

/* --- polling */

enum received { CLOSED, INCOMPLETE, COMPLETE };

/* Receives what has arrived of a request from another host. */
static enum received receive_part(struct connection *connection)
{
    struct area *area = connection->area;
    const size_t header = sizeof area->message;
    for (;;) {
        size_t done = atomic_load(&connection->received), end = header;
        if (done >= header) {
            if (area->message.length > AREA_BYTES)
                return CLOSED;
            end += bytes_after(&area->message);
        }
        if (done == end)
            return COMPLETE;
        uint8_t *to = done < header ? (uint8_t *)area + done : area->data + (done - header);
        ssize_t got = recv(connection->socket, to, end - done, MSG_DONTWAIT);
        if (got <= 0)
            return got < 0 && errno == EAGAIN ? INCOMPLETE : CLOSED;
        atomic_store(&connection->received, done + (size_t)got);
    }
}

/* Receives an announcement, or a request. */
static enum received receive(struct connection *connection)
{
    if (connection->remote)
        return receive_part(connection);
    char byte;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(connection->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
        return CLOSED;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) {
        if (connection->passed >= 0)
            close(connection->passed);
        memcpy(&connection->passed, CMSG_DATA(header), sizeof(int));
    }
    return COMPLETE;
}

static void *poll_connections(void *argument)
{
    int set = (int)(intptr_t)argument;
    struct epoll_event events[16];
    for (;;) {
        int count = epoll_wait(set, events, 16, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection)
                return NULL;
            enum received received = receive(connection);
            if (received == COMPLETE) {
                atomic_fetch_add(&connection->users, 1);
                pthread_mutex_lock(&lock);
                TAILQ_INSERT_TAIL(&queue, connection, queued);
                pthread_cond_signal(&is_work);
                pthread_mutex_unlock(&lock);
            } else if (received == INCOMPLETE) {
                expect(connection);
            } else {
                epoll_ctl(set, EPOLL_CTL_DEL, connection->socket, NULL);
                leave(connection);
            }
        }
    }
}

/* Makes the shared memory of a connection and sends it to the application. */
static bool welcome(struct connection *connection)
{
    int file = memfd_create("burst", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return false;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    struct iovec part = {"", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    bool fine = ftruncate(file, sizeof *connection->area) == 0 &&
                fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    connection->area =
        fine ? mmap(NULL, sizeof *connection->area, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    fine = connection->area != MAP_FAILED;
    if (fine && sendmsg(connection->socket, &message, MSG_NOSIGNAL) != 1) {
        munmap(connection->area, sizeof *connection->area);
        fine = false;
    }
    close(file);
    return fine;
}

/* Gives a client on another host memory for its requests, and the daemon's number. */
static bool welcome_remote(struct connection *connection)
{
    struct welcome welcome = {.daemon = store_number()};
    connection->area = mmap(NULL, sizeof *connection->area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (connection->area == MAP_FAILED)
        return false;
    send(connection->socket, &welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
}

/* Serves a connection from now on. Returns 0; otherwise an errno, and the caller closes the socket. */
static int admit(int socket, bool remote)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return ENOMEM;
    int set = sets[atomic_fetch_add(&next_set, 1) % settings.polling_threads];
    *connection = (struct connection){.socket = socket, .passed = -1, .users = 1, .remote = remote, .set = set};
    pthread_mutex_lock(&lock);
    bool room = !remote || remote_connections < settings.connections;
    remote_connections += remote && room;
    LIST_INSERT_HEAD(&connections, connection, known);
    pthread_mutex_unlock(&lock);
    if (room && (remote ? welcome_remote(connection) : welcome(connection))) {
        struct epoll_event event = {.events = EPOLLIN | (remote ? EPOLLONESHOT : 0), .data.ptr = connection};
        if (epoll_ctl(set, EPOLL_CTL_ADD, socket, &event) != 0)
            leave(connection);
        return 0;
    }
    pthread_mutex_lock(&lock);
    LIST_REMOVE(connection, known);
    remote_connections -= remote && room;
    pthread_mutex_unlock(&lock);
    free(connection);
    return room ? ENOMEM : EMFILE;
}

static int admit_remote(int socket)
{
    return admit(socket, true);
}

static void *be_gate(void *listener)
{
    watch_gate((int)(intptr_t)listener, wake_pollers, admit_remote);
    return NULL;
}

static int listen_in(int buffer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", buffer);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlinkat(buffer, "socket", 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 512) != 0)
        die("listen in %s", settings.buffer);
    return listener;
}

void serve(int buffer, int gate, int ready)
{
    size_t threads = settings.polling_threads + settings.worker_threads;
    int listener = listen_in(buffer), pipes[2];
    pthread_t started[threads], gate_thread;
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    int signals = signalfd(-1, &end, SFD_CLOEXEC);
    if (signals < 0 || pipe2(pipes, O_CLOEXEC) != 0)
        die("watch for signals");
    wake_pollers = pipes[0];
    for (size_t i = 0; i < threads; i++) {
        bool polls = i < settings.polling_threads;
        struct epoll_event event = {.events = EPOLLIN};
        if (polls && ((sets[i] = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
                      epoll_ctl(sets[i], EPOLL_CTL_ADD, wake_pollers, &event) != 0))
            die("watch connections");
        void *argument = polls ? (void *)(intptr_t)sets[i] : NULL;
        if ((errno = pthread_create(&started[i], NULL, polls ? poll_connections : work, argument)))
            die("start a thread");
    }
    if (gate >= 0 && (errno = pthread_create(&gate_thread, NULL, be_gate, (void *)(intptr_t)gate)))
        die("start a thread");
    if (write(ready, "", 1) != 1)
        die("report that it is ready");
    close(ready);
    struct pollfd watched[] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    for (;;) {
        if (poll(watched, 2, -1) < 0)
            continue;
        if (watched[1].revents)
            break;
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket >= 0 && admit(socket, false) != 0)
            close(socket);
        else if (socket < 0 && (errno == EMFILE || errno == ENFILE))
            usleep(10000);
    }
    unlinkat(buffer, "socket", 0);
    close(listener);
    /* requests that have been announced are still carried out */
    if (write(pipes[1], "", 1) != 1)
        die("end the polling threads");
    if (gate >= 0)
        pthread_join(gate_thread, NULL);
    for (size_t i = 0; i < settings.polling_threads; i++)
        pthread_join(started[i], NULL);
    pthread_mutex_lock(&lock);
    ending = true;
    pthread_cond_broadcast(&is_work);
    pthread_mutex_unlock(&lock);
    for (size_t i = settings.polling_threads; i < threads; i++)
        pthread_join(started[i], NULL);
}
