/* Guards in C: one check of one value, and a tree of checks over the values of a frame. */
#ifndef RUSHLIGHT_GUARDS_H
#define RUSHLIGHT_GUARDS_H

#include "module.h"

/* The kinds of checks on a value. The numbers are those of rushlight.dynamo.guard_tree. */
enum CheckKind {
    CHECK_TYPE,    /* exactly this type */
    CHECK_SAME,    /* this very object */
    CHECK_EQUAL,   /* an int, float, complex, str or bytes: the same type and value, bit by bit for floats */
    CHECK_LENGTH,  /* this many items */
    CHECK_KEYS,    /* a dict with these keys in this order */
    CHECK_EMPTY,   /* falsy */
    CHECK_LACKS,   /* a dict without this key */
    CHECK_NO_ATTRIBUTE,
    CHECK_TENSOR,  /* (sizes, strides, dtype, device, requires_grad); None among sizes and strides matches any */
    CHECK_THREAD,  /* (grad_enabled, inference, autocast) of the thread; ignores the value */
    CHECK_HAS,     /* a dict with this key */
    CHECK_KINDS
};

typedef struct {
    int kind;
    int is_weak;        /* whether `expected` is a weak reference to the expected object */
    PyObject *expected; /* owned */
    Py_ssize_t number;  /* a length, or flags */
} GuardCheck;

/* Whether a value passes a check: 1, 0, or -1 with an exception set. */
int check_holds(const GuardCheck *check, PyObject *value);
/* Make a check from (kind, expected); -1 with an exception set. */
int check_set(GuardCheck *check, PyObject *description);

/* Dereference a weak reference, borrowed; NULL if the object is gone. Other objects are returned as they are. */
static inline PyObject *resolve_weak(PyObject *object, int is_weak)
{
    PyObject *found = is_weak ? ((PyWeakReference *)object)->wr_object : object;
    return is_weak && found == Py_None ? NULL : found;
}

/* Whether all guards of a GuardTree hold for a frame's values: 1, 0, or -1 with an exception set that does not derive from
   Exception. */
int guard_tree_holds(PyObject *tree, PyObject *const *values, Py_ssize_t count);

/* Whether a value is a bool, an int, a float or a string. */
int is_plain(PyObject *value);
/* Whether two plain values have one type and are bitwise equal: 1, 0, or -1 with an exception set. */
int same_value(PyObject *found, PyObject *expected);

#endif
