/* The thread-local state: the dispatch keys that calls include and exclude, grad mode and dispatch modes.

   Python reads and writes it through rushlight.core.thread_state.state. */
#ifndef RUSHLIGHT_THREAD_STATE_H
#define RUSHLIGHT_THREAD_STATE_H

#include "module.h"

typedef struct {
    unsigned long include, exclude; /* masks of dispatch keys */
    int grad_enabled;
    int inference;
    int makes_elsewhere; /* a default device other than the CPU is set, so new tensors go there unless they name a device */
    int asks_function_modes; /* calls of public functions are passed to a function mode of rushlight.core.overrides first */
    PyObject *modes;              /* owned: the stack of dispatch modes, a list */
    PyObject *saved_tensor_hooks; /* owned: the stack of hooks on saved tensors, a tuple */
} ThreadRecord;

extern _Thread_local ThreadRecord *current_thread_record;

/* Make the record of a thread, at its first use. Return NULL with an exception set if memory is short. */
ThreadRecord *make_thread_record(void);

static inline ThreadRecord *thread_record(void)
{
    return current_thread_record ? current_thread_record : make_thread_record();
}

static inline int modes_active(const ThreadRecord *record) { return record->modes && PyList_GET_SIZE(record->modes) > 0; }

#endif
