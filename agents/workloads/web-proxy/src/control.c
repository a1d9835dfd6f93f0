/* Commands on a Unix socket, one on each line, with one line of JSON as the answer:
 *
 *     set NAME=VALUE ...   changes settings, all or none of them
 *     get                  the settings
 *     stats                counters since the start or the last reset, and the processor's time
 *     reset                sets the counters to zero
 *     clear                removes everything from the cache */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy.h"

enum { LONGEST = 4096 };

static const char *const names[COUNTERS] = {
    [REQUESTS] = "page_requests", [HITS_RAW] = "raw_hits",      [HITS_GZIP] = "gzip_hits",
    [READS_RAW] = "raw_reads",    [READS_GZIP] = "gzip_reads",  [DECOMPRESSED] = "decompressed",
    [COMPRESSED] = "compressed",
};

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void print_stats(char *text, size_t room, double since)
{
    size_t used = (size_t)snprintf(text, room, "{");
    for (int counter = 0; counter < COUNTERS; counter++)
        used += (size_t)snprintf(text + used, room - used, "\"%s\": %ld, ", names[counter],
                                 atomic_load(&counters[counter]));
    snprintf(text + used, room - used, "\"cpu_seconds\": %.6f, \"cache_used\": %zu}\n", processor_seconds() - since,
             cache_used());
}

/* Carries out "NAME=VALUE ...". If one is wrong, the earlier ones are set back. */
static bool set_all(char *words, char *error, size_t room)
{
    long before[SETTINGS];
    for (int setting = 0; setting < SETTINGS; setting++)
        before[setting] = atomic_load(&settings[setting]);
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (!settings_set(word, value ? value : "", error, room)) {
            for (int setting = 0; setting < SETTINGS; setting++)
                atomic_store(&settings[setting], before[setting]);
            return false;
        }
    }
    cache_fit();
    return true;
}

/* Writes the text as the inside of a JSON string. */
static void quote(char *to, size_t room, const char *from)
{
    size_t used = 0;
    for (; *from && used + 3 < room; from++) {
        if (*from == '"' || *from == '\\')
            to[used++] = '\\';
        to[used++] = (unsigned char)*from < ' ' ? '?' : *from;
    }
    to[used] = '\0';
}

static void obey(char *line, char *to, size_t room)
{
    static double since;
    char error[320], text[640];
    if (strcmp(line, "stats") == 0) {
        print_stats(to, room, since);
        return;
    }
    if (strcmp(line, "reset") == 0) {
        for (int counter = 0; counter < COUNTERS; counter++)
            atomic_store(&counters[counter], 0);
        since = processor_seconds();
    } else if (strcmp(line, "clear") == 0) {
        cache_clear();
    } else if (strncmp(line, "set ", 4) == 0) {
        if (!set_all(line + 4, error, sizeof error)) {
            quote(text, sizeof text, error);
            snprintf(to, room, "{\"error\": \"%s\"}\n", text);
            return;
        }
    } else if (strcmp(line, "get") != 0) {
        quote(text, 200, line);
        snprintf(to, room, "{\"error\": \"command '%s' is unknown. Use set, get, stats, reset or clear.\"}\n", text);
        return;
    }
    settings_print(text, sizeof text);
    snprintf(to, room, "{%s}\n", text);
}

static void converse(int client)
{
    char line[LONGEST], reply[LONGEST];
    size_t received = 0;
    for (;;) {
        char *newline = memchr(line, '\n', received);
        if (newline) {
            *newline = '\0';
            obey(line, reply, sizeof reply);
            if (send(client, reply, strlen(reply), MSG_NOSIGNAL) < 0)
                return;
            received -= (size_t)(newline + 1 - line);
            memmove(line, newline + 1, received);
            continue;
        }
        ssize_t got = received < sizeof line ? recv(client, line + received, sizeof line - received, 0) : 0;
        if (got <= 0)
            return; /* it has gone, says nothing, or has sent a line without an end */
        received += (size_t)got;
    }
}

static void *listen_for_commands(void *argument)
{
    int listening = (int)(intptr_t)argument;
    for (;;) {
        int client = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            continue;
        /* clients take turns: one that says nothing must not keep the others waiting */
        struct timeval longest = {.tv_sec = 1};
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
        converse(client);
        close(client);
    }
    return NULL;
}

void control_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fprintf(stderr, "proxy: --control: '%s' is too long. Use at most %zu characters.\n", path,
                sizeof address.sun_path - 1);
        _exit(USAGE);
    }
    strcpy(address.sun_path, path);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path); /* of an earlier proxy */
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) < 0 || listen(listening, 16) < 0)
        die("open the control socket");
    pthread_t id;
    if ((errno = pthread_create(&id, NULL, listen_for_commands, (void *)(intptr_t)listening)))
        die("start the control thread");
}
