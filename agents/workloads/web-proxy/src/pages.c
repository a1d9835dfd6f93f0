/* From a request to the content of its answer: the cache, and what a miss does. */

#include <stdio.h>
#include <string.h>
#if !__has_include(<zlib.h>)
#error "zlib.h is missing. Install zlib's headers (Debian package zlib1g-dev)."
#endif
#include <zlib.h>

#include "proxy.h"

enum { GZIP_WINDOW = 15 + 16 }; /* zlib's largest window, with gzip's header */

_Atomic long counters[COUNTERS];

static struct blob *decompress(struct core *core, const struct blob *from, int page)
{
    struct blob *to = blob_new(disk_size(page, RAW));
    z_stream stream = {.next_in = (unsigned char *)from->bytes,
                       .avail_in = (uInt)from->size,
                       .next_out = to->bytes,
                       .avail_out = (uInt)to->size};
    atomic_fetch_add(&core->decompressing, 1);
    int status = inflateInit2(&stream, GZIP_WINDOW);
    if (status == Z_OK) {
        status = inflate(&stream, Z_FINISH);
        inflateEnd(&stream);
    }
    atomic_fetch_sub(&core->decompressing, 1);
    if (status != Z_STREAM_END || stream.avail_out) {
        fprintf(stderr, "proxy: cannot decompress page %d: zlib's status %d\n", page, status);
        blob_release(to);
        return NULL;
    }
    atomic_fetch_add(&counters[DECOMPRESSED], 1);
    return to;
}

static struct blob *compress_page(const struct blob *from, int page)
{
    z_stream stream = {.next_in = (unsigned char *)from->bytes, .avail_in = (uInt)from->size};
    int level = (int)atomic_load(&settings[LEVEL]);
    int status = deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
    if (status != Z_OK) {
        fprintf(stderr, "proxy: cannot compress page %d: zlib's status %d\n", page, status);
        return NULL;
    }
    struct blob *to = blob_new(deflateBound(&stream, from->size));
    stream.next_out = to->bytes;
    stream.avail_out = (uInt)to->size;
    status = deflate(&stream, Z_FINISH);
    size_t size = to->size - stream.avail_out;
    deflateEnd(&stream);
    struct blob *fitting = NULL;
    if (status == Z_STREAM_END) {
        /* the bound is as large as the page; the cache counts, and should need, only the bytes of the result */
        fitting = blob_new(size);
        memcpy(fitting->bytes, to->bytes, size);
        atomic_fetch_add(&counters[COMPRESSED], 1);
    } else {
        fprintf(stderr, "proxy: cannot compress page %d: zlib's status %d\n", page, status);
    }
    blob_release(to);
    return fitting;
}

/* Returns the wanted form from the other one, and releases that. */
static struct blob *convert(struct core *core, struct blob *from, int page, enum form wanted)
{
    struct blob *to = wanted == RAW ? decompress(core, from, page) : compress_page(from, page);
    blob_release(from);
    return to;
}

/* Returns whether a miss converts the other form, if that is in memory. */
static bool converts(struct core *core, enum form wanted)
{
    switch (atomic_load(&settings[POLICY])) {
    case DECOMPRESS:
        return wanted == RAW;
    case HYBRID:
        return wanted == RAW && atomic_load(&core->decompressing) < atomic_load(&settings[HYBRID_THRESHOLD]);
    case COMPRESS:
        return wanted == GZIP;
    default:
        return false;
    }
}

static enum form form_on_disk(enum form wanted)
{
    switch (atomic_load(&settings[DISK_FORM])) {
    case ALWAYS_GZIP:
        return GZIP;
    case ALWAYS_RAW:
        return RAW;
    default:
        return wanted;
    }
}

struct blob *pages_find(struct core *core, int page, enum form wanted)
{
    struct blob *found = cache_find(page, wanted);
    atomic_fetch_add(&counters[REQUESTS], 1);
    if (found) {
        atomic_fetch_add(&counters[wanted == RAW ? HITS_RAW : HITS_GZIP], 1);
        return found;
    }
    struct blob *other = converts(core, wanted) ? cache_find(page, wanted == RAW ? GZIP : RAW) : NULL;
    if (!other) {
        enum form form = form_on_disk(wanted);
        found = disk_read(page, form);
        if (found && form != wanted) {
            cache_put(page, form, found);
            other = found;
        }
    }
    if (other)
        found = convert(core, other, page, wanted);
    if (found)
        cache_put(page, wanted, found);
    return found;
}
