/* burst: a burst buffer in front of a slow directory (thesis, section 2.3), for the length of one job.
 *
 * A guardian process starts the daemon, and the command where there is one. When the command, or the job, ends it has
 * the daemon bring everything to the directory. When the daemon is killed it does that itself with what is in the file
 * level, and then gives up the lock that the preload library waits for. */

#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct settings settings = {
    .polling_threads = 2,
    .worker_threads = 10,
    .ram_destagers = 10,
    .flash_destagers = 10,
    .ram_cache_size = 64,
    .flash_cache_size = 256,
    .ram_cache_threshold = 80,
    .flash_cache_threshold = 80,
};
struct counters *counters;

static const char usage[] =
    "usage: burst run OPTIONS --buffer FOLDER DIRECTORY COMMAND [ARGUMENT]...\n"
    "       burst start OPTIONS --buffer FOLDER DIRECTORY      prints the variables that applications need:\n"
    "                                                          eval \"$(burst start ...)\"\n"
    "       burst stop --buffer FOLDER\n"
    "       burst recover --buffer FOLDER                      after all of it was killed\n"
    "\n"
    "Buffers what a command, or a job, writes below DIRECTORY: in memory, then in files in FOLDER.\n"
    "\n"
    "  --polling-threads N        threads that receive requests (default 2)\n"
    "  --worker-threads N         threads that carry them out (10)\n"
    "  --ram-destagers N          threads that write from memory to FOLDER (10)\n"
    "  --flash-destagers N        threads that write from FOLDER to DIRECTORY (10)\n"
    "  --ram-cache-size MIB       memory for data (64)\n"
    "  --flash-cache-size MIB     size of the file in FOLDER (256)\n"
    "  --ram-cache-threshold P    percent of the memory used, from which on clean data is removed (80)\n"
    "  --flash-cache-threshold P  the same of the file (80)\n"
    "  --latency US, --bandwidth MB/S, --contention US\n"
    "                             makes DIRECTORY slow: each access waits so long; all share so much; each that is\n"
    "                             under way already costs another one so much (as it comes)\n"
    "  --report FILE              where run writes seconds and counters as JSON\n"
    "  --library FILE             the preload library (libburst.so beside this program)\n";

static struct {
    const char *name;
    uint64_t *value, least, most;
} numbers[] = {
    {"polling-threads", &settings.polling_threads, 1, 16},
    {"worker-threads", &settings.worker_threads, 1, 24},
    {"ram-destagers", &settings.ram_destagers, 1, 24},
    {"flash-destagers", &settings.flash_destagers, 1, 24},
    /* more blocks than threads, so that one can always be had */
    {"ram-cache-size", &settings.ram_cache_size, 16, 0},
    {"flash-cache-size", &settings.flash_cache_size, 16, 1 << 20},
    {"ram-cache-threshold", &settings.ram_cache_threshold, 1, 100},
    {"flash-cache-threshold", &settings.flash_cache_threshold, 1, 100},
    {"latency", &settings.latency, 0, 10000000},
    {"contention", &settings.contention, 0, 10000000},
    {"bandwidth", &settings.bandwidth, 0, 1000000},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, BUFFER = NUMBERS, REPORT, LIBRARY };

static const char *report, *library;
static int buffer = -1, lock = -1;

void die(const char *format, ...)
{
    int error = errno;
    char what[PATH_MAX + 200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "burst: cannot %s: %s\n", what, strerror(error));
    exit(MACHINE);
}

static double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- the command line */

static void take_number(int option, const char *text)
{
    uint64_t most = numbers[option].most;
    if (!most) /* memory, in MiB */
        most = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
    char *end;
    errno = 0;
    uint64_t found = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || found < numbers[option].least || found > most) {
        fprintf(stderr, "burst: --%s is '%s'; allowed: %" PRIu64 " to %" PRIu64 "\n", numbers[option].name, text,
                numbers[option].least, most);
        exit(BAD_ARGUMENTS);
    }
    *numbers[option].value = found;
}

static _Noreturn void misused(void)
{
    fputs(usage, stderr);
    exit(BAD_ARGUMENTS);
}

