/* Writes the data that a killed daemon has left in its file level to the directory. */

#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int by_file(const void *one, const void *other)
{
    const struct record *a = *(struct record *const *)one, *b = *(struct record *const *)other;
    if (a->inode != b->inode)
        return a->inode < b->inode ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Writes the pages of one block, each run of pages at once. Returns whether that succeeded. */
static bool restore(const struct record *record, size_t slot, int flash, int file)
{
    static uint8_t content[BLOCK];
    struct stat now;
    uint64_t mask = atomic_load(&record->mask);
    if (fstat(file, &now) != 0)
        return false;
    for (unsigned first = 0, end; first < PAGES; first = end + 1) {
        for (end = first; end < PAGES && mask >> end & 1; end++)
            ;
        uint64_t begin = record->number * BLOCK + (uint64_t)first * PAGE, size = (uint64_t)now.st_size;
        size_t bytes = (size_t)(end - first) * PAGE;
        if (!bytes || begin >= size)
            continue;
        if (pread(flash, content, bytes, (off_t)(slot * BLOCK + first * PAGE)) != (ssize_t)bytes)
            return false;
        if (backend_write(file, content, bytes < size - begin ? bytes : size - begin, begin) < 0)
            return false;
    }
    return true;
}

/* Whether buffered files may be below an entry that cannot be read. They are not if the entry has been deleted
 * meanwhile, or is another user's folder that this user may not read. */
static bool may_hide(const FTSENT *entry)
{
    if (entry->fts_info != FTS_DNR && entry->fts_info != FTS_NS && entry->fts_info != FTS_ERR)
        return false;
    if (entry->fts_level == FTS_ROOTLEVEL)
        return true;
    bool others = entry->fts_info == FTS_DNR && entry->fts_errno == EACCES && entry->fts_statp->st_uid != geteuid();
    return entry->fts_errno != ENOENT && !others;
}

/* Writes all blocks of the files in the directory. Returns false if one could not be written, or if files are
 * missing and may come back, because the directory is missing, cannot be read or is another file system. Deleted
 * files need no data. */
static bool restore_all(struct journal_header *header, struct record *records, struct record **found, size_t count, int flash)
{
    char *roots[] = {header->directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    bool fine = tree != NULL, hidden = false;
    size_t seen = 0;
    for (FTSENT *entry; tree && (entry = fts_read(tree));) {
        bool root = entry->fts_level == FTS_ROOTLEVEL;
        if (may_hide(entry)) {
            fprintf(stderr, "burst: %s cannot be read: %s\n", entry->fts_path, strerror(entry->fts_errno));
            hidden = true;
        }
        hidden |= root && entry->fts_info == FTS_D && entry->fts_statp->st_dev != header->device;
        if (entry->fts_info != FTS_F)
            continue;
        struct record wanted = {.inode = entry->fts_statp->st_ino}, *key = &wanted;
        size_t first = 0, end = count; /* the first record of this file */
        while (first < end) {
            size_t middle = (first + end) / 2;
            if (by_file(&found[middle], &key) < 0)
                first = middle + 1;
            else
                end = middle;
        }
        if (first == count || found[first]->inode != wanted.inode)
            continue;
        int file = open(entry->fts_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        bool written = file >= 0;
        if (written && born(file) == found[first]->born) {
            for (; first < count && found[first]->inode == wanted.inode; first++, seen++)
                written &= restore(found[first], (size_t)(found[first] - records), flash, file);
            written &= fsync(file) == 0;
        }
        if (!written)
            fprintf(stderr, "burst: %s cannot be written: %s\n", entry->fts_path, strerror(errno));
        fine &= written;
        if (file >= 0)
            close(file);
    }
    if (tree)
        fts_close(tree);
    if (hidden && seen < count)
        fprintf(stderr, "burst: files are missing in %s; their buffered data is kept\n", header->directory);
    return fine && !(hidden && seen < count);
}

bool recover(int buffer)
{
    int file = openat(buffer, "journal", O_RDONLY | O_CLOEXEC), flash = openat(buffer, "flash", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT;
    struct stat found;
    if (fstat(file, &found) != 0 || found.st_size < JOURNAL_HEADER || flash < 0)
        die("read the journal in %s", settings.buffer);
    uint8_t *journal = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (journal == MAP_FAILED)
        die("map the journal");
    close(file);
    struct journal_header *header = (struct journal_header *)journal;
    struct record *records = (struct record *)(journal + JOURNAL_HEADER);
    char boot[40];
    boot_id(boot);
    bool fine = true;
    if (strcmp(header->magic, JOURNAL_MAGIC) != 0 ||
        header->records > ((size_t)found.st_size - JOURNAL_HEADER) / sizeof *records) {
        errno = EINVAL;
        die("read the journal in %s", settings.buffer);
    } else if (strncmp(header->boot, boot, sizeof boot) != 0) {
        /* pages of the journal and of the file level may have reached the disk in any order */
        fprintf(stderr, "burst: the machine was restarted; data in %s that was not synced is lost\n", settings.buffer);
    } else {
        struct record **used = malloc((header->records + 1) * sizeof *used);
        size_t count = 0;
        if (!used)
            die("get memory");
        for (size_t i = 0; i < header->records; i++)
            if (atomic_load(&records[i].mask))
                used[count++] = &records[i];
        qsort(used, count, sizeof(struct record *), by_file);
        struct claim others = {.count = 0};
        if (strcmp(header->directory, settings.directory) != 0)
            claim(&others, header->directory);
        fine = restore_all(header, records, used, count, flash);
        give_up(&others);
        free(used);
    }
    munmap(journal, (size_t)found.st_size);
    close(flash);
    if (fine) {
        unlinkat(buffer, "socket", 0);
        unlinkat(buffer, "journal", 0);
        unlinkat(buffer, "flash", 0);
    }
    return fine;
}
