/* What the store does on request for one file, or for all. store_attach is in files.c. */

#include "internal.h"

#include <fcntl.h>
#include <unistd.h>

/* Makes the file long enough for a write; in the directory, too, where every process sees its size. `append` sets the
 * offset to the file's end. Returns 0 or -errno. */
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
        if (error == NOT_BUFFERED) { /* the file was bypassed since this write began, whose offset is already chosen */
            error = write_unbuffered(file, from + written, part, offset + written);
        }
        written += error ? 0 : part;
    }
    atomic_fetch_add(&counters->written_bytes, written);
    return written ? (int64_t)written : error;
}

int64_t store_write(uint64_t handle, uint64_t offset, const uint8_t *from, size_t bytes)
{
    struct file *file = use_file(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t result = is_buffered(file) ? lengthen(file, &offset, bytes, false) : NOT_BUFFERED;
    if (!result)
        result = write_file(file, offset, from, bytes);
    leave_file(file);
    return result;
}

/* Shortens the file when the end of an append could not be written: the next append then follows the part that could,
 * unless it has come already. */
static void undo_append(struct file *file, uint64_t from, uint64_t end)
{
    pthread_rwlock_wrlock(&file->lock); /* nobody is about to write the rest of the last page to the directory */
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
    struct file *file = use_file(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    uint64_t at = 0;
    int64_t result = is_buffered(file) ? lengthen(file, &at, bytes, true) : NOT_BUFFERED;
    if (!result) {
        result = write_file(file, at, from, bytes);
        if (result < (int64_t)bytes)
            undo_append(file, at + (result > 0 ? (uint64_t)result : 0), at + bytes);
    }
    *offset = (int64_t)at;
    leave_file(file);
    return result;
}

int64_t store_read(uint64_t handle, uint64_t offset, uint8_t *to, size_t bytes)
{
    struct file *file = use_file(handle);
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
    leave_file(file);
    return got ? (int64_t)got : error;
}

int64_t store_truncate(uint64_t handle, uint64_t size)
{
    struct file *file = use_file(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t result = 0;
    pthread_rwlock_wrlock(&file->lock);
    pthread_mutex_lock(&file->size_lock);
    uint64_t before = file->size;
    pthread_mutex_unlock(&file->size_lock);
    if (atomic_load(&file->mode) == BYPASSED) {
        pthread_rwlock_unlock(&file->lock);
        leave_file(file);
        return NOT_BUFFERED;
    }
    if (size < before)
        discard_from(file, size);
    pthread_mutex_lock(&file->size_lock);
    if (ftruncate(file->descriptor, (off_t)size) != 0) {
        result = -errno;
    } else {
        file->size = size;
        file->stored = size < file->stored ? size : file->stored;
    }
    pthread_mutex_unlock(&file->size_lock);
    pthread_rwlock_unlock(&file->lock);
    leave_file(file);
    return result;
}

int64_t store_flush(uint64_t handle)
{
    struct file *file = use_file(handle);
    if (!file)
        return 0; /* it was written when it made room for another file */
    int64_t error = write_down(file, false), before = take_error(file);
    leave_file(file);
    return error ? error : before;
}

int64_t store_sync(uint64_t handle)
{
    struct file *file = use_file(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t error = is_buffered(file) ? sync_file(file) : NOT_BUFFERED;
    int before = error == NOT_BUFFERED ? 0 : take_error(file);
    leave_file(file);
    return error ? error : before;
}

int64_t store_sync_all(void)
{
    uint64_t handles[FILES];
    size_t count = list_handles(handles);
    int64_t error = 0;
    for (size_t i = 0; i < count; i++) {
        struct file *file = use_file(handles[i]);
        if (!file) { /* it is being removed to make room, or has been: then all of it is in the directory */
            pthread_mutex_lock(&attach_lock);
            file = use_file(handles[i]);
            pthread_mutex_unlock(&attach_lock);
        }
        int failed = file && is_buffered(file) ? sync_file(file) : 0;
        error = error ? error : failed;
        if (file)
            leave_file(file);
    }
    return error;
}

int64_t store_bypass(uint64_t handle)
{
    struct file *file = use_file(handle);
    if (!file)
        return UNKNOWN_HANDLE;
    int64_t error = 0;
    pthread_mutex_lock(&attach_lock);
    if (atomic_load(&file->mode) == BUFFERED) {
        pthread_rwlock_wrlock(&file->lock); /* every thread that was using its blocks has finished */
        atomic_store(&file->mode, LEAVING);
        pthread_rwlock_unlock(&file->lock);
        error = sync_file(file);
        int before = take_error(file);
        error = error ? error : before;
        if (!error) {
            pthread_rwlock_wrlock(&file->lock);
            discard_from(file, 0);
            pthread_rwlock_unlock(&file->lock);
            /* this keeps the file's inode number in use, but does not prevent the file from being executed */
            int name = reopen(file->descriptor, O_PATH);
            if (name >= 0 && dup3(name, file->descriptor, O_CLOEXEC) < 0)
                error = -errno;
            if (name >= 0)
                close(name);
        }
        atomic_store(&file->mode, error ? BUFFERED : BYPASSED);
    }
    pthread_mutex_unlock(&attach_lock);
    leave_file(file);
    return error;
}
