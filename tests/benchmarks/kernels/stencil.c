/* Sweeps of a stencil of seven points over a grid of 192 x 96 x 48 that px * py * pz processes share. Values: px py pz
 * depth derived block. `depth`: the width of the halo, which is exchanged after so many sweeps. `derived`: halos are
 * sent as derived data types, or are packed into buffers. `block`: rows of a block of the sweep; 0 means all.
 *
 * The time is the sum of the CPU time of all processes. A process that waits sleeps, so that waiting costs nothing: more
 * processes than processors run at the same time. */
#include <mpi.h>

#include "kernel.h"

#define SWEEPS 12
static const int SIZE[3] = {192, 96, 48};

static double *old_values, *new_values, *buffer;
static int local[3], padded[3];

static size_t place(int x, int y, int z) { return ((size_t)x * padded[1] + y) * padded[2] + z; }

static void wait_all(int count, MPI_Request *requests) {
  const struct timespec pause = {0, 20000};
  int done = 0;
  for (;;) {
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (done) return;
    nanosleep(&pause, NULL);
  }
}

static void copy(int pack, const int *from, const int *size, double *values) {
  for (int x = 0; x < size[0]; x++)
    for (int y = 0; y < size[1]; y++) {
      double *row = old_values + place(from[0] + x, from[1] + y, from[2]);
      if (pack) memcpy(values, row, (size_t)size[2] * sizeof *row);
      else memcpy(row, values, (size_t)size[2] * sizeof *row);
      values += size[2];
    }
}

/* Exchange the halos of one axis; the parts of earlier axes are sent with them, so that corners arrive. */
static void exchange(MPI_Comm grid, int axis, int depth, int derived) {
  int size[3] = {padded[0], padded[1], padded[2]}, at[4][3] = {{0}}, lower, upper;
  size[axis] = depth;
  at[0][axis] = depth;                    /* sent down */
  at[1][axis] = local[axis];              /* sent up */
  at[2][axis] = local[axis] + depth;      /* received from above */
  at[3][axis] = 0;                        /* received from below */
  MPI_Cart_shift(grid, axis, 1, &lower, &upper);
  size_t count = (size_t)size[0] * size[1] * size[2];
  MPI_Request requests[4];
  const int peers[4] = {lower, upper, upper, lower};
  MPI_Datatype types[4];
  for (int i = 0; i < 4; i++) {
    if (derived) {
      MPI_Type_create_subarray(3, padded, size, at[i], MPI_ORDER_C, MPI_DOUBLE, &types[i]);
      MPI_Type_commit(&types[i]);
    } else if (i < 2 && peers[i] != MPI_PROC_NULL) copy(1, at[i], size, buffer + i * count);
  }
  for (int i = 3; i >= 0; i--) {
    double *values = derived ? old_values : buffer + i * count;
    int number = derived ? 1 : (int)count;
    MPI_Datatype type = derived ? types[i] : MPI_DOUBLE;
    if (i < 2) MPI_Isend(values, number, type, peers[i], i, grid, &requests[i]);
    else MPI_Irecv(values, number, type, peers[i], i - 2, grid, &requests[i]);
  }
  wait_all(4, requests);
  for (int i = 0; i < 4; i++) {
    if (derived) MPI_Type_free(&types[i]);
    else if (i >= 2 && peers[i] != MPI_PROC_NULL) copy(0, at[i], size, buffer + i * count);
  }
}

/* Compute all values that are at least `edge` from the border of the padded grid. */
static void sweep(int edge, int block) {
  int rows = padded[1] - 2 * edge, step = block ? block : rows;
  for (int start = edge; start < edge + rows; start += step)
    for (int x = edge; x < padded[0] - edge; x++)
      for (int y = start; y < start + step && y < edge + rows; y++) {
        const double *at = old_values + place(x, y, 0);
        double *to = new_values + place(x, y, 0);
        size_t row = (size_t)padded[2], plane = row * padded[1];
        for (int z = edge; z < padded[2] - edge; z++)
          to[z] = 0.4 * at[z] + 0.1 * (at[z - 1] + at[z + 1] + at[z - row] + at[z + row] + at[z - plane] + at[z + plane]);
      }
  double *swapped = old_values;
  old_values = new_values;
  new_values = swapped;
}

static double run(const int *v, int *fails) {
  const int periods[3] = {1, 1, 1};
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 3, v, periods, 0, &grid);
  int depth = v[3], rank, coordinates[3];
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 3, coordinates);
  size_t cells = 1;
  for (int axis = 0; axis < 3; axis++) {
    local[axis] = SIZE[axis] / v[axis];
    padded[axis] = local[axis] + 2 * depth;
    cells *= (size_t)padded[axis];
  }
  old_values = calloc(cells, sizeof(double));
  new_values = calloc(cells, sizeof(double));
  buffer = malloc(4 * cells * sizeof(double));
  for (int x = 0; x < local[0]; x++)
    for (int y = 0; y < local[1]; y++)
      for (int z = 0; z < local[2]; z++)
        old_values[place(x + depth, y + depth, z + depth)] =
            (double)((coordinates[0] * local[0] + x) * 3 + (coordinates[1] * local[1] + y) * 5 +
                     (coordinates[2] * local[2] + z) * 7) / 1000.0;
  double began = cpu_ms();
  for (int done = 0; done < SWEEPS; done += depth) {
    for (int axis = 0; axis < 3; axis++) exchange(grid, axis, depth, v[4]);
    for (int i = 1; i <= depth; i++) sweep(i, v[5]);
  }
  double spent = cpu_ms() - began, sum = 0, total, all;
  for (int x = 0; x < local[0]; x++)
    for (int y = 0; y < local[1]; y++)
      for (int z = 0; z < local[2]; z++) sum += old_values[place(x + depth, y + depth, z + depth)];
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
  MPI_Allreduce(&spent, &total, 1, MPI_DOUBLE, MPI_SUM, grid);
  /* The weights have the sum 1 and the grid has no border, so that the mean stays. */
  double mean = all / ((double)SIZE[0] * SIZE[1] * SIZE[2]);
  double expected = ((SIZE[0] - 1) * 3 + (SIZE[1] - 1) * 5 + (SIZE[2] - 1) * 7) / 2000.0;
  *fails = mean > expected * (1 + 1e-9) || mean < expected * (1 - 1e-9);
  free(old_values);
  free(new_values);
  free(buffer);
  MPI_Comm_free(&grid);
  return total;
}

int main(int argc, char **argv) {
  int v[MOST_VALUES + 1], rank, fails;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (;;) {
    if (rank == 0) v[MOST_VALUES] = next_configuration(v);
    MPI_Request request;
    MPI_Ibcast(v, MOST_VALUES + 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    wait_all(1, &request);
    if (v[MOST_VALUES] != 6) break;
    double spent = run(v, &fails);
    if (rank == 0) {
      if (fails) fail("the sweeps are wrong");
      printf("%.4f\n", spent);
      fflush(stdout);
    }
  }
  MPI_Finalize();
  return 0;
}
