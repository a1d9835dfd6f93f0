/* The file level: the file "flash" with a slot for each block, and the journal, which says what is in the slots. */

#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int flash, folder;
static uint8_t *journal;

void make_file_level(int buffer, uint64_t device)
{
    size_t slots = cache.flash.room, bytes = JOURNAL_HEADER + slots * sizeof(struct record);
    struct statvfs disk;
    folder = buffer;
    /* check first: trying to reserve too much would take everybody's room for a moment */
    if (fstatvfs(buffer, &disk) == 0 && disk.f_bavail * disk.f_frsize < slots * BLOCK + bytes) {
        errno = ENOSPC;
        die("reserve --flash-cache-size, %zu MiB, in %s", slots * BLOCK >> 20, settings.buffer);
    }
    flash = openat(buffer, "flash", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int file = openat(buffer, "journal.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (flash < 0 || file < 0)
        die("make the file level in %s", settings.buffer);
    if ((errno = posix_fallocate(flash, 0, (off_t)slots * BLOCK)) || (errno = posix_fallocate(file, 0, (off_t)bytes))) {
        int error = errno;
        unlinkat(buffer, "flash", 0);
        unlinkat(buffer, "journal.new", 0);
        errno = error;
        die("reserve --flash-cache-size, %zu MiB, in %s", slots * BLOCK >> 20, settings.buffer);
    }
    journal = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (journal == MAP_FAILED)
        die("map the journal");
    close(file);
    struct journal_header *header = (struct journal_header *)journal;
    strcpy(header->magic, JOURNAL_MAGIC);
    boot_id(header->boot);
    header->device = device;
    header->records = slots;
    strcpy(header->directory, settings.directory);
    if (renameat(buffer, "journal.new", buffer, "journal") != 0)
        die("name the journal");
}

void remove_file_level(void)
{
    unlinkat(folder, "journal", 0);
    unlinkat(folder, "flash", 0);
}

struct record *record_of(int slot)
{
    return (struct record *)(journal + JOURNAL_HEADER) + slot;
}

int read_flash(int slot, unsigned page, uint8_t *to, size_t bytes)
{
    device_wait(&file_level, bytes);
    ssize_t got = pread(flash, to, bytes, (off_t)slot * BLOCK + (off_t)page * PAGE);
    return got == (ssize_t)bytes ? 0 : -EIO;
}

int write_flash(int slot, size_t offset, const uint8_t *from, size_t bytes)
{
    return pwrite(flash, from, bytes, (off_t)slot * BLOCK + (off_t)offset) == (ssize_t)bytes ? 0 : -EIO;
}
