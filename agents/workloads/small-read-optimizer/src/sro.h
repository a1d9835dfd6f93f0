/* What the parts of the small read optimizer share: sro.c watches reads, settings.c reads the environment, hooks.c has
 * the functions that applications call. */

#ifndef SRO_H
#define SRO_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The settings in the environment. Sizes are in bytes. */
struct settings {
    uint64_t sequence_length;   /* SRO_SEQUENCE_LENGTH: accesses that are kept, for each file */
    uint64_t binsize;           /* SRO_DSC_BINSIZE: size of the zones in which accesses are counted */
    uint64_t cluster_threshold; /* SRO_CLUSTER_THRESHOLD: accesses in a zone that make it worth prefetching */
    uint64_t prefetch_size;     /* SRO_PREFETCH_SIZE: how much is then prefetched, around the last of them */
    bool active;                /* whether anything is watched at all */
    char directory[PATH_MAX];   /* SRO_DIRECTORY: only files below it are watched; empty: all */
    char counters[PATH_MAX];    /* SRO_COUNTERS: file that counters are appended to; empty: none */
};

extern struct settings sro_settings;

/* The counters of the whole process. */
struct counters {
    atomic_uint_fast64_t files;            /* that were watched */
    atomic_uint_fast64_t reads;            /* that were recorded */
    atomic_uint_fast64_t bytes;            /* bytes that these returned */
    atomic_uint_fast64_t missed;           /* reads that were not recorded, because a lock was taken */
    atomic_uint_fast64_t triggers;         /* times that a zone met the threshold */
    atomic_uint_fast64_t prefetches;       /* requests to the system */
    atomic_uint_fast64_t prefetched_bytes; /* bytes that these requested */
};

extern struct counters sro_counters;

/* Reads the environment. Prints on standard error what is wrong with it, and which of its paths do not exist: once for
 * all processes that inherit it. */
void sro_read_settings(void);

/* Appends the counters to their file as one line of JSON, unless no read was seen, and sets them to 0. */
void sro_write_counters(void);

/* Prepares the library. In a child process after fork: forgets the work of other threads, and sets counters to 0. */
void sro_start(void);
void sro_start_forked(void);

/* Records that `bytes` were read from a descriptor's file at `offset`; with SRO_HERE, they end at the file position.
 * May prefetch. Keeps errno; takes no memory from malloc; waits for no other thread. */
#define SRO_HERE ((off_t)-1)
void sro_note(int descriptor, off_t offset, size_t bytes);

/* Whether reads of this descriptor are recorded. */
bool sro_watches(int descriptor);

/* Forgets a descriptor that is being closed, since another file may get its number. */
void sro_forget(int descriptor);
void sro_forget_range(unsigned first, unsigned last);

#endif
