/* The gate for clients on other hosts: they show the token when they connect, and name the files that they use. */

#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How many connections may not have shown the token yet. Each is closed after CONNECT_SECONDS. */
enum { VISITORS = 32, FIRST_VISITOR = 2 };

int open_gate(void)
{
    int listener = socket(served.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(listener, (struct sockaddr *)&served.address, served.length) != 0 || listen(listener, 512) != 0)
        die("listen for clients on other hosts");
    return listener;
}

/* Takes the same time for all wrong tokens. */
static bool is_right(const struct hello *hello)
{
    int wrong = hello->magic != HELLO_MAGIC;
    for (size_t i = 0; i < TOKEN; i++)
        wrong |= hello->token[i] ^ served.token[i];
    return !wrong;
}

/* Reads a visitor's hello, which has arrived as a whole or will never do. */
static void answer(int visitor, int (*enter)(int))
{
    struct hello hello;
    bool whole = recv(visitor, &hello, sizeof hello, MSG_DONTWAIT) == sizeof hello;
    int least = 1, error = whole && is_right(&hello) ? 0 : EACCES;
    setsockopt(visitor, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
    set_patience(visitor);
    if (!error)
        error = enter(visitor);
    if (error) {
        struct welcome refusal = {.result = -error};
        send(visitor, &refusal, sizeof refusal, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(visitor);
    }
}

void watch_gate(int listener, int end, int (*enter)(int))
{
    struct pollfd watched[FIRST_VISITOR + VISITORS] = {{.fd = end, .events = POLLIN}, {.fd = listener}};
    time_t due[FIRST_VISITOR + VISITORS];
    nfds_t count = FIRST_VISITOR;
    for (;;) {
        watched[1].events = count < FIRST_VISITOR + VISITORS ? POLLIN : 0;
        if (poll(watched, count, count > FIRST_VISITOR ? 1000 : -1) < 0)
            continue;
        if (watched[0].revents)
            break;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (nfds_t i = count; i-- > FIRST_VISITOR;) {
            if (watched[i].revents)
                answer(watched[i].fd, enter);
            else if (now.tv_sec >= due[i])
                close(watched[i].fd);
            else
                continue;
            watched[i] = watched[--count];
            due[i] = due[count];
        }
        if (!(watched[1].revents & POLLIN))
            continue;
        int visitor = accept4(listener, NULL, NULL, SOCK_CLOEXEC), least = sizeof(struct hello);
        if (visitor >= 0) {
            setsockopt(visitor, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
            watched[count] = (struct pollfd){.fd = visitor, .events = POLLIN};
            due[count++] = now.tv_sec + CONNECT_SECONDS;
        } else if (errno == EMFILE || errno == ENFILE) {
            usleep(10000);
        }
    }
    while (count > FIRST_VISITOR)
        close(watched[--count].fd);
    close(listener);
}

int64_t attach_named(const uint8_t *data, size_t bytes)
{
    const struct named_file *named = (const struct named_file *)data;
    if (bytes <= offsetof(struct named_file, name) || bytes > sizeof *named || data[bytes - 1])
        return -EINVAL;
    int64_t known = store_find(named->inode, named->born);
    if (known != UNKNOWN_HANDLE)
        return known;
    int directory = open(settings.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };
    int file = (int)syscall(SYS_openat2, directory, named->name, &how, sizeof how), error = errno;
    if (directory >= 0)
        close(directory);
    if (file < 0)
        return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV ? OTHER_FILE : -error;
    struct stat found;
    uint64_t made = born(file);
    bool same = fstat(file, &found) == 0 && found.st_ino == named->inode;
    same = same && (!named->born || !made || named->born == made);
    int64_t result = same ? store_attach(file) : OTHER_FILE;
    close(file);
    return result;
}
