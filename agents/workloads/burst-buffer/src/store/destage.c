/* Destaging: dirty data goes from memory to the file level, and from there to the directory. */

#include "internal.h"

#include <stdlib.h>
#include <unistd.h>

static pthread_t *destagers;
static size_t destager_count;

int stage(struct block *block)
{
    int64_t spare = -1;
    pthread_mutex_lock(&block->lock);
    while (block->ram_dirty && block->slot < 0 && spare < 0) {
        pthread_mutex_unlock(&block->lock);
        spare = take_slot();
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
        for (; (length = next_run(block->ram_dirty, &first)) > 0 && !error; first += length) {
            size_t bytes = (size_t)length * PAGE, offset = (size_t)first * PAGE;
            device_wait(&file_level, bytes);
            error = write_flash(block->slot, offset, block->ram + offset, bytes);
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
    if (spare >= 0)
        return_slot(spare);
    release(block);
    return error;
}

int flush(struct block *block, uint8_t *copy)
{
    struct file *file = block->file;
    pthread_rwlock_rdlock(&file->lock);
    pthread_mutex_lock(&block->lock);
    while (block->writing)
        pthread_cond_wait(&block->written, &block->lock);
    uint64_t mask = block->flash_dirty;
    int64_t error = 0;
    unsigned first = 0, length;
    for (; (length = next_run(mask, &first)) > 0 && !error; first += length)
        error = read_flash(block->slot, first, copy + (size_t)first * PAGE, (size_t)length * PAGE);
    if (mask && !error) {
        block->flash_dirty = 0;
        block->writing = true;
        pthread_mutex_unlock(&block->lock);
        for (first = 0; (length = next_run(mask, &first)) > 0 && error >= 0; first += length) {
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

/* --- the threads */

/* Takes the block of a level that has been dirty for longest, and pins it. NULL when the store ends. */
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

/* Takes the file's next block and pins it, if it waits for the directory, too. `block` is pinned. */
static struct block *take_following(const struct block *block)
{
    pthread_mutex_lock(&cache.lock);
    struct block *next = find_block(block->file, block->number + 1);
    next = next && next->flash_place == DIRTY ? next : NULL;
    if (next) {
        next->pins++;
        place_in_flash(next, TAKEN);
    }
    pthread_mutex_unlock(&cache.lock);
    return next;
}

/* Moves a block that was taken to the list that it belongs to now, and unpins it. */
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

/* After an error, lets some time pass before the next try. */
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

/* Blocks are flushed in the order in which they became dirty, but a file's following blocks directly after each other,
 * because directories are faster with long writes. */
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

void start_destagers(void)
{
    destagers = calloc(settings.ram_destagers + settings.flash_destagers, sizeof *destagers);
    if (!destagers)
        die("get memory");
    while (destager_count < settings.ram_destagers + settings.flash_destagers) {
        bool ram = destager_count < settings.ram_destagers;
        if ((errno = pthread_create(&destagers[destager_count++], NULL, ram ? destage_ram : destage_flash, NULL)))
            die("start a destager");
    }
}

void end_destagers(bool failed)
{
    pthread_mutex_lock(&cache.lock);
    cache.ending = true;
    pthread_cond_broadcast(&cache.ram.is_work);
    pthread_cond_broadcast(&cache.flash.is_work);
    if (failed) {
        cache.error = cache.error ? cache.error : EIO;
        pthread_cond_broadcast(&cache.ram.is_room);
        pthread_cond_broadcast(&cache.flash.is_room);
    }
    pthread_mutex_unlock(&cache.lock);
    for (size_t i = 0; i < destager_count; i++)
        pthread_join(destagers[i], NULL);
}
