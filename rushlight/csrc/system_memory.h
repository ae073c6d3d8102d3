/* Memory directly from the operating system, without caching. */
#ifndef RUSHLIGHT_SYSTEM_MEMORY_H
#define RUSHLIGHT_SYSTEM_MEMORY_H

#include <stddef.h>

/* Blocks of at least this size are mapped separately, aligned to huge pages, and the kernel is advised to use those. */
#define LARGE_BLOCK_BYTES ((size_t)2 << 20)

/* capacity must be a multiple of 64, and from LARGE_BLOCK_BYTES on of the page size. Return NULL if the system refuses. */
void *system_allocate(size_t capacity);
void system_free(void *memory, size_t capacity);

/* Give the pages of memory that is in use back to the system. Its addresses stay: they read as zeros until they are written to. */
void system_vacate(void *memory, size_t capacity);

/* Return the bytes of memory that this process may use: the physical memory, or its container's limit if that is lower. */
size_t system_memory_bytes(void);

#endif
