#include "allocator.h"

#include <pthread.h>
#include <stdbool.h>

#include "system_memory.h"

/* Size classes: multiples of 64 up to 512, then eight even steps between powers of two, so that rounding up wastes at
   most an eighth. Every class from LARGE_BLOCK_BYTES on is a multiple of 256 KiB, hence of any page size. */
enum {
    EVEN_CLASSES_LOG2 = 9,
    STEPS_LOG2 = 3,
    STEPS = 1 << STEPS_LOG2,
    CLASS_COUNT = STEPS + (63 - EVEN_CLASSES_LOG2) * STEPS
};

static const size_t LARGEST_DEFAULT_LIMIT = (size_t)4 << 30;

/* The header of a free block, stored in its first bytes. Each free block is on two lists: the list of all cached blocks, from
   which the block freed longest ago is evicted first, and the list of its size class, from which the block freed last is reused
   first because it is still in the caches. */
typedef struct FreeBlock {
    struct FreeBlock *newer, *older;
    struct FreeBlock *newer_in_class, *older_in_class;
    size_t capacity;
} FreeBlock;
_Static_assert(sizeof(FreeBlock) <= RUSHLIGHT_ALIGNMENT, "the smallest size class must hold a FreeBlock");

typedef struct {
    FreeBlock *newest, *oldest;
} FreeList;

/* Everything below is guarded by `mutex`. System calls are made outside of it: unmapping large blocks takes long. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FreeList by_age;
static FreeList by_class[CLASS_COUNT];
static AllocatorStatistics statistics;

static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }

void allocator_initialize(void)
{
    size_t quarter = system_memory_bytes() / 4;
    statistics.cache_limit_bytes = quarter < LARGEST_DEFAULT_LIMIT ? quarter : LARGEST_DEFAULT_LIMIT;
    /* A child forked while another thread held the mutex would otherwise find it locked forever. */
    pthread_atfork(lock, unlock, unlock);
}

/* Round up to a size class. Return false if the class would exceed PTRDIFF_MAX. */
static bool size_class(size_t nbytes, int *index, size_t *capacity)
{
    if (nbytes <= (size_t)1 << EVEN_CLASSES_LOG2) {
        size_t units = nbytes ? (nbytes + RUSHLIGHT_ALIGNMENT - 1) / RUSHLIGHT_ALIGNMENT : 1;
        *index = (int)units - 1;
        *capacity = units * RUSHLIGHT_ALIGNMENT;
        return true;
    }
    if (nbytes > PTRDIFF_MAX)
        return false;
    int log2 = 63 - __builtin_clzll((unsigned long long)nbytes - 1); /* 2**log2 < nbytes <= 2**(log2 + 1) */
    size_t base = (size_t)1 << log2, step = base >> STEPS_LOG2;
    size_t steps = (nbytes - base + step - 1) / step;
    *index = STEPS + (log2 - EVEN_CLASSES_LOG2) * STEPS + (int)steps - 1;
    *capacity = base + steps * step;
    return *capacity <= PTRDIFF_MAX;
}

static FreeList *list_of(const FreeBlock *block)
{
    int index;
    size_t capacity;
    size_class(block->capacity, &index, &capacity);
    return &by_class[index];
}

static void push(FreeBlock *block)
{
    FreeList *list = list_of(block);
    *block = (FreeBlock){.older = by_age.newest, .older_in_class = list->newest, .capacity = block->capacity};
    *(by_age.newest ? &by_age.newest->newer : &by_age.oldest) = block;
    *(list->newest ? &list->newest->newer_in_class : &list->oldest) = block;
    by_age.newest = list->newest = block;
    statistics.cached_bytes += block->capacity;
}

static void take_out(FreeBlock *block)
{
    FreeList *list = list_of(block);
    *(block->newer ? &block->newer->older : &by_age.newest) = block->older;
    *(block->older ? &block->older->newer : &by_age.oldest) = block->newer;
    *(block->newer_in_class ? &block->newer_in_class->older_in_class : &list->newest) = block->older_in_class;
    *(block->older_in_class ? &block->older_in_class->newer_in_class : &list->oldest) = block->newer_in_class;
    statistics.cached_bytes -= block->capacity;
}

/* Evict the oldest blocks until at most `limit` bytes are cached; return them chained by `older`. */
static FreeBlock *evict_down_to(size_t limit)
{
    FreeBlock *evicted = NULL;
    while (statistics.cached_bytes > limit) {
        FreeBlock *block = by_age.oldest;
        take_out(block);
        block->older = evicted;
        evicted = block;
    }
    return evicted;
}

static void release(FreeBlock *evicted)
{
    while (evicted) {
        FreeBlock *next = evicted->older;
        system_free(evicted, evicted->capacity);
        evicted = next;
    }
}

static void count_allocation(size_t capacity)
{
    statistics.allocations++;
    statistics.allocated_bytes += capacity;
    if (statistics.allocated_bytes > statistics.peak_allocated_bytes)
        statistics.peak_allocated_bytes = statistics.allocated_bytes;
}

static void *allocate_from_cache(int index)
{
    lock();
    FreeBlock *block = by_class[index].newest;
    if (block) {
        take_out(block);
        statistics.reuses++;
        count_allocation(block->capacity);
    }
    unlock();
    return block;
}

static void *allocate_from_system(size_t capacity)
{
    void *memory = system_allocate(capacity);
    if (!memory) {
        allocator_empty_cache();
        memory = system_allocate(capacity);
    }
    if (memory) {
        lock();
        statistics.system_allocations++;
        count_allocation(capacity);
        unlock();
    }
    return memory;
}

void *allocator_allocate(size_t nbytes, size_t *capacity)
{
    int index;
    if (!size_class(nbytes, &index, capacity))
        return NULL;
    void *memory = allocate_from_cache(index);
    return memory ? memory : allocate_from_system(*capacity);
}

void allocator_free(void *memory, size_t capacity)
{
    FreeBlock *evicted = NULL;
    lock();
    statistics.frees++;
    statistics.allocated_bytes -= capacity;
    bool keep = capacity <= statistics.cache_limit_bytes;
    if (keep) {
        ((FreeBlock *)memory)->capacity = capacity;
        push(memory);
        evicted = evict_down_to(statistics.cache_limit_bytes);
    }
    unlock();
    if (!keep)
        system_free(memory, capacity);
    release(evicted);
}

void allocator_empty_cache(void)
{
    lock();
    FreeBlock *evicted = evict_down_to(0);
    unlock();
    release(evicted);
}

void allocator_set_cache_limit(size_t nbytes)
{
    lock();
    statistics.cache_limit_bytes = nbytes;
    FreeBlock *evicted = evict_down_to(nbytes);
    unlock();
    release(evicted);
}

void allocator_reset_peak(void)
{
    lock();
    statistics.peak_allocated_bytes = statistics.allocated_bytes;
    unlock();
}

AllocatorStatistics allocator_read_statistics(void)
{
    lock();
    AllocatorStatistics copy = statistics;
    unlock();
    return copy;
}
