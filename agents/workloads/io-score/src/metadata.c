/* Creates, stats, reads or deletes many small files with several processes, or finds them, and prints the rate.
 *
 *     metadata create|stat|read|delete FOLDER PROCESSES FILES BYTES shared|own
 *     metadata find FOLDER 1 FILES BYTES
 *
 * FILES is the number of all files together. With `own`, each process has a folder; with `shared`, all files are in one.
 * The time of `create` has the end of a syncfs, so that what was written is on the disk. `find` counts the files below
 * FOLDER that have BYTES bytes, of which there must be FILES. A wrong byte or count ends the program with status 1. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 1 << 16, NAME = 4096, WRONG = 1, USAGE = 2, MACHINE = 3 };

static char content[LARGEST], found[LARGEST];
static const char *folder;
static long processes, files, bytes, counted;
static int shared;

static void give_up(int status, const char *what, const char *path)
{
    fprintf(stderr, "metadata: cannot %s %s: %s\n", what, path, strerror(errno));
    _exit(status);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void name_folder(char *text, long process)
{
    snprintf(text, NAME, shared ? "%s/shared" : "%s/own-%ld", folder, process);
}

static void create_one(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0 || (bytes && write(file, content, (size_t)bytes) != bytes) || close(file) < 0)
        give_up(MACHINE, "create", path);
}

static void stat_one(const char *path)
{
    struct stat known;
    if (stat(path, &known) < 0)
        give_up(MACHINE, "stat", path);
    if (known.st_size != bytes) {
        fprintf(stderr, "metadata: %s has %ld bytes in place of %ld\n", path, (long)known.st_size, bytes);
        _exit(WRONG);
    }
}

static void read_one(const char *path)
{
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, found, sizeof found) != bytes || close(file) < 0)
        give_up(MACHINE, "read", path);
    if (memcmp(found, content, (size_t)bytes) != 0) {
        fprintf(stderr, "metadata: %s has a wrong byte\n", path);
        _exit(WRONG);
    }
}

static void delete_one(const char *path)
{
    if (unlink(path) < 0)
        give_up(MACHINE, "delete", path);
}

/* The share of one process: each file of a shared folder belongs to one of them. */
static void work(void (*act)(const char *), long process)
{
    char path[NAME + 32], place[NAME];
    name_folder(place, process);
    for (long file = process; file < files; file += processes) {
        snprintf(path, sizeof path, "%s/file-%ld", place, file);
        act(path);
    }
}

static int count_one(const char *path, const struct stat *known, int type, struct FTW *at)
{
    (void)path;
    (void)at;
    counted += type == FTW_F && known->st_size == bytes;
    return 0;
}

static void find_all(void)
{
    if (nftw(folder, count_one, 64, FTW_PHYS) < 0)
        give_up(MACHINE, "walk", folder);
    if (counted != files) {
        fprintf(stderr, "metadata: found %ld files of %ld bytes in place of %ld\n", counted, bytes, files);
        exit(WRONG);
    }
}

static void sync_all(void)
{
    int place = open(folder, O_RDONLY | O_DIRECTORY);
    if (place < 0 || syncfs(place) < 0 || close(place) < 0)
        give_up(MACHINE, "sync", folder);
}

/* Runs all processes at the same time; their first error is the result. */
static void work_together(void (*act)(const char *))
{
    for (long process = 0; process < processes; process++) {
        pid_t child = fork();
        if (child < 0)
            give_up(MACHINE, "fork in", folder);
        if (child == 0) {
            work(act, process);
            _exit(0);
        }
    }
    int status, worst = 0;
    while (wait(&status) > 0)
        if (status && !worst)
            worst = WIFEXITED(status) ? WEXITSTATUS(status) : MACHINE;
    if (worst)
        exit(worst);
}

static long number(const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || end == text || value < least || value > most) {
        fprintf(stderr, "metadata: '%s' is not allowed. Use a number from %ld to %ld.\n", text, least, most);
        exit(USAGE);
    }
    return value;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*act)(const char *);
    } actions[] = {{"create", create_one}, {"stat", stat_one}, {"read", read_one}, {"delete", delete_one}};
    if (count < 6) {
        fprintf(stderr, "usage: metadata create|stat|read|delete|find FOLDER PROCESSES FILES BYTES shared|own\n");
        return USAGE;
    }
    folder = words[2];
    processes = number(words[3], 1, 256);
    files = number(words[4], 1, 10000000);
    bytes = number(words[5], 0, LARGEST - 1);
    shared = count > 6 && strcmp(words[6], "shared") == 0;
    for (long place = 0; place < bytes; place++)
        content[place] = (char)(place * 31 + 7);
    void (*act)(const char *) = NULL;
    for (size_t place = 0; place < sizeof actions / sizeof *actions; place++)
        if (strcmp(words[1], actions[place].name) == 0)
            act = actions[place].act;
    if (!act && strcmp(words[1], "find") != 0) {
        fprintf(stderr, "metadata: action '%s' is unknown. Use create, stat, read, delete or find.\n", words[1]);
        return USAGE;
    }
    if (act == create_one)
        for (long process = 0; process < (shared ? 1 : processes); process++) {
            char place[NAME];
            name_folder(place, process);
            if (mkdir(place, 0700) < 0)
                give_up(MACHINE, "make", place);
        }
    double begin = now();
    if (act)
        work_together(act);
    else
        find_all();
    if (act == create_one)
        sync_all();
    printf("%.9f\n", now() - begin);
    return 0;
}
