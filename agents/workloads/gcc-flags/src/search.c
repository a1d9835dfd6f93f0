/* Counts how often each of some patterns occurs in a text, comparing every window in full: no branch on the data. */
#include <string.h>

#include "kernels.h"

enum { TEXT_BYTES = 1 << 19, PATTERNS = 12, PATTERN_BYTES = 6 };

static uint8_t *text;
static uint8_t patterns[PATTERNS][PATTERN_BYTES];
static uint32_t counts[PATTERNS];

static void setup(void)
{
    uint64_t seed = 17;
    text = allocate(TEXT_BYTES);
    for (int i = 0; i < TEXT_BYTES; i++)
        text[i] = (uint8_t)("acgt"[next_random(&seed) >> 62]);
    for (int i = 0; i < PATTERNS; i++)
        memcpy(patterns[i], text + 1000 * (i + 1), PATTERN_BYTES);
}

static uint32_t count(const uint8_t *haystack, size_t length, const uint8_t *needle)
{
    uint32_t found = 0;
    for (size_t at = 0; at + PATTERN_BYTES <= length; at++) {
        uint8_t same = 1;
        for (int i = 0; i < PATTERN_BYTES; i++)
            same &= haystack[at + i] == needle[i];
        found += same;
    }
    return found;
}

static void run(void)
{
    for (int i = 0; i < PATTERNS; i++)
        counts[i] = count(text, TEXT_BYTES, patterns[i]);
}

/* Every window of the text as a number in base four, counted in a table. */
static bool check(void)
{
    enum { WINDOWS = 1 << (2 * PATTERN_BYTES) };
    static uint32_t windows[WINDOWS];
    uint32_t code[256] = {['a'] = 0, ['c'] = 1, ['g'] = 2, ['t'] = 3};
    uint32_t window = 0;
    memset(windows, 0, sizeof windows);
    for (int i = 0; i < TEXT_BYTES; i++) {
        window = (window << 2 | code[text[i]]) % WINDOWS;
        if (i >= PATTERN_BYTES - 1)
            windows[window]++;
    }
    for (int i = 0; i < PATTERNS; i++) {
        window = 0;
        for (int k = 0; k < PATTERN_BYTES; k++)
            window = window << 2 | code[patterns[i][k]];
        if (counts[i] != windows[window])
            return false;
    }
    return true;
}

const struct kernel search_kernel = {"search", setup, run, check};
