/* Guards in C: one check of one value, and a tree of checks over the values of a frame. */
#ifndef RUSHLIGHT_GUARDS_H
#define RUSHLIGHT_GUARDS_H

#include "module.h"

/* What is expected of a value. The numbers are those of rushlight.dynamo.guard_tree. */
enum CheckKind {
    CHECK_TYPE,    /* exactly this type */
    CHECK_SAME,    /* this very object */
    CHECK_EQUAL,   /* an int, float, complex, str or bytes: the same type and value, bit by bit for floats */
    CHECK_LENGTH,  /* this many items */
    CHECK_KEYS,    /* a dict with these keys in this order */
    CHECK_EMPTY,   /* false */
    CHECK_LACKS,   /* a dict without this key */
    CHECK_NO_ATTRIBUTE,
    CHECK_TENSOR,  /* (sizes, strides, dtype, device, requires_grad); None among sizes and strides for any */
    CHECK_THREAD,  /* (grad_enabled, inference, autocast): of the thread, whatever the value */
    CHECK_HAS,     /* a dict with this key */
    CHECK_KINDS
};

typedef struct {
    int kind;
    int is_weak;        /* whether `expected` is a weak reference to what is meant */
    PyObject *expected; /* owned */
    Py_ssize_t number;  /* a length, or flags */
} GuardCheck;

/* 1, 0, or -1 with an exception set. */
int check_holds(const GuardCheck *check, PyObject *value);
/* From (kind, expected); -1 with an exception set. */
int check_set(GuardCheck *check, PyObject *description);

/* What a weak reference refers to, borrowed; NULL where it is gone. Other objects are themselves. */
static inline PyObject *meant(PyObject *object, int is_weak)
{
    PyObject *found = is_weak ? ((PyWeakReference *)object)->wr_object : object;
    return is_weak && found == Py_None ? NULL : found;
}

/* Whether all guards of a GuardTree hold for a frame's values: 1, 0, or -1 with an exception that is no Exception. */
int guard_tree_holds(PyObject *tree, PyObject *const *values, Py_ssize_t count);

/* Whether a value is a bool, an int, a float or a string. */
int is_plain(PyObject *value);
/* Whether plain values are of one type and equal, to the bit: 1, 0, or -1 with an exception set. */
int same_value(PyObject *found, PyObject *expected);

#endif
