/* Keeps the two levels (thesis, section 2.3.1). A write goes into the RAM cache and is done; RAM destagers bring it to
 * the file level, flash destagers from there to the directory. What is clean stays where it is until its room is
 * needed, or more than the threshold of its level is used: then the least recently used goes first.
 *
 * Locks are taken in this order: a file's, a block's, cache.lock. Nobody who has a file's or a block's lock, or a pin,
 * waits for room in a level: whoever makes room may need them. */

#define _GNU_SOURCE
#include "daemon.h"
#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 4096, FREE_DESCRIPTORS = 256 };

/* Where a block is in one of the levels. TAKEN: from the dirty ones, by a destager. */
enum place { NOWHERE, CLEAN, DIRTY, TAKEN };

/* LEAVING: what is buffered is being brought to the directory, so that the file is BYPASSED from then on. */
enum mode { BUFFERED, LEAVING, BYPASSED };

/* A file that is buffered. */
struct file {
    int descriptor, place;
    uint64_t handle, device, inode, born;
    pthread_rwlock_t lock;     /* shared: for whoever looks into its blocks; exclusive: truncation */
    pthread_mutex_t size_lock; /* guards the next four */
    uint64_t size, stored;     /* the file's; the directory has nothing but zeros from `stored` on */
    int error;                 /* to be told at the next fsync or close */
    bool lost;                 /* by an fsync that failed; otherwise a destager has met it, and tries again */
    _Atomic enum mode mode;
    /* guarded by files_lock */
    int users;
    uint64_t used;
    /* guarded by cache.lock */
    TAILQ_HEAD(, block) blocks;
};

/* A block of a file that is in one level at least, or looked at. */
struct block {
    /* guarded by cache.lock */
    struct file *file;
    uint64_t number;
    struct block *next; /* of those with the same hash */
    TAILQ_ENTRY(block) of_file, in_ram, in_flash;
    enum place ram_place, flash_place;
    int pins;
    /* guarded by `lock`; of a block without pins, by cache.lock */
    pthread_mutex_t lock;
    pthread_cond_t written;
    bool writing; /* a flash destager has a copy of what is to be in the directory */
    uint8_t *ram;
    int slot; /* in the file level; -1: none */
    uint64_t ram_valid, ram_dirty, flash_valid, flash_dirty; /* pages */
};
TAILQ_HEAD(queue, block);

static struct file *files[FILES];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;  /* guards `files` */
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER; /* before all others: one file comes or goes at a time */
static uint64_t files_clock, last_handle, first_handle, directory_device;
static size_t files_most;

