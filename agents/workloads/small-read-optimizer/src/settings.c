/* Reads the environment, and writes the counters. */

#define _GNU_SOURCE
#include "sro.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char warned[] = "SRO_WARNED";

/* The defaults are in [robert-2021, table 2.1]. */
struct settings sro_settings = {
    .sequence_length = 100,
    .binsize = 10485756,
    .cluster_threshold = 2,
    .prefetch_size = 209715120,
};
struct counters sro_counters;

static const struct {
    const char *name;
    uint64_t *value, most;
} numbers[] = {
    {"SRO_SEQUENCE_LENGTH", &sro_settings.sequence_length, 1000000},
    {"SRO_DSC_BINSIZE", &sro_settings.binsize, INT64_MAX},
    {"SRO_CLUSTER_THRESHOLD", &sro_settings.cluster_threshold, INT64_MAX},
    {"SRO_PREFETCH_SIZE", &sro_settings.prefetch_size, INT64_MAX},
};

/* Whether this process prints what is wrong. The environment passes on to its children that it was printed. */
static bool prints;

static __attribute__((format(printf, 1, 2))) void warn(const char *format, ...)
{
    if (!prints)
        return;
    setenv(warned, "1", 1);
    char line[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "small-read-optimizer: %s\n", line);
}

static bool read_number(const char *name, uint64_t *value, uint64_t most)
{
    const char *text = getenv(name);
    if (!text)
        return true;
    char *end;
    errno = 0;
    uint64_t found = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && found >= 1 && found <= most) {
        *value = found;
        return true;
    }
    warn("%s: '%.200s' is not allowed. Use a whole number from 1 to %" PRIu64 ". Nothing is prefetched.", name, text,
         most);
    return false;
}

static bool read_path(const char *name, char *value)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return true;
    if (text[0] == '/' && strlen(text) < PATH_MAX) {
        /* without links, as the system names open files; a path that does not exist yet is used as it is */
        if (!realpath(text, value))
            strcpy(value, text);
        for (size_t last = strlen(value) - 1; last > 0 && value[last] == '/'; last--)
            value[last] = 0;
        return true;
    }
    warn("%s: '%.200s' is not allowed. Use an absolute path of less than %d bytes. Nothing is prefetched.", name, text,
         PATH_MAX);
    return false;
}

/* Prints that a path does not exist now, so that nothing can be watched or counted; it may be created later. */
static void try_paths(void)
{
    const char *folder = sro_settings.directory, *file = sro_settings.counters;
    struct stat found;
    if (*folder && stat(folder, &found) != 0)
        warn("SRO_DIRECTORY: '%s': %s. Use a directory that exists. Nothing is prefetched until it exists.", folder,
             strerror(errno));
    else if (*folder && !S_ISDIR(found.st_mode))
        warn("SRO_DIRECTORY: '%s' is not a directory. Use a directory. Nothing is prefetched.", folder);
    if (!*file)
        return;
    char parent[PATH_MAX];
    strcpy(parent, file);
    char *slash = strrchr(parent, '/');
    slash[slash == parent] = 0;
    bool there = stat(file, &found) == 0;
    if (there && S_ISDIR(found.st_mode))
        errno = EISDIR;
    else if (faccessat(AT_FDCWD, there ? file : parent, there ? W_OK : W_OK | X_OK, AT_EACCESS) == 0)
        return;
    warn("SRO_COUNTERS: '%s': %s. Use a file that can be written. Nothing is counted.", file, strerror(errno));
}

void sro_read_settings(void)
{
    const char *enabled = getenv("SRO_ENABLE");
    if (enabled && strcmp(enabled, "0") == 0)
        return;
    prints = !getenv(warned);
    bool fine = !enabled || !*enabled || strcmp(enabled, "1") == 0;
    if (!fine)
        warn("SRO_ENABLE: '%.100s' is not allowed. Use 0 or 1. Nothing is prefetched.", enabled);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        fine &= read_number(numbers[i].name, numbers[i].value, numbers[i].most);
    fine &= read_path("SRO_DIRECTORY", sro_settings.directory);
    fine &= read_path("SRO_COUNTERS", sro_settings.counters);
    if (fine && sro_settings.cluster_threshold > sro_settings.sequence_length) {
        warn("SRO_CLUSTER_THRESHOLD: %" PRIu64 " is above SRO_SEQUENCE_LENGTH. Use a number from 1 to %" PRIu64
             ". Nothing is prefetched.",
             sro_settings.cluster_threshold, sro_settings.sequence_length);
        fine = false;
    }
    if (fine)
        try_paths();
    sro_settings.active = fine;
}

void sro_write_counters(void)
{
    if (!sro_settings.counters[0] || !(atomic_load(&sro_counters.reads) + atomic_load(&sro_counters.missed)))
        return;
    int before = errno;
    char line[512];
    int length = snprintf(
        line, sizeof line,
        "{\"pid\": %ld, \"files\": %" PRIuFAST64 ", \"reads\": %" PRIuFAST64 ", \"bytes\": %" PRIuFAST64
        ", \"missed\": %" PRIuFAST64 ", \"triggers\": %" PRIuFAST64 ", \"prefetches\": %" PRIuFAST64
        ", \"prefetched_bytes\": %" PRIuFAST64 "}\n",
        (long)getpid(), atomic_exchange(&sro_counters.files, 0), atomic_exchange(&sro_counters.reads, 0),
        atomic_exchange(&sro_counters.bytes, 0), atomic_exchange(&sro_counters.missed, 0),
        atomic_exchange(&sro_counters.triggers, 0), atomic_exchange(&sro_counters.prefetches, 0),
        atomic_exchange(&sro_counters.prefetched_bytes, 0));
    int file = open(sro_settings.counters, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file >= 0) {
        if (write(file, line, (size_t)length) < 0)
            errno = before; /* the application's errno does not change */
        close(file);
    }
    errno = before;
}
