/* Watches the reads of each file, and prefetches zones that are read often [robert-2021, section 2.2].
 *
 * A file is divided into bins. Its last `sequence_length` accesses are kept as a FIFO, with their number in each
 * bin. When a bin has `cluster_threshold` of them, the library requests `prefetch_size` bytes around the last one,
 * and the bin's count starts again at zero. It requests them by POSIX_FADV_WILLNEED: the system reads in the
 * background into its page cache, from which it then serves the application's reads. So the content of reads cannot
 * change or become stale.
 *
 * The library requests a zone again only after it has requested a quarter of the machine's memory.
 *
 * Hooks run in the middle of anything: of the application's malloc, of a signal handler, even one that has
 * interrupted another hook or jumps out of it. Therefore memory comes from mmap, and no thread ever waits for a
 * lock: a read that finds a lock taken is not recorded. */

#define _GNU_SOURCE
#include "sro.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS = 1 << 16, FILES = 1024, TRIES = 200 };
/* Linux serves WILLNEED only up to the read-ahead of the device, by default 128 KiB: one word of pages. */
enum { PAGE = 4096, WORD = 32 * PAGE };
/* The kernel's own read-ahead covers smaller files. */
enum { LEAST_SIZE = WORD };
static const uint64_t NONE = UINT64_MAX;

struct bin {
    uint64_t number; /* NONE: an empty place */
    uint64_t count;  /* of accesses since `since` that are in the window */
    uint64_t since;  /* the access that met the threshold last */
};

/* A file that is watched. `users` is the number of hooks that use it; below 0, its place is being given to another
 * file. */
struct file {
    atomic_int users;
    atomic_bool locked; /* guards the window */
    atomic_uint_fast64_t used; /* the last use, by `clock`; 0: never */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    /* the window: bin of each of the last accesses, by number modulo its length; bins that occur in it, hashed */
    uint64_t *window, accesses;
    struct bin *bins;
    /* a bit for each page that was requested */
    atomic_uint *asked;
    size_t words;
    atomic_uint epoch;
};

/* The meaning of a descriptor: unknown, not watched, or a file by its place + 2. */
enum { UNKNOWN, IGNORED, FIRST };
static atomic_ushort descriptors[DESCRIPTORS];
static struct file files[FILES];
static atomic_bool table_locked; /* guards the places in `files` */
static atomic_uint_fast64_t access_clock;
static size_t bin_places; /* a power of 2 */
static uint64_t most_asked;
static atomic_uint_fast64_t asked_bytes; /* in this epoch */
static atomic_uint asked_epoch;

static bool try_lock(atomic_bool *lock)
{
    for (int i = 0; i < TRIES; i++)
        if (!atomic_exchange_explicit(lock, true, memory_order_acquire))
            return true;
    return false;
}

