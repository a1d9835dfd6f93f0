/* Reads the environment, and writes the counters. */

#define _GNU_SOURCE
#include "sro.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char warned[] = "SRO_WARNED";

/* The defaults are those of the thesis, table 2.1. */
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

/* Once: processes that are started by this one inherit that it was said. */
static void warn(const char *message)
{
    if (getenv(warned))
        return;
    setenv(warned, "1", 1);
    char line[640];
    int length = snprintf(line, sizeof line, "small-read-optimizer: %s; nothing is prefetched\n", message);
    if (write(STDERR_FILENO, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1) < 0)
        return; /* nobody to be told */
}

static bool read_number(const char *name, uint64_t *value, uint64_t most)
{
    const char *text = getenv(name);
    if (!text)
        return true;
    char *end, message[512];
    errno = 0;
    uint64_t found = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && found >= 1 && found <= most) {
        *value = found;
        return true;
    }
    snprintf(message, sizeof message, "%s is '%.200s'; allowed: a whole number from 1 to %" PRIu64, name, text, most);
    warn(message);
    return false;
}

static bool read_path(const char *name, char *value)
{
    const char *text = getenv(name);
    char message[128];
    if (!text || !*text)
        return true;
    if (text[0] == '/' && strlen(text) < PATH_MAX) {
        /* without links, as the system names open files; what is not there yet is taken as it is written */
        if (!realpath(text, value))
            strcpy(value, text);
        for (size_t last = strlen(value) - 1; last > 0 && value[last] == '/'; last--)
            value[last] = 0;
        return true;
    }
    snprintf(message, sizeof message, "%s is not an absolute path", name);
    warn(message);
    return false;
}

void sro_read_settings(void)
{
    const char *enabled = getenv("SRO_ENABLE");
    char message[256];
    if (enabled && strcmp(enabled, "0") == 0)
        return;
    if (enabled && *enabled && strcmp(enabled, "1") != 0) {
        snprintf(message, sizeof message, "SRO_ENABLE is '%.100s'; allowed: 0 or 1", enabled);
        warn(message);
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!read_number(numbers[i].name, numbers[i].value, numbers[i].most))
            return;
    if (!read_path("SRO_DIRECTORY", sro_settings.directory) || !read_path("SRO_COUNTERS", sro_settings.counters))
        return;
    if (sro_settings.cluster_threshold > sro_settings.sequence_length) {
        snprintf(message, sizeof message,
                 "SRO_CLUSTER_THRESHOLD is %" PRIu64 ", more than the %" PRIu64
                 " accesses of SRO_SEQUENCE_LENGTH, so it is never met",
                 sro_settings.cluster_threshold, sro_settings.sequence_length);
        warn(message);
        return;
    }
    sro_settings.active = true;
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
            errno = before; /* the application's own end is not spoilt */
        close(file);
    }
    errno = before;
}
