/* A slow file server for one command: it shows a folder's files at a mount point, as slow as a busy parallel file
 * system.
 *
 *     slowfs [--latency US] [--bandwidth MB] FOLDER MOUNTPOINT COMMAND [ARGUMENT...]
 *
 * The server answers every request late: requests pass one after the other through a line of this number of MB (10^6
 * bytes) a second, and each answer takes this number of microseconds more. Requests that the kernel answers from its
 * page cache never reach the server. All servers of a FOLDER on one host share one line, so that concurrent readers
 * and writers disturb each other. The data of the files should be in memory, so that the disk does not matter.
 *
 * The mount exists in a mount namespace that only COMMAND shares, and ends with it, however it ends: there is
 * nothing to clean up. It works for root, and for other users who may create user namespaces. Files in the folder
 * itself can be opened, read and written, but not created or removed. The status is COMMAND's, 128 + N if signal N
 * ended it, 3 if the mount is not possible. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 256, LARGEST = 128 << 10, REQUEST = LARGEST + 4096, MACHINE = 3, USAGE = 2 };
/* The number of background requests that the kernel may send, mostly read-ahead: they queue here. */
enum { BACKGROUND = 4096 };
static const uint64_t SECOND = 1000000000, FOREVER = 3600;

static uint64_t latency_ns = 300000, bytes_per_second = 400000000;
static int folder, server;
/* When the line is free again, by the monotonic clock; all servers of the folder map this memory. */
static _Atomic uint64_t *line_free;

/* Node ids are indices of this table plus 2; the root is 1. */
static struct {
    char name[NAME_MAX + 1];
    int file;
} files[MOST_FILES];
static int known;

/* A ring buffer of answers that wait for their time, in order. The data of a read is fetched when the answer is due. */
struct answer {
    uint64_t due, unique, offset;
    uint32_t bytes;
    int file, error; /* file: to read from, or -1: a write's answer */
};
static struct answer *ring;
static size_t room, first, waiting;

static void die(const char *what)
{
    fprintf(stderr, "slowfs: cannot %s: %s\n", what, strerror(errno));
    exit(MACHINE);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* --- the line */

/* Takes a place in the line for a number of bytes. Returns when the answer is due. */
static uint64_t pass(uint64_t bytes)
{
    uint64_t begun = now(), duration = bytes * SECOND / bytes_per_second, seen = atomic_load(line_free), until;
    do {
        /* a time far in the future comes from before the last start of the machine */
        uint64_t from = seen > begun && seen - begun < 60 * SECOND ? seen : begun;
        until = from + duration;
    } while (!atomic_compare_exchange_weak(line_free, &seen, until));
    return until + latency_ns;
}

static void open_line(void)
{
    struct utsname host;
    char name[sizeof host.nodename + 16];
    uname(&host);
    snprintf(name, sizeof name, ".slowfs-%s", host.nodename);
    int file = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, sizeof *line_free) < 0)
        die("open the line's file in the folder");
    line_free = mmap(NULL, sizeof *line_free, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (line_free == MAP_FAILED)
        die("map the line's file");
    close(file);
}

/* --- answers */

static void answer(uint64_t unique, int error, const void *data, size_t bytes)
{
    struct fuse_out_header header = {(uint32_t)(sizeof header + (error ? 0 : bytes)), -error, unique};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)data, bytes}};
    /* an error means that the requesting process was interrupted and is gone */
    if (writev(server, parts, error || !bytes ? 1 : 2) < 0 && errno != ENOENT)
        die("answer");
}

static void answer_later(struct answer given)
{
    if (waiting == room) {
        struct answer *grown = malloc(2 * (room + 32) * sizeof *grown);
        if (!grown)
            die("get memory");
        for (size_t i = 0; i < waiting; i++)
            grown[i] = ring[(first + i) % room];
        free(ring);
        ring = grown, first = 0, room = 2 * (room + 32);
    }
    ring[(first + waiting++) % room] = given;
}

static void answer_first(void)
{
    static char data[LARGEST];
    struct answer given = ring[first];
    first = (first + 1) % room, waiting--;
    if (given.error) {
        answer(given.unique, given.error, NULL, 0);
    } else if (given.file < 0) {
        struct fuse_write_out out = {given.bytes, 0};
        answer(given.unique, 0, &out, sizeof out);
    } else {
        ssize_t found = pread(given.file, data, given.bytes, (off_t)given.offset);
        answer(given.unique, found < 0 ? errno : 0, data, found < 0 ? 0 : (size_t)found);
    }
}

/* --- files */

