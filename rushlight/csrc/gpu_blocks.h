/* Blocks of a GPU's memory, and the ordered lists of those that are free. Plain C: nothing here runs Python code. */
#ifndef RUSHLIGHT_GPU_BLOCKS_H
#define RUSHLIGHT_GPU_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

typedef struct FreeList FreeList;
typedef struct GpuBlock GpuBlock;

/* A part of a segment, which is what the driver gave at once. */
struct GpuBlock {
    uint64_t address;
    size_t size, requested;
    FreeList *list;           /* the list that holds the block while it is free; it tells the stream, the pool and the kind */
    GpuBlock *before, *after; /* neighbours in the segment */
    int is_free;
};

/* The free blocks for a stream and a pool, smallest first; small ones are apart from large ones. */
struct FreeList {
    uint64_t stream;
    long pool;
    int is_small;
    GpuBlock **blocks;
    size_t count, capacity;
    FreeList *next;
};

typedef struct {
    FreeList *lists;
    GpuBlock **segments; /* the first blocks of all segments */
    size_t segment_count, segment_capacity;
} GpuBlocks;

size_t gpu_rounded(size_t nbytes); /* the size of a block for a number of bytes */
int gpu_is_small(size_t size);

/* Return the list for a key, made if it is missing; NULL if memory is short. */
FreeList *gpu_free_list(GpuBlocks *blocks, uint64_t stream, int is_small, long pool);
/* Take the smallest block of at least `size` bytes from a list, and cut its end off if that is worth keeping. NULL if there is
   none, or if memory is short. */
GpuBlock *gpu_take(FreeList *list, size_t size);
/* Put a block back, joined with free neighbours. */
void gpu_put_back(GpuBlock *block);
/* Add a segment as a free block; -1 if memory is short. */
int gpu_add_segment(GpuBlocks *blocks, FreeList *list, uint64_t address, size_t size);
/* Remove a segment that is one free block; -1 if there is none at the address. */
int gpu_remove_segment(GpuBlocks *blocks, uint64_t address);
void gpu_release_blocks(GpuBlocks *blocks);

static inline int gpu_is_unused_segment(const GpuBlock *block) { return block->is_free && !block->before && !block->after; }

#endif
