/* The caching CPU allocator. Plain C without Python, so native code may call it from any thread.

   A request is a number of bytes; the result is memory aligned to RUSHLIGHT_ALIGNMENT, with its size rounded up to a size
   class. */
#ifndef RUSHLIGHT_ALLOCATOR_H
#define RUSHLIGHT_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#define RUSHLIGHT_ALIGNMENT 64

typedef struct {
    size_t allocated_bytes;      /* held by callers now, counted in size classes */
    size_t peak_allocated_bytes; /* the largest allocated_bytes since the last reset */
    size_t cached_bytes;         /* freed by callers, kept for reuse */
    size_t cache_limit_bytes;    /* cached_bytes never exceeds this */
    uint64_t allocations;        /* requests served */
    uint64_t reuses;             /* requests served from the cache */
    uint64_t frees;              /* blocks handed back by callers */
    uint64_t system_allocations; /* blocks obtained from the operating system */
} AllocatorStatistics;

/* Set the default cache limit. Call once, before anything else here. */
void allocator_initialize(void);

/* Return NULL if the system refuses even after the cache was emptied, or if nbytes cannot be rounded up to a size class below
   PTRDIFF_MAX. *capacity receives the usable size, which must be passed to allocator_free. */
void *allocator_allocate(size_t nbytes, size_t *capacity);
void allocator_free(void *memory, size_t capacity);

void allocator_empty_cache(void);
void allocator_set_cache_limit(size_t nbytes);
void allocator_reset_peak(void);
AllocatorStatistics allocator_read_statistics(void);

#endif