/* Opens a file; returns its index in the table, or -1 and errno. */
static int find(const char *name)
{
    if (name[0] == '.' || strlen(name) > NAME_MAX) {
        errno = ENOENT;
        return -1;
    }
    for (int i = 0; i < known; i++)
        if (strcmp(files[i].name, name) == 0)
            return i;
    int file = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return -1;
    struct stat found;
    if (fstat(file, &found) < 0 || !S_ISREG(found.st_mode) || known == MOST_FILES) {
        close(file);
        errno = known == MOST_FILES ? ENFILE : ENOENT;
        return -1;
    }
    strcpy(files[known].name, name);
    files[known].file = file;
    return known++;
}

static struct fuse_attr attributes(uint64_t node)
{
    struct stat found;
    if (fstat(node == FUSE_ROOT_ID ? folder : files[node - 2].file, &found) < 0)
        die("look at a file");
    return (struct fuse_attr){
        .ino = node,
        .size = (uint64_t)found.st_size,
        .blocks = (uint64_t)found.st_blocks,
        .atime = (uint64_t)found.st_atim.tv_sec,
        .mtime = (uint64_t)found.st_mtim.tv_sec,
        .ctime = (uint64_t)found.st_ctim.tv_sec,
        .mtimensec = (uint32_t)found.st_mtim.tv_nsec,
        .mode = found.st_mode,
        .nlink = 1,
        .uid = found.st_uid,
        .gid = found.st_gid,
        .blksize = 4096,
    };
}

static void list(uint64_t unique, const struct fuse_read_in *in)
{
    /* there are few files: the whole list from the first entry that the kernel does not have yet */
    static char data[LARGEST];
    size_t used = 0;
    uint64_t place = 0;
    DIR *entries = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.' || entry->d_type != DT_REG || place++ < in->offset)
            continue;
        size_t length = strlen(entry->d_name), all = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
        if (used + all > in->size || used + all > sizeof data)
            break;
        struct fuse_dirent *to = (struct fuse_dirent *)(data + used);
        memset(to, 0, all);
        *to = (struct fuse_dirent){entry->d_ino, place, (uint32_t)length, DT_REG};
        memcpy(to->name, entry->d_name, length);
        used += all;
    }
    if (entries)
        closedir(entries);
    answer(unique, 0, data, used);
}

/* --- requests */

