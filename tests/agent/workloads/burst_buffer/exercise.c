/* Random calls by threads and processes, each compared with what it must give.
 *
 * exercise FOLDER SEED: threads share one file, each in stripes of its own; each has a file of its own that it cuts; all
 * append lines to two logs, of which one is mapped meanwhile. Then a child looks at all of it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, STRIPE = 10000, STRIPES = 60, SIZE = STRIPE * STRIPES * THREADS, OWN = 900000, ROUNDS = 400, LINE = 32 };
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)

static const char *folder;
static unsigned seed;
static uint8_t *expected; /* of the shared file */
static int shared_file, logs[2];

static char *path_of(const char *name, int number, char *path)
{
    sprintf(path, "%s/%s%d", folder, name, number);
    return path;
}

static void *be_thread(void *argument)
{
    int me = (int)(intptr_t)argument;
    unsigned state = seed * 100 + (unsigned)me;
    char path[4096], line[LINE + 1];
    uint8_t *own = calloc(1, OWN), *found = malloc(OWN);
    off_t size = 0;
    int file = open(path_of("own", me, path), O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(file >= 0 && own && found);
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = (size_t)rand_r(&state) % STRIPE, bytes = (size_t)rand_r(&state) % (STRIPE - at) + 1;
        off_t stripe = ((off_t)(rand_r(&state) % STRIPES) * THREADS + me) * STRIPE + (off_t)at;
        if (rand_r(&state) % 2) {
            for (size_t i = 0; i < bytes; i++)
                expected[stripe + (off_t)i] = (uint8_t)rand_r(&state);
            CHECK(pwrite(shared_file, expected + stripe, bytes, stripe) == (ssize_t)bytes);
        } else {
            CHECK(pread(shared_file, found, bytes, stripe) == (ssize_t)bytes);
            CHECK(memcmp(found, expected + stripe, bytes) == 0);
        }
        off_t place = rand_r(&state) % OWN;
        bytes = (size_t)(rand_r(&state) % 40000 + 1);
        bytes = bytes < (size_t)(OWN - place) ? bytes : (size_t)(OWN - place);
        ssize_t left = place >= size ? 0 : size - place < (off_t)bytes ? size - place : (ssize_t)bytes;
        struct stat now;
        struct iovec parts[2] = {{found, bytes / 2}, {found + bytes / 2, bytes - bytes / 2}};
        switch (rand_r(&state) % 10) {
        case 0: case 1: case 2: case 3:
            memset(own + place, rand_r(&state) % 255 + 1, bytes);
            CHECK(lseek(file, place, SEEK_SET) == place);
            CHECK(write(file, own + place, bytes) == (ssize_t)bytes);
            CHECK(lseek(file, 0, SEEK_CUR) == place + (off_t)bytes);
            size = place + (off_t)bytes > size ? place + (off_t)bytes : size;
            break;
        case 4: case 5: case 6:
            CHECK(lseek(file, place, SEEK_SET) == place);
            CHECK(readv(file, parts, 2) == left);
            CHECK(memcmp(found, own + place, (size_t)left) == 0);
            CHECK(lseek(file, 0, SEEK_CUR) == place + left);
            break;
        case 7:
            CHECK(ftruncate(file, place) == 0);
            memset(own + place, 0, (size_t)(OWN - place));
            size = place;
            break;
        case 8:
            CHECK(round % 8 || (round % 16 ? fsync(file) : sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE)) == 0);
            break;
        case 9:
            CHECK(close(file) == 0);
            CHECK((file = open(path, O_RDWR)) >= 0);
            break;
        }
        CHECK(fstat(file, &now) == 0 && now.st_size == size && now.st_blocks >= size / 512);
        CHECK(me || round != ROUNDS / 2 || syncfs(file) == 0);
        if (round % 8 == 0) {
            sprintf(line, "%*d %*d\n", LINE / 2 - 1, me, LINE / 2 - 1, round);
            for (int i = 0; i < 2; i++)
                CHECK(write(logs[i], line, LINE) == LINE);
        }
        if (me == 1 && round == ROUNDS / 2) {
            void *view = mmap(NULL, LINE, PROT_READ, MAP_SHARED, logs[1], 0);
            CHECK(view != MAP_FAILED && ((char *)view)[LINE - 1] == '\n');
            munmap(view, LINE);
        }
    }
    CHECK(pread(file, found, OWN, 0) == size);
    CHECK(memcmp(found, own, (size_t)size) == 0);
    CHECK(close(file) == 0);
    free(own);
    free(found);
    return NULL;
}

/* Whether a log has every line of each thread, in their order. */
static void look_at_log(int number)
{
    char path[4096], line[LINE + 1] = "";
    int log = open(path_of("log", number, path), O_RDONLY), last[THREADS], me, round, lines = 0;
    memset(last, -1, sizeof last);
    for (; read(log, line, LINE) == LINE; lines++) {
        CHECK(sscanf(line, "%d %d", &me, &round) == 2 && line[LINE - 1] == '\n');
        CHECK(round > last[me]);
        last[me] = round;
    }
    CHECK(lines == THREADS * ROUNDS / 8);
    close(log);
}

static void look(int copy)
{
    uint8_t *found = malloc(SIZE);
    CHECK(found && pread(copy, found, SIZE, 0) == SIZE);
    CHECK(memcmp(found, expected, SIZE) == 0);
    free(found);
    look_at_log(0);
    look_at_log(1);
}

int main(int count, char **given)
{
    char path[4096];
    pthread_t threads[THREADS];
    CHECK(count == 3);
    folder = given[1];
    seed = (unsigned)atoi(given[2]);
    CHECK((expected = calloc(1, SIZE)));
    shared_file = open(path_of("shared", 0, path), O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(ftruncate(shared_file, SIZE) == 0);
    for (int i = 0; i < 2; i++)
        CHECK((logs[i] = open(path_of("log", i, path), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644)) >= 0);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, be_thread, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    int copy = dup(shared_file), status;
    CHECK(dup2(copy, 77) == 77 && close(shared_file) == 0);
    pid_t child = fork();
    if (child == 0) {
        look(77);
        CHECK(pwrite(77, "child", 5, 1234) == 5);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    memcpy(expected + 1234, "child", 5);
    look(copy);
    free(expected);
    return 0;
}
