/* LaunchPlan: what a program of GPU kernels does for inputs of known sizes, strides, dtypes and alignment. */
#ifndef RUSHLIGHT_GPU_PLAN_H
#define RUSHLIGHT_GPU_PLAN_H

#include "gpu_memory.h"
#include "gpu_thread.h"

#include <stdint.h>

typedef int (*LaunchEntry)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                           void *stream, void **arguments, void **extra);
typedef int (*CopyEntry)(uint64_t target, uint64_t source, size_t nbytes, void *stream);
typedef int (*CaptureEntry)(void *stream, int *status);

/* A number, or an address in memory: `offset` bytes from the beginning of a slot. Slots are the inputs, then the memory that
   the plan allocates. */
typedef struct {
    Py_ssize_t slot; /* -1: `offset` is the number */
    int64_t offset;
} PlannedValue;

typedef struct {
    PyObject *kernel, *constants; /* owned; `kernel` is NULL for a copy */
    LaunchEntry entry;            /* NULL: call the kernel's method `launch` */
    void *function;
    unsigned grid[3], threads, shared;
    Py_ssize_t first, count; /* its arguments among the plan's values; a copy's are target, source and bytes. Null pointers may
                                follow that only the driver reads */
} PlannedStep;

typedef enum { OUTPUT_MEMORY, OUTPUT_INPUT, OUTPUT_VIEW, OUTPUT_OBJECT } OutputKind;

typedef struct {
    OutputKind kind;
    Py_ssize_t slot, offset;
    PyObject *sizes, *strides, *object; /* owned; `object` is the dtype, or the result itself */
} PlannedOutput;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    uint64_t generation;
    int index;               /* the device's number */
    uintptr_t owner;         /* the driver as a number, see gpu_thread.h */
    PyObject *device, *place, *driver, *failing, *reason; /* owned; `reason` is NULL if no kernel may fail */
    PyObject *parts;         /* owned: the description of inputs, memory, steps and outputs */
    DeviceHeap *heap;        /* owned */
    CopyEntry copy;
    CaptureEntry is_capturing;
    Py_ssize_t input_count, memory_count, step_count, value_count, output_count;
    Py_ssize_t *reaches, *memory; /* bytes that inputs need from their first element on; bytes to allocate */
    PlannedStep *steps;
    PlannedValue *values;
    PlannedOutput *outputs;
} LaunchPlan;

extern PyTypeObject LaunchPlan_Type;

/* Run a plan with tensors that it was made for; they are borrowed. Return the results as a tuple. */
PyObject *plan_run(LaunchPlan *plan, PyObject *const *inputs);
/* Run a plan with one result, and return that. */
PyObject *plan_run_single(LaunchPlan *plan, PyObject *const *inputs);
/* Whether the stream is being captured; -1 with an exception set. */
int plan_is_capturing(const LaunchPlan *plan, uint64_t stream);

static inline uint64_t plan_stream(const LaunchPlan *plan) { return gpu_thread.streams[plan->index]; }

#endif
