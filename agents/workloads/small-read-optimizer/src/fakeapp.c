/* Generates patterns of small accesses to one file [robert-2021, definition 2 and table 2.2].
 *
 *     fakeapp --create SIZE FILE          make the file, unless it is there
 *     fakeapp [OPTIONS] FILE              read it (or write it, -x), print seconds and counts as JSON
 *
 * The file has L chunks, each with a lead in its middle. Leads take turns: the program makes `r` operations of w to W
 * bytes around the lead, each within half the scatter S before or after it and within the file. Then the lead moves by
 * `l` within its chunk, and the next lead has its turn, until there were N operations.
 *
 * Every byte of the file follows from its offset, so the program checks what it reads, and writing changes nothing:
 * readers and writers may run on one file at the same time. Status 0: done; 1: wrong data was read; 2: wrong arguments;
 * 3: the machine's fault (no file, no memory, an I/O error). */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 256, PARTS = 3 };
enum { WRONG_DATA = 1, USAGE = 2, MACHINE = 3 };

static const char usage_text[] =
    "usage: fakeapp --create SIZE FILE | fakeapp [OPTIONS] FILE\n"
    "Sizes are in bytes, or with k, M, G (powers of 1024).\n"
    "  -N COUNT    operations in all (1000)\n"
    "  -w, -W SIZE least and greatest size of an operation (4k; the other one's)\n"
    "  -S SIZE     scatter: width of the zone around a lead in which operations fall (0)\n"
    "  -L COUNT    leads: chunks that the file is cut into (1)\n"
    "  -l SIZE     lead advance: by how much a lead moves on after its turn (0)\n"
    "  -r COUNT    repeat: operations of a lead in one turn (1)\n"
    "  -g LOW:HIGH each lead has a scatter of its own, drawn from this interval, in place of -S\n"
    "  -G LOW:HIGH each lead has one turn, of a number of operations drawn from this interval, in place of -N and -r\n"
    "  -x          write, not read\n"
    "  -t COUNT    threads, which share the leads out among themselves (1)\n"
    "  -a CALL     read by pread, read, readv, preadv, fread or mixed (pread)\n"
    "  -s NUMBER   seed (1)\n"
    "  -k          keep what the system has in its cache of the file; otherwise it is dropped before\n";

struct pattern {
    uint64_t operations, least, greatest, scatter, leads, advance, repeat;
    uint64_t scatter_low, scatter_high, repeat_low, repeat_high;
    bool own_scatter, own_repeat;
};

static struct pattern pattern = {.operations = 1000, .leads = 1, .repeat = 1};
static enum { PREAD, READ, READV, PREADV, FREAD, MIXED } call = PREAD;
static const char *const calls[] = {"pread", "read", "readv", "preadv", "fread", "mixed"};
static uint64_t seed = 1, threads = 1, size;
static bool writing, keeping;
static const char *path;

static void die(int status, const char *what)
{
    fprintf(stderr, "fakeapp: %s: %s\n", path ? path : "", what);
    exit(status);
}

static void die_of_errno(const char *what)
{
    fprintf(stderr, "fakeapp: %s: cannot %s: %s\n", path, what, strerror(errno));
    exit(MACHINE);
}

/* Checks the result of a read, which must not be empty. */
static void expect_bytes(ssize_t found)
{
    if (found == 0)
        die(MACHINE, "the file has become shorter");
    if (found < 0)
        die_of_errno("read");
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        die(MACHINE, "no memory");
    return memory;
}

/* --- random numbers and the file's content: splitmix64 (Steele, Lea and Flood 2014) */

static uint64_t mixed(uint64_t number)
{
    number += UINT64_C(0x9e3779b97f4a7c15);
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    return number ^ (number >> 31);
}

/* Returns a random number from low to high, both included. */
static uint64_t drawn(uint64_t *state, uint64_t low, uint64_t high)
{
    *state = mixed(*state);
    return low + *state % (high - low + 1);
}

/* Fills memory with the content of the file from `offset` on. */
static void content(unsigned char *to, uint64_t offset, size_t bytes)
{
    while (bytes > 0) {
        uint64_t word = mixed(offset / 8);
        size_t skipped = offset % 8, some = 8 - skipped < bytes ? 8 - skipped : bytes;
        memcpy(to, (unsigned char *)&word + skipped, some);
        to += some, offset += some, bytes -= some;
    }
}

