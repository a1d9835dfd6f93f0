/* The pages' files, and devices whose delay is injected. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

static const uint64_t SECOND = 1000000000;

/* The injected devices. Reads pass one after the other through a line of these bytes a second, and each is answered the
 * latency later. The figures follow from the published rates of the poster's disks for pages of 550 and 100 kB (45 and
 * 241 requests a second, 634 and 3665). */
static const struct {
    uint64_t latency_ns, bytes_per_second;
} devices[] = {[SSD] = {50000, 350000000}, [HDD] = {150000, 25000000}};

static struct file {
    int descriptor, direct; /* direct: with O_DIRECT, or -1 where the file system has no such reads */
    size_t size;
} *files;

static int open_page(const char *folder, int page, enum form form)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.html%s", folder, page, form == GZIP ? ".gz" : "");
    struct file *file = &files[page * FORMS + (int)form];
    struct stat status;
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (file->descriptor < 0 || fstat(file->descriptor, &status) < 0)
        return -1;
    file->direct = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    file->size = (size_t)status.st_size;
    return 0;
}

int disk_open(const char *folder)
{
    for (int page = 0;; page++) {
        files = realloc(files, ((size_t)page + 1) * FORMS * sizeof *files);
        if (!files)
            die("allocate the table of files");
        if (open_page(folder, page, RAW) < 0) {
            if (errno == ENOENT && page)
                return page;
            die("open the page 0.html in the folder of pages");
        }
        if (open_page(folder, page, GZIP) < 0)
            die("open a page's file .html.gz");
    }
}

size_t disk_size(int page, enum form form)
{
    return files[page * FORMS + (int)form].size;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Sleeps as long as the injected device takes for these bytes. */
static void wait_for_device(long device, size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t line_free; /* when the line is free again */
    pthread_mutex_lock(&lock);
    uint64_t begun = now(), from = line_free > begun ? line_free : begun;
    line_free = from + bytes * SECOND / devices[device].bytes_per_second;
    uint64_t due = line_free + devices[device].latency_ns;
    pthread_mutex_unlock(&lock);
    struct timespec time = {(time_t)(due / SECOND), (long)(due % SECOND)};
    while (now() < due)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void advise(int descriptor, long reading)
{
    int advice = POSIX_FADV_NORMAL;
    if (reading == SEQUENTIAL)
        advice = POSIX_FADV_SEQUENTIAL;
    else if (reading == WITHOUT_READAHEAD)
        advice = POSIX_FADV_RANDOM;
    posix_fadvise(descriptor, 0, 0, advice);
}

struct blob *disk_read(int page, enum form form)
{
    const struct file *file = &files[page * FORMS + (int)form];
    long device = atomic_load(&settings[DEVICE]), reading = atomic_load(&settings[READING]);
    bool direct = device == REAL && reading == DIRECT_IO && file->direct >= 0;
    int descriptor = direct ? file->direct : file->descriptor;
    /* O_DIRECT reads whole blocks */
    struct blob *blob = blob_new((file->size + 4095) & ~(size_t)4095);
    if (device == REAL && !direct) {
        /* cold, also when another thread or an earlier program has read the file */
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        advise(descriptor, reading);
    }
    for (size_t done = 0; done < file->size;) {
        ssize_t got = pread(descriptor, blob->bytes + done, blob->size - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fprintf(stderr, "proxy: cannot read page %d: %s\n", page, got ? strerror(errno) : "it has become shorter");
            blob_release(blob);
            return NULL;
        }
        done += (size_t)got;
    }
    blob->size = file->size;
    if (device != REAL)
        wait_for_device(device, file->size);
    atomic_fetch_add(&counters[form == RAW ? READS_RAW : READS_GZIP], 1);
    return blob;
}