/* One of the two levels, both counted in blocks. */
struct level {
    size_t room, used, keep; /* keep: more than so many are not kept for their content alone */
    uint32_t *free;
    struct queue clean, dirty;
    pthread_cond_t is_room, is_work;
};
static struct {
    pthread_mutex_t lock;
    struct level ram, flash;
    struct block **table;
    size_t mask;
    int error; /* of the directory, the last time it was written to; 0: none */
    bool ending;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t *memory;
static int flash, buffer_folder;
static uint8_t *journal;
static pthread_t *destagers;
static size_t destager_count;

static struct record *record_of(int slot)
{
    return (struct record *)(journal + JOURNAL_HEADER) + slot;
}

/* The next run of pages in a mask, from `*first` on; their number, 0 at the end. */
static unsigned run(uint64_t mask, unsigned *first)
{
    mask = *first < PAGES ? mask >> *first << *first : 0;
    if (!mask)
        return 0;
    *first = (unsigned)__builtin_ctzll(mask);
    uint64_t gaps = ~(mask >> *first);
    unsigned length = gaps ? (unsigned)__builtin_ctzll(gaps) : PAGES;
    return length < PAGES - *first ? length : PAGES - *first;
}

static uint64_t pages(unsigned first, unsigned last)
{
    return UINT64_MAX >> (PAGES - 1 - (last - first)) << first;
}

/* --- blocks and room */

static struct block **bucket(const struct file *file, uint64_t number)
{
    uint64_t hash = (file->handle * 0x9e3779b97f4a7c15 + number) * 0xff51afd7ed558ccd;
    return &cache.table[(hash >> 32) & cache.mask];
}

/* The block, made if it is not there; it stays while it is pinned. */
static struct block *pin(struct file *file, uint64_t number)
{
    pthread_mutex_lock(&cache.lock);
    struct block **head = bucket(file, number), *block = *head;
    while (block && (block->file != file || block->number != number))
        block = block->next;
    if (!block) {
        block = calloc(1, sizeof *block);
        if (!block)
            die("get memory");
        block->file = file;
        block->number = number;
        block->slot = -1;
        pthread_mutex_init(&block->lock, NULL);
        pthread_cond_init(&block->written, NULL);
        block->next = *head;
        *head = block;
        TAILQ_INSERT_TAIL(&file->blocks, block, of_file);
    }
    block->pins++;
    pthread_mutex_unlock(&cache.lock);
    return block;
}

/* A block that is nowhere and pinned by nobody goes. With cache.lock. */
static void vanish(struct block *block)
{
    struct block **link = bucket(block->file, block->number);
    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    TAILQ_REMOVE(&block->file->blocks, block, of_file);
    pthread_mutex_destroy(&block->lock);
    pthread_cond_destroy(&block->written);
    free(block);
}

static void give_frame(uint8_t *frame)
{
    cache.ram.free[cache.ram.room - cache.ram.used--] = (uint32_t)((size_t)(frame - memory) / BLOCK);
    pthread_cond_signal(&cache.ram.is_room);
}

static void give_slot(int slot)
{
    atomic_store(&record_of(slot)->mask, 0);
    cache.flash.free[cache.flash.room - cache.flash.used--] = (uint32_t)slot;
    pthread_cond_signal(&cache.flash.is_room);
}

/* Into the list of a level that it belongs to now. With cache.lock. */
static void place_in_ram(struct block *block, enum place place)
{
    if (block->ram_place == CLEAN)
        TAILQ_REMOVE(&cache.ram.clean, block, in_ram);
    else if (block->ram_place == DIRTY && place != DIRTY)
        TAILQ_REMOVE(&cache.ram.dirty, block, in_ram);
    if (place == CLEAN) {
        TAILQ_INSERT_TAIL(&cache.ram.clean, block, in_ram);
        pthread_cond_signal(&cache.ram.is_room);
    } else if (place == DIRTY && block->ram_place != DIRTY) {
        TAILQ_INSERT_TAIL(&cache.ram.dirty, block, in_ram);
        pthread_cond_signal(&cache.ram.is_work);
    }
    block->ram_place = place;
}

static void place_in_flash(struct block *block, enum place place)
{
    if (block->flash_place == CLEAN)
        TAILQ_REMOVE(&cache.flash.clean, block, in_flash);
    else if (block->flash_place == DIRTY && place != DIRTY)
        TAILQ_REMOVE(&cache.flash.dirty, block, in_flash);
    if (place == CLEAN) {
        TAILQ_INSERT_TAIL(&cache.flash.clean, block, in_flash);
        pthread_cond_signal(&cache.flash.is_room);
    } else if (place == DIRTY && block->flash_place != DIRTY) {
        TAILQ_INSERT_TAIL(&cache.flash.dirty, block, in_flash);
        pthread_cond_signal(&cache.flash.is_work);
    }
    block->flash_place = place;
}

static bool evict_from_ram(void);
static bool evict_from_flash(void);

/* Puts a locked block where it belongs after what was done to it, unlocks and unpins it. Clean data above the thresholds
 * goes. */
static void release(struct block *block)
{
    pthread_mutex_lock(&cache.lock);
    if (block->ram && !block->ram_valid) {
        give_frame(block->ram);
        block->ram = NULL;
    }
    if (block->slot >= 0 && !block->flash_valid && !block->writing) {
        give_slot(block->slot);
        block->slot = -1;
    }
    if (block->ram_place != TAKEN)
        place_in_ram(block, !block->ram ? NOWHERE : block->ram_dirty ? DIRTY : CLEAN);
    if (block->flash_place != TAKEN)
        place_in_flash(block, block->slot < 0 ? NOWHERE : block->flash_dirty || block->writing ? DIRTY : CLEAN);
    pthread_mutex_unlock(&block->lock);
    block->pins--;
    if (!block->pins) {
        if (!block->ram && block->slot < 0)
            vanish(block);
        else { /* who waits for room may have passed it over */
            pthread_cond_signal(&cache.ram.is_room);
            pthread_cond_signal(&cache.flash.is_room);
        }
    }
    while (cache.ram.used > cache.ram.keep && evict_from_ram())
        ;
    while (cache.flash.used > cache.flash.keep && evict_from_flash())
        ;
    pthread_mutex_unlock(&cache.lock);
}

/* Frees the room of the clean block that was not used for longest. With cache.lock. */
static bool evict_from_ram(void)
{
    struct block *block;
    TAILQ_FOREACH(block, &cache.ram.clean, in_ram)
        if (!block->pins)
            break;
    if (!block)
        return false;
    place_in_ram(block, NOWHERE);
    give_frame(block->ram);
    block->ram = NULL;
    block->ram_valid = 0;
    if (block->slot < 0)
        vanish(block);
    return true;
}

static bool evict_from_flash(void)
{
    struct block *block;
    TAILQ_FOREACH(block, &cache.flash.clean, in_flash)
        if (!block->pins)
            break;
    if (!block)
        return false;
    place_in_flash(block, NOWHERE);
    give_slot(block->slot);
    block->slot = -1;
    block->flash_valid = 0;
    if (!block->ram)
        vanish(block);
    return true;
}

/* Takes room for a block: its number. -errno where there is none and the directory takes nothing. */
static int64_t take(struct level *level, bool (*evict)(void), atomic_uint_fast64_t *waits)
{
    int64_t taken;
    bool waited = false;
    pthread_mutex_lock(&cache.lock);
    for (;;) {
        while (level->used >= level->keep && evict())
            ;
        if (level->used < level->room) {
            taken = level->free[level->room - ++level->used];
            break;
        }
        if (cache.error) {
            taken = -cache.error;
            break;
        }
        waited = true;
        pthread_cond_wait(&level->is_room, &cache.lock);
    }
    pthread_mutex_unlock(&cache.lock);
    if (waited)
        atomic_fetch_add(waits, 1);
    return taken;
}

/* What the directory said the last time. Who waits for room is told. */
static void note_error(struct file *file, int error)
{
    if (error) {
        pthread_mutex_lock(&file->size_lock);
        file->error = error;
        pthread_mutex_unlock(&file->size_lock);
    }
    pthread_mutex_lock(&cache.lock);
    if (cache.error != error) {
        cache.error = error;
        pthread_cond_broadcast(&cache.ram.is_room);
        pthread_cond_broadcast(&cache.flash.is_room);
    }
    pthread_mutex_unlock(&cache.lock);
}

/* --- between the levels */

static int read_flash(int slot, unsigned page, uint8_t *to, size_t bytes)
{
    device_wait(&file_level, bytes);
    ssize_t got = pread(flash, to, bytes, (off_t)slot * BLOCK + (off_t)page * PAGE);
    return got == (ssize_t)bytes ? 0 : -EIO;
}

/* Brings what is dirty in memory to the file level. The block is pinned, and is not when this returns. */
static int stage(struct block *block)
{
    int64_t spare = -1;
    pthread_mutex_lock(&block->lock);
    while (block->ram_dirty && block->slot < 0 && spare < 0) {
        pthread_mutex_unlock(&block->lock);
        spare = take(&cache.flash, evict_from_flash, &counters->flash_waits);
        pthread_mutex_lock(&block->lock);
        if (spare < 0)
            break;
    }
    int error = block->ram_dirty && block->slot < 0 && spare < 0 ? (int)spare : 0;
    if (block->ram_dirty && !error) {
        if (block->slot < 0) {
            block->slot = (int)spare;
            spare = -1;
        }
        unsigned first = 0, length;
        uint64_t staged = 0;
        for (; (length = run(block->ram_dirty, &first)) > 0 && !error; first += length) {
            size_t bytes = (size_t)length * PAGE;
            off_t at = (off_t)block->slot * BLOCK + (off_t)first * PAGE;
            device_wait(&file_level, bytes);
            if (pwrite(flash, block->ram + (size_t)first * PAGE, bytes, at) != (ssize_t)bytes)
                error = -EIO;
            staged += bytes;
        }
        if (!error) {
            atomic_fetch_add(&counters->staged_bytes, staged);
            block->flash_valid |= block->ram_dirty;
            block->flash_dirty |= block->ram_dirty;
            block->ram_dirty = 0;
            struct record *record = record_of(block->slot);
            record->inode = block->file->inode;
            record->born = block->file->born;
            record->number = block->number;
            atomic_store(&record->mask, block->flash_valid);
        }
    }
    if (spare >= 0) {
        pthread_mutex_lock(&cache.lock);
        give_slot((int)spare);
        pthread_mutex_unlock(&cache.lock);
    }
    release(block);
    return error;
}

/* Brings what is dirty in the file level to the directory. The block is pinned, and is not when this returns. */
static int flush(struct block *block, uint8_t *copy)
{
    struct file *file = block->file;
    pthread_rwlock_rdlock(&file->lock);
    pthread_mutex_lock(&block->lock);
    while (block->writing)
        pthread_cond_wait(&block->written, &block->lock);
    uint64_t mask = block->flash_dirty;
    int64_t error = 0;
    unsigned first = 0, length;
    for (; (length = run(mask, &first)) > 0 && !error; first += length)
        error = read_flash(block->slot, first, copy + (size_t)first * PAGE, (size_t)length * PAGE);
    if (mask && !error) {
        block->flash_dirty = 0;
        block->writing = true;
        pthread_mutex_unlock(&block->lock);
        for (first = 0; (length = run(mask, &first)) > 0 && error >= 0; first += length) {
            uint64_t begin = block->number * BLOCK + (uint64_t)first * PAGE, end = begin + (uint64_t)length * PAGE;
            pthread_mutex_lock(&file->size_lock);
            end = end < file->size ? end : file->size;
            if (end > file->stored)
                file->stored = end;
            pthread_mutex_unlock(&file->size_lock);
            if (begin < end) {
                error = backend_write(file->descriptor, copy + (size_t)first * PAGE, end - begin, begin);
                atomic_fetch_add(&counters->flushes, 1);
                atomic_fetch_add(&counters->flushed_bytes, end - begin);
            }
        }
        error = error < 0 ? error : 0;
        note_error(file, (int)-error);
        pthread_mutex_lock(&block->lock);
        block->writing = false;
        if (error)
            block->flash_dirty |= mask;
        pthread_cond_broadcast(&block->written);
    }
    release(block);
    pthread_rwlock_unlock(&file->lock);
    return (int)error;
}

/* The longest dirty block of a level, pinned; NULL when all ends. */
static struct block *take_dirty(struct level *level, bool ram)
{
    struct block *block;
    pthread_mutex_lock(&cache.lock);
    while (!(block = TAILQ_FIRST(&level->dirty)) && !cache.ending)
        pthread_cond_wait(&level->is_work, &cache.lock);
    if (cache.ending)
        block = NULL;
    if (block) {
        block->pins++;
        if (ram)
            place_in_ram(block, TAKEN);
        else
            place_in_flash(block, TAKEN);
    }
    pthread_mutex_unlock(&cache.lock);
    return block;
}

/* The block behind one that is pinned, taken and pinned, if it waits for the directory, too. */
static struct block *take_following(const struct block *block)
{
    pthread_mutex_lock(&cache.lock);
    struct block *next = *bucket(block->file, block->number + 1);
    while (next && (next->file != block->file || next->number != block->number + 1))
        next = next->next;
    next = next && next->flash_place == DIRTY ? next : NULL;
    if (next) {
        next->pins++;
        place_in_flash(next, TAKEN);
    }
    pthread_mutex_unlock(&cache.lock);
    return next;
}

/* A block that was taken goes where it belongs and is unpinned. */
static void put_back(struct block *block, bool ram)
{
    pthread_mutex_lock(&block->lock);
    pthread_mutex_lock(&cache.lock);
    if (ram)
        block->ram_place = NOWHERE;
    else
        block->flash_place = NOWHERE;
    pthread_mutex_unlock(&cache.lock);
    release(block);
}

static void pin_again(struct block *block)
{
    pthread_mutex_lock(&cache.lock);
    block->pins++;
    pthread_mutex_unlock(&cache.lock);
}

/* After an error: the next try is a little later, unless all ends. */
static void pause_after(int error)
{
    if (error)
        usleep(50000);
}

static void *destage_ram(void *unused)
{
    for (struct block *block; (block = take_dirty(&cache.ram, true));) {
        pin_again(block);
        int error = stage(block);
        put_back(block, true);
        pause_after(error);
    }
    return unused;
}

/* In the order in which they became dirty, but a file's following blocks at once: directories like long writes. */
static void *destage_flash(void *unused)
{
    uint8_t *copy = malloc(BLOCK);
    if (!copy)
        die("get memory");
    for (struct block *block = NULL; block || (block = take_dirty(&cache.flash, false));) {
        pin_again(block);
        int error = flush(block, copy);
        struct block *next = error ? NULL : take_following(block);
        put_back(block, false);
        pause_after(error);
        block = next;
    }
    free(copy);
    return unused;
}

/* --- reading and writing */

/* Waits while a file is leaving. Whether it is still buffered then. */
static bool is_buffered(struct file *file)
{
    while (atomic_load(&file->mode) == LEAVING)
        usleep(1000);
    return atomic_load(&file->mode) == BUFFERED;
}

/* A block with memory, it and its file locked. NULL where there is no room and will be none, or the file is no longer
 * buffered: `error`. */
static struct block *hold(struct file *file, uint64_t number, int64_t *error)
{
    int64_t frame = -1;
    for (;;) {
        struct block *block = pin(file, number);
        pthread_rwlock_rdlock(&file->lock);
        pthread_mutex_lock(&block->lock);
        bool leaves = atomic_load(&file->mode) != BUFFERED;
        if (!block->ram && frame >= 0 && !leaves) {
            block->ram = memory + (size_t)frame * BLOCK;
            block->ram_valid = block->ram_dirty = 0;
            frame = -1;
        }
        if (frame >= 0 && (block->ram || leaves)) {
            pthread_mutex_lock(&cache.lock);
            give_frame(memory + (size_t)frame * BLOCK);
            pthread_mutex_unlock(&cache.lock);
            frame = -1;
        }
        if (block->ram && !leaves)
            return block;
        release(block);
        pthread_rwlock_unlock(&file->lock);
        if (leaves && is_buffered(file))
            continue;
        if (leaves) {
            *error = NOT_BUFFERED;
            return NULL;
        }
        frame = take(&cache.ram, evict_from_ram, &counters->ram_waits);
        if (frame < 0) {
            *error = frame;
            return NULL;
        }
    }
}

static void let_go(struct block *block)
{
    struct file *file = block->file;
    release(block);
    pthread_rwlock_unlock(&file->lock);
}

/* Brings pages into the memory of a block that is held; from the file level all that it has of the block, since memory
 * is given by the block: otherwise a cache that is read at random would be full of blocks with a page in each. */
static int load(struct block *block, uint64_t wanted)
{
    struct file *file = block->file;
    atomic_fetch_add(&counters->ram_hits, (uint64_t)__builtin_popcountll(wanted & block->ram_valid));
    uint64_t missing = wanted & ~block->ram_valid, hits = missing & block->flash_valid;
    uint64_t below = hits ? block->flash_valid & ~block->ram_valid : 0;
    unsigned first = 0, length;
    atomic_fetch_add(&counters->flash_hits, (uint64_t)__builtin_popcountll(hits));
    for (; (length = run(below, &first)) > 0; first += length) {
        if (read_flash(block->slot, first, block->ram + (size_t)first * PAGE, (size_t)length * PAGE) != 0)
            return -EIO;
        block->ram_valid |= pages(first, first + length - 1);
    }
    missing &= ~hits;
    for (first = 0; (length = run(missing, &first)) > 0; first += length) {
        uint8_t *to = block->ram + (size_t)first * PAGE;
        uint64_t begin = block->number * BLOCK + (uint64_t)first * PAGE;
        pthread_mutex_lock(&file->size_lock);
        uint64_t stored = file->stored;
        pthread_mutex_unlock(&file->size_lock);
        int64_t got = 0;
        if (begin < stored) {
            uint64_t bytes = (uint64_t)length * PAGE;
            got = backend_read(file->descriptor, to, bytes < stored - begin ? bytes : stored - begin, begin);
            atomic_fetch_add(&counters->backend_reads, length);
        }
        if (got < 0)
            return (int)got;
        memset(to + got, 0, (size_t)length * PAGE - (size_t)got);
        block->ram_valid |= pages(first, first + length - 1);
    }
    return 0;
}

/* Part of a block: from `begin` to `end` of its bytes. */
static int64_t read_block(struct file *file, uint64_t number, size_t begin, size_t end, uint8_t *to)
{
    int64_t error = 0;
    struct block *block = hold(file, number, &error);
    if (!block)
        return error;
    error = load(block, pages((unsigned)(begin / PAGE), (unsigned)((end - 1) / PAGE)));
    if (!error)
        memcpy(to, block->ram + begin, end - begin);
    let_go(block);
    return error;
}

static int64_t write_block(struct file *file, uint64_t number, size_t begin, size_t end, const uint8_t *from)
{
    int64_t error = 0;
    struct block *block = hold(file, number, &error);
    if (!block)
        return error;
    unsigned first = (unsigned)(begin / PAGE), last = (unsigned)((end - 1) / PAGE);
    uint64_t partly = 0; /* pages of which something stays */
    if (begin % PAGE)
        partly |= pages(first, first);
    if (end % PAGE)
        partly |= pages(last, last);
    error = partly ? load(block, partly) : 0;
    if (!error) {
        memcpy(block->ram + begin, from, end - begin);
        block->ram_valid |= pages(first, last);
        block->ram_dirty |= pages(first, last);
    }
    let_go(block);
    return error;
}

/* --- files */

static int reopen(int descriptor, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, flags | O_CLOEXEC);
}

