/* The command line. */

#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon.h"

const char *report, *library, *node, *token;
bool joins;
int buffer = -1;

const char usage[] =
    "usage: burst run OPTIONS --buffer FOLDER DIRECTORY COMMAND [ARGUMENT]...\n"
    "       burst run --node ADDRESS:PORT --token FILE DIRECTORY COMMAND [ARGUMENT]...\n"
    "       burst start OPTIONS --buffer FOLDER DIRECTORY      prints the variables that applications need:\n"
    "                                                          eval \"$(burst start ...)\"\n"
    "       burst stop --buffer FOLDER\n"
    "       burst recover --buffer FOLDER                      after the guardian and the daemon were killed\n"
    "\n"
    "Buffers what a command, or a job, writes below DIRECTORY: in memory, then in files in FOLDER.\n"
    "\n"
    "  --polling-threads N        threads that receive requests (default 2)\n"
    "  --worker-threads N         threads that carry out requests (10)\n"
    "  --ram-destagers N          threads that write from memory to FOLDER (10)\n"
    "  --flash-destagers N        threads that write from FOLDER to DIRECTORY (10)\n"
    "  --ram-cache-size MIB       memory for data (64)\n"
    "  --flash-cache-size MIB     size of the file in FOLDER (256)\n"
    "  --ram-cache-threshold P    percent of the memory in use above which clean data is removed (80)\n"
    "  --flash-cache-threshold P  the same for the file (80)\n"
    "  --latency US, --bandwidth MB/S, --contention US\n"
    "                             make DIRECTORY slow: the latency of an access; the bandwidth that all accesses\n"
    "                             share; the delay that each access under way adds to another one (no delay)\n"
    "  --flash-latency US, --flash-bandwidth MB/S\n"
    "                             the same for FOLDER, which the system may hold in memory (no delay)\n"
    "  --report FILE              the file to which run writes seconds and counters as JSON\n"
    "  --library FILE             the preload library (libburst.so in the folder of this program)\n"
    "  --join                     if the job already has a buffer for DIRECTORY (BURST_BUFFER), run uses that one,\n"
    "                             with its options, instead of a new one\n"
    "  --listen ADDRESS:PORT      be a data node: serve commands on other hosts, too (run --node), which see DIRECTORY\n"
    "  --token FILE               what these commands must know; --listen makes the file if it does not exist\n"
    "  --connections N            the most connections from other hosts, one for each thread (256)\n"
    "  --node ADDRESS:PORT        run uses this data node, which buffers the same DIRECTORY\n";

static struct {
    const char *name;
    uint64_t *value, least, most;
} numbers[] = {
    {"polling-threads", &settings.polling_threads, 1, 16},
    {"worker-threads", &settings.worker_threads, 1, 24},
    {"ram-destagers", &settings.ram_destagers, 1, 24},
    {"flash-destagers", &settings.flash_destagers, 1, 24},
    /* more blocks than threads, so that there is always one for a thread */
    {"ram-cache-size", &settings.ram_cache_size, 16, 0},
    {"flash-cache-size", &settings.flash_cache_size, 16, 1 << 20},
    {"ram-cache-threshold", &settings.ram_cache_threshold, 1, 100},
    {"flash-cache-threshold", &settings.flash_cache_threshold, 1, 100},
    {"latency", &slow_directory.latency, 0, 10000000},
    {"contention", &slow_directory.contention, 0, 10000000},
    {"bandwidth", &slow_directory.bandwidth, 0, 1000000},
    {"flash-latency", &file_level.latency, 0, 10000000},
    {"flash-bandwidth", &file_level.bandwidth, 0, 1000000},
    {"connections", &settings.connections, 1, 4096},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, BUFFER = NUMBERS, REPORT, LIBRARY, LISTEN, NODE, TOKEN_FILE, JOIN };

/* Returns the least of `most` and the limits of a control group and the groups above it, in bytes. `folder` is the
 * group's, and is changed. */
static uint64_t least_limit(char *folder, const char *root, const char *file, uint64_t most)
{
    for (;;) {
        char path[2 * PATH_MAX];
        uint64_t limit; /* "max" is no number; a group that is not mounted here has no file */
        snprintf(path, sizeof path, "%s%s/%s", root, folder, file);
        FILE *text = fopen(path, "re");
        if (text && fscanf(text, "%" SCNu64, &limit) == 1 && limit < most)
            most = limit;
        if (text)
            fclose(text);
        char *last = strrchr(folder, '/');
        if (!last)
            return most;
        *last = 0;
    }
}

/* Returns the MiB of memory: the machine's, or the limit of a control group (version 1 or 2) if that is less. */
static uint64_t available_memory(void)
{
    uint64_t most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    char line[PATH_MAX + 300];
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups && fgets(line, sizeof line, groups)) { /* number:controllers:/path */
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        if (strcmp(names, ":memory") == 0)
            most = least_limit(path, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", most);
        else if (strcmp(line, "0:") == 0)
            most = least_limit(path, "/sys/fs/cgroup", "memory.max", most);
    }
    if (groups)
        fclose(groups);
    return most >> 20;
}

