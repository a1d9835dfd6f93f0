/* What the daemon and the preload library say to each other.
 *
 * Each thread of an application has a Unix socket to the daemon and an area of shared memory with it. A request is
 * written into the area and announced by one byte through the socket (ATTACH: with the descriptor it is about); the
 * answer is in the area when a byte comes back. So there is one request at a time on a connection. */

#ifndef BURST_PROTOCOL_H
#define BURST_PROTOCOL_H

#include <stdint.h>

enum { AREA_BYTES = 1 << 20 };

enum operation {
    ATTACH = 1, /* makes the file of a descriptor known; result: its handle. Again: takes up a size that has grown */
    READ,       /* `length` bytes at `offset` into data; result: how many */
    WRITE,      /* `length` bytes of data to `offset`; result: how many */
    APPEND,     /* to the end of the file, wherever that is; `offset` of the answer: where that was */
    TRUNCATE,   /* to `offset` bytes */
    FLUSH,      /* result: 0 when all of the file is on the file level at least */
    SYNC,       /* result: 0 when all of the file is in the directory, and the directory's disk has it */
    BYPASS,     /* as SYNC; from now on this file is not buffered */
    SYNC_ALL,   /* as SYNC, of all files; needs no handle. An error is told by the file's next SYNC or FLUSH, too */
};

/* Results below -4096 are no errno. */
enum {
    UNKNOWN_HANDLE = -5000, /* attach again */
    NOT_BUFFERED = -5001,   /* use the file itself */
    FORMER_HANDLE = -5002,  /* of a daemon before this one */
};

struct message {
    uint32_t operation, length;
    uint64_t handle;
    int64_t offset;
    int64_t result; /* below 0: -errno, or one of the above */
};

struct area {
    struct message message;
    uint8_t data[AREA_BYTES] __attribute__((aligned(4096)));
};

#endif