static void unlock(atomic_bool *lock)
{
    atomic_store_explicit(lock, false, memory_order_release);
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* --- the window */

static size_t home(uint64_t number)
{
    return (size_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (bin_places - 1);
}

/* Returns the place of a bin, or the empty place for it. */
static struct bin *find_bin(struct file *file, uint64_t number)
{
    size_t place = home(number);
    while (file->bins[place].number != number && file->bins[place].number != NONE)
        place = (place + 1) & (bin_places - 1);
    return &file->bins[place];
}

/* Removes a bin; the following bins move up, so that a search still finds them. */
static void remove_bin(struct file *file, struct bin *bin)
{
    size_t gap = (size_t)(bin - file->bins), mask = bin_places - 1;
    for (size_t next = (gap + 1) & mask; file->bins[next].number != NONE; next = (next + 1) & mask) {
        if (((next - home(file->bins[next].number)) & mask) >= ((next - gap) & mask)) {
            file->bins[gap] = file->bins[next];
            gap = next;
        }
    }
    file->bins[gap].number = NONE;
}

/* Removes the oldest access from the window. A bin stays as long as one of its accesses is there. */
static void drop_access(struct file *file, uint64_t access, uint64_t number)
{
    struct bin *bin = find_bin(file, number);
    if (bin->number == NONE)
        return;
    if (access > bin->since)
        bin->count--;
    if (bin->count == 0 && access >= bin->since)
        remove_bin(file, bin);
}

/* Records an access. Returns whether its bin now meets the threshold. Accesses are numbered from 1. */
static bool record(struct file *file, uint64_t number)
{
    uint64_t access = ++file->accesses, length = sro_settings.sequence_length;
    uint64_t *oldest = &file->window[access % length];
    if (access > length)
        drop_access(file, access - length, *oldest);
    *oldest = number;
    struct bin *bin = find_bin(file, number);
    if (bin->number == NONE)
        *bin = (struct bin){.number = number};
    if (++bin->count < sro_settings.cluster_threshold)
        return false;
    bin->count = 0;
    bin->since = access;
    return true;
}

static void clear_window(struct file *file)
{
    file->accesses = 0;
    for (size_t i = 0; i < bin_places; i++)
        file->bins[i].number = NONE;
}

/* --- prefetching */

static void clear_asked(struct file *file)
{
    for (size_t i = 0; i < file->words; i++)
        atomic_store_explicit(&file->asked[i], 0, memory_order_relaxed);
    atomic_store(&file->epoch, atomic_load(&asked_epoch));
}

/* Requests the pages of one word that are in `mask` and were not requested yet. */
static bool ask(struct file *file, int descriptor, uint64_t word, uint32_t mask)
{
    /* read first: most words of a large zone were requested before, and an atomic write is expensive */
    if (word < file->words && (mask &= ~atomic_load_explicit(&file->asked[word], memory_order_relaxed)))
        mask &= ~atomic_fetch_or_explicit(&file->asked[word], mask, memory_order_relaxed);
    if (!mask)
        return true;
    int first = __builtin_ctz(mask), last = 31 - __builtin_clz(mask);
    uint64_t bytes = (uint64_t)(last - first + 1) * PAGE;
    /* no library function: some are cancellation points */
    if (syscall(SYS_fadvise64, descriptor, (off_t)(word * WORD + (uint64_t)first * PAGE), (off_t)bytes,
                POSIX_FADV_WILLNEED) != 0)
        return false;
    atomic_fetch_add(&sro_counters.prefetches, 1);
    atomic_fetch_add(&sro_counters.prefetched_bytes, bytes);
    if (atomic_fetch_add(&asked_bytes, bytes) + bytes > most_asked) {
        atomic_store(&asked_bytes, 0);
        atomic_fetch_add(&asked_epoch, 1);
    }
    return true;
}

/* Requests the zone around an access, within the file. Returns false if the descriptor has another file now. */
static bool prefetch(struct file *file, int descriptor, uint64_t offset, uint64_t bytes)
{
    struct stat now;
    if (fstat(descriptor, &now) != 0 || now.st_dev != file->device || now.st_ino != file->inode)
        return false;
    uint64_t size = now.st_size > 0 ? (uint64_t)now.st_size : 0, middle = offset + bytes / 2;
    uint64_t half = sro_settings.prefetch_size / 2;
    uint64_t begin = middle > half ? middle - half : 0;
    if (begin >= size)
        return true;
    uint64_t end = sro_settings.prefetch_size < size - begin ? begin + sro_settings.prefetch_size : size;
    atomic_fetch_add(&sro_counters.triggers, 1);
    if (atomic_load(&file->epoch) != atomic_load(&asked_epoch))
        clear_asked(file);
    uint64_t page = begin / PAGE, last = (end - 1) / PAGE;
    while (page <= last) {
        uint64_t word = page / 32, until = word == last / 32 ? last % 32 : 31;
        uint32_t mask = (UINT32_MAX << page % 32) & (UINT32_MAX >> (31 - until));
        if (!ask(file, descriptor, word, mask))
            break; /* the file system does not support it */
        page = (word + 1) * 32;
    }
    return true;
}

/* --- files and descriptors */

static bool below(int descriptor)
{
    char link[64], path[PATH_MAX];
    size_t length = strlen(sro_settings.directory);
    if (length == 0)
        return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t found = readlink(link, path, sizeof path - 1);
    if (found < 0)
        return false;
    path[found] = 0;
    return strncmp(path, sro_settings.directory, length) == 0 && (path[length] == '/' || length == 1);
}

/* Gives a file a place in the table. */
static bool settle(struct file *file, const struct stat *found)
{
    size_t words = (size_t)((uint64_t)found->st_size / WORD + 1);
    if (!file->window) {
        size_t bytes = sro_settings.sequence_length * sizeof *file->window;
        file->window = map(bytes + bin_places * sizeof *file->bins);
        if (!file->window)
            return false;
        file->bins = (struct bin *)(file->window + sro_settings.sequence_length);
    }
    if (file->words != words) {
        if (file->asked)
            munmap(file->asked, file->words * sizeof *file->asked);
        file->asked = map(words * sizeof *file->asked);
        file->words = file->asked ? words : 0;
    }
    file->device = found->st_dev;
    file->inode = found->st_ino;
    file->size = found->st_size;
    file->changed = found->st_mtim;
    clear_window(file);
    clear_asked(file);
    unlock(&file->locked);
    return true;
}

static bool same_content(const struct file *file, const struct stat *found)
{
    return file->size == found->st_size && file->changed.tv_sec == found->st_mtim.tv_sec &&
           file->changed.tv_nsec == found->st_mtim.tv_nsec;
}

/* Returns the place of a file in the table: its own, or the least recently used one. -1: not now. */
static int place_of(const struct stat *found)
{
    if (!try_lock(&table_locked))
        return -1;
    int place = -1, oldest = -1;
    for (int i = 0; i < FILES; i++) {
        struct file *file = &files[i];
        if (atomic_load(&file->used) && file->device == found->st_dev && file->inode == found->st_ino) {
            oldest = i;
            if (same_content(file, found))
                place = i;
            break;
        }
        if (oldest < 0 || atomic_load(&file->used) < atomic_load(&files[oldest].used))
            oldest = i;
    }
    int nobody = 0;
    if (place < 0 && atomic_compare_exchange_strong(&files[oldest].users, &nobody, INT_MIN / 2)) {
        for (int i = 0; i < DESCRIPTORS && atomic_load(&files[oldest].used); i++) {
            unsigned short stale = (unsigned short)(oldest + FIRST);
            atomic_compare_exchange_strong(&descriptors[i], &stale, UNKNOWN);
        }
        if (settle(&files[oldest], found)) {
            place = oldest;
            atomic_store(&files[oldest].used, atomic_fetch_add(&access_clock, 1) + 1);
            atomic_fetch_add(&sro_counters.files, 1);
        }
        atomic_fetch_sub(&files[oldest].users, INT_MIN / 2);
    }
    unlock(&table_locked);
    return place;
}

/* Returns the meaning of a descriptor, and finds it out if it is unknown. */
static int meaning(int descriptor)
{
    if (descriptor < 0 || descriptor >= DESCRIPTORS)
        return IGNORED;
    int known = atomic_load_explicit(&descriptors[descriptor], memory_order_acquire);
    if (known != UNKNOWN)
        return known;
    struct stat found;
    if (fstat(descriptor, &found) != 0)
        return IGNORED;
    long flags = syscall(SYS_fcntl, descriptor, F_GETFL);
    bool watched = S_ISREG(found.st_mode) && found.st_size >= LEAST_SIZE && flags >= 0 && !(flags & O_DIRECT) &&
                   below(descriptor);
    int place = watched ? place_of(&found) : -1;
    if (watched && place < 0) { /* the table was busy: the next read tries again */
        atomic_fetch_add(&sro_counters.missed, 1);
        return IGNORED;
    }
    known = watched ? place + FIRST : IGNORED;
    atomic_store_explicit(&descriptors[descriptor], (unsigned short)known, memory_order_release);
    return known;
}

/* Returns a file, which stays until `leave`; NULL: not now. */
static struct file *enter(int meant)
{
    struct file *file = &files[meant - FIRST];
    if (atomic_fetch_add(&file->users, 1) >= 0)
        return file;
    atomic_fetch_sub(&file->users, 1);
    return NULL;
}

static void leave(struct file *file)
{
    atomic_fetch_sub(&file->users, 1);
}

static void note(int descriptor, off_t offset, size_t bytes)
{
    int meant = meaning(descriptor);
    if (meant < FIRST)
        return;
    if (offset == SRO_HERE)
        offset = lseek(descriptor, 0, SEEK_CUR) - (off_t)bytes;
    if (offset < 0)
        return;
    struct file *file = enter(meant);
    if (!file || !try_lock(&file->locked)) {
        atomic_fetch_add(&sro_counters.missed, 1);
    } else {
        bool met = record(file, (uint64_t)offset / sro_settings.binsize);
        unlock(&file->locked);
        atomic_store_explicit(&file->used, atomic_fetch_add(&access_clock, 1) + 1, memory_order_relaxed);
        atomic_fetch_add(&sro_counters.reads, 1);
        atomic_fetch_add(&sro_counters.bytes, bytes);
        if (met && !prefetch(file, descriptor, (uint64_t)offset, bytes))
            sro_forget(descriptor);
    }
    if (file)
        leave(file);
}

void sro_note(int descriptor, off_t offset, size_t bytes)
{
    int before = errno;
    note(descriptor, offset, bytes);
    errno = before;
}

bool sro_watches(int descriptor)
{
    int before = errno;
    bool watched = meaning(descriptor) >= FIRST;
    errno = before;
    return watched;
}

void sro_forget(int descriptor)
{
    if (descriptor >= 0 && descriptor < DESCRIPTORS)
        atomic_store_explicit(&descriptors[descriptor], UNKNOWN, memory_order_release);
}

void sro_forget_range(unsigned first, unsigned last)
{
    for (unsigned i = first; i < DESCRIPTORS && i <= last; i++)
        sro_forget((int)i);
}

/* --- the process */

void sro_start(void)
{
    bin_places = 4;
    while (bin_places < 2 * (sro_settings.sequence_length + 1))
        bin_places *= 2;
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    most_asked = memory / 4;
}

void sro_start_forked(void)
{
    memset(&sro_counters, 0, sizeof sro_counters);
    /* another thread may have been changing a file when this process was made: such files count as new ones */
    for (int i = 0; i < FILES; i++) {
        struct file *file = &files[i];
        bool used = atomic_load(&file->used), settled = atomic_exchange(&file->users, 0) >= 0;
        if (used && (atomic_load(&file->locked) || !settled) && file->window) {
            clear_window(file);
            clear_asked(file);
        }
        unlock(&file->locked);
    }
    unlock(&table_locked);
}