bool store_gave(uint64_t handle)
{
    return handle >= first_handle;
}

static struct file *use(uint64_t handle)
{
    struct file *file = NULL;
    pthread_mutex_lock(&files_lock);
    size_t place = handle % FILES;
    if (files[place] && files[place]->handle == handle) {
        file = files[place];
        file->users++;
        file->used = ++files_clock;
    }
    pthread_mutex_unlock(&files_lock);
    return file;
}

static void done_with(struct file *file)
{
    pthread_mutex_lock(&files_lock);
    file->users--;
    pthread_mutex_unlock(&files_lock);
}

/* All blocks of a file, pinned; their number. */
static size_t pin_all(struct file *file, struct block ***found)
{
    size_t count = 0;
    struct block *block;
    pthread_mutex_lock(&cache.lock);
    TAILQ_FOREACH(block, &file->blocks, of_file)
        count++;
    *found = malloc((count + 1) * sizeof **found);
    if (!*found)
        die("get memory");
    count = 0;
    TAILQ_FOREACH(block, &file->blocks, of_file) {
        block->pins++;
        (*found)[count++] = block;
    }
    pthread_mutex_unlock(&cache.lock);
    return count;
}

/* What has gone wrong since it was asked last. */
static int take_error(struct file *file)
{
    pthread_mutex_lock(&file->size_lock);
    int error = file->error;
    file->error = 0;
    file->lost = false;
    pthread_mutex_unlock(&file->size_lock);
    return -error;
}