static void take_number(int option, const char *text)
{
    uint64_t most = numbers[option].most ? numbers[option].most : available_memory();
    char *end;
    errno = 0;
    uint64_t found = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || found < numbers[option].least || found > most) {
        fprintf(stderr, "burst: --%s: '%s' is not allowed. Use %" PRIu64 " to %" PRIu64 ".\n",
                numbers[option].name, text, numbers[option].least, most);
        exit(BAD_ARGUMENTS);
    }
    *numbers[option].value = found;
}

_Noreturn void misused(void)
{
    fputs(usage, stderr);
    exit(BAD_ARGUMENTS);
}

static void take_address(const char *text)
{
    if (!read_address(&served, text, true)) {
        fprintf(stderr, "burst: --listen: '%s' is not allowed. Use ADDRESS:PORT of this host.\n", text);
        exit(BAD_ARGUMENTS);
    }
}

char **take_options(int count, char **given)
{
    struct option options[JOIN + 3] = {
        [BUFFER] = {"buffer", required_argument, NULL, BUFFER},
        [REPORT] = {"report", required_argument, NULL, REPORT},
        [LIBRARY] = {"library", required_argument, NULL, LIBRARY},
        [LISTEN] = {"listen", required_argument, NULL, LISTEN},
        [NODE] = {"node", required_argument, NULL, NODE},
        [TOKEN_FILE] = {"token", required_argument, NULL, TOKEN_FILE},
        [JOIN] = {"join", no_argument, NULL, JOIN},
        [JOIN + 1] = {"help", no_argument, NULL, 'h'},
    };
    for (int i = 0; i < NUMBERS; i++)
        options[i] = (struct option){numbers[i].name, required_argument, NULL, i};
    const char *folder = NULL;
    for (int option; (option = getopt_long(count, given, "+", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (option == '?')
            misused();
        else if (option < NUMBERS)
            take_number(option, optarg);
        else if (option == BUFFER)
            folder = optarg;
        else if (option == REPORT)
            report = optarg;
        else if (option == JOIN)
            joins = true;
        else if (option == LISTEN)
            take_address(optarg);
        else if (option == NODE)
            node = optarg;
        else if (option == TOKEN_FILE)
            token = optarg;
        else
            library = optarg;
    }
    /* a data node and its clients have a token; a client has no buffer */
    bool shared = served.length || node;
    if (shared != (token != NULL) || (node && (folder || joins || served.length)) || (!node && !folder))
        misused();
    if (!folder)
        return given + optind;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        die("make %s", folder);
    if (!realpath(folder, settings.buffer))
        die("open %s", folder);
    buffer = open(settings.buffer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (buffer < 0)
        die("open %s", folder);
    return given + optind;
}

void take_directory(const char *name)
{
    struct stat found;
    if (!realpath(name, settings.directory) || stat(settings.directory, &found) != 0)
        die("use the directory %s", name);
    if (!S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        die("use the directory %s", name);
    }
}

/* Writes a new token into a file that does not exist. */
static void make_token(void)
{
    uint8_t random[TOKEN / 2];
    char text[TOKEN + 2];
    int file = open(token, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST)
        return;
    if (file < 0 || getrandom(random, sizeof random, 0) != sizeof random)
        die("make the token %s", token);
    for (size_t i = 0; i < sizeof random; i++)
        sprintf(text + 2 * i, "%02x", random[i]);
    text[TOKEN] = '\n';
    if (write(file, text, TOKEN + 1) != TOKEN + 1 || close(file) != 0)
        die("write the token %s", token);
}

void take_token(struct node *into, bool makes)
{
    if (makes)
        make_token();
    if (read_token(into, token))
        return;
    if (errno != EPERM && errno != EINVAL)
        die("read the token %s", token);
    fprintf(stderr, "burst: --token: '%s' is not allowed. Use %s.\n", token,
            errno == EPERM ? "a file that only you may use (mode 0600)"
                           : "the file that --listen has made, with 64 characters");
    exit(MACHINE);
}

void take_library(void)
{
    static char path[PATH_MAX + 16];
    if (!library) {
        ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
        if (length < 0)
            die("find itself");
        path[length] = 0;
        strcpy(strrchr(path, '/') + 1, "libburst.so");
        library = path;
    }
    static char absolute[PATH_MAX];
    if (!realpath(library, absolute))
        die("find the library %s", library);
    library = absolute;
    if (strpbrk(library, ": \t")) {
        fprintf(stderr,
                "burst: --library: '%s' is not allowed. Use a path without spaces and colons, as LD_PRELOAD needs.\n",
                library);
        exit(MACHINE);
    }
}
