/* One check of one value, for the guards of a capture. */
#include "guards.h"

#include <string.h>

#include "tensor_impl.h"

int is_plain(PyObject *value)
{
    return PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
}

int same_value(PyObject *found, PyObject *expected)
{
    if (found == expected)
        return 1;
    if (!Py_IS_TYPE(found, Py_TYPE(expected)))
        return 0;
    if (PyFloat_CheckExact(expected)) {
        double one = PyFloat_AS_DOUBLE(found), other = PyFloat_AS_DOUBLE(expected);
        return memcmp(&one, &other, sizeof one) == 0; /* bitwise: tells -0.0 from 0.0, and a NaN equals itself */
    }
    if (PyComplex_CheckExact(expected)) {
        Py_complex one = PyComplex_AsCComplex(found), other = PyComplex_AsCComplex(expected);
        return memcmp(&one, &other, sizeof one) == 0;
    }
    return PyObject_RichCompareBool(found, expected, Py_EQ);
}

static int has_length(PyObject *value, Py_ssize_t wanted)
{
    Py_ssize_t length = PyList_Check(value)    ? PyList_GET_SIZE(value)
                        : PyTuple_Check(value) ? PyTuple_GET_SIZE(value)
                                               : PyObject_Size(value);
    return length < 0 ? -1 : length == wanted;
}

/* Keys must also agree in type: 1, 1.0 and True are different keys to a program that looks at them. Tensor keys are compared
   by identity, not by elements. Weak references are dereferenced. */
static int has_keys(PyObject *dict, PyObject *wanted)
{
    PyObject *key, *item;
    Py_ssize_t position = 0, index = 0, count = PyTuple_GET_SIZE(wanted);
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != count)
        return 0;
    for (int same = 1; PyDict_Next(dict, &position, &key, &item); index++) {
        if (index >= count)
            return 0;
        PyObject *expected = PyTuple_GET_ITEM(wanted, index);
        expected = resolve_weak(expected, PyWeakref_CheckRef(expected));
        if (!expected)
            return 0;
        if (key == expected)
            continue;
        Py_INCREF(key);
        same = Py_IS_TYPE(key, Py_TYPE(expected)) && !is_tensor(expected) ? PyObject_RichCompareBool(key, expected, Py_EQ) : 0;
        Py_DECREF(key);
        if (same <= 0)
            return same;
    }
    return index == count;
}

enum { SIZES, STRIDES, DTYPE, DEVICE, REQUIRES_GRAD, TENSOR_FACTS };

static int same_tensor(PyObject *value, const GuardCheck *check)
{
    TensorImpl *impl = impl_of(value);
    PyObject *facts = check->expected;
    if (!impl || impl->dtype != PyTuple_GET_ITEM(facts, DTYPE) || requires_grad(impl) != check->number ||
        impl->key_set & (SPECIAL_BITS | BATCHED_BIT))
        return 0;
    PyObject *device = PyTuple_GET_ITEM(facts, DEVICE);
    int same = impl->device == device ? 1 : PyObject_RichCompareBool(impl->device, device, Py_EQ);
    if (same > 0)
        same = sizes_match(impl->sizes, PyTuple_GET_ITEM(facts, SIZES));
    return same > 0 ? sizes_match(impl->strides, PyTuple_GET_ITEM(facts, STRIDES)) : same;
}

enum { GRAD_ENABLED = 1, INFERENCE = 2, AUTOCAST = 4 };

static int same_thread(Py_ssize_t flags)
{
    const ThreadRecord *record = thread_record();
    if (!record)
        return -1;
    Py_ssize_t now = (record->grad_enabled ? GRAD_ENABLED : 0) | (record->inference ? INFERENCE : 0) |
                     (record->include & AUTOCAST_BIT ? AUTOCAST : 0);
    return now == flags;
}

static int lacks_attribute(PyObject *value, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(value, name);
    if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    Py_XDECREF(found);
    return !found;
}

static int has_key(PyObject *dict, PyObject *key, int wanted)
{
    int found = PyDict_Check(dict) ? PyDict_Contains(dict, key) : !wanted;
    return found < 0 ? -1 : found == wanted;
}

int check_holds(const GuardCheck *check, PyObject *value)
{
    PyObject *expected = resolve_weak(check->expected, check->is_weak);
    switch (check->kind) {
    case CHECK_TYPE: return (PyObject *)Py_TYPE(value) == expected;
    case CHECK_SAME: return value == expected;
    case CHECK_EQUAL: return same_value(value, expected);
    case CHECK_LENGTH: return has_length(value, check->number);
    case CHECK_KEYS: return has_keys(value, expected);
    case CHECK_EMPTY: return PyObject_Not(value);
    case CHECK_LACKS: return has_key(value, expected, 0);
    case CHECK_HAS: return has_key(value, expected, 1);
    case CHECK_NO_ATTRIBUTE: return lacks_attribute(value, expected);
    case CHECK_TENSOR: return same_tensor(value, check);
    default: return same_thread(check->number);
    }
}

static int is_tensor_facts(PyObject *facts)
{
    return PyTuple_Check(facts) && PyTuple_GET_SIZE(facts) == TENSOR_FACTS && PyTuple_Check(PyTuple_GET_ITEM(facts, SIZES)) &&
           PyTuple_Check(PyTuple_GET_ITEM(facts, STRIDES));
}

static int flags_of(PyObject *flags, Py_ssize_t *number)
{
    if (!PyTuple_Check(flags) || PyTuple_GET_SIZE(flags) != 3)
        return 0;
    for (int i = 0; i < 3; i++)
        *number |= (Py_ssize_t)(PyTuple_GET_ITEM(flags, i) == Py_True) << i;
    return 1;
}

static int fits(GuardCheck *check, PyObject *expected)
{
    switch (check->kind) {
    case CHECK_LENGTH:
        check->number = PyLong_Check(expected) ? PyLong_AsSsize_t(expected) : -1;
        PyErr_Clear();
        return check->number >= 0;
    case CHECK_KEYS: return PyTuple_Check(expected);
    case CHECK_NO_ATTRIBUTE: return PyUnicode_Check(expected);
    case CHECK_TENSOR:
        check->number = is_tensor_facts(expected) && PyTuple_GET_ITEM(expected, REQUIRES_GRAD) == Py_True;
        return is_tensor_facts(expected);
    case CHECK_THREAD: return flags_of(expected, &check->number);
    default: return 1;
    }
}

int check_set(GuardCheck *check, PyObject *description)
{
    int kind;
    PyObject *expected;
    if (!PyTuple_Check(description)) {
        PyErr_Format(PyExc_TypeError, "a check is (kind, expected), got %R", description);
        return -1;
    }
    if (!PyArg_ParseTuple(description, "iO;a check is (kind, expected)", &kind, &expected))
        return -1;
    *check = (GuardCheck){.kind = kind};
    if (kind < 0 || kind >= CHECK_KINDS || !fits(check, expected)) {
        PyErr_Format(PyExc_ValueError, "no check of kind %d expects %R", kind, expected);
        return -1;
    }
    check->is_weak = (kind == CHECK_TYPE || kind == CHECK_SAME) && PyWeakref_CheckRef(expected);
    check->expected = Py_NewRef(expected);
    return 0;
}