/* Stages all of a file, or brings all of it to the directory (`through`). */
static int bring_down(struct file *file, bool through)
{
    uint8_t *copy = through ? malloc(BLOCK) : NULL;
    if (through && !copy)
        die("get memory");
    int error = 0;
    for (int level = 0; level <= through; level++) {
        struct block **found;
        size_t count = pin_all(file, &found);
        /* one after the other: pins are not kept while room is waited for, which those pinned might be */
        uint64_t *numbers = malloc((count + 1) * sizeof *numbers);
        if (!numbers)
            die("get memory");
        for (size_t i = 0; i < count; i++) {
            pthread_mutex_lock(&found[i]->lock);
            numbers[i] = found[i]->number;
            release(found[i]);
        }
        for (size_t i = 0; i < count; i++) {
            struct block *block = pin(file, numbers[i]);
            int failed = level ? flush(block, copy) : stage(block);
            error = error ? error : failed;
        }
        free(numbers);
        free(found);
    }
    free(copy);
    return error;
}

/* Brings all of a file to the directory, and that to its disk. Who does not tell the error leaves it to the next who
 * asks: the system tells that an fsync has failed only once. */
static int sync_file(struct file *file)
{
    if (atomic_load(&file->mode) == BYPASSED)
        return 0;
    int error = bring_down(file, true);
    /* EBADF: another thread has bypassed it meanwhile, when all was there */
    if (!error && fsync(file->descriptor) != 0 && errno != EBADF) {
        error = -errno;
        pthread_mutex_lock(&file->size_lock);
        file->error = -error;
        file->lost = true;
        pthread_mutex_unlock(&file->size_lock);
    }
    return error;
}

