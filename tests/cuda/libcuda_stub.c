/* The functions of libcuda that the library calls, over host memory: work is done at once, and launches are recorded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t values[16]; unsigned grid[3], threads, shared; void *stream; int count; } Launch;
Launch last_launch;
int parameters; /* how many a launched kernel has */
static size_t used;
static uintptr_t handles = 100;
enum { TOTAL = 1 << 20 };

int cuInit(unsigned flags) { (void)flags; return 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int size, int device) { (void)device; strncpy(name, "stub", size); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { (void)device; *value = attribute; return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = TOTAL; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = (void *)7; return 0; }
int cuCtxSetCurrent(void *context) { return context == (void *)7 ? 0 : 201; }
int cuCtxSynchronize(void) { return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = TOTAL - used; *total = TOTAL; return 0; }
int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    if (used + bytes > TOTAL)
        return 2;
    used += bytes;
    *address = (uint64_t)(uintptr_t)malloc(bytes);
    return 0;
}
int cuMemFree_v2(uint64_t address) { free((void *)(uintptr_t)address); return 0; }
int cuMemAllocHost_v2(void **address, size_t bytes) { *address = malloc(bytes); return 0; }
int cuMemFreeHost(void *address) { free(address); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, void *from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, void *stream)
{
    (void)stream;
    memset((void *)(uintptr_t)to, byte, bytes);
    return 0;
}
int cuMemsetD32Async(uint64_t to, unsigned word, size_t count, void *stream)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)(uintptr_t)to)[i] = word;
    return 0;
}
static int make(void **handle) { *handle = (void *)handles++; return 0; }
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { (void)priority; return flags == 1 ? make(stream) : 1; }
int cuStreamQuery(void *stream) { return stream == (void *)1 ? 400 : 0; }
int cuStreamSynchronize(void *stream) { (void)stream; return 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream; return event && !flags ? 0 : 400; }
int cuStreamBeginCapture_v2(void *stream, int mode) { return stream && mode == 2 ? 0 : 900; }
int cuStreamEndCapture(void *stream, void **graph) { (void)stream; return make(graph); }
int cuStreamIsCapturing(void *stream, int *answer) { (void)stream; *answer = 0; return 0; }
int cuEventCreate(void **event, unsigned flags) { (void)flags; return make(event); }
int cuEventDestroy_v2(void *event) { (void)event; return 0; }
int cuEventRecord(void *event, void *stream) { (void)stream; return event ? 0 : 400; }
int cuEventQuery(void *event) { return (uintptr_t)event % 2 ? 600 : 0; }
int cuEventSynchronize(void *event) { (void)event; return 0; }
int cuEventElapsedTime(float *time, void *first, void *last) { (void)first; (void)last; *time = 1.5f; return 0; }
int cuModuleLoadData(void **module, const char *image) { return memcmp(image, "\0cubin", 6) ? 200 : make(module); }
int cuModuleGetFunction(void **function, void *module, const char *name) { (void)module; return strcmp(name, "kernel") ? 500 : make(function); }
int cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; return attribute == 8 && value > 49152 ? 0 : 1; }
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **values, void **extra)
{
    if (!function || ty != 1 || tz != 1 || extra)
        return 1;
    last_launch = (Launch){.grid = {x, y, z}, .threads = tx, .shared = shared, .stream = stream, .count = parameters};
    for (int i = 0; i < parameters; i++)
        last_launch.values[i] = *(uint64_t *)values[i];
    return 0;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) { return graph && !flags ? make(executable) : 1; }
int cuGraphLaunch(void *executable, void *stream) { (void)stream; return executable ? 0 : 400; }
int cuGraphDestroy(void *graph) { return graph ? 0 : 400; }
int cuGraphExecDestroy(void *executable) { return executable ? 0 : 400; }
int cuGetErrorName(int status, const char **name)
{
    *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : status == 400 ? "CUDA_ERROR_INVALID_HANDLE" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
int cuGetErrorString(int status, const char **text) { *text = status == 2 ? "out of memory" : "an error"; return 0; }