static void serve(const struct fuse_in_header *header, const void *argument)
{
    uint64_t node = header->nodeid, unique = header->unique;
    if (node != FUSE_ROOT_ID && header->opcode != FUSE_INIT && header->opcode != FUSE_INTERRUPT &&
        header->opcode != FUSE_DESTROY && header->opcode != FUSE_BATCH_FORGET && node - 2 >= (uint64_t)known) {
        answer(unique, ENOENT, NULL, 0);
        return;
    }
    switch (header->opcode) {
    case FUSE_INIT: {
        const struct fuse_init_in *in = argument;
        struct fuse_init_out out = {
            .major = FUSE_KERNEL_VERSION,
            .minor = FUSE_KERNEL_MINOR_VERSION < 31 ? FUSE_KERNEL_MINOR_VERSION : 31,
            .max_readahead = in->max_readahead,
            .flags = in->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_AUTO_INVAL_DATA),
            .max_background = BACKGROUND,
            .congestion_threshold = BACKGROUND,
            .max_write = LARGEST,
            .max_pages = LARGEST / 4096,
            .time_gran = 1,
        };
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_LOOKUP: {
        int found = find(argument);
        struct fuse_entry_out out = {.nodeid = (uint64_t)found + 2, .entry_valid = FOREVER, .attr_valid = FOREVER};
        if (found >= 0)
            out.attr = attributes(out.nodeid);
        answer(unique, found < 0 ? errno : 0, &out, sizeof out);
        break;
    }
    case FUSE_GETATTR:
    case FUSE_SETATTR: { /* times, modes and sizes do not change */
        const struct fuse_setattr_in *in = argument;
        if (header->opcode == FUSE_SETATTR && in->valid & FATTR_SIZE) {
            answer(unique, EPERM, NULL, 0);
            break;
        }
        struct fuse_attr_out out = {.attr_valid = FOREVER, .attr = attributes(node)};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_OPEN:
    case FUSE_OPENDIR: {
        struct fuse_open_out out = {.open_flags = header->opcode == FUSE_OPEN ? FOPEN_KEEP_CACHE : 0};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_READ: {
        const struct fuse_read_in *in = argument;
        uint32_t bytes = in->size < LARGEST ? in->size : LARGEST;
        answer_later((struct answer){pass(bytes), unique, in->offset, bytes, files[node - 2].file, 0});
        break;
    }
    case FUSE_WRITE: {
        const struct fuse_write_in *in = argument;
        ssize_t written = pwrite(files[node - 2].file, in + 1, in->size, (off_t)in->offset);
        int error = written < 0 ? errno : 0;
        answer_later((struct answer){pass(in->size), unique, 0, error ? 0 : (uint32_t)written, -1, error});
        break;
    }
    case FUSE_READDIR: list(unique, argument); break;
    case FUSE_STATFS: {
        struct fuse_statfs_out out = {.st = {.bsize = 4096, .frsize = 4096, .namelen = NAME_MAX}};
        answer(unique, 0, &out, sizeof out);
        break;
    }
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_ACCESS: answer(unique, 0, NULL, 0); break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT: break; /* these need no answer */
    default: answer(unique, ENOSYS, NULL, 0);
    }
}

/* Serves all waiting requests. */
static void receive(void)
{
    static _Alignas(8) char request[REQUEST];
    for (;;) {
        ssize_t bytes = read(server, request, sizeof request);
        if (bytes < 0 && (errno == EINTR || errno == ENOENT))
            continue;
        if (bytes < 0 && errno == EAGAIN)
            return;
        if (bytes < (ssize_t)sizeof(struct fuse_in_header))
            die("read requests");
        const struct fuse_in_header *header = (const void *)request;
        serve(header, header + 1);
    }
}

/* Serves until the command ends. Returns its status. */
static int serve_until_end(pid_t command, int ended)
{
    struct pollfd from[] = {{server, POLLIN, 0}, {ended, POLLIN, 0}};
    for (;;) {
        struct timespec pause = {0, 0}, *timeout = NULL;
        if (waiting > 0) {
            uint64_t time = now(), due = ring[first].due;
            uint64_t left = due > time ? due - time : 0;
            pause = (struct timespec){(time_t)(left / SECOND), (long)(left % SECOND)};
            timeout = &pause;
        }
        if (ppoll(from, 2, timeout, NULL) < 0 && errno != EINTR)
            die("wait");
        if (from[0].revents & POLLIN)
            receive();
        while (waiting > 0 && ring[first].due <= now())
            answer_first();
        int status;
        if (from[1].revents & POLLIN && waitpid(command, &status, WNOHANG) == command)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

/* --- the mount, and the command in it */

static void write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        die("map the user into a namespace");
    close(file);
}

static void enter_namespace(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWNS) < 0) {
        char text[64];
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
            die("make a mount namespace: neither root nor allowed to make user namespaces");
        write_text("/proc/self/setgroups", "deny");
        snprintf(text, sizeof text, "%u %u 1", user, user);
        write_text("/proc/self/uid_map", text);
        snprintf(text, sizeof text, "%u %u 1", group, group);
        write_text("/proc/self/gid_map", text);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die("make the mounts private");
}

static void mount_at(const char *place)
{
    char options[128];
    server = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (server < 0)
        die("open /dev/fuse");
    snprintf(options, sizeof options, "fd=%d,rootmode=%o,user_id=%u,group_id=%u,allow_other", server, S_IFDIR,
             geteuid(), getegid());
    if (mkdir(place, 0755) < 0 && errno != EEXIST)
        die("make the mount point");
    if (mount("slowfs", place, "fuse.slowfs", MS_NOSUID | MS_NODEV, options) < 0)
        die("mount");
}

static pid_t start(char **command, const sigset_t *before)
{
    pid_t server_process = getpid(), child = fork();
    if (child < 0)
        die("start a process");
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* without its server the command would wait forever */
    if (getppid() != server_process)
        _exit(MACHINE);
    sigprocmask(SIG_SETMASK, before, NULL);
    execvp(command[0], command);
    fprintf(stderr, "slowfs: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static uint64_t positive(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < least || value > most) {
        fprintf(stderr, "slowfs: %s: '%s' is not allowed. Use %" PRIu64 " to %" PRIu64 ".\n", option, text, least,
                most);
        exit(USAGE);
    }
    return value;
}

int main(int count, char **given)
{
    static const struct option options[] = {
        {"latency", required_argument, NULL, 'l'}, {"bandwidth", required_argument, NULL, 'b'}, {0}};
    int letter;
    while ((letter = getopt_long(count, given, "+", options, NULL)) != -1) {
        if (letter == 'l')
            latency_ns = 1000 * positive("--latency", optarg, 0, 10000000);
        else if (letter == 'b')
            bytes_per_second = 1000000 * positive("--bandwidth", optarg, 1, 1000000);
        else
            count = 0;
    }
    if (count - optind < 3) {
        fputs("usage: slowfs [--latency US] [--bandwidth MB] FOLDER MOUNTPOINT COMMAND [ARGUMENT...]\n", stderr);
        return USAGE;
    }
    folder = open(given[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        die("open the folder");
    open_line();
    enter_namespace();
    mount_at(given[optind + 1]);
    prctl(PR_SET_TIMERSLACK, 1);

    sigset_t child_ends, before;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ends, &before);
    int ended = signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ended < 0)
        die("watch for the command's end");
    return serve_until_end(start(given + optind + 2, &before), ended);
}
