/* What the parts of the daemon share. main.c starts the daemon with the options that options.c reads; serve.c receives
 * requests; the files in store/ keep the two levels; backend.c accesses the slow directory and injects the delays;
 * recover.c writes to the directory what a killed daemon has left; all of them use common.c. */

#ifndef BURST_DAEMON_H
#define BURST_DAEMON_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Exit codes, besides those of the command that is run. */
enum { BAD_ARGUMENTS = 2, MACHINE = 3 };

/* The unit of both levels, and how finely is known which bytes of it are there: a bit of a uint64_t for each page. */
enum { PAGE = 4096, PAGES = 64, BLOCK = PAGE * PAGES };

/* The eight parameters. */
struct settings {
    uint64_t polling_threads, worker_threads, ram_destagers, flash_destagers;
    uint64_t ram_cache_size, flash_cache_size;           /* MiB */
    uint64_t ram_cache_threshold, flash_cache_threshold; /* percent of the size */
    char directory[PATH_MAX], buffer[PATH_MAX];
};
extern struct settings settings;

/* The delays that are injected before the directory and the file level: how slow each is. */
struct device {
    uint64_t latency;    /* of each access, in microseconds */
    uint64_t contention; /* that each access under way costs another one, in microseconds */
    uint64_t bandwidth;  /* MB/s that all accesses share; 0: as it comes */
    pthread_mutex_t lock; /* guards the next two */
    uint64_t line_free;   /* when the last access has passed, in nanoseconds */
    uint64_t under_way;
};
extern struct device slow_directory, file_level;

/* Waits as long as an access of so many bytes takes. */
void device_wait(struct device *device, uint64_t bytes);

/* What is counted; in memory that the guardian shares. */
struct counters {
    atomic_uint_fast64_t requests, read_bytes, written_bytes;
    atomic_uint_fast64_t ram_hits, flash_hits, backend_reads; /* pages that reads, or writes of parts of pages, needed */
    atomic_uint_fast64_t staged_bytes;                        /* from memory to the file level */
    atomic_uint_fast64_t flushes, flushed_bytes;              /* from there to the directory */
    atomic_uint_fast64_t ram_waits, flash_waits;              /* times that there was no room */
};
extern struct counters *counters;

/* The file level's journal: a header, then a record for each block of the file "flash". A mapped file, so that what
 * was written before the daemon was killed is there. A record counts while its mask is not 0. */
struct journal_header {
    char magic[16], boot[40];
    uint64_t device, records; /* of the directory; that follow */
    char directory[PATH_MAX];
};
struct record {
    uint64_t inode, born, number; /* the file, by its number and time of birth; which of its blocks */
    _Atomic uint64_t mask;        /* the pages that are there */
};
enum { JOURNAL_HEADER = 8192 };
#define JOURNAL_MAGIC "burst-buffer 1"

/* Prints "burst: ..." with errno's meaning, and ends the process as the machine's fault. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Takes a directory for this process and those that are forked by it, until the last of them ends or closes what is given
 * back. Ends the process where it, or one above or below it, has been taken on this host for another buffer. */
struct claim {
    int folders[PATH_MAX / 2]; /* open, that hold it */
    size_t count;
};
void claim(struct claim *claim, const char *directory);
void give_up(struct claim *claim);

/* When the file was made, in nanoseconds; 0 where the file system does not know. */
uint64_t born(int descriptor);
/* What names this start of the machine. */
void boot_id(char into[40]);

/* The slow directory: bytes that were read or written, or -errno. Reads end early at the file's end only. */
int64_t backend_read(int descriptor, uint8_t *to, size_t bytes, uint64_t offset);
int64_t backend_write(int descriptor, const uint8_t *from, size_t bytes, uint64_t offset);

/* The store. It starts its destagers itself; `buffer` is the folder for the file level. Results as in protocol.h. */
void store_start(int buffer);
int64_t store_attach(int descriptor);
/* Whether a handle is of this daemon, not of one before it. */
bool store_issued(uint64_t handle);
int64_t store_read(uint64_t handle, uint64_t offset, uint8_t *to, size_t bytes);
int64_t store_write(uint64_t handle, uint64_t offset, const uint8_t *from, size_t bytes);
int64_t store_append(uint64_t handle, int64_t *offset, const uint8_t *from, size_t bytes);
int64_t store_truncate(uint64_t handle, uint64_t size);
int64_t store_flush(uint64_t handle);
int64_t store_sync(uint64_t handle);
int64_t store_bypass(uint64_t handle);
int64_t store_sync_all(void);
/* Brings all to the directory, ends the destagers and gives up the file level. When no request is under way any more.
 * Whether all is there; if not, the rest stays in the file level. */
bool store_end(void);

/* Serves requests until SIGTERM; writes a byte to `ready` when it begins. Returns when no request is under way. */
void serve(int buffer, int ready);

/* Writes what the file level in `buffer` holds to the directory that it belongs to, and gives it up. Whether nothing is
 * left of it. */
bool recover(int buffer);

#endif
