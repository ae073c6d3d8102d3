/* Memory straight from the operating system, without any caching. */
#ifndef RUSHLIGHT_SYSTEM_MEMORY_H
#define RUSHLIGHT_SYSTEM_MEMORY_H

#include <stddef.h>

/* Blocks from this size on are mapped on their own, aligned to and advised to use huge pages. */
#define LARGE_BLOCK_BYTES ((size_t)2 << 20)

/* capacity must be a multiple of 64, and of the page size from LARGE_BLOCK_BYTES on. NULL when refused. */
void *system_allocate(size_t capacity);
void system_free(void *memory, size_t capacity);

/* Bytes of memory this process may use: physical memory, or its container's limit where that is lower. */
size_t system_memory_bytes(void);

#endif
