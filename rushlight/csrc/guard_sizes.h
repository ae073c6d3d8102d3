/* Guards on dynamic sizes: relations of integers that are read from the values of a frame. */
#ifndef RUSHLIGHT_GUARD_SIZES_H
#define RUSHLIGHT_GUARD_SIZES_H

#include "size_program.h"

enum NumberKind { NUMBER_SIZE, NUMBER_STRIDE, NUMBER_VALUE, NUMBER_KINDS };

/* A number: a size or stride of the tensor in a slot, or the int in that slot. */
typedef struct {
    int kind;
    Py_ssize_t slot, dim;
} SizeNumber;

typedef struct {
    int kind;
    SizeProgram program;
} SizeCondition;

typedef struct {
    Py_ssize_t number_count, condition_count;
    SizeNumber *numbers;
    SizeCondition *conditions;
    PyObject *exact; /* owned: a Python check of the same conditions without overflow; or NULL if there are none */
} GuardSizes;

/* Fill the guards from (numbers, conditions, exact), with numbers as (kind, slot, dim) and conditions as (kind, code); -1
   with an exception set. After a failure, guard_sizes_clear clears what was set. */
int guard_sizes_set(GuardSizes *sizes, PyObject *description, Py_ssize_t slot_count);
void guard_sizes_clear(GuardSizes *sizes);
/* Whether all conditions hold for the values in the slots: 1, 0, or -1 with an exception set. */
int guard_sizes_hold(const GuardSizes *sizes, PyObject **slots, PyObject *const *values, Py_ssize_t value_count);

#endif
