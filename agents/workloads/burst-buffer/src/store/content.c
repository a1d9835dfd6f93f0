/* The content of files: it is read and written by blocks, written down to the levels below, and discarded. */

#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_buffered(struct file *file)
{
    while (atomic_load(&file->mode) == LEAVING)
        usleep(1000);
    return atomic_load(&file->mode) == BUFFERED;
}

/* --- one block */

/* Returns a block that has memory, and locks it and its file. Returns NULL and sets `error` where no room will come, or
 * where the file is no longer buffered. */
static struct block *hold(struct file *file, uint64_t number, int64_t *error)
{
    int64_t frame = -1;
    for (;;) {
        struct block *block = pin(file, number);
        pthread_rwlock_rdlock(&file->lock);
        pthread_mutex_lock(&block->lock);
        bool leaves = atomic_load(&file->mode) != BUFFERED;
        if (!block->ram && frame >= 0 && !leaves) {
            block->ram = frame_at(frame);
            block->ram_valid = block->ram_dirty = 0;
            frame = -1;
        }
        if (frame >= 0 && (block->ram || leaves)) {
            return_frame(frame);
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
        frame = take_frame();
        if (frame < 0) {
            *error = frame;
            return NULL;
        }
    }
}

/* Unlocks a block that was held, and its file. */
static void let_go(struct block *block)
{
    struct file *file = block->file;
    release(block);
    pthread_rwlock_unlock(&file->lock);
}

/* Reads pages into the memory of a block that is held. From the file level it reads everything that this has of the
 * block, because memory is allotted by the block: a cache that is read at random would otherwise be full of blocks with
 * one page in each. */
static int load(struct block *block, uint64_t wanted)
{
    struct file *file = block->file;
    atomic_fetch_add(&counters->ram_hits, (uint64_t)__builtin_popcountll(wanted & block->ram_valid));
    uint64_t missing = wanted & ~block->ram_valid, hits = missing & block->flash_valid;
    uint64_t below = hits ? block->flash_valid & ~block->ram_valid : 0;
    unsigned first = 0, length;
    atomic_fetch_add(&counters->flash_hits, (uint64_t)__builtin_popcountll(hits));
    for (; (length = next_run(below, &first)) > 0; first += length) {
        if (read_flash(block->slot, first, block->ram + (size_t)first * PAGE, (size_t)length * PAGE) != 0)
            return -EIO;
        block->ram_valid |= page_mask(first, first + length - 1);
    }
    missing &= ~hits;
    for (first = 0; (length = next_run(missing, &first)) > 0; first += length) {
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
        block->ram_valid |= page_mask(first, first + length - 1);
    }
    return 0;
}

int64_t read_block(struct file *file, uint64_t number, size_t begin, size_t end, uint8_t *to)
{
    int64_t error = 0;
    struct block *block = hold(file, number, &error);
    if (!block)
        return error;
    error = load(block, page_mask((unsigned)(begin / PAGE), (unsigned)((end - 1) / PAGE)));
    if (!error)
        memcpy(to, block->ram + begin, end - begin);
    let_go(block);
    return error;
}

int64_t write_block(struct file *file, uint64_t number, size_t begin, size_t end, const uint8_t *from)
{
    int64_t error = 0;
    struct block *block = hold(file, number, &error);
    if (!block)
        return error;
    unsigned first = (unsigned)(begin / PAGE), last = (unsigned)((end - 1) / PAGE);
    uint64_t partly = 0; /* pages of which some bytes stay */
    if (begin % PAGE)
        partly |= page_mask(first, first);
    if (end % PAGE)
        partly |= page_mask(last, last);
    error = partly ? load(block, partly) : 0;
    if (!error) {
        memcpy(block->ram + begin, from, end - begin);
        block->ram_valid |= page_mask(first, last);
        block->ram_dirty |= page_mask(first, last);
    }
    let_go(block);
    return error;
}

/* --- a whole file */

int write_down(struct file *file, bool through)
{
    uint8_t *copy = through ? malloc(BLOCK) : NULL;
    if (through && !copy)
        die("get memory");
    int error = 0;
    for (int level = 0; level <= through; level++) {
        struct block **found;
        size_t count = pin_all(file, &found);
        /* one after the other: a thread that waits for room keeps no pins, since it may wait for just these blocks */
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

int sync_file(struct file *file)
{
    if (atomic_load(&file->mode) == BYPASSED)
        return 0;
    int error = write_down(file, true);
    /* EBADF: another thread has bypassed the file meanwhile, after everything was in the directory */
    if (!error && fsync(file->descriptor) != 0 && errno != EBADF) {
        error = -errno;
        pthread_mutex_lock(&file->size_lock);
        file->error = -error;
        file->lost = true;
        pthread_mutex_unlock(&file->size_lock);
    }
    return error;
}

int take_error(struct file *file)
{
    pthread_mutex_lock(&file->size_lock);
    int error = file->error;
    file->error = 0;
    file->lost = false;
    pthread_mutex_unlock(&file->size_lock);
    return -error;
}

bool has_lost(struct file *file)
{
    pthread_mutex_lock(&file->size_lock);
    bool lost = file->lost;
    pthread_mutex_unlock(&file->size_lock);
    return lost;
}

void discard_from(struct file *file, uint64_t size)
{
    struct block **found;
    size_t count = pin_all(file, &found);
    for (size_t i = 0; i < count; i++) {
        struct block *block = found[i];
        uint64_t begin = block->number * BLOCK;
        pthread_mutex_lock(&block->lock);
        size_t left = size <= begin ? 0 : size - begin < BLOCK ? (size_t)(size - begin) : BLOCK;
        if (left < BLOCK) {
            uint64_t kept = left ? page_mask(0, (unsigned)((left - 1) / PAGE)) : 0;
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
                if (rest && write_flash(block->slot, left, zeros, rest) != 0)
                    die("write to the file level");
            }
        }
        release(block);
    }
    free(found);
}
