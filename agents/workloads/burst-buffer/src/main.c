/* burst: a burst buffer in front of a slow directory for the length of one job [robert-2021, section 2.3].
 *
 * A guardian process starts the daemon, and the command if there is one. When the command or the job ends, the
 * guardian has the daemon write all data to the directory. If the daemon is killed, the guardian itself writes the
 * data of the file level there, and then releases the lock for which the preload library waits. */

#define _GNU_SOURCE
#include "daemon.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int lock = -1;
static struct claim own_directory;
/* The buffer that the job already has, and its directory, from the environment; null: none. */
static const char *jobs_buffer, *jobs_directory;
/* The data node that is used, its address in numbers, and the number of its daemon. */
static struct node data_node;
static char node_address[NI_MAXHOST + NI_MAXSERV + 4];
static uint64_t node_number;
/* What the daemon has used. */
static struct rusage used;

static double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- the lock of a buffer */

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
    fprintf(stderr, "burst: the buffer %s is in use by %s. Use another folder for --buffer: each job needs its own.\n",
            settings.buffer, owner);
    exit(MACHINE);
}

/* Records whose the lock is: for people in the file's text, and for `stop` by a second lock, which the system releases
 * with the process, because another process may get its number. */
static void sign_lock(void)
{
    char text[32];
    struct flock own = {.l_type = F_WRLCK};
    int length = snprintf(text, sizeof text, "process %d", getpid());
    if (ftruncate(lock, 0) != 0 || pwrite(lock, text, (size_t)length, 0) != length ||
        fcntl(lock, F_SETLK, &own) != 0)
        die("write the lock");
}

/* --- the guardian */

static _Noreturn void be_daemon(int ready, pid_t guardian)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* without its guardian the daemon writes all data and ends */
    if (getppid() != guardian)
        exit(MACHINE);
    setsid();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int gate = served.length ? open_gate() : -1;
    store_start(buffer);
    serve(buffer, gate, ready);
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
        exit(MACHINE); /* the daemon has printed why */
    close(pipes[0]);
    return daemon;
}