static void check(const unsigned char *found, uint64_t offset, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        uint64_t word = mixed((offset + done) / 8);
        size_t skipped = (offset + done) % 8, some = 8 - skipped < bytes - done ? 8 - skipped : bytes - done;
        if (memcmp(found + done, (unsigned char *)&word + skipped, some) != 0) {
            fprintf(stderr, "fakeapp: %s: wrong data within 8 bytes of offset %" PRIu64 "\n", path, offset + done);
            exit(WRONG_DATA);
        }
        done += some;
    }
}

/* --- making the file */

static void create(void)
{
    struct stat there;
    if (stat(path, &there) == 0 && (uint64_t)there.st_size == size)
        return;
    size_t block = 1 << 20;
    unsigned char *buffer = allocate(block);
    char *partial;
    if (asprintf(&partial, "%s.%ld", path, (long)getpid()) < 0)
        die(MACHINE, "no memory");
    int file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        die_of_errno("create");
    for (uint64_t offset = 0; offset < size;) {
        size_t wanted = size - offset < block ? size - offset : block;
        content(buffer, offset, wanted);
        ssize_t written = write(file, buffer, wanted);
        if (written < 0) {
            unlink(partial);
            die_of_errno("write");
        }
        offset += (uint64_t)written;
    }
    if (fsync(file) < 0 || close(file) < 0 || rename(partial, path) < 0)
        die_of_errno("create");
    free(partial);
    free(buffer);
}

/* --- operations */

struct lead {
    uint64_t chunk, first, position, scatter, turn;
};

struct worker {
    pthread_t thread;
    uint64_t number, random, operations, done, bytes;
    struct lead *leads;
    int file;
    FILE *stream;
    unsigned char *buffer;
};

static void read_by_parts(struct worker *of, uint64_t offset, size_t bytes, bool positioned)
{
    struct iovec parts[PARTS];
    size_t done = 0;
    if (!positioned && lseek(of->file, (off_t)offset, SEEK_SET) < 0)
        die_of_errno("seek");
    while (done < bytes) {
        size_t each = (bytes - done + PARTS - 1) / PARTS, given = done;
        int count = 0;
        for (; count < PARTS && given < bytes; count++) {
            size_t some = bytes - given < each ? bytes - given : each;
            parts[count] = (struct iovec){of->buffer + given, some};
            given += some;
        }
        ssize_t found =
            positioned ? preadv(of->file, parts, count, (off_t)(offset + done)) : readv(of->file, parts, count);
        expect_bytes(found);
        done += (size_t)found;
    }
}

static void read_whole(struct worker *of, uint64_t offset, size_t bytes)
{
    int by = call == MIXED ? (int)drawn(&of->random, PREAD, FREAD) : (int)call;
    if (by == READV || by == PREADV) {
        read_by_parts(of, offset, bytes, by == PREADV);
    } else if (by == FREAD) {
        if (fseeko(of->stream, (off_t)offset, SEEK_SET) < 0 || fread(of->buffer, 1, bytes, of->stream) != bytes)
            die_of_errno("read");
    } else {
        if (by == READ && lseek(of->file, (off_t)offset, SEEK_SET) < 0)
            die_of_errno("seek");
        for (size_t done = 0; done < bytes;) {
            ssize_t found = by == READ ? read(of->file, of->buffer + done, bytes - done)
                                       : pread(of->file, of->buffer + done, bytes - done, (off_t)(offset + done));
            expect_bytes(found);
            done += (size_t)found;
        }
    }
    check(of->buffer, offset, bytes);
}

static void write_whole(struct worker *of, uint64_t offset, size_t bytes)
{
    content(of->buffer, offset, bytes);
    for (size_t done = 0; done < bytes;) {
        ssize_t written = pwrite(of->file, of->buffer + done, bytes - done, (off_t)(offset + done));
        if (written < 0)
            die_of_errno("write");
        done += (size_t)written;
    }
}

