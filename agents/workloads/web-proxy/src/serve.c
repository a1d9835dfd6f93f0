/* The threads that answer requests.
 *
 * Each core has one epoll instance. Its threads take the next connection that is ready, one at a time: a thread that
 * waits for the disk, or compresses, keeps nobody else's connection waiting while another thread is free. */

#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proxy.h"

enum { LONGEST_REQUEST = 8192 };

struct connection {
    int socket;
    struct core *core;
    char request[LONGEST_REQUEST + 1];
    size_t received;
    char head[256];
    struct iovec rest[2]; /* of the answer that is being sent: what remains of its head and body */
    struct blob *body;
    bool last;     /* close after this answer */
    bool draining; /* the last answer is sent: what still comes is dropped, or the answer could get lost */
};

static int page_count;

static void watch(struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = connection};
    if (epoll_ctl(connection->core->epoll, operation, connection->socket, &event) < 0)
        die("watch a connection");
}

static void end(struct connection *connection)
{
    close(connection->socket);
    if (connection->body)
        blob_release(connection->body);
    free(connection);
}

/* --- requests */

/* Returns the value of a header, or NULL. Every line of the request ends in \r\n. */
static const char *header(const char *request, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            line += length + 1;
            return line + strspn(line, " \t");
        }
    }
    return NULL;
}

/* Returns whether an Accept-Encoding allows gzip (RFC 9110, section 12.5.3). */
static bool allows_gzip(const char *value)
{
    bool any = false;
    while (value && *value && *value != '\r') {
        value += strspn(value, " \t,");
        size_t length = strcspn(value, " \t,;\r");
        bool gzip = length == 4 && strncasecmp(value, "gzip", 4) == 0, star = length == 1 && *value == '*';
        value += length;
        bool allowed = length > 0;
        for (value += strspn(value, " \t"); *value == ';'; value += strspn(value, " \t")) {
            value += 1 + strspn(value + 1, " \t");
            if ((*value == 'q' || *value == 'Q') && value[1] == '=')
                allowed = strtod(value + 2, NULL) > 0;
            value += strcspn(value, ",;\r");
        }
        if (gzip)
            return allowed;
        if (star)
            any = allowed;
    }
    return any;
}

/* Returns the page that a request line "GET /7.html HTTP/1.1" names, or -1. */
static int page_of(const char *request)
{
    const char *path = request + 4;
    if (*path != '/' || !isdigit((unsigned char)path[1]))
        return -1;
    char *end;
    long page = strtol(path + 1, &end, 10);
    return page < page_count && strncmp(end, ".html HTTP/1.", 13) == 0 ? (int)page : -1;
}

static void refuse(struct connection *connection, const char *status)
{
    int length = snprintf(connection->head, sizeof connection->head,
                          "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: %s\r\n\r\n", status,
                          connection->last ? "close" : "keep-alive");
    connection->rest[0] = (struct iovec){connection->head, (size_t)length};
    connection->rest[1] = (struct iovec){NULL, 0};
}

/* Prepares the answer to the request at the start of the buffer. */
static void answer(struct connection *connection)
{
    const char *request = connection->request, *kept = header(request, "Connection");
    bool old = strstr(request, " HTTP/1.0\r\n") != NULL;
    connection->last = kept ? strncasecmp(kept, "close", 5) == 0 || (old && strncasecmp(kept, "keep-alive", 10)) : old;
    if (header(request, "Content-Length") || header(request, "Transfer-Encoding")) {
        connection->last = true; /* the body would be taken for the next request */
        refuse(connection, "413 Content Too Large");
        return;
    }
    if (strncmp(request, "GET ", 4) != 0) {
        refuse(connection, "501 Not Implemented");
        return;
    }
    int page = page_of(request);
    if (page < 0) {
        refuse(connection, "404 Not Found");
        return;
    }
    enum form form = allows_gzip(header(request, "Accept-Encoding")) ? GZIP : RAW;
    struct blob *body = pages_find(connection->core, page, form);
    if (!body) {
        refuse(connection, "500 Internal Server Error");
        return;
    }
    int length = snprintf(connection->head, sizeof connection->head,
                          "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n%sVary: Accept-Encoding\r\n"
                          "Content-Length: %zu\r\nConnection: %s\r\n\r\n",
                          form == GZIP ? "Content-Encoding: gzip\r\n" : "", body->size,
                          connection->last ? "close" : "keep-alive");
    connection->body = body;
    connection->rest[0] = (struct iovec){connection->head, (size_t)length};
    connection->rest[1] = (struct iovec){body->bytes, body->size};
}

