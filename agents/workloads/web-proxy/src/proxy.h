/* A web proxy that serves pages, plain or as gzip, from memory or from the disk. */

#ifndef PROXY_H
#define PROXY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACHINE = 3, USAGE = 2 }; /* exit statuses */

enum form { RAW, GZIP, FORMS };

/* --- settings.c: what can be changed while the proxy runs */

enum setting { POLICY, CACHE_BYTES, CACHED_FORM, DISK_FORM, LEVEL, HYBRID_THRESHOLD, READING, DEVICE, SETTINGS };
enum { DISK, DECOMPRESS, COMPRESS, HYBRID };                /* POLICY */
enum { BOTH_FORMS, RAW_ONLY, GZIP_ONLY };                   /* CACHED_FORM */
enum { REQUESTED, ALWAYS_GZIP, ALWAYS_RAW };                /* DISK_FORM */
enum { BUFFERED, SEQUENTIAL, WITHOUT_READAHEAD, DIRECT_IO }; /* READING */
enum { REAL, SSD, HDD };                                    /* DEVICE */

extern _Atomic long settings[SETTINGS];

/* Sets one setting by its name. Returns false, and writes what is wrong to `error`, if that is not possible. */
bool settings_set(const char *name, const char *value, char *error, size_t room);

/* Returns the description of the settings for --help. */
const char *settings_help(void);

/* Writes all settings as the inside of a JSON object. */
void settings_print(char *text, size_t room);

/* --- cache.c: one LRU list of (page, form), bounded in bytes, which all threads share */

/* A content in memory. It is freed when its last user releases it. */
struct blob {
    _Atomic int users;
    size_t size;
    unsigned char bytes[] __attribute__((aligned(4096))); /* O_DIRECT reads into it */
};

struct blob *blob_new(size_t room);
void blob_release(struct blob *blob);

void cache_open(int pages);

/* Returns the content, which the caller must release, or NULL. This counts as a use of the entry. */
struct blob *cache_find(int page, enum form form);

/* Keeps the content if it fits, and removes the entries that have not been used for the longest time. */
void cache_put(int page, enum form form, struct blob *blob);

/* Removes entries until the cache is within its limit, which may have changed. */
void cache_fit(void);

/* Removes all entries. */
void cache_clear(void);

size_t cache_used(void);

/* --- disk.c: the pages' files */

/* Opens all pages of a folder: 0.html and 0.html.gz, 1.html and so on. Returns their number. */
int disk_open(const char *folder);

/* Returns the size of a page's file. */
size_t disk_size(int page, enum form form);

/* Reads a file, as slowly as the device is. The caller must release the content. Returns NULL after an error. */
struct blob *disk_read(int page, enum form form);

/* --- pages.c: from a request to an answer */

enum counter { REQUESTS, HITS_RAW, HITS_GZIP, READS_RAW, READS_GZIP, DECOMPRESSED, COMPRESSED, COUNTERS };

extern _Atomic long counters[COUNTERS];

/* The threads of a core share one: the number of them that decompress now. */
struct core {
    int number, epoll;
    _Atomic int decompressing;
};

/* Returns the content of a page in a form, which the caller must release, or NULL after an error. */
struct blob *pages_find(struct core *core, int page, enum form form);

/* --- serve.c, control.c */

/* Starts the threads that answer requests, and hands them each connection that the listening socket accepts. It never
 * returns. */
void serve(int listening, int pages, int threads, int per_core, const int *cores, int core_count);

/* Starts a thread that answers commands on a Unix socket. */
void control_open(const char *path);

void die(const char *what) __attribute__((noreturn));

#endif
