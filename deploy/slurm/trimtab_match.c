/* Functions for cli_filter.lua: Lua of Slurm has neither Unix sockets nor setenv.
 *
 * The few functions of Lua's C interface that are used here are the same in Lua 5.1 to 5.4, so this file needs no
 * headers of Lua and the library fits every version. It runs inside of sbatch, srun and salloc: it never waits longer
 * than it is told, and no error in it ends the program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef struct lua_State lua_State;
extern const char *lua_tolstring(lua_State *, int, size_t *);
extern const char *lua_pushlstring(lua_State *, const char *, size_t);
extern void lua_pushnil(lua_State *);

#define MOST_ANSWER (64 * 1024)
static const char END[] = "\nend\n";

extern char **environ;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static int give(lua_State *lua, const char *text)
{
    lua_pushlstring(lua, text, strlen(text));
    return 1;
}

static int fail(lua_State *lua, const char *reason)
{
    lua_pushnil(lua);
    return 1 + give(lua, reason);
}

/* Wait until the socket is ready; return 0 if the deadline comes first. */
static int ready(int socket, short events, long long deadline)
{
    for (;;) {
        long long left = deadline - now();
        if (left <= 0)
            return 0;
        struct pollfd one = {.fd = socket, .events = events};
        int found = poll(&one, 1, (int)left);
        if (found > 0)
            return 1;
        if (found < 0 && errno != EINTR)
            return 0;
    }
}

/* Send the request and read the answer into `answer`. Return its length, or -1 with the reason. */
static long talk(int fd, const char *path, const char *request, size_t length, char *answer, long long deadline,
                 const char **reason)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        *reason = "the socket's path is too long";
        return -1;
    }
    strcpy(address.sun_path, path);
    /* EAGAIN means that the agent's queue is full: the socket does not block. */
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        *reason = "the agent cannot be reached";
        return -1;
    }
    *reason = "the agent has not answered in time";
    size_t sent = 0;
    while (sent < length) {
        if (!ready(fd, POLLOUT, deadline))
            return -1;
        ssize_t more = send(fd, request + sent, length - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EAGAIN && errno != EINTR) {
            *reason = "the agent has closed the connection";
            return -1;
        }
        if (more > 0)
            sent += (size_t)more;
    }
    size_t got = 0;
    while (got < MOST_ANSWER) {
        if (!ready(fd, POLLIN, deadline))
            return -1;
        ssize_t more = recv(fd, answer + got, MOST_ANSWER - got, 0);
        if (more < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (more <= 0) {
            *reason = "the agent's answer is incomplete";
            return -1;
        }
        got += (size_t)more;
        if (got >= sizeof END - 1 && memcmp(answer + got - (sizeof END - 1), END, sizeof END - 1) == 0)
            return (long)got;
    }
    *reason = "the agent's answer is too long";
    return -1;
}

/* trimtab_ask(socket, request, milliseconds): return the answer, or nil and the reason. */
int trimtab_ask(lua_State *lua)
{
    size_t length = 0;
    const char *path = lua_tolstring(lua, 1, NULL);
    const char *request = lua_tolstring(lua, 2, &length);
    const char *milliseconds = lua_tolstring(lua, 3, NULL);
    if (path == NULL || request == NULL || milliseconds == NULL)
        return fail(lua, "an argument is missing");
    long long deadline = now() + strtol(milliseconds, NULL, 10);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(lua, "there is no socket to spare");
    const char *reason = "there is no memory to spare";
    char *answer = malloc(MOST_ANSWER);
    long found = answer == NULL ? -1 : talk(fd, path, request, length, answer, deadline, &reason);
    close(fd);
    if (found < 0)
        fail(lua, reason);
    else
        lua_pushlstring(lua, answer, (size_t)found);
    free(answer);
    return found < 0 ? 2 : 1;
}

/* trimtab_names(): return the names of the environment variables, one in each line. */
int trimtab_names(lua_State *lua)
{
    size_t length = 0;
    for (char **one = environ; one != NULL && *one != NULL; one++)
        length += strcspn(*one, "=") + 1;
    char *names = malloc(length + 1), *end = names;
    if (names == NULL)
        return fail(lua, "there is no memory to spare");
    for (char **one = environ; one != NULL && *one != NULL; one++) {
        size_t size = strcspn(*one, "=");
        end = mempcpy(end, *one, size);
        *end++ = '\n';
    }
    lua_pushlstring(lua, names, (size_t)(end - names));
    free(names);
    return 1;
}

/* trimtab_setenv(name, value): set a variable of this program, which its job inherits; return nil if that fails. */
int trimtab_setenv(lua_State *lua)
{
    const char *name = lua_tolstring(lua, 1, NULL);
    const char *value = lua_tolstring(lua, 2, NULL);
    if (name == NULL || value == NULL || setenv(name, value, 1) != 0)
        return fail(lua, "the variable cannot be set");
    return give(lua, name);
}
