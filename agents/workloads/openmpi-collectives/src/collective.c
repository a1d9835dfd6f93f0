/* Latency of one MPI collective at one message size.
 *
 *     mpirun -n 4 collective bcast|gather|reduce|allreduce BYTES [SECONDS]
 *
 * BYTES is the size of each rank's contribution (bcast: the root's), as in the OSU micro-benchmarks, whose columns are
 * printed as well. A latency is that of the slowest rank in an iteration. The program measures for about SECONDS (0.3)
 * after a warm-up.
 *
 * It checks every result of the warm-up, the result of the last timed iteration, and one more afterwards. Status 0:
 * measured; 1: a wrong result, or MPI refused; 2: wrong arguments; 3: no memory. Ranks agree by plain messages, because
 * the collectives themselves are under test. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 10, LEAST = 20, MOST = 2000, TAG = 1 };

static int rank, ranks;
static const char *collective;
static int count; /* of floats */
static float *given, *received;

static void die(int status, const char *message)
{
    fprintf(stderr, "%s: rank %d: %s\n", collective, rank, message);
    MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        die(3, "no memory");
    return memory;
}

/* The value of a rank at an index: small whole numbers, whose sums are exact in any order up to 8,000 ranks. */
static float value(int of, long index, int round)
{
    return (float)((of % 16 + 1) * (int)((index + 31L * round) % 127));
}

static int is(const char *name)
{
    return strcmp(collective, name) == 0;
}

/* Whether this rank has the result. */
static int receives(void)
{
    return is("bcast") || is("allreduce") || rank == 0;
}

/* Gives every rank new data, which differs from round to round. */
static void prepare(int round)
{
    for (long i = 0; i < count; i++)
        given[i] = value(rank, i, round);
    if (is("bcast") && rank != 0)
        memset(given, 0xff, sizeof *given * (size_t)count);
    if (received)
        memset(received, 0xff, sizeof *received * (size_t)count * (is("gather") ? (size_t)ranks : 1));
}

static void run(void)
{
    if (is("bcast"))
        MPI_Bcast(given, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    else if (is("gather"))
        MPI_Gather(given, count, MPI_FLOAT, received, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    else if (is("reduce"))
        MPI_Reduce(given, received, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Allreduce(given, received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void check(int round)
{
    if (!receives())
        return;
    const float *result = is("bcast") ? given : received;
    const long length = is("gather") ? (long)count * ranks : count;
    for (long i = 0; i < length; i++) {
        float expected = 0;
        if (is("bcast"))
            expected = value(0, i, round);
        else if (is("gather"))
            expected = value((int)(i / count), i % count, round);
        else
            for (int of = 0; of < ranks; of++)
                expected += value(of, i, round);
        if (result[i] != expected) { /* NaN, which prepare() has written, differs from everything */
            char message[100];
            snprintf(message, sizeof message, "wrong result: element %ld is %g, not %g", i, result[i], expected);
            die(1, message);
        }
    }
}

/* Runs one iteration; returns its latency on this rank, in seconds. */
static double timed(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    run();
    return MPI_Wtime() - start;
}

/* Sends the maximum over all ranks of each of `n` numbers to rank 0. */
static void greatest(double *numbers, int n)
{
    if (rank != 0) {
        MPI_Send(numbers, n, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    double *others = allocate(sizeof *others * (size_t)n);
    for (int from = 1; from < ranks; from++) {
        MPI_Recv(others, n, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            if (others[i] > numbers[i])
                numbers[i] = others[i];
    }
    free(others);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double share)
{
    const double at = share * (n - 1);
    const int below = (int)at;
    const int above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/* Returns the number of iterations that fill `seconds`, by the median of the warm-up; the root decides. */
static int iterations(double *latencies, int n, double seconds)
{
    int decided = 0;
    greatest(latencies, n);
    if (rank == 0) {
        qsort(latencies, (size_t)n, sizeof *latencies, ascending);
        const double wanted = seconds / (quantile(latencies, n, 0.5) + 1e-9);
        decided = wanted < LEAST ? LEAST : wanted > MOST ? MOST : (int)wanted;
        for (int to = 1; to < ranks; to++)
            MPI_Send(&decided, 1, MPI_INT, to, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&decided, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return decided;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    collective = argc > 1 ? argv[1] : "collective";
    const long bytes = argc > 2 ? atol(argv[2]) : 0;
    const double seconds = argc > 3 ? atof(argv[3]) : 0.3;
    if (!(is("bcast") || is("gather") || is("reduce") || is("allreduce")) || ranks < 2 || bytes < 4 || bytes % 4 ||
        bytes > 1L << 30 || !(seconds > 0)) {
        if (rank == 0)
            fprintf(stderr, "usage: mpirun -n RANKS collective bcast|gather|reduce|allreduce BYTES [SECONDS]\n"
                            "at least 2 ranks; BYTES a multiple of 4, at most 1 GiB; SECONDS above 0\n");
        MPI_Finalize();
        return 2;
    }
    count = (int)(bytes / (long)sizeof *given);
    given = allocate(sizeof *given * (size_t)count);
    if (!is("bcast"))
        received = allocate(sizeof *received * (size_t)count * (is("gather") ? (size_t)ranks : 1));

    double *latencies = allocate(sizeof *latencies * MOST);
    int round = 0;
    for (; round < WARM_UP; round++) {
        prepare(round);
        latencies[round] = timed();
        check(round);
    }
    const int n = iterations(latencies, WARM_UP, seconds);
    prepare(round);
    for (int i = 0; i < n; i++)
        latencies[i] = timed();
    check(round++);
    prepare(round);
    timed();
    check(round);

    greatest(latencies, n);
    if (rank == 0) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += latencies[i];
        qsort(latencies, (size_t)n, sizeof *latencies, ascending);
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        MPI_Get_library_version(version, &length);
        printf("# %s of %d ranks, %.*s\n", collective, ranks, (int)strcspn(version, ",\n"), version);
        printf("%-10s%18s%18s%18s%18s%18s%12s\n", "# Size", "Avg Latency(us)", "Min Latency(us)", "Max Latency(us)",
               "P50 Tail Lat(us)", "P90 Tail Lat(us)", "Iterations");
        printf("%-10ld%18.2f%18.2f%18.2f%18.2f%18.2f%12d\n", bytes, sum / n * 1e6, latencies[0] * 1e6,
               latencies[n - 1] * 1e6, quantile(latencies, n, 0.5) * 1e6, quantile(latencies, n, 0.9) * 1e6, n);
    }
    free(latencies);
    free(given);
    free(received);
    MPI_Finalize();
    return 0;
}
