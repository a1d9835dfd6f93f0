/* The protocol between the preload library and the daemon.
 *
 * Each thread of an application has a Unix socket to the daemon and an area of memory that it shares with the
 * daemon. The thread writes a request into the area and announces it by one byte through the socket (ATTACH: with
 * the descriptor of the file). The answer is in the area when a byte comes back. A connection has one request at a
 * time. Threads on other hosts send the same messages through TCP (node.h). */

#ifndef BURST_PROTOCOL_H
#define BURST_PROTOCOL_H

#include <stdint.h>

enum { AREA_BYTES = 1 << 20 };

enum operation {
    ATTACH = 1, /* registers the file of a descriptor; result: its handle. Once more: updates a size that has grown.
                   Through TCP: `length` bytes of data with the file's name */
    READ,       /* `length` bytes at `offset` into data; result: how many */
    WRITE,      /* `length` bytes of data to `offset`; result: how many */
    APPEND,     /* `length` bytes of data to the end of the file; `offset` of the answer: that end */
    TRUNCATE,   /* to `offset` bytes */
    FLUSH,      /* result: 0 when all of the file is at least on the file level */
    SYNC,       /* result: 0 when all of the file is in the directory, and the directory's disk has it */
    BYPASS,     /* as SYNC; from now on this file is not buffered */
    SYNC_ALL,   /* as SYNC, for all files; needs no handle. The file's next SYNC or FLUSH reports an error once more */
};

/* Results that are no errno, which are below -4096. */
enum {
    UNKNOWN_HANDLE = -5000, /* attach again */
    NOT_BUFFERED = -5001,   /* use the file itself */
    FORMER_HANDLE = -5002,  /* an earlier daemon has issued it */
    OTHER_FILE = -5003,     /* the name belongs to another file, or to none */
};

struct message {
    uint32_t operation, length;
    uint64_t handle;
    int64_t offset;
    int64_t result; /* below 0: -errno, or one of the results above */
};

struct area {
    struct message message;
    uint8_t data[AREA_BYTES] __attribute__((aligned(4096)));
};

#endif
