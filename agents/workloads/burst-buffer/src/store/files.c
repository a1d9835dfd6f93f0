/* The table of files, and their handles. */

#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { FREE_DESCRIPTORS = 256 };

pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;

static struct file *files[FILES];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `files` */
static uint64_t files_clock, last_handle, first_handle, directory_device;
static size_t files_most;

void make_file_table(uint64_t device)
{
    struct rlimit limit;
    directory_device = device;
    /* Handles are above all that an earlier daemon has issued, which were fewer than one in FILES nanoseconds. Nobody
     * sets this clock, and a process that outlives a daemon does not outlive the machine's start. */
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    last_handle = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) / FILES * FILES;
    /* processes on other hosts outlive a start of this machine: their old handles are hardly ever near a random one */
    if (served.length && getrandom(&last_handle, sizeof last_handle, 0) != sizeof last_handle)
        die("get a random number");
    last_handle = last_handle % ((uint64_t)1 << 62) / FILES * FILES;
    first_handle = last_handle;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    files_most = limit.rlim_cur > FILES + FREE_DESCRIPTORS ? FILES : limit.rlim_cur / 2;
}

uint64_t store_number(void)
{
    return first_handle;
}

bool store_issued(uint64_t handle)
{
    pthread_mutex_lock(&files_lock);
    bool issued = handle >= first_handle && handle < last_handle + FILES;
    pthread_mutex_unlock(&files_lock);
    return issued;
}

int reopen(int descriptor, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, flags | O_CLOEXEC);
}

struct file *use_file(uint64_t handle)
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

void leave_file(struct file *file)
{
    pthread_mutex_lock(&files_lock);
    file->users--;
    pthread_mutex_unlock(&files_lock);
}

size_t list_handles(uint64_t handles[FILES])
{
    size_t count = 0;
    pthread_mutex_lock(&attach_lock); /* or a file that is just being removed to make room would be missed */
    pthread_mutex_lock(&files_lock);
    for (size_t i = 0; i < files_most; i++)
        if (files[i])
            handles[count++] = files[i]->handle;
    pthread_mutex_unlock(&files_lock);
    pthread_mutex_unlock(&attach_lock);
    return count;
}

/* --- removing files */

/* Frees a file that is not in the table any more, with all that is buffered of it. */
static void forget_file(struct file *file)
{
    pthread_rwlock_wrlock(&file->lock);
    discard_from(file, 0);
    pthread_rwlock_unlock(&file->lock);
    for (bool empty = false; !empty;) { /* a destager may still hold a block that it has nothing to do with */
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

/* Returns a free place in the table, after writing and removing the least recently used file if there is none. -1: all
 * files are in use or cannot be written. With attach_lock. */
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
            files[oldest->place] = NULL; /* nobody finds it now; attaching it again waits for attach_lock */
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

/* Whether a file has no name any more, is used by nobody now and has no dirty data. A file that is bypassed has to stay
 * known, because it may be mapped. With files_lock. */
static bool is_deleted(struct file *file)
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

/* Removes files that were deleted: the directory has their room back only when we close them. A process that still has
 * one open attaches it again. With attach_lock. */
static void forget_deleted(void)
{
    for (size_t i = 0; i < files_most; i++) {
        pthread_mutex_lock(&files_lock);
        struct file *file = files[i] && is_deleted(files[i]) ? files[i] : NULL;
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

bool sync_all_files(void)
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
    return all;
}

void forget_all_files(void)
{
    for (size_t i = 0; i < files_most; i++)
        if (files[i])
            forget_file(files[i]);
}

/* --- adding files */

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
    if (own < 0) { /* the daemon may not write it: a process that may does so without the daemon */
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
    /* otherwise truncation could wait forever */
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

/* Returns the handle of a file that was just found or made, and leaves the file. With attach_lock. */
static int64_t attached(struct file *file)
{
    int64_t result = atomic_load(&file->mode) == BYPASSED ? NOT_BUFFERED : (int64_t)file->handle;
    leave_file(file);
    return result;
}

/* posix_fallocate may have made a file longer. With attach_lock. */
static void note_growth(struct file *file)
{
    struct stat found;
    pthread_mutex_lock(&file->size_lock);
    if (fstat(file->descriptor, &found) == 0 && (uint64_t)found.st_size > file->size)
        file->size = (uint64_t)found.st_size;
    pthread_mutex_unlock(&file->size_lock);
}

int64_t store_find(uint64_t inode, uint64_t made)
{
    const struct stat wanted = {.st_dev = directory_device, .st_ino = inode};
    int64_t result = UNKNOWN_HANDLE;
    pthread_mutex_lock(&attach_lock);
    struct file *file = find_file(&wanted);
    if (file && (!made || !file->born || made == file->born)) {
        note_growth(file);
        result = attached(file);
    } else if (file) {
        leave_file(file);
    }
    pthread_mutex_unlock(&attach_lock);
    return result;
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
    } else {
        note_growth(file);
    }
    if (file)
        result = attached(file);
    pthread_mutex_unlock(&attach_lock);
    return result;
}
