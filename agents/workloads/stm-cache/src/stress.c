/*
 * Threads use one cache at random, and check each byte that they get.
 *
 *     stress THREADS OPERATIONS BYTES ENTRIES lru|gdsf deferred|commit|inside
 *
 * It prints the figures of the cache as JSON, and ends with status 1 after a wrong byte, an entry that is never freed, or
 * a bound that was exceeded.
 */
#include "cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 64
#define LARGEST 600

static struct cache *cache;
static struct cache_options options;
static long operations;
static int wrong; /* atomic */

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The content of an entry follows from its key and its size. */
static unsigned char byte_of(unsigned key, size_t bytes, size_t at)
{
    return (unsigned char)(key * 31 + bytes * 7 + at);
}

static void fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

static void check(unsigned key, struct cache_entry *entry)
{
    const unsigned char *content = cache_entry_content(entry);
    size_t bytes = cache_entry_bytes(entry);

    for (size_t at = 0; at < bytes; at++)
        if (content[at] != byte_of(key, bytes, at)) {
            fail("wrong byte");
            return;
        }
}

static void *work(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;

    for (long done = 0; done < operations; done++) {
        unsigned key = (unsigned)(next(&state) % KEYS);
        unsigned what = (unsigned)(next(&state) % 100);
        char name[32];
        struct cache_entry *entry;

        snprintf(name, sizeof name, "http://host/%u", key);
        if (what < 2) {
            cache_remove(cache, name);
            continue;
        }
        entry = what < 40 ? cache_get(cache, name) : NULL;
        if (entry == NULL) {
            size_t bytes = (size_t)(next(&state) % LARGEST);
            unsigned char *content;
            entry = cache_entry_create(cache, name, bytes, (double)(1 + key % 7));
            if (entry == NULL) {
                fail("no memory");
                return NULL;
            }
            content = cache_entry_content(entry);
            for (size_t at = 0; at < bytes; at++)
                content[at] = byte_of(key, bytes, at);
            cache_put(cache, entry);
        }
        check(key, entry);
        cache_release(cache, entry);
    }
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[64];
    struct cache_figures figures;
    int number;

    if (count != 7 || (number = atoi(words[1])) < 1 || number > 64) {
        fprintf(stderr, "usage: stress THREADS(1-64) OPERATIONS BYTES ENTRIES lru|gdsf deferred|commit|inside\n");
        return 2;
    }
    operations = atol(words[2]);
    options.bytes = (size_t)atoll(words[3]);
    options.entries = (size_t)atoll(words[4]);
    options.policy = strcmp(words[5], "gdsf") == 0 ? CACHE_GDSF : CACHE_LRU;
    options.cleanup = strcmp(words[6], "commit") == 0   ? CACHE_COMMIT
                      : strcmp(words[6], "inside") == 0 ? CACHE_INSIDE
                                                        : CACHE_DEFERRED;
    cache = cache_create(&options);
    if (cache == NULL) {
        fprintf(stderr, "no cache with this clean-up\n");
        return 2;
    }
    for (int at = 0; at < number; at++)
        if (pthread_create(&threads[at], NULL, work, (void *)(uintptr_t)(at + 1)) != 0)
            return 2;
    for (int at = 0; at < number; at++)
        pthread_join(threads[at], NULL);
    figures = cache_figures_of(cache);
    printf("{\"hits\": %lu, \"misses\": %lu, \"stored\": %lu, \"refused\": %lu, \"evicted\": %lu, \"live\": %lu, "
           "\"entries\": %lu, \"bytes\": %lu}\n",
           figures.hits, figures.misses, figures.stored, figures.refused, figures.evicted, figures.live,
           figures.entries, figures.bytes);
    if (figures.live != figures.entries)
        fail("entries were not freed");
    if (figures.entries > options.entries || figures.bytes > options.bytes)
        fail("a bound is exceeded");
    cache_destroy(cache);
    return wrong;
}
