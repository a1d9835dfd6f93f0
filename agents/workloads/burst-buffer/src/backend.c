/* The slow directory, and the delays that are injected into it and into the file level. Accesses pass a line one after
 * the other, which limits their bandwidth. Each waits for a latency, at the same time as others. With contention, an
 * access takes longer in the line the more others are under way, as on servers that serialise them. */

#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000;
struct device slow_directory = {.lock = PTHREAD_MUTEX_INITIALIZER};
struct device file_level = {.lock = PTHREAD_MUTEX_INITIALIZER};

void device_wait(struct device *device, uint64_t bytes)
{
    if (!device->bandwidth && !device->latency && !device->contention)
        return;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t due = (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
    pthread_mutex_lock(&device->lock);
    if (device->line_free > due)
        due = device->line_free;
    if (device->bandwidth)
        due += bytes * 1000 / device->bandwidth;
    due += device->contention * 1000 * device->under_way++;
    device->line_free = due;
    pthread_mutex_unlock(&device->lock);
    due += device->latency * 1000;
    time = (struct timespec){.tv_sec = (time_t)(due / SECOND), .tv_nsec = (long)(due % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        ;
    pthread_mutex_lock(&device->lock);
    device->under_way--;
    pthread_mutex_unlock(&device->lock);
}

int64_t backend_read(int descriptor, uint8_t *to, size_t bytes, uint64_t offset)
{
    device_wait(&slow_directory, bytes);
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(descriptor, to + done, bytes - done, (off_t)(offset + done));
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -errno;
        done += got > 0 ? (size_t)got : 0;
    }
    return (int64_t)done;
}

int64_t backend_write(int descriptor, const uint8_t *from, size_t bytes, uint64_t offset)
{
    device_wait(&slow_directory, bytes);
    size_t done = 0;
    while (done < bytes) {
        ssize_t put = pwrite(descriptor, from + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno != EINTR)
            return -errno;
        done += put > 0 ? (size_t)put : 0;
    }
    return (int64_t)done;
}
