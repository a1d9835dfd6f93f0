/* What the parts of the preload library share. Results are as in protocol.h unless stated otherwise. */

#ifndef BURST_PRELOAD_H
#define BURST_PRELOAD_H

#include "../node.h"

#include <limits.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))
_Static_assert(sizeof(off_t) == 8, "functions are taken for their 64-bit twins");
#pragma GCC visibility push(hidden)

enum { DESCRIPTORS = 1 << 16 };

/* The meaning of a descriptor: unknown, not watched, our own socket, or the handle of a file. */
enum { UNKNOWN, PLAIN, OURS, FIRST_HANDLE };
extern _Atomic uint64_t descriptors[DESCRIPTORS];
/* How often a descriptor was written to since its last flush; this data may be lost with the daemon. */
extern _Atomic uint32_t unflushed[DESCRIPTORS];
/* Whether its file was buffered when the daemon was killed: other processes may have written data that was lost. */
extern atomic_bool doubted[DESCRIPTORS];

/* The daemon's folder on this host, or the data node; its length is 0 if there is none. */
extern char directory[PATH_MAX], buffer[PATH_MAX];
extern struct node node;
/* Whether the data node is used. */
extern bool remote;
extern dev_t directory_device;
extern atomic_bool active;

/* The functions that ours replace; null until `start` has found them. */
struct real {
    int (*fcntl)(int, int, ...);
    FILE *(*fopen)(const char *, const char *);
    FILE *(*freopen)(const char *, const char *, FILE *);
    FILE *(*fdopen)(int, const char *);
    int (*fclose)(FILE *);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                       char *const[], char *const[]);
    int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                        char *const[], char *const[]);
};
extern struct real real;
/* Finds them, and the directory that is buffered; once. */
void start(void);

/* --- connection.c */

/* Prepares for requests. Returns whether a daemon is configured. */
bool begin_connecting(void);
/* In a child process after fork: leaves the connection to its parent. */
void leave_connection(void);
/* Whether this is a child that uses its parent's memory, as after vfork. It has separate descriptors, so it must record
 * nothing about them. */
bool is_borrowed(void);
enum { NO_DAEMON = -6000, NO_ANSWER = -6001 };
/* Sends one request; returns its result. `data` is sent with WRITE and APPEND, and filled by READ. NO_DAEMON: the
 * daemon is gone and has not received the request; NO_ANSWER: it has received it, and is gone. */
int64_t request(struct message *message, void *data, int descriptor);
enum { ANOTHER = 1 };
/* Without a daemon: waits until the data of the file level is in the directory. 0: files may be used without a buffer;
 * -EIO: this has not happened, or cannot be seen, as on another host, so that files may lack data; ANOTHER: another
 * daemon has been started on the buffer since, or the data node can be reached again. */
int64_t wait_for_recovery(void);

/* --- preload.c */

/* Forgets all that is known about a descriptor. */
void forget(int descriptor);
/* Records the meaning of a descriptor. */
void note(int descriptor, uint64_t meaning);
bool is_ours(int descriptor);
/* Copies what is known about a descriptor to a copy of it. Returns `made`. */
int copied(int from, int made);
/* Writes the path of a descriptor's file. Returns its part below the directory, without a slash; NULL if the file is
 * not below it. */
const char *name_below(int descriptor, char path[PATH_MAX]);
/* Whether a descriptor's file is the directory or below it. */
bool within(int descriptor);
/* Asks the daemon for the handle of a descriptor's file. Returns PLAIN if there is none, or an error below 0. */
int64_t look_up(int descriptor);
/* Returns the meaning of a descriptor; asks the daemon if it is unknown, or if it is a handle and `again`. */
int64_t meaning(int descriptor, bool again);
/* Sends one request about a descriptor's file. NOT_BUFFERED: the caller must use the file itself. */
int64_t ask(int descriptor, struct message *message, void *data);
bool watched(int descriptor);
/* Sets errno; returns -1. */
int64_t failed(int64_t result);
/* Returns the flags of a descriptor, or -errno if it may not be read or written. */
int64_t flags_for(int descriptor, bool writes);
int64_t flush_descriptor(int descriptor, uint32_t operation);
/* Ends the buffering of a file, before a use that the library does not see. Returns 0 or -errno. */
int64_t bypass(int descriptor);
/* The same for a descriptor that was just opened, whatever its number meant before. */
int64_t bypass_new(int descriptor);

/* --- hooks */

/* Syncs all files of the daemon, whichever process has written them. Returns 0 or -errno. */
int64_t sync_daemon(void);
/* Discards the buffered data of a file that was opened with O_TRUNC; otherwise it would come back. Returns 0 or
 * -errno. */
int64_t truncated(int descriptor);
/* Flushes a descriptor before it is closed. Returns 0, or -errno of the data that was written to it. */
int64_t closing(int descriptor);

#pragma GCC visibility pop
#endif
