/* Conversion of the machine's numbers from and to Python objects: 64-bit ints that wrap around, and doubles. */
#ifndef RUSHLIGHT_MACHINE_VALUES_H
#define RUSHLIGHT_MACHINE_VALUES_H

#include "machine.h"

/* Read an exact int (not a bool or another subclass) that fits into 64 bits. Set no exception. */
static inline int as_int(PyObject *value, int64_t *number)
{
    if (!PyLong_CheckExact(value))
        return 0;
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)value)) {
        *number = PyUnstable_Long_CompactValue((PyLongObject *)value);
        return 1;
    }
#else
    Py_ssize_t size = Py_SIZE(value);
    if (size >= -1 && size <= 1) {
        *number = size * (int64_t)((PyLongObject *)value)->ob_digit[0];
        return 1;
    }
#endif
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static inline int as_float(PyObject *value, double *number)
{
    if (!PyFloat_CheckExact(value))
        return 0;
    *number = PyFloat_AS_DOUBLE(value);
    return 1;
}

/* Read a float, or an int that a double represents exactly. */
static inline int as_real(PyObject *value, double *number)
{
    int64_t whole;
    if (as_float(value, number))
        return 1;
    if (!as_int(value, &whole) || whole > (INT64_C(1) << 53) || whole < -(INT64_C(1) << 53))
        return 0;
    *number = (double)whole;
    return 1;
}

static inline FastStatus give(PyObject **result, PyObject *value)
{
    *result = value;
    return value ? FAST_DONE : FAST_FAILED;
}

static inline FastStatus give_int(PyObject **result, int64_t value) { return give(result, PyLong_FromLongLong(value)); }

static inline FastStatus give_float(PyObject **result, double value) { return give(result, PyFloat_FromDouble(value)); }

static inline FastStatus give_bool(PyObject **result, int value)
{
    return give(result, Py_NewRef(value ? Py_True : Py_False));
}

/* Return the bool for a CPython status: 1, 0, or -1 with an exception set. */
static inline FastStatus give_truth(PyObject **result, int value)
{
    return value < 0 ? FAST_FAILED : give_bool(result, value);
}

#endif
