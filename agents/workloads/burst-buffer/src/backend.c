/* The slow directory. Its slowness is injected here: a line that all accesses pass one after the other, which gives
 * them their bandwidth; a latency that they wait for beside each other; and contention: in the line an access takes the
 * longer, the more others are under way, as on servers that have to keep them apart. */

#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static const uint64_t SECOND = 1000000000;
static pthread_mutex_t line = PTHREAD_MUTEX_INITIALIZER;
static uint64_t line_free; /* when the last access has passed */
static uint64_t under_way;

static void pass(uint64_t bytes)
{
    if (!settings.bandwidth && !settings.latency && !settings.contention)
        return;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t due = (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
    pthread_mutex_lock(&line);
    if (line_free > due)
        due = line_free;
    if (settings.bandwidth)
        due += bytes * 1000 / settings.bandwidth;
    due += settings.contention * 1000 * under_way++;
    line_free = due;
    pthread_mutex_unlock(&line);
    due += settings.latency * 1000;
    time = (struct timespec){.tv_sec = (time_t)(due / SECOND), .tv_nsec = (long)(due % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        ;
    pthread_mutex_lock(&line);
    under_way--;
    pthread_mutex_unlock(&line);
}

int64_t backend_read(int descriptor, uint8_t *to, size_t bytes, uint64_t offset)
{
    pass(bytes);
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
    pass(bytes);
    size_t done = 0;
    while (done < bytes) {
        ssize_t put = pwrite(descriptor, from + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno != EINTR)
            return -errno;
        done += put > 0 ? (size_t)put : 0;
    }
    return (int64_t)done;
}
