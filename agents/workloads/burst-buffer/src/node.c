/* Connections to a data node. The preload library uses these functions, too: they call none that it replaces. */

#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

bool read_address(struct node *node, const char *text, bool names)
{
    char host[300];
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    node->length = 0;
    if (!length || length >= sizeof host || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? length - 2 : length), text + brackets);
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    wanted.ai_flags |= names ? 0 : AI_NUMERICHOST;
    if (getaddrinfo(host, colon + 1, &wanted, &found) != 0)
        return false;
    memcpy(&node->address, found->ai_addr, found->ai_addrlen);
    node->length = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool read_token(struct node *node, const char *path)
{
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    struct stat found;
    char text[TOKEN + 2];
    long got = syscall(SYS_read, file, text, sizeof text);
    errno = got < 0 ? errno : EINVAL;
    bool fine = got == TOKEN || (got == TOKEN + 1 && text[TOKEN] == '\n');
    if (fine && (syscall(SYS_fstat, file, &found) != 0 || found.st_mode & 077)) {
        errno = EPERM;
        fine = false;
    }
    int why = errno;
    syscall(SYS_close, file);
    errno = why;
    if (fine)
        memcpy(node->token, text, TOKEN);
    return fine;
}

static void set_seconds(int socket, int option, int seconds)
{
    struct timeval time = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, option, &time, sizeof time);
}

void set_patience(int socket)
{
    const struct {
        int level, option, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, STALLED_SECONDS / 4},
        {IPPROTO_TCP, TCP_KEEPINTVL, STALLED_SECONDS / 4},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, STALLED_SECONDS * 1000},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(socket, options[i].level, options[i].option, &options[i].value, sizeof options[i].value);
    set_seconds(socket, SO_SNDTIMEO, STALLED_SECONDS);
}

int connect_to_node(const struct node *node, uint64_t *daemon)
{
    errno = EDESTADDRREQ;
    int made = node->length ? socket(node->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (made < 0)
        return -1;
    set_seconds(made, SO_SNDTIMEO, CONNECT_SECONDS); /* also limits connect */
    set_seconds(made, SO_RCVTIMEO, CONNECT_SECONDS);
    struct hello hello = {.magic = HELLO_MAGIC};
    struct welcome welcome;
    memcpy(hello.token, node->token, TOKEN);
    bool fine = connect(made, (const struct sockaddr *)&node->address, node->length) == 0 &&
                send_all(made, &hello, sizeof hello, false);
    if (fine) {
        errno = ECONNRESET;
        fine = receive_all(made, &welcome, sizeof welcome);
    }
    if (fine && welcome.result) {
        errno = (int)-welcome.result;
        fine = false;
    }
    if (!fine) {
        int why = errno;
        syscall(SYS_close, made);
        errno = why;
        return -1;
    }
    set_patience(made);
    set_seconds(made, SO_RCVTIMEO, 0); /* some requests take long */
    *daemon = welcome.daemon;
    return made;
}

bool send_all(int socket, const void *data, size_t bytes, bool more)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (sent < 0 && errno != EINTR)
            return false;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool receive_all(int socket, void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        long got = syscall(SYS_recvfrom, socket, (char *)data + done, bytes - done, MSG_WAITALL, NULL, NULL);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

size_t bytes_after(const struct message *request)
{
    bool carries = request->operation == ATTACH || request->operation == WRITE || request->operation == APPEND;
    return carries ? request->length : 0;
}

int exchange_with_node(int socket, struct area *area)
{
    struct message *message = &area->message;
    size_t bytes = bytes_after(message), room = message->length;
    if (!send_all(socket, message, sizeof *message, bytes > 0) || !send_all(socket, area->data, bytes, false) ||
        !receive_all(socket, message, sizeof *message))
        return 0;
    if (message->operation != READ || message->result <= 0)
        return 1;
    return (uint64_t)message->result <= room && receive_all(socket, area->data, (size_t)message->result);
}
