/* What the parts of the store share.
 *
 * The store keeps two levels [robert-2021, section 2.3.1]. A write goes into the RAM cache and is then done. RAM destagers
 * write dirty data to the file level, and flash destagers write it from there to the directory. Clean data stays in a
 * level until its room is needed, or until more of the level is used than its threshold allows. The least recently used
 * block is then evicted first.
 *
 * Locks are taken in this order: attach_lock, a file's lock, a block's lock, cache.lock. A thread that holds the lock
 * of a file or a block, or a pin, does not wait for room in a level: the thread that makes room may need them. */

#ifndef BURST_STORE_H
#define BURST_STORE_H

#define _GNU_SOURCE
#include "../daemon.h"
#include "../protocol.h"

#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>

enum { FILES = 4096 };

/* Whether a block is in a level. TAKEN: a destager has taken it from the dirty ones. */
enum place { NOWHERE, CLEAN, DIRTY, TAKEN };

/* LEAVING: the buffered data is being written to the directory, after which the file is BYPASSED. */
enum mode { BUFFERED, LEAVING, BYPASSED };

/* A file that is buffered. */
struct file {
    int descriptor, place;
    uint64_t handle, device, inode, born;
    pthread_rwlock_t lock;     /* shared: to look into its blocks; exclusive: to truncate it */
    pthread_mutex_t size_lock; /* guards the next four */
    uint64_t size, stored;     /* `size` is the file's; the directory has only zeros from `stored` on */
    int error;                 /* the next fsync or close reports it */
    bool lost;                 /* the error is a failed fsync; otherwise a destager met it, and tries again */
    _Atomic enum mode mode;
    /* guarded by files_lock */
    int users;
    uint64_t used;
    /* guarded by cache.lock */
    TAILQ_HEAD(, block) blocks;
};

/* A block of a file. It exists while it is in at least one level, or pinned. */
struct block {
    /* guarded by cache.lock */
    struct file *file;
    uint64_t number;
    struct block *next; /* with the same hash */
    TAILQ_ENTRY(block) of_file, in_ram, in_flash;
    enum place ram_place, flash_place;
    int pins;
    /* guarded by `lock`; while the block has no pins, by cache.lock */
    pthread_mutex_t lock;
    pthread_cond_t written;
    bool writing; /* a flash destager is writing a copy of it to the directory */
    uint8_t *ram;
    int slot; /* in the file level; -1: none */
    uint64_t ram_valid, ram_dirty, flash_valid, flash_dirty; /* masks of pages */
};
TAILQ_HEAD(queue, block);

/* --- blocks.c: blocks, their places in the two levels, and room in these */

/* One of the two levels. Its sizes are numbers of blocks. */
struct level {
    size_t room, used, keep; /* content above `keep` blocks is evicted even though there is room for it */
    uint32_t *free;
    struct queue clean, dirty;
    pthread_cond_t is_room, is_work;
};
struct cache {
    pthread_mutex_t lock;
    struct level ram, flash;
    int error; /* errno of the last write to the directory; 0: it succeeded */
    bool ending;
};
extern struct cache cache;

/* Makes both levels, empty, as the settings say. */
void make_levels(void);
/* Finds the next run of pages in a mask, from `*first` on. Returns its length, 0 at the end. */
unsigned next_run(uint64_t mask, unsigned *first);
/* The mask of the pages from `first` to `last`. */
uint64_t page_mask(unsigned first, unsigned last);
/* Returns the block, which is made if it does not exist, and pins it: a pinned block stays. */
struct block *pin(struct file *file, uint64_t number);
void pin_again(struct block *block);
/* Pins all blocks of a file; returns their number. The caller frees `*found`. */
size_t pin_all(struct file *file, struct block ***found);
/* Returns a block only if it exists. With cache.lock. */
struct block *find_block(const struct file *file, uint64_t number);
/* Moves a block to another list of a level. With cache.lock. */
void place_in_ram(struct block *block, enum place place);
void place_in_flash(struct block *block, enum place place);
/* Unlocks and unpins a block after it has been changed: moves it to the lists that it belongs to now, and evicts clean
 * data above the thresholds. */