static bool has_lost(struct file *file)
{
    pthread_mutex_lock(&file->size_lock);
    bool lost = file->lost;
    pthread_mutex_unlock(&file->size_lock);
    return lost;
}

/* Forgets all content from `size` on. The file is locked exclusively. */
static void cut(struct file *file, uint64_t size)
{
    struct block **found;
    size_t count = pin_all(file, &found);
    for (size_t i = 0; i < count; i++) {
        struct block *block = found[i];
        uint64_t begin = block->number * BLOCK;
        pthread_mutex_lock(&block->lock);
        size_t left = size <= begin ? 0 : size - begin < BLOCK ? (size_t)(size - begin) : BLOCK;
        if (left < BLOCK) {
            uint64_t kept = left ? pages(0, (unsigned)((left - 1) / PAGE)) : 0;
            size_t rest = (PAGE - left % PAGE) % PAGE; /* of the last page that is kept */
            block->ram_valid &= kept;
            block->ram_dirty &= kept;
            block->flash_valid &= kept;
            block->flash_dirty &= kept;
            if (block->ram && rest)
                memset(block->ram + left, 0, rest);
            if (block->slot >= 0) {
                static const uint8_t zeros[PAGE];
                atomic_store(&record_of(block->slot)->mask, block->flash_valid);
                if (rest && pwrite(flash, zeros, rest, (off_t)block->slot * BLOCK + (off_t)left) < 0)
                    die("write to the file level");
            }
        }
        release(block);
    }
    free(found);
}

static void forget_file(struct file *file)
{
    pthread_rwlock_wrlock(&file->lock);
    cut(file, 0);
    pthread_rwlock_unlock(&file->lock);
    for (bool empty = false; !empty;) { /* a destager may still be about to find out that it has nothing to do */
        pthread_mutex_lock(&cache.lock);
        empty = TAILQ_EMPTY(&file->blocks);
        pthread_mutex_unlock(&cache.lock);
        if (!empty)
            usleep(100);
    }
    close(file->descriptor);
    pthread_rwlock_destroy(&file->lock);
    pthread_mutex_destroy(&file->size_lock);
    free(file);
}

/* A place for another file. With attach_lock. -1: none, all are in use or cannot be written. */
static int free_place(void)
{
    for (size_t tries = 0; tries < files_most; tries++) {
        struct file *oldest = NULL;
        pthread_mutex_lock(&files_lock);
        for (size_t i = 0; i < files_most; i++) {
            if (!files[i]) {
                pthread_mutex_unlock(&files_lock);
                return (int)i;
            }
            if (!files[i]->users && (!oldest || files[i]->used < oldest->used))
                oldest = files[i];
        }
        if (oldest) {
            files[oldest->place] = NULL; /* out of reach; who attaches it again waits for us */
            pthread_mutex_unlock(&files_lock);
            if (sync_file(oldest) == 0 && !has_lost(oldest)) {
                int place = oldest->place;
                forget_file(oldest);
                return place;
            }
            pthread_mutex_lock(&files_lock);
            oldest->used = ++files_clock;
            files[oldest->place] = oldest;
        }
        pthread_mutex_unlock(&files_lock);
        if (!oldest)
            break;
    }
    return -1;
}