/* Reads the options; what comes behind them. */
static char **take_options(int count, char **given)
{
    struct option options[LIBRARY + 3] = {
        [BUFFER] = {"buffer", required_argument, NULL, BUFFER},
        [REPORT] = {"report", required_argument, NULL, REPORT},
        [LIBRARY] = {"library", required_argument, NULL, LIBRARY},
        [LIBRARY + 1] = {"help", no_argument, NULL, 'h'},
    };
    for (int i = 0; i < NUMBERS; i++)
        options[i] = (struct option){numbers[i].name, required_argument, NULL, i};
    const char *folder = NULL;
    for (int option; (option = getopt_long(count, given, "+", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (option == '?')
            misused();
        else if (option < NUMBERS)
            take_number(option, optarg);
        else if (option == BUFFER)
            folder = optarg;
        else if (option == REPORT)
            report = optarg;
        else
            library = optarg;
    }
    if (!folder)
        misused();
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        die("make %s", folder);
    if (!realpath(folder, settings.buffer))
        die("open %s", folder);
    buffer = open(settings.buffer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (buffer < 0)
        die("open %s", folder);
    return given + optind;
}

static void take_directory(const char *name)
{
    struct stat found;
    if (!realpath(name, settings.directory) || stat(settings.directory, &found) != 0)
        die("use the directory %s", name);
    if (!S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        die("use the directory %s", name);
    }
}

static void take_library(void)
{
    static char path[PATH_MAX + 16];
    if (!library) {
        ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
        if (length < 0)
            die("find itself");
        path[length] = 0;
        strcpy(strrchr(path, '/') + 1, "libburst.so");
        library = path;
    }
    static char absolute[PATH_MAX];
    if (!realpath(library, absolute))
        die("find the library %s", library);
    library = absolute;
}

/* --- one user of a buffer */

static bool try_to_lock(void)
{
    lock = openat(buffer, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0)
        die("make the lock in %s", settings.buffer);
    return flock(lock, LOCK_EX | LOCK_NB) == 0;
}

static void take_lock(void)
{
    if (try_to_lock())
        return;
    char owner[32] = "another process";
    ssize_t length = read(lock, owner, sizeof owner - 1);
    if (length > 0)
        owner[length] = 0;
    fprintf(stderr, "burst: the buffer %s is in use by %s; each job needs its own\n", settings.buffer, owner);
    exit(MACHINE);
}

static void sign_lock(void)
{
    char text[32];
    int length = snprintf(text, sizeof text, "process %d", getpid());
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)length, 0) != length)
        die("write the lock");
}

/* --- the guardian */

static _Noreturn void be_daemon(int ready, pid_t guardian)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* without its guardian it writes all and ends */
    if (getppid() != guardian)
        exit(MACHINE);
    setsid();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    store_start(buffer);
    serve(buffer, ready);
    exit(store_end() ? 0 : MACHINE);
}

static pid_t start_daemon(void)
{
    int pipes[2];
    char byte;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        die("make a pipe");
    counters = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counters == MAP_FAILED)
        die("get memory");
    pid_t guardian = getpid(), daemon = fork();
    if (daemon < 0)
        die("start the daemon");
    if (daemon == 0) {
        close(pipes[0]);
        be_daemon(pipes[1], guardian);
    }
    close(pipes[1]);
    if (read(pipes[0], &byte, 1) != 1)
        exit(MACHINE); /* it has said why */
    close(pipes[0]);
    return daemon;
}

static void write_report(double seconds, double drain, bool survived)
{
    if (!report)
        return;
    FILE *file = fopen(report, "w");
    if (!file)
        die("write %s", report);
    fprintf(file, "{\"seconds\": %.6f, \"drain_seconds\": %.6f, \"daemon_survived\": %s", seconds, drain,
            survived ? "true" : "false");
    const struct {
        const char *name;
        atomic_uint_fast64_t *value;
    } counted[] = {
        {"requests", &counters->requests},           {"read_bytes", &counters->read_bytes},
        {"written_bytes", &counters->written_bytes}, {"ram_hits", &counters->ram_hits},
        {"flash_hits", &counters->flash_hits},       {"backend_reads", &counters->backend_reads},
        {"staged_bytes", &counters->staged_bytes},   {"flushes", &counters->flushes},
        {"flushed_bytes", &counters->flushed_bytes}, {"ram_waits", &counters->ram_waits},
        {"flash_waits", &counters->flash_waits},
    };
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        fprintf(file, ", \"%s\": %" PRIu64, counted[i].name, (uint64_t)atomic_load(counted[i].value));
    if (fprintf(file, "}\n") < 0 || fclose(file) != 0)
        die("write %s", report);
}

