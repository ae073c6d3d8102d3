/* The state of each thread that uses GPUs: its device, its streams, and the device whose context the driver has for it. */
#ifndef RUSHLIGHT_GPU_THREAD_H
#define RUSHLIGHT_GPU_THREAD_H

#include "module.h"

#include <stdint.h>

enum { MOST_GPUS = 128 };

typedef struct {
    int device;                  /* the current one */
    uint64_t streams[MOST_GPUS]; /* the current ones, by device; 0 is the default stream */
    uintptr_t owner;             /* the driver that `in_use` is about, as a number; 0: none */
    int in_use;
} GpuThread;

extern _Thread_local GpuThread gpu_thread;

/* Changes when all launch plans become invalid: in a forked process, and when the driver changes. */
extern uint64_t gpu_plan_generation;
/* Changes then, too, and when calls have to choose their plans anew because a setting of the process changed. */
extern uint64_t gpu_choice_generation;

#endif
