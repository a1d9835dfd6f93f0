/* checkpoint: writes checkpoints as a simulation does, and restarts from the last one, similar to IOR.
 *
 * Processes compute, wait for each other, and each write a number of segments to a separate file or to their parts
 * of one file. At the end each process reads its neighbour's last data, and compares every byte. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRONG_DATA = 1, BAD_ARGUMENTS = 2, MACHINE = 3 };

static const char usage[] =
    "usage: checkpoint [OPTION]... FOLDER\n"
    "  -n N      processes (default 4)\n"
    "  -b SIZE   bytes of a segment, with k or M (1M)\n"
    "  -s N      segments that a process writes to a checkpoint (8)\n"
    "  -r N      checkpoints (3); the last two are kept, as simulations do\n"
    "  -c MS     computing before each checkpoint, in milliseconds (200)\n"
    "  -e        fsync before a checkpoint's file is closed\n"
    "  -S        all processes write to one file, segment by segment\n"
    "  -k        keep the files\n";

static uint64_t processes = 4, segment_bytes = 1 << 20, segments = 8, rounds = 3, compute = 200;
static bool sync_files, share, keep;
static const char *folder;

/* The memory that the processes share. */
struct shared {
    pthread_barrier_t barrier;
    double write_seconds, restart_seconds;
};
static struct shared *shared;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void fail(const char *what, const char *path)
{
    fprintf(stderr, "checkpoint: cannot %s %s: %s\n", what, path, strerror(errno));
    exit(MACHINE);
}

static uint64_t number(int option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t found = strtoull(text, &end, 10);
    if (option == 'b' && (*end == 'k' || *end == 'M'))
        found <<= *end++ == 'k' ? 10 : 20;
    if (text[0] < '0' || text[0] > '9' || *end || errno || found < least || found > most) {
        fprintf(stderr, "checkpoint: -%c: '%s' is not allowed. Use a whole number from %" PRIu64 " to %" PRIu64 ".\n",
                option, text, least, most);
        exit(BAD_ARGUMENTS);
    }
    return found;
}

static void name_file(char path[PATH_MAX], uint64_t round, uint64_t rank)
{
    if (share)
        snprintf(path, PATH_MAX, "%s/checkpoint.%" PRIu64, folder, round);
    else
        snprintf(path, PATH_MAX, "%s/checkpoint.%" PRIu64 ".%" PRIu64, folder, round, rank);
}

static off_t place(uint64_t segment, uint64_t rank)
{
    return (off_t)((share ? segment * processes + rank : segment) * segment_bytes);
}

/* Fills a segment with different words for each round, rank and place. */
static void fill(uint64_t *words, uint64_t round, uint64_t rank, uint64_t segment)
{
    uint64_t seed = ((round * 4096 + rank) * 1048576 + segment) * 0x9e3779b97f4a7c15;
    for (uint64_t i = 0; i < segment_bytes / 8; i++)
        words[i] = (seed + i) * 0xff51afd7ed558ccd;
}

static void write_checkpoint(uint64_t round, uint64_t rank, uint64_t *words)
{
    char path[PATH_MAX];
    name_file(path, round, rank);
    int file = open(path, O_WRONLY | O_CREAT, 0644);
    if (file < 0)
        fail("make", path);
    for (uint64_t segment = 0; segment < segments; segment++) {
        fill(words, round, rank, segment);
        for (uint64_t done = 0; done < segment_bytes;) {
            ssize_t written = pwrite(file, (char *)words + done, segment_bytes - done,
                                     place(segment, rank) + (off_t)done);
            if (written <= 0)
                fail("write", path);
            done += (uint64_t)written;
        }
    }
    if (sync_files && fsync(file) != 0)
        fail("fsync", path);
    if (close(file) != 0)
        fail("close", path);
}

