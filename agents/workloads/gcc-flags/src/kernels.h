/* The kernels of the workload. Each allocates and fills its input in setup(), does its work in run(), and checks the
 * result in check(). Inputs come from a fixed generator, so that every build works on the same data. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel {
    const char *name;
    void (*setup)(void);
    /* The timed part: the same work at every call. */
    void (*run)(void);
    /* Whether the last run gave the right result, by code that run() does not share. */
    bool (*check)(void);
};

extern const struct kernel lz_kernel, spmv_kernel, join_kernel, search_kernel, stencil_kernel, sort_kernel;

/* xorshift64*: the same sequence on every machine. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

/* malloc that ends the program with status 3 (the machine's fault) when there is no memory. */
void *allocate(size_t bytes);

/* True when a and b agree to a relative tolerance; false for NaN and infinities, whatever -ffast-math assumes. */
bool close_enough(double a, double b, double tolerance);

#endif
