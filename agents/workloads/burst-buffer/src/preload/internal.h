/* What the parts of the preload library use of each other. Results are as in protocol.h, if nothing else is said. */

#ifndef BURST_PRELOAD_H
#define BURST_PRELOAD_H

#include "../protocol.h"

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

/* What a descriptor stands for: nothing known, not ours to watch, our own socket, or the handle of a file. */
enum { UNKNOWN, PLAIN, OURS, FIRST_HANDLE };
extern _Atomic uint64_t descriptors[DESCRIPTORS];
/* How often it was written to since the last flush: what may be lost with the daemon. */
extern _Atomic uint32_t unflushed[DESCRIPTORS];
/* Whether its file was buffered when the daemon was killed: others may have written what was lost. */
extern atomic_bool doubted[DESCRIPTORS];

extern char directory[PATH_MAX], buffer[PATH_MAX];
extern dev_t directory_device;
extern atomic_bool active;

/* The functions behind ours; null until they are looked for. */
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
/* Looks for them, and for what is buffered; once. */
void start(void);

/* --- connection.c */

/* Before anything is asked; whether it can be. */
bool begin_connecting(void);
/* In a process that was forked: the connection is its parent's. */
void leave_connection(void);
/* Whether this is a child that uses its parent's memory, as after vfork: it has descriptors of its own, so nothing may be
 * noted of them. */
bool is_borrowed(void);
enum { NO_DAEMON = -6000, NO_ANSWER = -6001 };
/* One request; its result. `data` is sent with WRITE and APPEND, and filled by READ. NO_DAEMON: it is gone, and has
 * done nothing of it; NO_ANSWER: it went when it had been asked. */
int64_t request(struct message *message, void *data, int descriptor);
enum { ANOTHER = 1 };
/* Without a daemon: waits until what the file level held is in the directory. 0: files may be used themselves;
 * -EIO: that has not happened, or cannot be seen, so that they are not what they should be; ANOTHER: another daemon was
 * started on the buffer since. */
int64_t wait_for_recovery(void);

/* --- preload.c */

/* What was known of a descriptor. */
void forget(int descriptor);
/* What it stands for. */
void note(int descriptor, uint64_t meaning);
bool is_ours(int descriptor);
/* After a descriptor was made from another one: the same is known of both. */
int copied(int from, int made);
/* Whether it is the directory or below it. */
bool within(int descriptor);
/* The handle of a descriptor's file, whatever is known of it. Otherwise PLAIN, or below 0 an error. */
int64_t look_up(int descriptor);
/* The same; what is known counts, unless it is a handle and `again`. */
int64_t meaning(int descriptor, bool again);
/* One request about a descriptor's file. NOT_BUFFERED: it is to be done with the file itself. */
int64_t ask(int descriptor, struct message *message, void *data);
bool watched(int descriptor);
/* Sets errno; -1. */
int64_t failed(int64_t result);
/* What the system would say of a descriptor: its flags, or -errno where it may not be used so. */
int64_t flags_for(int descriptor, bool writes);
int64_t flush_descriptor(int descriptor, uint32_t operation);
/* Before a file is used by means that are not followed. 0, or -errno. */
int64_t bypass(int descriptor);
/* The same of a descriptor that was just opened, whatever its number stood for. */
int64_t bypass_anew(int descriptor);

/* --- hooks */

/* All files of the daemon, whoever has written them. 0, or -errno. */
int64_t sync_daemon(void);
/* After a file was opened with O_TRUNC: what is buffered of it goes, too. 0, or -errno: it would come back. */
int64_t truncated(int descriptor);
/* Before a descriptor is closed; -errno of what was written to it. */
int64_t closing(int descriptor);
/* As close, of all that is open here, but nobody can be told an error. */
void flush_all(void);

#pragma GCC visibility pop
#endif
