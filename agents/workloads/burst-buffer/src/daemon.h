/* What the parts of the daemon share. main.c starts the daemon with the options that options.c reads; serve.c receives
 * requests; gate.c lets clients on other hosts in; the files in store/ keep the two levels; backend.c accesses the slow
 * directory and injects the delays; recover.c writes to the directory what a killed daemon has left; all of them use
 * common.c. */

#ifndef BURST_DAEMON_H
#define BURST_DAEMON_H

#include "node.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Exit codes of burst itself. `run` otherwise ends with the code of its command. */
enum { BAD_ARGUMENTS = 2, MACHINE = 3 };

/* The unit of both levels is a block. A uint64_t has a bit for each of its pages, which says whether it is present. */
enum { PAGE = 4096, PAGES = 64, BLOCK = PAGE * PAGES };

/* The eight parameters, and the most connections of clients on other hosts. */
struct settings {
    uint64_t polling_threads, worker_threads, ram_destagers, flash_destagers;
    uint64_t ram_cache_size, flash_cache_size;           /* MiB */
    uint64_t ram_cache_threshold, flash_cache_threshold; /* percent of the size */
    uint64_t connections;
    char directory[PATH_MAX], buffer[PATH_MAX];
};
extern struct settings settings;
/* Where clients on other hosts reach the daemon; length 0: they do not. */
extern struct node served;

/* The injected delays of the directory or of the file level. */
struct device {
    uint64_t latency;    /* of each access, in microseconds */
    uint64_t contention; /* that each access under way costs another one, in microseconds */
    uint64_t bandwidth;  /* MB/s that all accesses share; 0: no limit */
    pthread_mutex_t lock; /* guards the next two */
    uint64_t line_free;   /* when the last access has passed, in nanoseconds */
    uint64_t under_way;
};
extern struct device slow_directory, file_level;

/* Waits as long as an access of this number of bytes takes. */
void device_wait(struct device *device, uint64_t bytes);

/* The counters, in memory that the guardian shares. */
struct counters {
    atomic_uint_fast64_t requests, read_bytes, written_bytes;
    atomic_uint_fast64_t ram_hits, flash_hits, backend_reads; /* pages that reads, or writes of parts of pages, needed */
    atomic_uint_fast64_t staged_bytes;                        /* from memory to the file level */
    atomic_uint_fast64_t flushes, flushed_bytes;              /* from the file level to the directory */
    atomic_uint_fast64_t ram_waits, flash_waits;              /* how often a thread had to wait for room */
    atomic_uint_fast64_t flash_most;                          /* the most blocks of the file level in use at a time */
};
extern struct counters *counters;

/* The file level's journal: a header, then a record for each block of the file "flash". The daemon maps it, so that its
 * content survives a killed daemon. A record is valid while its mask is not 0. */
struct journal_header {
    char magic[16], boot[40];
    uint64_t device, records; /* the directory's device; the number of records that follow */
    char directory[PATH_MAX];
};
struct record {
    uint64_t inode, born, number; /* the file, by its inode number and time of birth; the number of the block */
    _Atomic uint64_t mask;        /* the pages that are present */
};
enum { JOURNAL_HEADER = 8192 };
#define JOURNAL_MAGIC "burst-buffer 1"

/* Prints "burst: cannot ..." with the meaning of errno, and ends the process with MACHINE. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Claims a directory for this process and its children, until the last of them ends or gives the claim up. Ends the
 * process if another buffer on this host has claimed the directory, or one above or below it. */
struct claim {
    int folders[PATH_MAX / 2]; /* open descriptors that hold the claim */
    size_t count;
};
void claim(struct claim *claim, const char *directory);
void give_up(struct claim *claim);

/* Returns when the file was made, in nanoseconds; 0 if the file system does not know. */
uint64_t born(int descriptor);
/* Writes the identity of this start of the machine. */
void boot_id(char into[40]);

/* The slow directory. They return the number of bytes, or -errno. A read is shorter only at the end of the file. */
int64_t backend_read(int descriptor, uint8_t *to, size_t bytes, uint64_t offset);
int64_t backend_write(int descriptor, const uint8_t *from, size_t bytes, uint64_t offset);

/* The store, which starts its destagers. `buffer` is the folder for the file level. Results are as in protocol.h. */
void store_start(int buffer);
int64_t store_attach(int descriptor);
/* The same for a file that is already known, by its inode number and, unless that is 0, the time when it was made;
 * UNKNOWN_HANDLE if it is not. */
int64_t store_find(uint64_t inode, uint64_t made);
/* A number that no other daemon has. */
uint64_t store_number(void);
/* Whether this daemon has issued a handle, not an earlier one. */
bool store_issued(uint64_t handle);
int64_t store_read(uint64_t handle, uint64_t offset, uint8_t *to, size_t bytes);
int64_t store_write(uint64_t handle, uint64_t offset, const uint8_t *from, size_t bytes);
int64_t store_append(uint64_t handle, int64_t *offset, const uint8_t *from, size_t bytes);
int64_t store_truncate(uint64_t handle, uint64_t size);
int64_t store_flush(uint64_t handle);
int64_t store_sync(uint64_t handle);
int64_t store_bypass(uint64_t handle);
int64_t store_sync_all(void);
/* Writes all data to the directory, ends the destagers and removes the file level, when no request is under way any
 * more. Returns whether all data is in the directory; otherwise the rest stays in the file level. */
bool store_end(void);

/* Serves requests until SIGTERM, and writes a byte to `ready` when it begins. `gate` is from open_gate; -1: only
 * processes of this host are served. Returns when no request is under way. */
void serve(int buffer, int gate, int ready);

/* Listens where clients on other hosts reach the daemon. */
int open_gate(void);
/* Accepts their connections, and lets those with the right token in: `enter` takes the socket and returns 0, or an
 * errno for the client, whose connection is then closed. Returns when `end` is readable. */
void watch_gate(int listener, int end, int (*enter)(int socket));
/* Registers a file that a client has named, as store_attach. */
int64_t attach_named(const uint8_t *data, size_t bytes);

/* Writes the data of the file level in `buffer` to its directory, and removes the file level. Returns whether
 * nothing is left of it. */
bool recover(int buffer);

#endif