static void operate(struct worker *of, const struct lead *lead)
{
    uint64_t bytes = drawn(&of->random, pattern.least, pattern.greatest);
    /* the part of the zone within the file: its ends must not become hot spots */
    uint64_t last = size - bytes, half = lead->scatter / 2, far = lead->position + lead->scatter - half;
    uint64_t low = lead->position > half ? lead->position - half : 0, high = far < last ? far : last;
    uint64_t offset = lead->scatter == 0 || low >= high ? (low < last ? low : last) : drawn(&of->random, low, high);
    if (writing)
        write_whole(of, offset, bytes);
    else
        read_whole(of, offset, bytes);
    of->done++;
    of->bytes += bytes;
}

/* Does the work of one thread: every `threads`-th lead. */
static void *work(void *given)
{
    struct worker *of = given;
    uint64_t left = of->operations;
    bool once = pattern.own_repeat;
    do {
        for (uint64_t number = of->number; number < pattern.leads && (once || left > 0); number += threads) {
            struct lead *lead = &of->leads[number];
            uint64_t turn = once || lead->turn < left ? lead->turn : left;
            for (uint64_t i = 0; i < turn; i++)
                operate(of, lead);
            left -= once ? 0 : turn;
            uint64_t within = lead->position - lead->first + pattern.advance;
            lead->position = lead->first + within % lead->chunk;
        }
    } while (!once && left > 0);
    return NULL;
}

static struct lead *make_leads(void)
{
    struct lead *leads = allocate(pattern.leads * sizeof *leads);
    uint64_t random = mixed(seed), chunk = size / pattern.leads;
    for (uint64_t i = 0; i < pattern.leads; i++) {
        leads[i] = (struct lead){chunk, i * chunk, i * chunk + chunk / 2, pattern.scatter, pattern.repeat};
        if (pattern.own_scatter)
            leads[i].scatter = drawn(&random, pattern.scatter_low, pattern.scatter_high);
        if (pattern.own_repeat)
            leads[i].turn = drawn(&random, pattern.repeat_low, pattern.repeat_high);
    }
    return leads;
}