/* Whether a file has no name any more, is used by nobody now and has nothing to be written. One that is bypassed has to
 * stay known: it may be mapped. With files_lock. */
static bool is_given_up(struct file *file)
{
    struct stat found;
    if (file->users || atomic_load(&file->mode) != BUFFERED || fstat(file->descriptor, &found) != 0 || found.st_nlink)
        return false;
    bool clean = true;
    struct block *block;
    pthread_mutex_lock(&cache.lock);
    TAILQ_FOREACH(block, &file->blocks, of_file)
        clean &= !block->pins && block->ram_place != DIRTY && block->flash_place != DIRTY;
    pthread_mutex_unlock(&cache.lock);
    return clean;
}

/* Forgets files that were deleted, whose room the directory has back only when we close them. Who has one open still
 * attaches it again. With attach_lock. */
static void forget_deleted(void)
{
    for (size_t i = 0; i < files_most; i++) {
        pthread_mutex_lock(&files_lock);
        struct file *file = files[i] && is_given_up(files[i]) ? files[i] : NULL;
        if (file)
            files[i] = NULL;
        pthread_mutex_unlock(&files_lock);
        if (file && sync_file(file) == 0 && !has_lost(file)) {
            forget_file(file);
        } else if (file) {
            pthread_mutex_lock(&files_lock);
            files[i] = file;
            pthread_mutex_unlock(&files_lock);
        }
    }
}

static struct file *find_file(const struct stat *found)
{
    struct file *file = NULL;
    pthread_mutex_lock(&files_lock);
    for (size_t i = 0; i < files_most && !file; i++)
        if (files[i] && files[i]->device == found->st_dev && files[i]->inode == found->st_ino)
            file = files[i];
    if (file) {
        file->users++;
        file->used = ++files_clock;
    }
    pthread_mutex_unlock(&files_lock);
    return file;
}

static struct file *make_file(int descriptor, const struct stat *found, int64_t *error)
{
    int own = reopen(descriptor, O_RDWR);
    if (own < 0) { /* not ours to write: whoever may, does it without us */
        *error = NOT_BUFFERED;
        return NULL;
    }
    int place = free_place();
    struct file *file = place < 0 ? NULL : calloc(1, sizeof *file);
    if (!file) {
        close(own);
        *error = -ENFILE;
        return NULL;
    }
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* or truncation might never have its turn */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&file->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    pthread_mutex_init(&file->size_lock, NULL);
    TAILQ_INIT(&file->blocks);
    file->descriptor = own;
    file->place = place;
    file->device = found->st_dev;
    file->inode = found->st_ino;
    file->born = born(own);
    file->size = file->stored = (uint64_t)found->st_size;
    file->users = 1;
    pthread_mutex_lock(&files_lock);
    last_handle += FILES;
    file->handle = last_handle + (uint64_t)place;
    file->used = ++files_clock;
    files[place] = file;
    pthread_mutex_unlock(&files_lock);
    return file;
}

int64_t store_attach(int descriptor)
{
    struct stat found;
    if (fstat(descriptor, &found) != 0)
        return -errno;
    if (!S_ISREG(found.st_mode) || found.st_dev != directory_device)
        return NOT_BUFFERED;
    int64_t result = 0;
    pthread_mutex_lock(&attach_lock);
    struct file *file = find_file(&found);
    if (!file) {
        forget_deleted();
        file = make_file(descriptor, &found, &result);
    } else { /* it may have been lengthened by posix_fallocate */
        pthread_mutex_lock(&file->size_lock);
        if (fstat(descriptor, &found) == 0 && (uint64_t)found.st_size > file->size)
            file->size = (uint64_t)found.st_size;
        pthread_mutex_unlock(&file->size_lock);
    }
    if (file) {
        result = atomic_load(&file->mode) == BYPASSED ? NOT_BUFFERED : (int64_t)file->handle;
        done_with(file);
    }
    pthread_mutex_unlock(&attach_lock);
    return result;
}

/* Makes the file long enough for a write; in the directory, too, where everybody sees its size. */
static int64_t lengthen(struct file *file, uint64_t *offset, size_t bytes, bool append)
{
    int64_t error = 0;
    pthread_mutex_lock(&file->size_lock);
    if (append)
        *offset = file->size;
    if (*offset + bytes > file->size) {
        if (ftruncate(file->descriptor, (off_t)(*offset + bytes)) != 0)
            error = -errno;
        else
            file->size = *offset + bytes;
    }
    pthread_mutex_unlock(&file->size_lock);
    return error;
}

static int64_t write_unbuffered(const struct file *file, const uint8_t *from, size_t bytes, uint64_t offset)
{
    int descriptor = reopen(file->descriptor, O_WRONLY);
    int64_t result = descriptor < 0 ? -errno : backend_write(descriptor, from, bytes, offset);
    if (descriptor >= 0)
        close(descriptor);
    return result < 0 ? result : 0;
}

static int64_t write_file(struct file *file, uint64_t offset, const uint8_t *from, size_t bytes)
{
    size_t written = 0;
    int64_t error = 0;
    while (written < bytes && !error) {
        size_t begin = (offset + written) % BLOCK, room = BLOCK - begin;
        size_t part = room < bytes - written ? room : bytes - written;
        error = write_block(file, (offset + written) / BLOCK, begin, begin + part, from + written);
        if (error == NOT_BUFFERED) { /* since this write began; its place is chosen */
            error = write_unbuffered(file, from + written, part, offset + written);
        }
        written += error ? 0 : part;
    }
    atomic_fetch_add(&counters->written_bytes, written);
    return written ? (int64_t)written : error;
}

