/* The proxy's command line. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "proxy.h"

static const char usage[] =
    "usage: proxy --pages FOLDER [--control SOCKET] [--port N] [--threads N] [--threads-per-core N] [--SETTING VALUE]\n"
    "\n"
    "It serves FOLDER's pages at http://127.0.0.1:PORT/0.html and so on, as gzip if Accept-Encoding allows that. It\n"
    "runs on the cores that it may use (taskset), prints its port as JSON, and runs until a signal ends it.\n"
    "\n"
    "  --port: 0 (default) takes a free one; --threads: 1 to 256 (default 4); --threads-per-core: 1 to 256 (default 4)\n"
    "\n"
    "settings, which the control socket can change while the proxy runs:\n";

static const char example[] =
    "\nexample:\n"
    "  taskset -c 0 proxy --pages pages --port 8080 --control control --policy decompress --device ssd\n"
    "  echo 'set policy=hybrid cache-bytes=4000000' | nc -U -N control\n";

void die(const char *what)
{
    fprintf(stderr, "proxy: cannot %s: %s\n", what, strerror(errno));
    exit(MACHINE);
}

static void refuse(const char *text)
{
    fprintf(stderr, "proxy: %s\n", text);
    exit(USAGE);
}

static int number(const char *option, const char *text, long least, long most)
{
    char *end, error[200];
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < least || value > most) {
        snprintf(error, sizeof error, "%s: '%.60s' is not allowed. Use a number from %ld to %ld.", option, text, least,
                 most);
        refuse(error);
    }
    return (int)value;
}

static int open_port(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    socklen_t length = sizeof address;
    if (listening < 0 || setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(listening, (struct sockaddr *)&address, sizeof address) < 0 || listen(listening, 1024) < 0 ||
        getsockname(listening, (struct sockaddr *)&address, &length) < 0)
        die("open the port");
    printf("{\"port\": %d}\n", ntohs(address.sin_port));
    fflush(stdout);
    return listening;
}

int main(int count, char **arguments)
{
    const char *folder = NULL, *control = NULL;
    int port = 0, threads = 4, per_core = 4;
    for (int place = 1; place < count; place++) {
        char *option = arguments[place], *value = strchr(option, '='), error[320];
        if (strcmp(option, "--help") == 0) {
            printf("%s%s%s", usage, settings_help(), example);
            return 0;
        }
        if (strncmp(option, "--", 2) != 0)
            refuse("an argument is no option. See --help.");
        if (value)
            *value++ = '\0';
        else if (!(value = arguments[++place]))
            refuse("the last option has no value. See --help.");
        if (strcmp(option, "--pages") == 0)
            folder = value;
        else if (strcmp(option, "--control") == 0)
            control = value;
        else if (strcmp(option, "--port") == 0)
            port = number(option, value, 0, 65535);
        else if (strcmp(option, "--threads") == 0)
            threads = number(option, value, 1, 256);
        else if (strcmp(option, "--threads-per-core") == 0)
            per_core = number(option, value, 1, 256);
        else if (!settings_set(option + 2, value, error, sizeof error))
            refuse(error);
    }
    if (!folder)
        refuse("--pages is missing. See --help.");
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        die("read the cores that the proxy may use");
    int cores[CPU_SETSIZE], core_count = 0;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &allowed))
            cores[core_count++] = core;
    /* the injected delays are shorter than the kernel's usual tolerance allows; threads inherit this */
    prctl(PR_SET_TIMERSLACK, 1000);
    int pages = disk_open(folder);
    cache_open(pages);
    if (control)
        control_open(control);
    serve(open_port(port), pages, threads, per_core, cores, core_count);
}