static void open_for(struct worker *of, struct lead *leads)
{
    of->leads = leads;
    of->random = mixed(seed + UINT64_C(0x100000000) * (of->number + 1));
    of->operations = pattern.operations / threads + (of->number < pattern.operations % threads);
    of->buffer = allocate(pattern.greatest);
    of->file = open(path, (writing ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (of->file < 0)
        die_of_errno("open");
    if (!writing && (call == FREAD || call == MIXED) && !(of->stream = fopen(path, "re")))
        die_of_errno("open");
}

static void run(void)
{
    struct lead *leads = make_leads();
    struct worker *workers = allocate(threads * sizeof *workers);
    memset(workers, 0, threads * sizeof *workers);
    for (uint64_t i = 0; i < threads; i++) {
        workers[i].number = i;
        open_for(&workers[i], leads);
    }
    int error = keeping ? 0 : posix_fadvise(workers[0].file, 0, 0, POSIX_FADV_DONTNEED);
    if (error) {
        errno = error;
        die_of_errno("drop from the cache");
    }

    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (uint64_t i = 1; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            die(MACHINE, "cannot start a thread");
    work(&workers[0]);
    uint64_t operations = workers[0].done, bytes = workers[0].bytes;
    for (uint64_t i = 1; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        operations += workers[i].done, bytes += workers[i].bytes;
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);

    for (uint64_t i = 0; i < threads; i++) {
        if (writing && fsync(workers[i].file) < 0)
            die_of_errno("write");
        close(workers[i].file);
        if (workers[i].stream)
            fclose(workers[i].stream);
        free(workers[i].buffer);
    }
    free(workers);
    free(leads);
    double seconds = (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
    printf("{\"seconds\": %.6f, \"operations\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n", seconds, operations, bytes);
}

/* --- the command line */

static void refuse(const char *option, const char *value, const char *allowed)
{
    fprintf(stderr, "fakeapp: %s: '%s' is not allowed. Use %s.\n", option, value, allowed);
    exit(USAGE);
}

/* Returns the number at the start of `text`, and sets `end` to the character after it. */
static uint64_t number(const char *option, const char *text, char **end)
{
    const char *allowed = "a whole number below 2^53; bytes may end with k, M or G";
    errno = 0;
    uint64_t value = strtoull(text, end, 10);
    if (*end == text || text[0] < '0' || text[0] > '9' || errno)
        refuse(option, text, allowed);
    const char *units = "kMG", *unit = **end ? strchr(units, **end) : NULL;
    for (long power = unit ? unit - units + 1 : 0; power > 0; power--) {
        if (value >> 43)
            refuse(option, text, allowed);
        value <<= 10;
    }
    *end += unit != NULL;
    if (value >> 53)
        refuse(option, text, allowed);
    return value;
}

static uint64_t whole(const char *option, const char *text, uint64_t least)
{
    char *end;
    uint64_t value = number(option, text, &end);
    if (*end || value < least)
        refuse(option, text, least ? "a whole number of at least 1" : "a whole number");
    return value;
}

static bool interval(const char *option, const char *text, uint64_t *low, uint64_t *high)
{
    char *end;
    *low = number(option, text, &end);
    if (*end != ':')
        refuse(option, text, "LOW:HIGH");
    *high = number(option, end + 1, &end);
    if (*end || *high < *low)
        refuse(option, text, "LOW:HIGH, the first not greater than the second");
    return true;
}

static void read_arguments(int count, char **given)
{
    static const struct option longer[] = {{"create", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool creating = false;
    int letter;
    while ((letter = getopt_long(count, given, "N:w:W:S:L:l:r:g:G:xt:a:s:k", longer, NULL)) != -1) {
        const char option[] = {'-', (char)letter, 0};
        switch (letter) {
        case 'c': creating = true, size = whole("--create", optarg, 1); break;
        case 'h': fputs(usage_text, stdout); exit(0);
        case 'N': pattern.operations = whole(option, optarg, 0); break;
        case 'w': pattern.least = whole(option, optarg, 1); break;
        case 'W': pattern.greatest = whole(option, optarg, 1); break;
        case 'S': pattern.scatter = whole(option, optarg, 0); break;
        /* `-L 0 -r 0` means accesses all over the file: one lead, one operation in a turn */
        case 'L': pattern.leads = whole(option, optarg, 0) ?: 1; break;
        case 'l': pattern.advance = whole(option, optarg, 0); break;
        case 'r': pattern.repeat = whole(option, optarg, 0) ?: 1; break;
        case 'g': pattern.own_scatter = interval(option, optarg, &pattern.scatter_low, &pattern.scatter_high); break;
        case 'G': pattern.own_repeat = interval(option, optarg, &pattern.repeat_low, &pattern.repeat_high); break;
        case 'x': writing = true; break;
        case 't': threads = whole(option, optarg, 1); break;
        case 's': seed = whole(option, optarg, 0); break;
        case 'k': keeping = true; break;
        case 'a':
            for (call = PREAD; strcmp(calls[call], optarg) != 0;)
                if (call++ == MIXED)
                    refuse("-a", optarg, "pread, read, readv, preadv, fread or mixed");
            break;
        default: fputs(usage_text, stderr); exit(USAGE);
        }
    }
    if (optind != count - 1) {
        fputs(usage_text, stderr);
        exit(USAGE);
    }
    path = given[optind];
    if (creating) {
        create();
        exit(0);
    }
    if (threads > MOST_THREADS || threads > pattern.leads)
        die(USAGE, "-t is too large. Use at most 256 threads, and at most as many as there are leads (-L).");
    if (!pattern.least)
        pattern.least = pattern.greatest && pattern.greatest < 4096 ? pattern.greatest : 4096;
    if (!pattern.greatest)
        pattern.greatest = pattern.least;
    if (pattern.greatest < pattern.least)
        die(USAGE, "-W is smaller than -w. Use a -W of at least -w.");
}

int main(int count, char **given)
{
    read_arguments(count, given);
    struct stat found;
    if (stat(path, &found) < 0)
        die_of_errno("find it");
    size = (uint64_t)found.st_size;
    if (size < pattern.greatest || size < pattern.leads)
        die(USAGE, "the file is smaller than an operation, or has fewer bytes than leads. "
                   "Use a larger file, or smaller -w, -W and -L.");
    run();
    return 0;
}