static pid_t start_command(char **command, const sigset_t *signals)
{
    pid_t guardian = getpid(), pid = fork();
    if (pid < 0)
        die("start the command");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guardian)
        _exit(MACHINE);
    sigprocmask(SIG_SETMASK, signals, NULL);
    const char *others = getenv("LD_PRELOAD");
    char *preload = NULL;
    if (asprintf(&preload, "%s%s%s", library, others && *others ? ":" : "", others ? others : "") < 0)
        die("get memory");
    setenv("LD_PRELOAD", preload, 1);
    setenv("BURST_BUFFER", settings.buffer, 1);
    setenv("BURST_DIRECTORY", settings.directory, 1);
    execvp(command[0], command);
    fprintf(stderr, "burst: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

/* The daemon was killed: what is in the file level comes to the directory before anybody goes on without it. */
static void take_over(void)
{
    fprintf(stderr, "burst: the daemon was killed; %s is used without a buffer from now on\n", settings.directory);
    unlinkat(buffer, "socket", 0);
    if (!recover(buffer))
        fprintf(stderr, "burst: not all could be written to %s: burst recover --buffer %s\n", settings.directory,
                settings.buffer);
    flock(lock, LOCK_UN);
}

/* Until the command has ended (without one: until SIGTERM) and all is in the directory. The exit status. */
static int guard(pid_t daemon, pid_t command, const sigset_t *watched)
{
    double begun = seconds_now(), ended = begun;
    bool survived = true, running = true;
    int status = 0, daemon_status = 0;
    while (running) {
        int number = 0;
        sigwait(watched, &number);
        if (number == SIGTERM || number == SIGINT) {
            if (command > 0)
                kill(command, number);
            else
                running = false;
            continue;
        }
        int found;
        for (pid_t pid; (pid = waitpid(-1, &found, WNOHANG)) > 0;) {
            if (pid == daemon) {
                survived = false;
                take_over();
            } else if (pid == command) {
                ended = seconds_now();
                running = false;
                status = WIFEXITED(found) ? WEXITSTATUS(found) : 128 + WTERMSIG(found);
            }
        }
        if (!survived && command <= 0)
            return MACHINE;
    }
    if (survived) {
        kill(daemon, SIGTERM);
        while (waitpid(daemon, &daemon_status, 0) < 0 && errno == EINTR)
            ;
        if (WIFSIGNALED(daemon_status)) {
            survived = false;
            take_over();
        } else if (WEXITSTATUS(daemon_status)) {
            fprintf(stderr, "burst: not all could be written to %s: burst recover --buffer %s\n", settings.directory,
                    settings.buffer);
        }
    }
    if (command > 0)
        write_report(ended - begun, seconds_now() - ended, survived);
    if (!survived || WEXITSTATUS(daemon_status))
        return status ? status : MACHINE;
    return status;
}

/* --- what it is asked for */

static int run_or_start(char **left, bool run)
{
    if (!left[0] || run != (left[1] != NULL))
        misused();
    take_directory(left[0]);
    take_library();
    take_lock();
    if (!recover(buffer)) {
        fprintf(stderr, "burst: %s holds data that cannot be written to its directory\n", settings.buffer);
        return MACHINE;
    }
    int pipes[2];
    if (!run) { /* the guardian goes into the background; we wait until it is ready */
        char byte;
        if (pipe2(pipes, O_CLOEXEC) != 0)
            die("make a pipe");
        pid_t guardian = fork();
        if (guardian < 0)
            die("start in the background");
        if (guardian > 0) {
            close(pipes[1]);
            if (read(pipes[0], &byte, 1) != 1)
                return MACHINE;
            printf("export BURST_BUFFER='%s' BURST_DIRECTORY='%s' LD_PRELOAD='%s'\n", settings.buffer,
                   settings.directory, library);
            return 0;
        }
        setsid();
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC); /* whoever reads our output is not kept waiting */
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    sigset_t watched, before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, &before);
    sign_lock();
    pid_t daemon = start_daemon();
    if (!run && write(pipes[1], "", 1) != 1)
        die("tell that it is ready");
    if (!run)
        close(pipes[1]);
    return guard(daemon, run ? start_command(left + 1, &before) : 0, &watched);
}

static int stop(void)
{
    if (try_to_lock()) {
        fprintf(stderr, "burst: nothing runs on the buffer %s\n", settings.buffer);
        return MACHINE;
    }
    char text[32] = "";
    int guardian = 0;
    if (pread(lock, text, sizeof text - 1, 0) < 0 || sscanf(text, "process %d", &guardian) != 1 ||
        kill(guardian, SIGTERM) != 0)
        die("stop what runs on %s", settings.buffer);
    while (flock(lock, LOCK_SH) != 0)
        if (errno != EINTR)
            die("wait for its end");
    return faccessat(buffer, "journal", F_OK, 0) == 0 ? MACHINE : 0;
}

int main(int count, char **given)
{
    /* the library is for applications */
    unsetenv("BURST_BUFFER");
    unsetenv("BURST_DIRECTORY");
    const char *what = count > 1 ? given[1] : "";
    if (strcmp(what, "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    bool run = strcmp(what, "run") == 0, start = strcmp(what, "start") == 0;
    bool stops = strcmp(what, "stop") == 0, recovers = strcmp(what, "recover") == 0;
    if (!run && !start && !stops && !recovers)
        misused();
    char **left = take_options(count - 1, given + 1);
    if (run || start)
        return run_or_start(left, run);
    if (left[0])
        misused();
    if (stops)
        return stop();
    take_lock();
    return recover(buffer) ? 0 : MACHINE;
}
