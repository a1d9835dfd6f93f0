/* Quicksort of records by a comparison through a function pointer, finished by insertion sort on short runs. */
#include <string.h>

#include "kernels.h"

enum { RECORDS = 150000, SHORT_RUN = 16 };

struct record {
    uint32_t key;
    uint32_t payload;
};

static struct record *unsorted, *records;

static void setup(void)
{
    uint64_t seed = 19;
    unsorted = allocate(sizeof *unsorted * RECORDS);
    records = allocate(sizeof *records * RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++)
        unsorted[i] = (struct record){(uint32_t)(next_random(&seed) >> 44), i};
}

static int by_key(const struct record *a, const struct record *b)
{
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->payload < b->payload ? -1 : a->payload > b->payload;
}

static void swap(struct record *a, struct record *b)
{
    struct record kept = *a;
    *a = *b;
    *b = kept;
}

static void sort(struct record *first, struct record *last, int (*compare)(const struct record *, const struct record *))
{
    while (last - first > SHORT_RUN) {
        struct record *middle = first + (last - first) / 2;
        if (compare(middle, first) < 0)
            swap(middle, first);
        if (compare(last - 1, first) < 0)
            swap(last - 1, first);
        if (compare(last - 1, middle) < 0)
            swap(last - 1, middle);
        struct record pivot = *middle, *left = first, *right = last - 1;
        while (left <= right) {
            while (compare(left, &pivot) < 0)
                left++;
            while (compare(&pivot, right) < 0)
                right--;
            if (left <= right)
                swap(left++, right--);
        }
        sort(first, right + 1, compare);
        first = left;
    }
    for (struct record *at = first + 1; at < last; at++) {
        struct record kept = *at, *gap = at;
        for (; gap > first && compare(&kept, gap - 1) < 0; gap--)
            *gap = gap[-1];
        *gap = kept;
    }
}

static void run(void)
{
    memcpy(records, unsorted, sizeof *records * RECORDS);
    sort(records, records + RECORDS, by_key);
}

static bool check(void)
{
    uint64_t payloads = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        const volatile struct record *at = records + i;
        if (at->payload >= RECORDS || unsorted[at->payload].key != at->key)
            return false;
        if (i > 0 && (at[-1].key > at->key || (at[-1].key == at->key && at[-1].payload >= at->payload)))
            return false;
        payloads += at->payload;
    }
    return payloads == (uint64_t)RECORDS * (RECORDS - 1) / 2;
}

const struct kernel sort_kernel = {"sort", setup, run, check};
