/* LZ77-style compression with a hash table of the last position of each four-byte sequence, and decompression. */
#include <string.h>

#include "kernels.h"

enum { INPUT_BYTES = 1 << 20, HASH_BITS = 14, MIN_MATCH = 4, MAX_MATCH = 255, MAX_DISTANCE = 65535 };

static uint8_t *input, *packed, *unpacked;
static size_t packed_bytes, unpacked_bytes;

static void setup(void)
{
    static const char *words[] = {"lease ", "trial ", "study ", "budget ", "noise ", "gain ", "0.125,", "default ", "\n"};
    uint64_t seed = 7;
    size_t at = 0;
    input = allocate(INPUT_BYTES);
    packed = allocate(2 * INPUT_BYTES);
    unpacked = allocate(INPUT_BYTES + MAX_MATCH);
    while (at < INPUT_BYTES) {
        uint64_t draw = next_random(&seed);
        if (draw % 5 == 0) {
            input[at++] = (uint8_t)(draw >> 32);
            continue;
        }
        for (const char *word = words[(draw >> 8) % 9]; *word != '\0' && at < INPUT_BYTES; word++)
            input[at++] = (uint8_t)*word;
    }
}

static uint32_t read32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Output: flag byte 0 and a literal, or the match's length (at least MIN_MATCH) and its distance in two bytes. */
static size_t compress(const uint8_t *restrict in, size_t length, uint8_t *restrict out)
{
    static uint32_t last[1 << HASH_BITS];
    size_t at = 0, written = 0;
    memset(last, 0xff, sizeof last);
    while (at < length) {
        size_t match = 0, distance = 0;
        if (at + MIN_MATCH <= length) {
            uint32_t hash = (read32(in + at) * UINT32_C(2654435761)) >> (32 - HASH_BITS);
            uint32_t candidate = last[hash];
            last[hash] = (uint32_t)at;
            if (candidate != UINT32_MAX && at - candidate <= MAX_DISTANCE) {
                size_t limit = length - at < MAX_MATCH ? length - at : MAX_MATCH;
                while (match < limit && in[candidate + match] == in[at + match])
                    match++;
                distance = at - candidate;
            }
        }
        if (match >= MIN_MATCH) {
            out[written++] = (uint8_t)match;
            out[written++] = (uint8_t)distance;
            out[written++] = (uint8_t)(distance >> 8);
            at += match;
        } else {
            out[written++] = 0;
            out[written++] = in[at++];
        }
    }
    return written;
}

static size_t decompress(const uint8_t *restrict in, size_t length, uint8_t *out)
{
    size_t at = 0, written = 0;
    while (at < length) {
        size_t match = in[at++];
        if (match == 0) {
            out[written++] = in[at++];
            continue;
        }
        size_t distance = in[at] | (size_t)in[at + 1] << 8;
        at += 2;
        for (size_t i = 0; i < match; i++)
            out[written + i] = out[written + i - distance];
        written += match;
    }
    return written;
}

static void run(void)
{
    for (int pass = 0; pass < 4; pass++) {
        packed_bytes = compress(input, INPUT_BYTES, packed);
        unpacked_bytes = decompress(packed, packed_bytes, unpacked);
    }
}

static bool check(void)
{
    return packed_bytes < INPUT_BYTES && unpacked_bytes == INPUT_BYTES && memcmp(input, unpacked, INPUT_BYTES) == 0;
}

const struct kernel lz_kernel = {"lz", setup, run, check};
