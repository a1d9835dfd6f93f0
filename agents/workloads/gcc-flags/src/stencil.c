/* Heat on a plate in single precision: five-point stencil, fixed border, and the largest change of each step. */
#include <math.h>
#include <string.h>

#include "kernels.h"

enum { SIDE = 512, STEPS = 80 };

static float *plate, *other;
static float largest_change;

static void setup(void)
{
    plate = allocate(sizeof *plate * SIDE * SIDE);
    other = allocate(sizeof *other * SIDE * SIDE);
}

static float step(const float *restrict from, float *restrict to)
{
    float largest = 0.0f;
    for (int row = 1; row < SIDE - 1; row++) {
        for (int col = 1; col < SIDE - 1; col++) {
            int at = row * SIDE + col;
            float change = 0.2f * (from[at - 1] + from[at + 1] + from[at - SIDE] + from[at + SIDE] - 4.0f * from[at]);
            float size = fabsf(change);
            to[at] = from[at] + change;
            largest = size > largest ? size : largest;
        }
    }
    return largest;
}

static void fill(float *grid)
{
    memset(grid, 0, sizeof *grid * SIDE * SIDE);
    for (int col = 0; col < SIDE; col++)
        grid[col] = grid[(SIDE - 1) * SIDE + col] = 100.0f;
}

static void run(void)
{
    fill(plate);
    fill(other);
    for (int i = 0; i < STEPS; i++) {
        largest_change = step(plate, other);
        float *swap = plate;
        plate = other;
        other = swap;
    }
}

/* Far from the left and right borders the plate is a rod: the same steps in one dimension and double precision. */
static bool check(void)
{
    double rod[SIDE] = {[0] = 100.0, [SIDE - 1] = 100.0}, before[SIDE];
    volatile double largest = 0.0;
    for (int i = 0; i < STEPS; i++) {
        memcpy(before, rod, sizeof rod);
        largest = 0.0;
        for (int row = 1; row < SIDE - 1; row++) {
            double change = 0.2 * (before[row - 1] + before[row + 1] - 2.0 * before[row]);
            rod[row] = before[row] + change;
            if (change > largest)
                largest = change;
        }
    }
    for (int row = 0; row < SIDE; row++)
        if (!close_enough(plate[row * SIDE + SIDE / 2] + 1.0, rod[row] + 1.0, 1e-4))
            return false;
    return largest_change > 0.0f && largest > 0.0;
}

const struct kernel stencil_kernel = {"stencil", setup, run, check};