int64_t store_write(uint64_t handle, uint64_t offset, const uint8_t *from, size_t bytes)
{
    struct file *file = use(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t result = is_buffered(file) ? lengthen(file, &offset, bytes, false) : NOT_BUFFERED;
    if (!result)
        result = write_file(file, offset, from, bytes);
    done_with(file);
    return result;
}

/* After the end of what was to be appended could not be written: the next one follows what could, unless it has come
 * already. */
static void take_back(struct file *file, uint64_t from, uint64_t end)
{
    pthread_rwlock_wrlock(&file->lock); /* nobody is about to bring the rest of the last page to the directory */
    pthread_mutex_lock(&file->size_lock);
    if (file->size == end && atomic_load(&file->mode) == BUFFERED && ftruncate(file->descriptor, (off_t)from) == 0) {
        file->size = from;
        file->stored = from < file->stored ? from : file->stored;
    }
    pthread_mutex_unlock(&file->size_lock);
    pthread_rwlock_unlock(&file->lock);
}

int64_t store_append(uint64_t handle, int64_t *offset, const uint8_t *from, size_t bytes)
{
    struct file *file = use(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    uint64_t at = 0;
    int64_t result = is_buffered(file) ? lengthen(file, &at, bytes, true) : NOT_BUFFERED;
    if (!result) {
        result = write_file(file, at, from, bytes);
        if (result < (int64_t)bytes)
            take_back(file, at + (result > 0 ? (uint64_t)result : 0), at + bytes);
    }
    *offset = (int64_t)at;
    done_with(file);
    return result;
}

int64_t store_read(uint64_t handle, uint64_t offset, uint8_t *to, size_t bytes)
{
    struct file *file = use(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    pthread_mutex_lock(&file->size_lock);
    uint64_t left = offset < file->size ? file->size - offset : 0;
    pthread_mutex_unlock(&file->size_lock);
    bytes = bytes < left ? bytes : left;
    size_t got = 0;
    int64_t error = is_buffered(file) ? 0 : NOT_BUFFERED;
    while (got < bytes && !error) {
        size_t begin = (offset + got) % BLOCK, room = BLOCK - begin;
        size_t part = room < bytes - got ? room : bytes - got;
        error = read_block(file, (offset + got) / BLOCK, begin, begin + part, to + got);
        got += error ? 0 : part;
    }
    atomic_fetch_add(&counters->read_bytes, got);
    done_with(file);
    return got ? (int64_t)got : error;
}

int64_t store_truncate(uint64_t handle, uint64_t size)
{
    struct file *file = use(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t result = 0;
    pthread_rwlock_wrlock(&file->lock);
    pthread_mutex_lock(&file->size_lock);
    uint64_t before = file->size;
    pthread_mutex_unlock(&file->size_lock);
    if (atomic_load(&file->mode) == BYPASSED) {
        pthread_rwlock_unlock(&file->lock);
        done_with(file);
        return NOT_BUFFERED;
    }
    if (size < before)
        cut(file, size);
    pthread_mutex_lock(&file->size_lock);
    if (ftruncate(file->descriptor, (off_t)size) != 0) {
        result = -errno;
    } else {
        file->size = size;
        file->stored = size < file->stored ? size : file->stored;
    }
    pthread_mutex_unlock(&file->size_lock);
    pthread_rwlock_unlock(&file->lock);
    done_with(file);
    return result;
}

int64_t store_flush(uint64_t handle)
{
    struct file *file = use(handle);
    if (!file)
        return 0; /* it has been written to make room for another */
    int64_t error = bring_down(file, false), before = take_error(file);
    done_with(file);
    return error ? error : before;
}

int64_t store_sync(uint64_t handle)
{
    struct file *file = use(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t error = is_buffered(file) ? sync_file(file) : NOT_BUFFERED;
    int before = error == NOT_BUFFERED ? 0 : take_error(file);
    done_with(file);
    return error ? error : before;
}

int64_t store_sync_all(void)
{
    uint64_t handles[FILES];
    size_t count = 0;
    int64_t error = 0;
    pthread_mutex_lock(&attach_lock); /* or one that makes room just now would be passed over */
    pthread_mutex_lock(&files_lock);
    for (size_t i = 0; i < files_most; i++)
        if (files[i])
            handles[count++] = files[i]->handle;
    pthread_mutex_unlock(&files_lock);
    pthread_mutex_unlock(&attach_lock);
    for (size_t i = 0; i < count; i++) {
        struct file *file = use(handles[i]);
        if (!file) { /* it makes room, or has: then all of it is there */
            pthread_mutex_lock(&attach_lock);
            file = use(handles[i]);
            pthread_mutex_unlock(&attach_lock);
        }
        int failed = file && is_buffered(file) ? sync_file(file) : 0;
        error = error ? error : failed;
        if (file)
            done_with(file);
    }
    return error;
}

int64_t store_bypass(uint64_t handle)
{
    struct file *file = use(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t error = 0;
    pthread_mutex_lock(&attach_lock);
    if (atomic_load(&file->mode) == BUFFERED) {
        pthread_rwlock_wrlock(&file->lock); /* whoever is at its blocks has done */
        atomic_store(&file->mode, LEAVING);
        pthread_rwlock_unlock(&file->lock);
        error = sync_file(file);
        int before = take_error(file);
        error = error ? error : before;
        if (!error) {
            pthread_rwlock_wrlock(&file->lock);
            cut(file, 0);
            pthread_rwlock_unlock(&file->lock);
            /* what keeps its number, but does not keep it from being executed */
            int name = reopen(file->descriptor, O_PATH);
            if (name >= 0 && dup3(name, file->descriptor, O_CLOEXEC) < 0)
                error = -errno;
            if (name >= 0)
                close(name);
        }
        atomic_store(&file->mode, error ? BUFFERED : BYPASSED);
    }
    pthread_mutex_unlock(&attach_lock);
    done_with(file);
    return error;
}

/* --- beginning and end */

static void make_level(struct level *level, uint64_t mebibytes, uint64_t threshold)
{
    level->room = (size_t)(mebibytes * ((1 << 20) / BLOCK));
    level->keep = (size_t)(level->room * threshold / 100);
    level->keep = level->keep ? level->keep : 1;
    level->free = malloc(level->room * sizeof *level->free);
    if (!level->free)
        die("get memory");
    for (size_t i = 0; i < level->room; i++)
        level->free[i] = (uint32_t)i;
    TAILQ_INIT(&level->clean);
    TAILQ_INIT(&level->dirty);
    pthread_cond_init(&level->is_room, NULL);
    pthread_cond_init(&level->is_work, NULL);
}

static void make_files(int buffer)
{
    size_t slots = cache.flash.room, bytes = JOURNAL_HEADER + slots * sizeof(struct record);
    struct statvfs disk;
    /* before it is tried, which would take everybody's room for a moment */
    if (fstatvfs(buffer, &disk) == 0 && disk.f_bavail * disk.f_frsize < slots * BLOCK + bytes) {
        errno = ENOSPC;
        die("reserve --flash-cache-size, %zu MiB, in %s", slots * BLOCK >> 20, settings.buffer);
    }
    flash = openat(buffer, "flash", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int file = openat(buffer, "journal.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (flash < 0 || file < 0)
        die("make the file level in %s", settings.buffer);
    if ((errno = posix_fallocate(flash, 0, (off_t)slots * BLOCK)) || (errno = posix_fallocate(file, 0, (off_t)bytes))) {
        int error = errno;
        unlinkat(buffer, "flash", 0);
        unlinkat(buffer, "journal.new", 0);
        errno = error;
        die("reserve --flash-cache-size, %zu MiB, in %s", slots * BLOCK >> 20, settings.buffer);
    }
    journal = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (journal == MAP_FAILED)
        die("map the journal");
    close(file);
    struct journal_header *header = (struct journal_header *)journal;
    strcpy(header->magic, JOURNAL_MAGIC);
    boot_id(header->boot);
    header->device = directory_device;
    header->records = slots;
    strcpy(header->directory, settings.directory);
    if (renameat(buffer, "journal.new", buffer, "journal") != 0)
        die("name the journal");
}

void store_start(int buffer)
{
    struct stat found;
    struct rlimit limit;
    buffer_folder = buffer;
    if (stat(settings.directory, &found) != 0)
        die("see %s", settings.directory);
    directory_device = found.st_dev;
    /* Above all that a daemon before this one gave: that was no more than one in FILES nanoseconds. Nobody sets this
     * clock, and who outlives a daemon does not outlive the machine's start. */
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    last_handle = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) / FILES * FILES;
    first_handle = last_handle;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    files_most = limit.rlim_cur > FILES + FREE_DESCRIPTORS ? FILES : limit.rlim_cur / 2;
    make_level(&cache.ram, settings.ram_cache_size, settings.ram_cache_threshold);
    make_level(&cache.flash, settings.flash_cache_size, settings.flash_cache_threshold);
    cache.mask = 1023;
    while (cache.mask < 2 * (cache.ram.room + cache.flash.room))
        cache.mask = 2 * cache.mask + 1;
    cache.table = calloc(cache.mask + 1, sizeof(struct block *));
    memory = mmap(NULL, cache.ram.room * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!cache.table || memory == MAP_FAILED)
        die("get memory");
    make_files(buffer);
    destagers = calloc(settings.ram_destagers + settings.flash_destagers, sizeof *destagers);
    if (!destagers)
        die("get memory");
    while (destager_count < settings.ram_destagers + settings.flash_destagers) {
        bool ram = destager_count < settings.ram_destagers;
        if ((errno = pthread_create(&destagers[destager_count++], NULL, ram ? destage_ram : destage_flash, NULL)))
            die("start a destager");
    }
}

bool store_end(void)
{
    bool all = true;
    for (size_t i = 0; i < files_most; i++) {
        if (!files[i])
            continue;
        int error = sync_file(files[i]);
        error = !error && has_lost(files[i]) ? take_error(files[i]) : error;
        if (error) {
            fprintf(stderr, "burst: a file of %s could not be written: %s\n", settings.directory, strerror(-error));
            all = false;
        }
    }
    pthread_mutex_lock(&cache.lock);
    cache.ending = true;
    pthread_cond_broadcast(&cache.ram.is_work);
    pthread_cond_broadcast(&cache.flash.is_work);
    if (!all) { /* nobody makes room any more */
        cache.error = cache.error ? cache.error : EIO;
        pthread_cond_broadcast(&cache.ram.is_room);
        pthread_cond_broadcast(&cache.flash.is_room);
    }
    pthread_mutex_unlock(&cache.lock);
    for (size_t i = 0; i < destager_count; i++)
        pthread_join(destagers[i], NULL);
    for (size_t i = 0; all && i < files_most; i++)
        if (files[i])
            forget_file(files[i]);
    if (all) {
        unlinkat(buffer_folder, "journal", 0);
        unlinkat(buffer_folder, "flash", 0);
    }
    return all;
}
