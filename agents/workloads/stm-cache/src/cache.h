/*
 * A cache of answers in memory, which the threads of one process share: a hash table by URL and a priority queue, with
 * bounds on bytes and entries. Built with -DCACHE_TM -fgnu-tm all shared state is changed in transactions; without, under
 * one lock, with atomic counts of references.
 */
#ifndef CACHE_H
#define CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cache_policy {
    CACHE_LRU,  /* evict the entry that was used longest ago */
    CACHE_GDSF, /* evict the lowest age + uses * cost / size (Greedy Dual Size Frequency) */
};

/* When the memory of evicted entries is freed. */
enum cache_cleanup {
    CACHE_DEFERRED, /* after the critical section, from a list */
    CACHE_COMMIT,   /* after the transaction, by an action that it registers; with transactions only */
    CACHE_INSIDE,   /* within the critical section */
};

struct cache_options {
    size_t bytes;   /* of all entries with their keys and content */
    size_t entries; /* number of entries */
    enum cache_policy policy;
    enum cache_cleanup cleanup;
};

struct cache_figures {
    uint64_t hits, misses, stored, refused, evicted;
    uint64_t live;  /* entries that have not been freed, in the cache or in use */
    uint64_t bytes, entries;
};

struct cache;
struct cache_entry;

/* Return a cache; NULL without memory, or for a clean-up that this build does not have. */
struct cache *cache_create(const struct cache_options *options);

/* Free a cache and its entries. No entry may be in use. */
void cache_destroy(struct cache *cache);

/*
 * Return a new entry, which the caller holds and fills; NULL without memory. `cost` is what it takes to make the content
 * again, in any unit.
 */
struct cache_entry *cache_entry_create(struct cache *cache, const char *key, size_t content_bytes, double cost);

void *cache_entry_content(struct cache_entry *entry);
size_t cache_entry_bytes(const struct cache_entry *entry);

/* Put an entry into the cache in place of one with the same key, and evict others for it. Return whether it has fit. */
bool cache_put(struct cache *cache, struct cache_entry *entry);

/* Return the entry of a key, which the caller then holds; NULL if there is none. */
struct cache_entry *cache_get(struct cache *cache, const char *key);

/* Remove the entry of a key, if there is one. Threads that hold it may go on. */
void cache_remove(struct cache *cache, const char *key);

/* End holding an entry. */
void cache_release(struct cache *cache, struct cache_entry *entry);

struct cache_figures cache_figures_of(struct cache *cache);

#endif
