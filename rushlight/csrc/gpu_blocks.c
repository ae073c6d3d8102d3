/* Blocks of a GPU's memory, and the ordered lists of those that are free. */
#include "gpu_blocks.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_BLOCK = 512 };                  /* bytes; all blocks are multiples of it */
static const size_t MAX_SMALL = 1UL << 20; /* larger blocks are not cut from the segments of small ones */

size_t gpu_rounded(size_t nbytes)
{
    size_t size = nbytes > SIZE_MAX - MIN_BLOCK ? SIZE_MAX - MIN_BLOCK + 1 : (nbytes + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;
    return size ? size : MIN_BLOCK;
}

int gpu_is_small(size_t size) { return size <= MAX_SMALL; }

FreeList *gpu_free_list(GpuBlocks *blocks, uint64_t stream, int is_small, long pool)
{
    for (FreeList **place = &blocks->lists, *list; (list = *place); place = &list->next) {
        if (list->stream != stream || list->is_small != is_small || list->pool != pool)
            continue;
        *place = list->next; /* to the front: the next request is likely to be for the same list */
        list->next = blocks->lists;
        return blocks->lists = list;
    }
    FreeList *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->stream = stream;
    made->is_small = is_small;
    made->pool = pool;
    made->next = blocks->lists;
    blocks->lists = made;
    return made;
}

static int comes_before(const GpuBlock *block, size_t size, uint64_t address)
{
    return block->size < size || (block->size == size && block->address < address);
}

/* Return the position of the first block that does not come before this size and address. */
static size_t place_of(const FreeList *list, size_t size, uint64_t address)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (comes_before(list->blocks[middle], size, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Make room for `count` blocks; -1 if memory is short. */
static int reserve(GpuBlock ***blocks, size_t *capacity, size_t count)
{
    if (count <= *capacity)
        return 0;
    size_t wanted = count < 16 ? 16 : count * 2;
    GpuBlock **grown = realloc(*blocks, wanted * sizeof *grown);
    if (!grown)
        return -1;
    *blocks = grown;
    *capacity = wanted;
    return 0;
}

static void insert(GpuBlock *block)
{
    FreeList *list = block->list;
    block->is_free = 1;
    if (reserve(&list->blocks, &list->capacity, list->count + 1) < 0)
        return; /* the block is not found again before its neighbours are freed */
    size_t place = place_of(list, block->size, block->address);
    memmove(list->blocks + place + 1, list->blocks + place, (list->count - place) * sizeof *list->blocks);
    list->blocks[place] = block;
    list->count++;
}

static void remove_at(FreeList *list, size_t place)
{
    list->count--;
    memmove(list->blocks + place, list->blocks + place + 1, (list->count - place) * sizeof *list->blocks);
}

static void remove_block(GpuBlock *block)
{
    size_t place = place_of(block->list, block->size, block->address);
    if (place < block->list->count && block->list->blocks[place] == block)
        remove_at(block->list, place);
}

/* Cut the end off a block if it is worth keeping. */
static void split(GpuBlock *block, size_t size)
{
    size_t rest = block->size - size;
    if (rest < (block->list->is_small ? MIN_BLOCK : MAX_SMALL + 1))
        return;
    GpuBlock *tail = calloc(1, sizeof *tail);
    if (!tail)
        return;
    tail->address = block->address + size;
    tail->size = rest;
    tail->list = block->list;
    tail->before = block;
    tail->after = block->after;
    if (tail->after)
        tail->after->before = tail;
    block->after = tail;
    block->size = size;
    insert(tail);
}

GpuBlock *gpu_take(FreeList *list, size_t size)
{
    size_t place = place_of(list, size, 0);
    if (place == list->count)
        return NULL;
    GpuBlock *block = list->blocks[place];
    remove_at(list, place);
    block->is_free = 0;
    split(block, size);
    return block;
}

/* Join a block with the next one, which is released. */
static void join(GpuBlock *first)
{
    GpuBlock *second = first->after;
    first->size += second->size;
    first->after = second->after;
    if (first->after)
        first->after->before = first;
    free(second);
}

void gpu_put_back(GpuBlock *block)
{
    if (block->after && block->after->is_free) {
        remove_block(block->after);
        join(block);
    }
    if (block->before && block->before->is_free) {
        block = block->before;
        remove_block(block);
        join(block);
    }
    insert(block);
}

int gpu_add_segment(GpuBlocks *blocks, FreeList *list, uint64_t address, size_t size)
{
    GpuBlock *made = calloc(1, sizeof *made);
    if (!made || reserve(&blocks->segments, &blocks->segment_capacity, blocks->segment_count + 1) < 0 ||
        reserve(&list->blocks, &list->capacity, list->count + 1) < 0) {
        free(made);
        return -1;
    }
    made->address = address;
    made->size = size;
    made->list = list;
    blocks->segments[blocks->segment_count++] = made;
    insert(made);
    return 0;
}

int gpu_remove_segment(GpuBlocks *blocks, uint64_t address)
{
    for (size_t i = 0; i < blocks->segment_count; i++) {
        GpuBlock *block = blocks->segments[i];
        if (block->address != address || !gpu_is_unused_segment(block))
            continue;
        remove_block(block);
        free(block);
        blocks->segment_count--;
        memmove(blocks->segments + i, blocks->segments + i + 1, (blocks->segment_count - i) * sizeof *blocks->segments);
        return 0;
    }
    return -1;
}

void gpu_release_blocks(GpuBlocks *blocks)
{
    for (size_t i = 0; i < blocks->segment_count; i++)
        for (GpuBlock *block = blocks->segments[i], *next; block; block = next) {
            next = block->after;
            free(block);
        }
    free(blocks->segments);
    for (FreeList *list = blocks->lists, *next; list; list = next) {
        next = list->next;
        free(list->blocks);
        free(list);
    }
    memset(blocks, 0, sizeof *blocks);
}
