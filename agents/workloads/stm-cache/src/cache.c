#include "cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef CACHE_TM
#define SAFE __attribute__((transaction_safe))
#define BEGIN(cache) __transaction_atomic {
#define END(cache) }
/* libitm's interface, for which GCC has no header */
typedef void (*commit_action)(void *);
extern void _ITM_addUserCommitAction(commit_action action, uint64_t transaction, void *argument)
    __attribute__((transaction_pure));
#define NO_TRANSACTION 1
#else
#define SAFE
#define BEGIN(cache) pthread_mutex_lock(&(cache)->lock); {
#define END(cache) } pthread_mutex_unlock(&(cache)->lock);
#endif

#define BUCKETS 4096 /* a power of 2 */

struct cache_entry {
    struct cache *cache;
    struct cache_entry *next; /* in the bucket, or in the list of entries to free */
    size_t place;             /* in the priority queue; 0: not in the cache */
    long references;          /* of threads, and one of the cache */
    uint64_t hash;
    double priority, cost, uses;
    size_t key_bytes, content_bytes;
    char data[] __attribute__((aligned(16))); /* content, then key */
};

struct cache {
    struct cache_options options;
    pthread_mutex_t lock;
    struct cache_entry *buckets[BUCKETS];
    struct cache_entry **queue; /* a heap from index 1 on, lowest priority first */
    size_t room;                /* of the queue */
    double age;                 /* LRU: a clock; GDSF: the priority of the entry that was evicted last */
    struct cache_figures figures;
    uint64_t freed_inside;              /* changed in critical sections only */
    uint64_t created, freed_outside;    /* atomic */
};

static __attribute__((noinline)) uint64_t hash_of(const char *key, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t at = 0; at < bytes; at++)
        hash = (hash ^ (unsigned char)key[at]) * 0x100000001b3u;
    return hash;
}

static SAFE size_t size_of(const struct cache_entry *entry)
{
    return sizeof *entry + entry->key_bytes + entry->content_bytes;
}

/* --- the priority queue, in a critical section */

static SAFE void set(struct cache *cache, size_t place, struct cache_entry *entry)
{
    cache->queue[place] = entry;
    entry->place = place;
}

static SAFE void rise(struct cache *cache, struct cache_entry *entry)
{
    size_t place = entry->place;

    for (; place > 1 && cache->queue[place / 2]->priority > entry->priority; place /= 2)
        set(cache, place, cache->queue[place / 2]);
    set(cache, place, entry);
}

static SAFE void sink(struct cache *cache, struct cache_entry *entry)
{
    size_t place = entry->place, child, last = cache->figures.entries;

    for (; (child = 2 * place) <= last; place = child) {
        if (child < last && cache->queue[child + 1]->priority < cache->queue[child]->priority)
            child++;
        if (cache->queue[child]->priority >= entry->priority)
            break;
        set(cache, place, cache->queue[child]);
    }
    set(cache, place, entry);
}

/* Give an entry the priority of one more use. */
static SAFE void use(struct cache *cache, struct cache_entry *entry)
{
    entry->uses += 1;
    if (cache->options.policy == CACHE_LRU)
        entry->priority = cache->age += 1;
    else
        entry->priority = cache->age + entry->uses * entry->cost / (double)size_of(entry);
}

/* --- the hash table, in a critical section */

static SAFE struct cache_entry **find(struct cache *cache, const char *key, size_t bytes, uint64_t hash)
{
    struct cache_entry **at = &cache->buckets[hash & (BUCKETS - 1)];

    for (; *at != NULL; at = &(*at)->next) {
        struct cache_entry *entry = *at;
        size_t same = 0;
        if (entry->hash != hash || entry->key_bytes != bytes)
            continue;
        /* memcmp is not safe in a transaction */
        while (same < bytes && entry->data[entry->content_bytes + same] == key[same])
            same++;
        if (same == bytes)
            break;
    }
    return at;
}

/* --- references and memory */

static void free_outside(void *argument)
{
    struct cache_entry *entry = argument;
    struct cache *cache = entry->cache;

    free(entry);
    __atomic_add_fetch(&cache->freed_outside, 1, __ATOMIC_RELAXED);
}

static void free_list(struct cache_entry *entry)
{
    while (entry != NULL) {
        struct cache_entry *next = entry->next;
        free_outside(entry);
        entry = next;
    }
}

