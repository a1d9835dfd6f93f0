/* Jacobi iterations with a sparse matrix in compressed rows: y = (b - R x) / d. */
#include "kernels.h"

enum { ROWS = 20000, PER_ROW = 12, ITERATIONS = 60 };

static int32_t *column;
static double *value, *diagonal, *right, *x, *next;

static void setup(void)
{
    uint64_t seed = 11;
    column = allocate(sizeof *column * ROWS * PER_ROW);
    value = allocate(sizeof *value * ROWS * PER_ROW);
    diagonal = allocate(sizeof *diagonal * ROWS);
    right = allocate(sizeof *right * ROWS);
    x = allocate(sizeof *x * ROWS);
    next = allocate(sizeof *next * ROWS);
    for (int row = 0; row < ROWS; row++) {
        for (int k = row * PER_ROW; k < (row + 1) * PER_ROW; k++) {
            uint64_t draw = next_random(&seed);
            column[k] = (int32_t)((row + 1 + draw % 400) % ROWS);
            value[k] = (double)(draw >> 40) / (1 << 24) - 0.5;
        }
        diagonal[row] = PER_ROW; /* dominates its row: the iteration converges */
        right[row] = 1.0 + row % 7;
    }
}

static void multiply(const double *restrict from, double *restrict to)
{
    for (int row = 0; row < ROWS; row++) {
        double sum = right[row];
        for (int k = row * PER_ROW; k < (row + 1) * PER_ROW; k++)
            sum -= value[k] * from[column[k]];
        to[row] = sum / diagonal[row];
    }
}

static void run(void)
{
    for (int row = 0; row < ROWS; row++)
        x[row] = 0.0;
    for (int i = 0; i < ITERATIONS; i++) {
        multiply(x, next);
        double *swap = x;
        x = next;
        next = swap;
    }
}

/* The solution must satisfy the equations, whatever the order of the sums was. */
static bool check(void)
{
    for (int row = 0; row < ROWS; row++) {
        volatile double sum = diagonal[row] * x[row];
        for (int k = row * PER_ROW; k < (row + 1) * PER_ROW; k++)
            sum += value[k] * x[column[k]];
        if (!close_enough(sum, right[row], 1e-9))
            return false;
    }
    return true;
}

const struct kernel spmv_kernel = {"spmv", setup, run, check};
