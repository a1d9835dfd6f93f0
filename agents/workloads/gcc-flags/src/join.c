/* Hash join of two tables on an integer key, with an aggregate over the pairs: open addressing, linear probing. */
#include <stdlib.h>

#include "kernels.h"

enum { BUILD_ROWS = 100000, PROBE_ROWS = 500000, SLOT_BITS = 18, KEYS = 150000, PASSES = 3 };

struct row {
    uint32_t key;
    int32_t amount;
};

static struct row *build_side, *probe_side, *slots;
static int64_t total, pairs;

static void setup(void)
{
    uint64_t seed = 13;
    build_side = allocate(sizeof *build_side * BUILD_ROWS);
    probe_side = allocate(sizeof *probe_side * PROBE_ROWS);
    slots = allocate(sizeof *slots * ((size_t)1 << SLOT_BITS));
    for (uint32_t i = 0; i < BUILD_ROWS; i++) /* distinct keys: 7919 and KEYS have no common divisor */
        build_side[i] = (struct row){1 + (uint32_t)((uint64_t)i * 7919 % KEYS), (int32_t)(next_random(&seed) % 1000) - 300};
    for (uint32_t i = 0; i < PROBE_ROWS; i++) {
        uint64_t draw = next_random(&seed);
        probe_side[i] = (struct row){1 + (uint32_t)(draw % KEYS), (int32_t)(draw >> 40 & 1023) - 500};
    }
}

static uint32_t slot_of(uint32_t key)
{
    return (key * UINT32_C(2654435769)) >> (32 - SLOT_BITS);
}

static void run(void)
{
    const uint32_t mask = (UINT32_C(1) << SLOT_BITS) - 1;
    for (int pass = 0; pass < PASSES; pass++) {
        for (uint32_t i = 0; i <= mask; i++)
            slots[i].key = 0;
        for (int i = 0; i < BUILD_ROWS; i++) {
            uint32_t at = slot_of(build_side[i].key);
            while (slots[at].key != 0)
                at = (at + 1) & mask;
            slots[at] = build_side[i];
        }
        total = pairs = 0;
        for (int i = 0; i < PROBE_ROWS; i++) {
            uint32_t key = probe_side[i].key;
            for (uint32_t at = slot_of(key); slots[at].key != 0; at = (at + 1) & mask) {
                if (slots[at].key == key) {
                    int32_t difference = slots[at].amount - probe_side[i].amount;
                    total += difference < 0 ? -difference : difference;
                    pairs++;
                    break;
                }
            }
        }
    }
}

/* The same join by a table indexed with the key itself. */
static bool check(void)
{
    int32_t *amount = allocate(sizeof *amount * (KEYS + 1));
    int64_t expected_total = 0, expected_pairs = 0;
    for (int key = 0; key <= KEYS; key++)
        amount[key] = INT32_MIN;
    for (int i = 0; i < BUILD_ROWS; i++)
        amount[build_side[i].key] = build_side[i].amount;
    for (int i = 0; i < PROBE_ROWS; i++) {
        volatile int32_t found = amount[probe_side[i].key];
        if (found == INT32_MIN)
            continue;
        int64_t difference = (int64_t)found - probe_side[i].amount;
        expected_total += difference < 0 ? -difference : difference;
        expected_pairs++;
    }
    free(amount);
    return total == expected_total && pairs == expected_pairs;
}

const struct kernel join_kernel = {"join", setup, run, check};