/* Checks before anything runs that the report can be written: the end of the command would be too late. */
static void try_report(void)
{
    FILE *file = report ? fopen(report, "a") : NULL;
    if (report && !file)
        die("write %s", report);
    if (file)
        fclose(file);
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
    for (size_t i = 0; counters && i < sizeof counted / sizeof *counted; i++)
        fprintf(file, ", \"%s\": %" PRIu64, counted[i].name, (uint64_t)atomic_load(counted[i].value));
    if (counters)
        fprintf(file, ", \"memory_mib\": %.1f, \"threads\": %" PRIu64 ", \"cpu_seconds\": %.3f",
                (double)used.ru_maxrss / 1024 + (double)atomic_load(&counters->flash_most) * BLOCK / (1 << 20),
                settings.polling_threads + settings.worker_threads + settings.ram_destagers + settings.flash_destagers,
                (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                    (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
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
    if (library && asprintf(&preload, "%s%s%s", library, others && *others ? ":" : "", others ? others : "") < 0)
        die("get memory");
    if (preload)
        setenv("LD_PRELOAD", preload, 1);
    if (node) {
        setenv("BURST_NODE", node_address, 1);
        setenv("BURST_TOKEN", token, 1);
    } else {
        setenv("BURST_BUFFER", settings.buffer, 1);
    }
    setenv("BURST_DIRECTORY", settings.directory, 1);
    execvp(command[0], command);
    fprintf(stderr, "burst: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static void print_unwritten(void)
{
    fprintf(stderr, "burst: not all data could be written to %s. Run: burst recover --buffer %s\n",
            settings.directory, settings.buffer);
}

/* After the daemon was killed: writes the file level to the directory before any process uses that without a buffer. */
static void take_over(void)
{
    fprintf(stderr, "burst: the daemon was killed; %s is used without a buffer from now on\n", settings.directory);
    unlinkat(buffer, "socket", 0);
    if (!recover(buffer))
        print_unwritten();
    flock(lock, LOCK_UN);
}

/* --- a data node */

/* Connects to the data node before anything runs. */
static void find_node(void)
{
    static char path[PATH_MAX];
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (!read_address(&data_node, node, true) ||
        getnameinfo((struct sockaddr *)&data_node.address, data_node.length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        fprintf(stderr, "burst: --node: '%s' is not allowed. Use ADDRESS:PORT of a data node.\n", node);
        exit(BAD_ARGUMENTS);
    }
    bool brackets = strchr(host, ':');
    snprintf(node_address, sizeof node_address, "%s%s%s:%s", brackets ? "[" : "", host, brackets ? "]" : "", port);
    take_token(&data_node, false);
    if (!realpath(token, path))
        die("find the token %s", token);
    token = path; /* for processes in other folders */
    int socket = connect_to_node(&data_node, &node_number);
    if (socket < 0)
        die("reach the data node %s", node);
    close(socket);
}

/* Has the data node write all data to the directory. `survived`: whether it is still the daemon of the beginning. */
static bool bring_all_of_node(bool *survived)
{
    struct area *area = mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t number = 0;
    int socket = area == MAP_FAILED ? -1 : connect_to_node(&data_node, &number);
    bool answered = false;
    if (socket >= 0) {
        area->message = (struct message){.operation = SYNC_ALL};
        answered = exchange_with_node(socket, area);
        errno = answered ? (int)-area->message.result : ECONNRESET;
        close(socket);
    }
    *survived = answered && number == node_number;
    bool all = answered && !area->message.result;
    if (!all)
        fprintf(stderr, "burst: not all data could be written to %s: %s\n", settings.directory, strerror(errno));
    else if (!*survived)
        fprintf(stderr, "burst: the data node %s was started again; data that was not synced may be lost\n", node);
    return all;
}

/* --- a buffer that the job already has */

static bool is_served(const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int opened = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), tried = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", opened);
    bool served = opened >= 0 && tried >= 0 && connect(tried, (struct sockaddr *)&address, sizeof address) == 0;
    if (opened >= 0)
        close(opened);
    if (tried >= 0)
        close(tried);
    return served;
}

/* Uses the job's buffer if it is for the directory. Returns whether it does. */
static bool join(void)
{
    if (!jobs_buffer || !jobs_directory || strcmp(jobs_directory, settings.directory) != 0 || !is_served(jobs_buffer))
        return false;
    const char *preload = getenv("LD_PRELOAD");
    if (!preload || !strstr(preload, "libburst")) {
        fprintf(stderr,
                "burst: the job has the buffer %s, but LD_PRELOAD has no libburst.so. "
                "Run the line that burst start printed.\n",
                jobs_buffer);
        exit(MACHINE);
    }
    snprintf(settings.buffer, sizeof settings.buffer, "%s", jobs_buffer);
    library = NULL;
    return true;
}

/* Has the job's daemon write all data to the directory: the preload library, which this process has, too, asks it
 * to. */
static bool bring_all(void)
{
    int folder = open(settings.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool all = folder >= 0 && syncfs(folder) == 0;
    if (!all)
        fprintf(stderr, "burst: not all data could be written to %s: %s\n", settings.directory, strerror(errno));
    if (folder >= 0)
        close(folder);
    return all;
}

/* Waits until the command has ended (without one: until SIGTERM) and all data is in the directory. Returns the exit
 * status. `daemon` is 0 if the job's daemon, or a data node, is used. */
static int guard(pid_t daemon, pid_t command, const sigset_t *watched)
{
    double begun = seconds_now(), ended = begun;
    bool survived = true, running = true, all = true;
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
        struct rusage its;
        for (pid_t pid; (pid = wait4(-1, &found, WNOHANG, &its)) > 0;) {
            if (pid == daemon) {
                used = its;
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
    if (node) {
        all = bring_all_of_node(&survived);
    } else if (!daemon) {
        all = bring_all();
        survived = is_served(settings.buffer);
    } else if (survived) {
        kill(daemon, SIGTERM);
        while (wait4(daemon, &daemon_status, 0, &used) < 0 && errno == EINTR)
            ;
        if (WIFSIGNALED(daemon_status)) {
            survived = false;
            take_over();
        } else if (WEXITSTATUS(daemon_status)) {
            all = false;
            print_unwritten();
        }
    }
    if (command > 0)
        write_report(ended - begun, seconds_now() - ended, survived);
    if (!survived || !all)
        return status ? status : MACHINE;
    return status;
}

/* --- the commands */

/* Prints NAME='value:more' as a shell reads it. */
static void print_variable(const char *name, const char *value, const char *more)
{
    printf("%s='", name);
    for (const char *parts[] = {value, *more ? ":" : "", more}, **part = parts; part < parts + 3; part++)
        for (const char *letter = *part; *letter; letter++)
            if (*letter == '\'')
                fputs("'\\''", stdout);
            else
                putchar(*letter);
    putchar('\'');
}

static int run_or_start(char **left, bool run)
{
    if (!left[0] || run != (left[1] != NULL))
        misused();
    if (node && !run)
        misused();
    take_directory(left[0]);
    bool joined = node || (run && joins && join());
    if (node || !joined)
        take_library();
    if (node)
        find_node();
    if (served.length)
        take_token(&served, true);
    try_report();
    int pipes[2];
    if (!run) { /* the guardian goes into the background; this process waits until it is ready */
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
            const char *others = getenv("LD_PRELOAD");
            print_variable("export BURST_BUFFER", settings.buffer, "");
            print_variable(" BURST_DIRECTORY", settings.directory, "");
            print_variable(" LD_PRELOAD", library, others ? others : "");
            putchar('\n');
            return 0;
        }
        close(pipes[0]);
        setsid();
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC); /* no reader of our output waits for the guardian */
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    if (!joined) {
        take_lock();
        claim(&own_directory, settings.directory);
        if (!recover(buffer)) {
            fprintf(stderr, "burst: %s holds data that cannot be written to its directory\n", settings.buffer);
            return MACHINE;
        }
    }
    sigset_t watched, before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &watched, &before);
    pid_t daemon = 0;
    if (!joined) {
        sign_lock();
        daemon = start_daemon();
    }
    if (!run && write(pipes[1], "", 1) != 1)
        die("report that it is ready");
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
    struct flock guardian = {.l_type = F_WRLCK};
    /* a daemon without a guardian ends by itself */
    if (fcntl(lock, F_GETLK, &guardian) != 0 ||
        (guardian.l_type != F_UNLCK && kill(guardian.l_pid, SIGTERM) != 0 && errno != ESRCH))
        die("stop what runs on %s", settings.buffer);
    while (flock(lock, LOCK_SH) != 0)
        if (errno != EINTR)
            die("wait for its end");
    return faccessat(buffer, "journal", F_OK, 0) == 0 ? MACHINE : 0;
}

int main(int count, char **given)
{
    jobs_buffer = getenv("BURST_BUFFER");
    jobs_directory = getenv("BURST_DIRECTORY");
    /* burst itself is not buffered */
    unsetenv("BURST_BUFFER");
    unsetenv("BURST_DIRECTORY");
    unsetenv("BURST_NODE");
    unsetenv("BURST_TOKEN");
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
    if (left[0] || buffer < 0)
        misused();
    if (stops)
        return stop();
    take_lock();
    return recover(buffer) ? 0 : MACHINE;
}
