/* The settings that can be changed while the proxy runs: their names, limits and values. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy.h"

static const struct {
    const char *name;
    long least, most;      /* of a number */
    const char *values[5]; /* or the names of the values */
    const char *help;
} table[SETTINGS] = {
    [POLICY] = {"policy", 0, 3, {"disk", "decompress", "compress", "hybrid"}, "what a miss does"},
    [CACHE_BYTES] = {"cache-bytes", 0, LONG_MAX, {NULL}, "limit of the cache"},
    [CACHED_FORM] = {"cached-form", 0, 2, {"both", "raw", "gzip"}, "the forms that the cache keeps"},
    [DISK_FORM] = {"disk-form", 0, 2, {"requested", "gzip", "raw"}, "the form that is read from the disk"},
    [LEVEL] = {"level", 1, 9, {NULL}, "zlib's level of compression"},
    [HYBRID_THRESHOLD] = {"hybrid-threshold", 1, 64, {NULL},
                          "hybrid reads from the disk if this number of the core's threads decompress"},
    [READING] = {"reading", 0, 3, {"buffered", "sequential", "random", "direct"},
                 "the kernel's usual readahead, a larger one, none, or O_DIRECT"},
    [DEVICE] = {"device", 0, 2, {"real", "ssd", "hdd"},
                "the disk with a cold page cache, or memory with an injected delay"},
};

_Atomic long settings[SETTINGS] = {
    [POLICY] = DISK, [CACHE_BYTES] = 4000000, [CACHED_FORM] = BOTH_FORMS, [DISK_FORM] = REQUESTED,
    [LEVEL] = 6,     [HYBRID_THRESHOLD] = 1,  [READING] = BUFFERED,       [DEVICE] = REAL,
};

static void list_values(int setting, char *text, size_t room)
{
    size_t used = 0;
    if (!table[setting].values[0]) {
        if (table[setting].most == LONG_MAX)
            snprintf(text, room, "a number from %ld", table[setting].least);
        else
            snprintf(text, room, "a number from %ld to %ld", table[setting].least, table[setting].most);
        return;
    }
    for (int value = 0; table[setting].values[value] && used < room; value++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", value ? ", " : "", table[setting].values[value]);
}

bool settings_set(const char *name, const char *value, char *error, size_t room)
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        if (strcmp(table[setting].name, name) != 0)
            continue;
        long found = -1;
        if (table[setting].values[0]) {
            for (int choice = 0; table[setting].values[choice]; choice++)
                if (strcmp(table[setting].values[choice], value) == 0)
                    found = choice;
        } else {
            char *end;
            found = strtol(value, &end, 10);
            if (end == value || *end || found < table[setting].least || found > table[setting].most)
                found = -1;
        }
        if (found < 0) {
            char allowed[160];
            list_values(setting, allowed, sizeof allowed);
            snprintf(error, room, "%s: '%.60s' is not allowed. Use %s.", name, value, allowed);
            return false;
        }
        atomic_store(&settings[setting], found);
        return true;
    }
    snprintf(error, room, "there is no setting '%.60s'. The command 'get' lists them.", name);
    return false;
}

const char *settings_help(void)
{
    static char text[2048];
    size_t used = 0;
    for (int setting = 0; setting < SETTINGS; setting++) {
        char allowed[160];
        list_values(setting, allowed, sizeof allowed);
        used += (size_t)snprintf(text + used, sizeof text - used, "  --%s: %s; %s\n", table[setting].name,
                                 table[setting].help, allowed);
    }
    return text;
}

void settings_print(char *text, size_t room)
{
    size_t used = 0;
    for (int setting = 0; setting < SETTINGS && used < room; setting++) {
        long value = atomic_load(&settings[setting]);
        const char *comma = setting ? ", " : "";
        if (table[setting].values[0])
            used += (size_t)snprintf(text + used, room - used, "%s\"%s\": \"%s\"", comma, table[setting].name,
                                     table[setting].values[value]);
        else
            used += (size_t)snprintf(text + used, room - used, "%s\"%s\": %ld", comma, table[setting].name, value);
    }
}
