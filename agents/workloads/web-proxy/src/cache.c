/* One LRU list of (page, form), bounded in bytes, which all threads share. */

#include <pthread.h>
#include <stdlib.h>

#include "proxy.h"

/* An entry for each page and form; those with a blob are in the list, the latest used first. */
struct entry {
    struct blob *blob;
    struct entry *before, *after;
};

static struct entry *entries, list = {NULL, &list, &list};
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct blob *blob_new(size_t room)
{
    struct blob *blob = aligned_alloc(4096, (sizeof *blob + room + 4095) & ~(size_t)4095);
    if (!blob)
        die("allocate memory for a page");
    blob->users = 1;
    blob->size = room;
    return blob;
}

void blob_release(struct blob *blob)
{
    if (atomic_fetch_sub(&blob->users, 1) == 1)
        free(blob);
}

void cache_open(int pages)
{
    entries = calloc((size_t)pages * FORMS, sizeof *entries);
    if (!entries)
        die("allocate the cache's table");
}

static void link_first(struct entry *entry)
{
    entry->before = &list;
    entry->after = list.after;
    list.after->before = entry;
    list.after = entry;
}

static void unlink_entry(struct entry *entry)
{
    entry->before->after = entry->after;
    entry->after->before = entry->before;
}

static void drop_until(size_t limit)
{
    while (used > limit) {
        struct entry *last = list.before;
        unlink_entry(last);
        used -= last->blob->size;
        blob_release(last->blob);
        last->blob = NULL;
    }
}

struct blob *cache_find(int page, enum form form)
{
    struct entry *entry = &entries[page * FORMS + (int)form];
    pthread_mutex_lock(&lock);
    struct blob *blob = entry->blob;
    if (blob) {
        unlink_entry(entry);
        link_first(entry);
        atomic_fetch_add(&blob->users, 1);
    }
    pthread_mutex_unlock(&lock);
    return blob;
}

void cache_put(int page, enum form form, struct blob *blob)
{
    long kept = atomic_load(&settings[CACHED_FORM]);
    if (kept == (form == RAW ? GZIP_ONLY : RAW_ONLY))
        return;
    struct entry *entry = &entries[page * FORMS + (int)form];
    pthread_mutex_lock(&lock);
    size_t limit = (size_t)atomic_load(&settings[CACHE_BYTES]);
    /* another thread may have read the same page in the meantime */
    if (!entry->blob && blob->size <= limit) {
        drop_until(limit - blob->size);
        atomic_fetch_add(&blob->users, 1);
        entry->blob = blob;
        used += blob->size;
        link_first(entry);
    }
    pthread_mutex_unlock(&lock);
}

void cache_fit(void)
{
    pthread_mutex_lock(&lock);
    drop_until((size_t)atomic_load(&settings[CACHE_BYTES]));
    pthread_mutex_unlock(&lock);
}

void cache_clear(void)
{
    pthread_mutex_lock(&lock);
    drop_until(0);
    pthread_mutex_unlock(&lock);
}

size_t cache_used(void)
{
    pthread_mutex_lock(&lock);
    size_t bytes = used;
    pthread_mutex_unlock(&lock);
    return bytes;
}
