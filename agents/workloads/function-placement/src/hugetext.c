/*
 * A preload library that moves code of the main program onto huge pages before main() begins [ottoni-2017, section 6].
 *
 * HUGE_TEXT         none (default), hot (the range HUGE_TEXT_HOT), or all (the whole executable segment)
 * HUGE_TEXT_HOT     first and last address of the profiled functions, in hexadecimal: 400000-4a0000
 * HUGE_TEXT_MAP     1: write /tmp/perf-PID.map, from which perf reads the names of the moved functions, also after fork
 *
 * The range grows to multiples of 2 MiB where nothing else is mapped. It is copied, mapped again as anonymous memory with
 * MADV_HUGEPAGE, and copied back. If the kernel grants no huge page, the file is mapped again as it was. One line on
 * standard error says what was done. The library is not part of the program, so that its own code does not move.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE_PAGE ((uintptr_t)2 << 20)

struct segment {
    uintptr_t start, end; /* whole pages */
    off_t offset;         /* of start in the file */
};

static char map_path[64];
static pid_t map_owner;

static void say(const char *text, const char *detail)
{
    dprintf(STDERR_FILENO, "hugetext: %s%s%s\n", text, detail[0] ? ": " : "", detail);
}

/* Find the executable segment of the main program, which is the first object. */
static int find_text(struct dl_phdr_info *info, size_t bytes, void *found)
{
    struct segment *segment = found;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)bytes;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[at];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X)) {
            uintptr_t start = info->dlpi_addr + header->p_vaddr;
            segment->start = start & ~(page - 1);
            segment->end = (start + header->p_filesz + page - 1) & ~(page - 1);
            segment->offset = (off_t)(header->p_offset - (start - segment->start));
        }
    }
    return 1;
}

/* Return whether nothing is mapped in a range. */
static bool is_free(uintptr_t start, uintptr_t end)
{
    void *probe;

    if (start >= end)
        return true;
    probe = mmap((void *)start, end - start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    munmap(probe, end - start);
    return probe == (void *)start;
}

/* Return the bytes of a range that are on huge pages. */
static uintptr_t huge_bytes(uintptr_t start, uintptr_t end)
{
    char line[512];
    uintptr_t from = 0, to = 0, found = 0;
    unsigned long kib;
    FILE *maps = fopen("/proc/self/smaps", "re");

    if (maps == NULL)
        return 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        uintptr_t low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            from = low, to = high;
        else if (from >= start && to <= end && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
            found += (uintptr_t)kib << 10;
    }
    fclose(maps);
    return found;
}

/* Write the functions of a range as perf reads them. */
static void write_map(uintptr_t start, uintptr_t end)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    const char *image;
    FILE *map;

    if (file < 0 || fstat(file, &status) != 0)
        return;
    image = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (image == MAP_FAILED)
        return;
    map_owner = getpid();
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)map_owner);
    map = fopen(map_path, "wxe");
    if (map != NULL) {
        const ElfW(Ehdr) *header = (const void *)image;
        const ElfW(Shdr) *sections = (const void *)(image + header->e_shoff);
        for (int at = 0; at < header->e_shnum; at++) {
            if (sections[at].sh_type != SHT_SYMTAB)
                continue;
            const ElfW(Sym) *symbols = (const void *)(image + sections[at].sh_offset);
            const char *names = image + sections[sections[at].sh_link].sh_offset;
            for (size_t one = 0; one < sections[at].sh_size / sizeof *symbols; one++)
                if (ELF64_ST_TYPE(symbols[one].st_info) == STT_FUNC && symbols[one].st_value >= start &&
                    symbols[one].st_value < end)
                    fprintf(map, "%lx %lx %s\n", symbols[one].st_value, symbols[one].st_size,
                            names + symbols[one].st_name);
        }
        fclose(map);
    }
    munmap((void *)(uintptr_t)image, (size_t)status.st_size);
}

/* A child has the same code at the same addresses. */
static void share_map(void)
{
    char path[64];

    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    if (symlink(map_path, path) != 0 && errno != EEXIST)
        say("no map for a child", strerror(errno));
}

/* Map the file again where it was; the program cannot run otherwise. */
static void restore(const struct segment *text, uintptr_t start, uintptr_t end)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    munmap((void *)start, end - start);
    start = start > text->start ? start : text->start;
    end = end < text->end ? end : text->end;
    if (file < 0 || mmap((void *)start, end - start, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
                         text->offset + (off_t)(start - text->start)) == MAP_FAILED) {
        say("the program's code is lost", strerror(errno));
        _exit(127);
    }
    close(file);
}

static void move(const struct segment *text, uintptr_t start, uintptr_t end)
{
    uintptr_t first = start > text->start ? start : text->start, last = end < text->end ? end : text->end;
    size_t bytes = last - first;
    uintptr_t granted;
    char done[80];
    void *scratch = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (scratch == MAP_FAILED) {
        say("no huge pages", strerror(errno));
        return;
    }
    memcpy(scratch, (void *)first, bytes);
    if (mmap((void *)start, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
        say("no huge pages", strerror(errno));
        restore(text, start, end);
        munmap(scratch, bytes);
        return;
    }
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE); /* without it the count below is 0 */
    memcpy((void *)first, scratch, bytes);
    munmap(scratch, bytes);
    /* If small pages were faulted in, as where a page table is left of the file. Older kernels do not know it. */
    (void)madvise((void *)start, end - start, MADV_COLLAPSE);
    granted = huge_bytes(start, end);
    if (granted == 0 || mprotect((void *)start, end - start, PROT_READ | PROT_EXEC) != 0) {
        restore(text, start, end);
        say("no huge pages", "the kernel granted none; the code stays where it was");
        return;
    }
    snprintf(done, sizeof done, "%lu of %lu KiB of code", (unsigned long)(granted >> 10), (unsigned long)(bytes >> 10));
    say("huge pages", done);
    if (getenv("HUGE_TEXT_MAP") != NULL) {
        write_map(first, last);
        pthread_atfork(NULL, NULL, share_map);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *mode = getenv("HUGE_TEXT"), *hot = getenv("HUGE_TEXT_HOT");
    struct segment text = {0, 0, 0};
    uintptr_t start, end;

    if (mode == NULL || strcmp(mode, "none") == 0)
        return;
    unsetenv("LD_PRELOAD"); /* programs that this one starts have other code */
    dl_iterate_phdr(find_text, &text);
    if (strcmp(mode, "all") == 0) {
        start = text.start;
        end = text.end;
    } else if (strcmp(mode, "hot") != 0) {
        say("HUGE_TEXT is none of none, hot, all", mode);
        return;
    } else if (hot == NULL || sscanf(hot, "%lx-%lx", &start, &end) != 2 || start < text.start || end > text.end ||
               start >= end) {
        say("HUGE_TEXT_HOT is no range of this program", hot == NULL ? "not set" : hot);
        return;
    }
    /* up to whole huge pages if the neighbourhood is this segment or free, otherwise only those within */
    uintptr_t low = start & ~(HUGE_PAGE - 1), high = (end + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    if (low < text.start && !is_free(low, text.start))
        low += HUGE_PAGE;
    if (high > text.end && !is_free(text.end, high))
        high -= HUGE_PAGE;
    if (low >= high) {
        say("no huge pages", "other memory is within the same 2 MiB");
        return;
    }
    move(&text, low, high);
}