/* End the cache's own reference to an entry, in a critical section. The entry may go to the list `dead`. */
static SAFE void abandon(struct cache *cache, struct cache_entry *entry, struct cache_entry **dead)
{
#ifdef CACHE_TM
    if (--entry->references > 0)
        return;
    if (cache->options.cleanup == CACHE_COMMIT) {
        _ITM_addUserCommitAction(free_outside, NO_TRANSACTION, entry);
        return;
    }
#else
    if (__atomic_sub_fetch(&entry->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
#endif
    if (cache->options.cleanup == CACHE_INSIDE) {
        free(entry);
        cache->freed_inside++;
        return;
    }
    entry->next = *dead;
    *dead = entry;
}

/* Take the entry at `at` out of the table and the queue, in a critical section. */
static SAFE void take_out(struct cache *cache, struct cache_entry **at, struct cache_entry **dead)
{
    struct cache_entry *entry = *at, *last = cache->queue[cache->figures.entries];
    size_t place = entry->place;

    *at = entry->next;
    cache->figures.entries--;
    cache->figures.bytes -= size_of(entry);
    if (last != entry) {
        set(cache, place, last);
        rise(cache, last);
        sink(cache, last);
    }
    entry->place = 0;
    abandon(cache, entry, dead);
}

/* Take the entry with the lowest priority out, in a critical section. */
static SAFE void evict(struct cache *cache, struct cache_entry **dead)
{
    struct cache_entry *entry = cache->queue[1], **at = &cache->buckets[entry->hash & (BUCKETS - 1)];

    while (*at != entry)
        at = &(*at)->next;
    if (cache->options.policy == CACHE_GDSF)
        cache->age = entry->priority;
    take_out(cache, at, dead);
    cache->figures.evicted++;
}

/* --- interface */

struct cache *cache_create(const struct cache_options *options)
{
    struct cache *cache;

#ifndef CACHE_TM
    if (options->cleanup == CACHE_COMMIT)
        return NULL;
#endif
    cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return NULL;
    cache->options = *options;
    /* an entry has at least its own struct, so that the bound on bytes bounds the queue as well */
    cache->room = options->bytes / sizeof(struct cache_entry) + 1;
    if (cache->room > options->entries)
        cache->room = options->entries;
    cache->queue = calloc(cache->room + 1, sizeof *cache->queue);
    if (cache->queue == NULL) {
        free(cache);
        return NULL;
    }
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void cache_destroy(struct cache *cache)
{
    for (size_t place = 1; place <= cache->figures.entries; place++)
        free(cache->queue[place]);
    pthread_mutex_destroy(&cache->lock);
    free(cache->queue);
    free(cache);
}

struct cache_entry *cache_entry_create(struct cache *cache, const char *key, size_t content_bytes, double cost)
{
    size_t key_bytes = strlen(key);
    struct cache_entry *entry = malloc(sizeof *entry + content_bytes + key_bytes);

    if (entry == NULL)
        return NULL;
    *entry = (struct cache_entry){.cache = cache, .references = 1, .hash = hash_of(key, key_bytes), .cost = cost,
                                  .key_bytes = key_bytes, .content_bytes = content_bytes};
    memcpy(entry->data + content_bytes, key, key_bytes);
    __atomic_add_fetch(&cache->created, 1, __ATOMIC_RELAXED);
    return entry;
}

void *cache_entry_content(struct cache_entry *entry)
{
    return entry->data;
}

size_t cache_entry_bytes(const struct cache_entry *entry)
{
    return entry->content_bytes;
}

bool cache_put(struct cache *cache, struct cache_entry *entry)
{
    struct cache_entry *dead = NULL;
    const char *key = entry->data + entry->content_bytes;
    size_t bytes = size_of(entry);
    bool fits = bytes <= cache->options.bytes && cache->room > 0;

    BEGIN(cache)
        if (!fits) {
            cache->figures.refused++;
        } else {
            struct cache_entry **at = find(cache, key, entry->key_bytes, entry->hash);
            if (*at != NULL)
                take_out(cache, at, &dead);
            while (cache->figures.entries >= cache->room || cache->figures.bytes + bytes > cache->options.bytes)
                evict(cache, &dead);
            entry->next = cache->buckets[entry->hash & (BUCKETS - 1)];
            cache->buckets[entry->hash & (BUCKETS - 1)] = entry;
#ifdef CACHE_TM
            entry->references++;
#else
            __atomic_add_fetch(&entry->references, 1, __ATOMIC_RELAXED);
#endif
            cache->figures.entries++;
            cache->figures.bytes += bytes;
            cache->figures.stored++;
            use(cache, entry);
            set(cache, cache->figures.entries, entry);
            rise(cache, entry);
        }
    END(cache)
    free_list(dead);
    return fits;
}

struct cache_entry *cache_get(struct cache *cache, const char *key)
{
    size_t bytes = strlen(key);
    uint64_t hash = hash_of(key, bytes);
    struct cache_entry *entry;

    BEGIN(cache)
        entry = *find(cache, key, bytes, hash);
        if (entry == NULL) {
            cache->figures.misses++;
        } else {
#ifdef CACHE_TM
            entry->references++;
#else
            __atomic_add_fetch(&entry->references, 1, __ATOMIC_RELAXED);
#endif
            cache->figures.hits++;
            use(cache, entry);
            sink(cache, entry);
        }
    END(cache)
    return entry;
}

void cache_remove(struct cache *cache, const char *key)
{
    size_t bytes = strlen(key);
    uint64_t hash = hash_of(key, bytes);
    struct cache_entry *dead = NULL;

    BEGIN(cache)
        struct cache_entry **at = find(cache, key, bytes, hash);
        if (*at != NULL)
            take_out(cache, at, &dead);
    END(cache)
    free_list(dead);
}

void cache_release(struct cache *cache, struct cache_entry *entry)
{
    bool last;

#ifdef CACHE_TM
    __transaction_atomic {
        last = --entry->references == 0;
    }
#else
    last = __atomic_sub_fetch(&entry->references, 1, __ATOMIC_ACQ_REL) == 0;
#endif
    (void)cache;
    if (last)
        free_outside(entry);
}

struct cache_figures cache_figures_of(struct cache *cache)
{
    struct cache_figures figures;
    uint64_t freed;

    BEGIN(cache)
        figures = cache->figures;
        freed = cache->freed_inside;
    END(cache)
    freed += __atomic_load_n(&cache->freed_outside, __ATOMIC_RELAXED);
    figures.live = __atomic_load_n(&cache->created, __ATOMIC_RELAXED) - freed;
    return figures;
}