static void restart(uint64_t round, uint64_t rank, uint64_t *words, uint64_t *expected)
{
    char path[PATH_MAX];
    name_file(path, round, rank);
    int file = open(path, O_RDONLY);
    if (file < 0)
        fail("open", path);
    for (uint64_t segment = 0; segment < segments; segment++) {
        for (uint64_t done = 0; done < segment_bytes;) {
            ssize_t got = pread(file, (char *)words + done, segment_bytes - done, place(segment, rank) + (off_t)done);
            if (got < 0)
                fail("read", path);
            if (got == 0) {
                fprintf(stderr, "checkpoint: %s ends within segment %" PRIu64 "\n", path, segment);
                exit(WRONG_DATA);
            }
            done += (uint64_t)got;
        }
        fill(expected, round, rank, segment);
        if (memcmp(words, expected, segment_bytes) != 0) {
            fprintf(stderr, "checkpoint: wrong data in %s, segment %" PRIu64 "\n", path, segment);
            exit(WRONG_DATA);
        }
    }
    close(file);
}

static void drop(uint64_t round, uint64_t rank)
{
    char path[PATH_MAX];
    name_file(path, round, rank);
    if ((!share || rank == 0) && unlink(path) != 0)
        fail("remove", path);
}

static void be_process(uint64_t rank)
{
    uint64_t *words = malloc(segment_bytes), *expected = malloc(segment_bytes);
    if (!words || !expected)
        fail("get memory for", folder);
    struct timespec computing = {.tv_sec = (time_t)(compute / 1000), .tv_nsec = (long)(compute % 1000) * 1000000};
    for (uint64_t round = 0; round < rounds; round++) {
        nanosleep(&computing, NULL); /* uses no processor, as if the data node had separate ones */
        pthread_barrier_wait(&shared->barrier);
        double begun = now();
        write_checkpoint(round, rank, words);
        pthread_barrier_wait(&shared->barrier);
        if (rank == 0)
            shared->write_seconds += now() - begun;
        if (round >= 2)
            drop(round - 2, rank);
    }
    pthread_barrier_wait(&shared->barrier);
    double begun = now();
    restart(rounds - 1, (rank + 1) % processes, words, expected);
    pthread_barrier_wait(&shared->barrier);
    if (rank == 0)
        shared->restart_seconds = now() - begun;
    for (uint64_t round = rounds < 2 ? 0 : rounds - 2; round < rounds && !keep; round++)
        drop(round, rank);
    free(words);
    free(expected);
    exit(0);
}

int main(int count, char **given)
{
    for (int option; (option = getopt(count, given, "n:b:s:r:c:eSk")) != -1;) {
        switch (option) {
        case 'n': processes = number(option, optarg, 1, 1024); break;
        case 'b': segment_bytes = number(option, optarg, 8, 1 << 30) / 8 * 8; break;
        case 's': segments = number(option, optarg, 1, 1 << 20); break;
        case 'r': rounds = number(option, optarg, 1, 1 << 20); break;
        case 'c': compute = number(option, optarg, 0, 1000000); break;
        case 'e': sync_files = true; break;
        case 'S': share = true; break;
        case 'k': keep = true; break;
        default: fputs(usage, stderr); return BAD_ARGUMENTS;
        }
    }
    if (optind != count - 1) {
        fputs(usage, stderr);
        return BAD_ARGUMENTS;
    }
    folder = given[optind];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("get memory for", folder);
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, (unsigned)processes);
    double begun = now();
    for (uint64_t rank = 0; rank < processes; rank++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("start a process for", folder);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            be_process(rank);
        }
    }
    /* the others would wait for a process that fails: they end with it */
    for (uint64_t ended = 0; ended < processes; ended++) {
        int status;
        wait(&status);
        if (status)
            return WIFEXITED(status) ? WEXITSTATUS(status) : MACHINE;
    }
    printf("{\"seconds\": %.6f, \"write_seconds\": %.6f, \"restart_seconds\": %.6f, \"bytes\": %" PRIu64 "}\n",
           now() - begun, shared->write_seconds, shared->restart_seconds,
           rounds * processes * segments * segment_bytes);
    return 0;
}
