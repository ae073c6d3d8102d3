#define _GNU_SOURCE
#include "system_memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocator.h"

/* Map one huge page more than needed, then trim both ends: mmap itself aligns to small pages only. */
static void *map_large(size_t capacity)
{
    size_t mapped = capacity + LARGE_BLOCK_BYTES;
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    size_t head = (size_t)(-(uintptr_t)start & (LARGE_BLOCK_BYTES - 1));
    size_t tail = LARGE_BLOCK_BYTES - head;
    if (head)
        munmap(start, head);
    if (tail)
        munmap(start + head + capacity, tail);
#ifdef MADV_HUGEPAGE
    /* Only advice: a kernel without huge pages refuses, and small pages work as well. */
    (void)madvise(start + head, capacity, MADV_HUGEPAGE);
#endif
    return start + head;
}

void *system_allocate(size_t capacity)
{
    void *memory = NULL;
    if (capacity >= LARGE_BLOCK_BYTES)
        return map_large(capacity);
    return posix_memalign(&memory, RUSHLIGHT_ALIGNMENT, capacity) == 0 ? memory : NULL;
}

void system_free(void *memory, size_t capacity)
{
    if (capacity >= LARGE_BLOCK_BYTES)
        munmap(memory, capacity);
    else
        free(memory);
}

void system_vacate(void *memory, size_t capacity)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)memory, end = start + capacity;
    start = (start + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    if (start < end) /* a system that refuses keeps the memory, which does no harm */
        (void)madvise((void *)start, end - start, MADV_DONTNEED);
}

/* Read the number in a file; return SIZE_MAX if there is none ("max" in cgroups means unlimited). */
static size_t read_limit(const char *path)
{
    unsigned long long limit = SIZE_MAX;
    FILE *file = fopen(path, "r");
    if (!file)
        return SIZE_MAX;
    if (fscanf(file, "%llu", &limit) != 1)
        limit = SIZE_MAX;
    fclose(file);
    return (size_t)limit;
}

size_t system_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
    size_t limits[] = {
        read_limit("/sys/fs/cgroup/memory.max"),                   /* cgroup 2 */
        read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"), /* cgroup 1 */
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        bytes = limits[i] < bytes ? limits[i] : bytes;
    return bytes;
}