void release(struct block *block);
/* Take room for one block and wait until there is some. They return a frame of memory or the number of a slot; -errno
 * where no room will come, because the directory accepts no data. */
int64_t take_frame(void);
int64_t take_slot(void);
/* The address of a frame. */
uint8_t *frame_at(int64_t frame);
/* Give room back that was not used. */
void return_frame(int64_t frame);
void return_slot(int64_t slot);
/* Remembers the result of a write to the directory, 0 or an errno, and wakes the threads that wait for room. */
void note_error(struct file *file, int error);

/* --- file_level.c: the files "flash" and "journal" in the buffer's folder */

/* `buffer` is the open folder, `device` the directory's. */
void make_file_level(int buffer, uint64_t device);
void remove_file_level(void);
/* The journal's record of a slot. */
struct record *record_of(int slot);
/* Return 0 or -EIO. read_flash waits as long as the injected delays say. */
int read_flash(int slot, unsigned page, uint8_t *to, size_t bytes);
int write_flash(int slot, size_t offset, const uint8_t *from, size_t bytes);

/* --- destage.c: from memory to the file level, and from there to the directory */

/* Writes the dirty pages of a pinned block from memory to the file level, and unpins it. Returns 0 or -errno. */
int stage(struct block *block);
/* Writes the dirty pages of a pinned block from the file level to the directory, and unpins it. `copy` has room for a
 * block. Returns 0 or -errno. */
int flush(struct block *block, uint8_t *copy);
/* Starts the threads that do both all the time. */
void start_destagers(void);
/* Ends them; dirty data stays where it is. `failed`: nobody makes room any more, so threads that wait for it fail. */
void end_destagers(bool failed);

/* --- content.c: what a file contains */

/* Waits while a file is LEAVING. Returns whether it is still buffered. */
bool is_buffered(struct file *file);
/* Reads or writes the bytes from `begin` to `end` of one block. They return 0, NOT_BUFFERED or -errno. */
int64_t read_block(struct file *file, uint64_t number, size_t begin, size_t end, uint8_t *to);
int64_t write_block(struct file *file, uint64_t number, size_t begin, size_t end, const uint8_t *from);
/* Stages all of a file; `through`: and flushes it to the directory. Returns 0 or the first -errno. */
int write_down(struct file *file, bool through);
/* Writes all of a file to the directory and calls fsync there. Returns 0 or -errno. A caller that does not report the
 * error leaves it to the next caller: the system reports a failed fsync only once. */
int sync_file(struct file *file);
/* Returns the error that no caller has reported yet, as -errno, and forgets it. */
int take_error(struct file *file);
/* Whether an fsync has failed, which nobody has reported yet. */
bool has_lost(struct file *file);
/* Discards all content from `size` on. The file is locked exclusively. */
void discard_from(struct file *file, uint64_t size);

/* --- files.c: the table of files, and their handles */

/* Before all other locks: one file is added or removed at a time. */
extern pthread_mutex_t attach_lock;

void make_file_table(uint64_t device);
/* Returns the file with this handle, which stays until it is left; NULL: there is none. */
struct file *use_file(uint64_t handle);
void leave_file(struct file *file);
/* Writes the handles of all files; returns their number. */
size_t list_handles(uint64_t handles[FILES]);
/* Opens the file of a descriptor once more; -1 and errno where that fails. */
int reopen(int descriptor, int flags);
/* Writes all files to the directory, when no request is served any more. Returns whether that succeeded; prints why it
 * did not. */
bool sync_all_files(void);
/* Removes all files from the table; nothing of them is dirty. */
void forget_all_files(void);

#endif
