/* Blocks, their places in the two levels, and room in these. */

#include "internal.h"

#include <stdlib.h>
#include <sys/mman.h>

struct cache cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint8_t *memory;
static struct block **table; /* of blocks by their hash; guarded by cache.lock */
static size_t table_mask;

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

void make_levels(void)
{
    make_level(&cache.ram, settings.ram_cache_size, settings.ram_cache_threshold);
    make_level(&cache.flash, settings.flash_cache_size, settings.flash_cache_threshold);
    table_mask = 1023;
    while (table_mask < 2 * (cache.ram.room + cache.flash.room))
        table_mask = 2 * table_mask + 1;
    table = calloc(table_mask + 1, sizeof(struct block *));
    memory = mmap(NULL, cache.ram.room * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!table || memory == MAP_FAILED)
        die("get memory");
}

/* --- pages */

unsigned next_run(uint64_t mask, unsigned *first)
{
    mask = *first < PAGES ? mask >> *first << *first : 0;
    if (!mask)
        return 0;
    *first = (unsigned)__builtin_ctzll(mask);
    uint64_t gaps = ~(mask >> *first);
    unsigned length = gaps ? (unsigned)__builtin_ctzll(gaps) : PAGES;
    return length < PAGES - *first ? length : PAGES - *first;
}

uint64_t page_mask(unsigned first, unsigned last)
{
    return UINT64_MAX >> (PAGES - 1 - (last - first)) << first;
}

/* --- blocks */

static struct block **bucket(const struct file *file, uint64_t number)
{
    uint64_t hash = (file->handle * 0x9e3779b97f4a7c15 + number) * 0xff51afd7ed558ccd;
    return &table[(hash >> 32) & table_mask];
}

struct block *find_block(const struct file *file, uint64_t number)
{
    struct block *block = *bucket(file, number);
    while (block && (block->file != file || block->number != number))
        block = block->next;
    return block;
}

struct block *pin(struct file *file, uint64_t number)
{
    pthread_mutex_lock(&cache.lock);
    struct block *block = find_block(file, number);
    if (!block) {
        block = calloc(1, sizeof *block);
        if (!block)
            die("get memory");
        block->file = file;
        block->number = number;
        block->slot = -1;
        pthread_mutex_init(&block->lock, NULL);
        pthread_cond_init(&block->written, NULL);
        struct block **head = bucket(file, number);
        block->next = *head;
        *head = block;
        TAILQ_INSERT_TAIL(&file->blocks, block, of_file);
    }
    block->pins++;
    pthread_mutex_unlock(&cache.lock);
    return block;
}

void pin_again(struct block *block)
{
    pthread_mutex_lock(&cache.lock);
    block->pins++;
    pthread_mutex_unlock(&cache.lock);
}

size_t pin_all(struct file *file, struct block ***found)
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

/* Frees a block that is in no level and has no pins. With cache.lock. */
static void remove_block(struct block *block)
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

/* --- places and room */

uint8_t *frame_at(int64_t frame)
{
    return memory + (size_t)frame * BLOCK;
}

/* With cache.lock. */
static void free_frame(const uint8_t *frame)
{
    cache.ram.free[cache.ram.room - cache.ram.used--] = (uint32_t)((size_t)(frame - memory) / BLOCK);
    pthread_cond_signal(&cache.ram.is_room);
}

/* With cache.lock. */
static void free_slot(int slot)
{
    atomic_store(&record_of(slot)->mask, 0);
    cache.flash.free[cache.flash.room - cache.flash.used--] = (uint32_t)slot;
    pthread_cond_signal(&cache.flash.is_room);
}

void return_frame(int64_t frame)
{
    pthread_mutex_lock(&cache.lock);
    free_frame(frame_at(frame));
    pthread_mutex_unlock(&cache.lock);
}

void return_slot(int64_t slot)
{
    pthread_mutex_lock(&cache.lock);
    free_slot((int)slot);
    pthread_mutex_unlock(&cache.lock);
}

void place_in_ram(struct block *block, enum place place)
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

void place_in_flash(struct block *block, enum place place)
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

/* Evicts the clean block that was not used for longest. Returns whether there was one. With cache.lock. */
static bool evict_from_ram(void)
{
    struct block *block;
    TAILQ_FOREACH(block, &cache.ram.clean, in_ram)
        if (!block->pins)
            break;
    if (!block)
        return false;
    place_in_ram(block, NOWHERE);
    free_frame(block->ram);
    block->ram = NULL;
    block->ram_valid = 0;
    if (block->slot < 0)
        remove_block(block);
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
    free_slot(block->slot);
    block->slot = -1;
    block->flash_valid = 0;
    if (!block->ram)
        remove_block(block);
    return true;
}

void release(struct block *block)
{
    pthread_mutex_lock(&cache.lock);
    if (block->ram && !block->ram_valid) {
        free_frame(block->ram);
        block->ram = NULL;
    }
    if (block->slot >= 0 && !block->flash_valid && !block->writing) {
        free_slot(block->slot);
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
            remove_block(block);
        else { /* a thread that waits for room may have passed over it */
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
            if (level == &cache.flash && level->used > atomic_load(&counters->flash_most))
                atomic_store(&counters->flash_most, level->used);
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

int64_t take_frame(void)
{
    return take(&cache.ram, evict_from_ram, &counters->ram_waits);
}

int64_t take_slot(void)
{
    return take(&cache.flash, evict_from_flash, &counters->flash_waits);
}

void note_error(struct file *file, int error)
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
