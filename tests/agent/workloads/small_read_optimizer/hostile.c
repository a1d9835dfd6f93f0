/* An application in whose middle a preload library had better not wait, allocate or stumble.
 *
 *     hostile malloc|signals|jumps|forks FILE
 *
 * Reads the file's 8-byte words at random, by two threads, and checks each, while: its malloc reads the file, too; a
 * timer's signal handler reads it; that handler jumps out of whatever it has interrupted; it forks children that read.
 * FILE is one of `fakeapp --create`. Status 0: all was right. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READS = 20000, CHILDREN = 40 };

static int file = -1;
static uint64_t words;
static atomic_int signals;
static atomic_bool reading_malloc;
static sigjmp_buf back;
static volatile sig_atomic_t jumping;
static pthread_t main_thread;

static uint64_t mixed(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

static void read_word(uint64_t seed)
{
    uint64_t place = mixed(seed) % words, found = 0;
    if (pread(file, &found, sizeof found, (off_t)(8 * place)) != sizeof found || found != mixed(place)) {
        static const char message[] = "hostile: wrong data\n";
        if (write(STDERR_FILENO, message, sizeof message - 1) < 0)
            _exit(9);
        _exit(8);
    }
}

/* An allocator that gives everything out once, and reads the file whenever it is asked. */
void *malloc(size_t bytes)
{
    static char arena[64 << 20];
    static atomic_size_t used;
    if (atomic_load(&reading_malloc))
        read_word(bytes);
    size_t at = atomic_fetch_add(&used, (bytes + 31) & ~(size_t)15);
    if (at + bytes + 32 > sizeof arena)
        return NULL;
    *(size_t *)(arena + at) = bytes;
    return (void *)(((uintptr_t)(arena + at) + 16 + 15) & ~(uintptr_t)15);
}

void free(void *memory)
{
    (void)memory;
}

void *calloc(size_t count, size_t size)
{
    void *memory = malloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *realloc(void *old, size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory && old)
        memmove(memory, old, bytes); /* what lies behind the old one is memory of the arena */
    return memory;
}

static void on_alarm(int number)
{
    (void)number;
    int count = atomic_fetch_add(&signals, 1);
    read_word((uint64_t)count);
    if (jumping && pthread_equal(pthread_self(), main_thread)) {
        jumping = 0;
        siglongjmp(back, 1);
    }
}

static void *read_many(void *given)
{
    for (uint64_t i = 0; i < READS; i++)
        read_word((uint64_t)(uintptr_t)given * READS + i);
    return NULL;
}

static void start_alarms(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_NODEFER};
    struct itimerval often = {{0, 300}, {0, 300}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void stop_alarms(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
}

int main(int count, char **given)
{
    struct stat found;
    if (count != 3 || (file = open(given[2], O_RDONLY)) < 0 || fstat(file, &found) < 0)
        return 2;
    words = (uint64_t)found.st_size / 8;
    main_thread = pthread_self();
    atomic_store(&reading_malloc, strcmp(given[1], "malloc") == 0);
    read_word(0);
    free(malloc(100));
    pthread_t other;
    if (pthread_create(&other, NULL, read_many, (void *)1) != 0)
        return 2;
    if (strcmp(given[1], "signals") == 0 || strcmp(given[1], "jumps") == 0)
        start_alarms();
    if (strcmp(given[1], "jumps") == 0) {
        for (volatile int jumps = 0; jumps < 50; jumps++) {
            if (sigsetjmp(back, 1) == 0) {
                jumping = 1;
                for (uint64_t i = 0; jumping; i++)
                    read_word(i);
            }
        }
    }
    if (strcmp(given[1], "forks") == 0) {
        for (int i = 0; i < CHILDREN; i++) {
            pid_t child = fork();
            if (child == 0) {
                for (uint64_t j = 0; j < 200; j++)
                    read_word(j);
                _exit(0);
            }
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
                return 3;
        }
    }
    if (strcmp(given[1], "malloc") == 0)
        for (int i = 0; i < 5000; i++)
            free(malloc((size_t)i % 64));
    read_many((void *)2);
    pthread_join(other, NULL);
    stop_alarms();
    return 0;
}