/* --- connections */

/* Sends what remains of the answer. Returns 1 when all is sent, 0 if the socket is full, -1 if the client has gone. */
static int send_rest(struct connection *connection)
{
    while (connection->rest[0].iov_len + connection->rest[1].iov_len) {
        struct msghdr message = {.msg_iov = connection->rest, .msg_iovlen = 2};
        ssize_t sent = sendmsg(connection->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? 0 : -1;
        for (int part = 0; part < 2; part++) {
            size_t taken = (size_t)sent < connection->rest[part].iov_len ? (size_t)sent : connection->rest[part].iov_len;
            connection->rest[part].iov_base = (char *)connection->rest[part].iov_base + taken;
            connection->rest[part].iov_len -= taken;
            sent -= (ssize_t)taken;
        }
    }
    if (connection->body)
        blob_release(connection->body);
    connection->body = NULL;
    return 1;
}

/* Goes on with a connection until it has to wait for its client. */
static void go_on(struct connection *connection)
{
    for (;;) {
        int sent = send_rest(connection);
        if (sent < 0) {
            end(connection);
            return;
        }
        if (sent == 0) {
            watch(connection, EPOLL_CTL_MOD, EPOLLOUT);
            return;
        }
        if (connection->last && !connection->draining) {
            connection->draining = true;
            shutdown(connection->socket, SHUT_WR);
        }
        if (connection->draining)
            connection->received = 0;
        connection->request[connection->received] = '\0';
        char *blank = strstr(connection->request, "\r\n\r\n");
        if (blank) {
            /* header() must not look into the next request */
            char next = blank[4];
            blank[4] = '\0';
            answer(connection);
            blank[4] = next;
            connection->received -= (size_t)(blank + 4 - connection->request);
            memmove(connection->request, blank + 4, connection->received);
            continue;
        }
        if (connection->received == LONGEST_REQUEST) {
            connection->last = true;
            refuse(connection, "431 Request Header Fields Too Large");
            continue;
        }
        ssize_t got = recv(connection->socket, connection->request + connection->received,
                           LONGEST_REQUEST - connection->received, MSG_DONTWAIT);
        if (got > 0) {
            connection->received += (size_t)got;
        } else if (got < 0 && errno == EAGAIN) {
            watch(connection, EPOLL_CTL_MOD, EPOLLIN);
            return;
        } else if (got == 0 || errno != EINTR) {
            end(connection);
            return;
        }
    }
}

static void *work(void *argument)
{
    struct core *core = argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core->number, &set);
    if ((errno = pthread_setaffinity_np(pthread_self(), sizeof set, &set)))
        die("pin a thread to a core");
    for (;;) {
        struct epoll_event event;
        if (epoll_wait(core->epoll, &event, 1, -1) == 1)
            go_on(event.data.ptr);
    }
    return NULL;
}

void serve(int listening, int pages, int threads, int per_core, const int *cores, int core_count)
{
    page_count = pages;
    int used = (threads + per_core - 1) / per_core;
    if (used > core_count)
        used = core_count;
    struct core *own = calloc((size_t)used, sizeof *own);
    if (!own)
        die("allocate the table of cores");
    for (int core = 0; core < used; core++) {
        own[core].number = cores[core];
        own[core].epoll = epoll_create1(EPOLL_CLOEXEC);
        if (own[core].epoll < 0)
            die("make an epoll instance");
    }
    for (int thread = 0; thread < threads; thread++) {
        pthread_t id;
        if ((errno = pthread_create(&id, NULL, work, &own[thread % used])))
            die("start a thread");
    }
    for (int next = 0;; next = (next + 1) % used) {
        int socket = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                usleep(10000); /* until other connections have ended */
                continue;
            }
            die("accept a connection");
        }
        int one = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *connection = calloc(1, sizeof *connection);
        if (!connection)
            die("allocate a connection");
        connection->socket = socket;
        connection->core = &own[next];
        watch(connection, EPOLL_CTL_ADD, EPOLLIN);
    }
}
