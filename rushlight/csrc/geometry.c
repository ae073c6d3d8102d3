/* Sizes and strides of a TensorImpl: counting elements, row-major order, addresses. */
#include "tensor_impl.h"

int itemsize_of(PyObject *dtype)
{
    DtypeCode code = dtype_code(dtype);
    if (code != OTHER_DTYPE)
        return configuration.itemsizes[code];
    PyObject *size = PyObject_GetAttrString(dtype, "itemsize");
    long value = size ? PyLong_AsLong(size) : -1;
    Py_XDECREF(size);
    if (value < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "the itemsize of a dtype must not be negative");
    return value < 0 ? -1 : (int)value;
}

/* Return a size or stride as an integer. The constructor checks only for tuples, so anything but an int that fits counts as 0. */
static Py_ssize_t item(PyObject *tuple, Py_ssize_t index)
{
    PyObject *value = PyTuple_GET_ITEM(tuple, index);
    Py_ssize_t read = PyLong_Check(value) ? PyLong_AsSsize_t(value) : 0;
    if (read == -1 && PyErr_Occurred())
        PyErr_Clear();
    return read;
}

Py_ssize_t count_elements(PyObject *sizes)
{
    Py_ssize_t count = 1;
    for (Py_ssize_t dim = 0; dim < PyTuple_GET_SIZE(sizes); dim++)
        if (__builtin_mul_overflow(count, item(sizes, dim), &count))
            return PY_SSIZE_T_MAX;
    return count;
}

Py_ssize_t impl_numel(TensorImpl *impl)
{
    if (impl->numel < 0) {
        Py_ssize_t count = count_elements(impl->sizes);
        impl->numel = count < 0 ? 0 : count;
    }
    return impl->numel;
}

/* Return 0 if the elements are not row-major, 1 if they are, and 2 if the strides of size-1 dimensions, which don't matter, are
   row-major too. */
static int lies_row_major(PyObject *sizes, PyObject *strides)
{
    Py_ssize_t expected = 1, rank = PyTuple_GET_SIZE(sizes);
    int result = 2;
    if (PyTuple_GET_SIZE(strides) != rank)
        return 0;
    for (Py_ssize_t dim = rank - 1; dim >= 0; dim--) {
        Py_ssize_t size = item(sizes, dim);
        if (item(strides, dim) != expected) {
            if (size != 1)
                return 0;
            result = 1;
        }
        expected *= size;
    }
    return result;
}

int impl_is_contiguous(TensorImpl *impl)
{
    if (impl->contiguous < 0)
        impl->contiguous = impl_numel(impl) == 0 ? 1 : lies_row_major(impl->sizes, impl->strides);
    return impl->contiguous;
}

PyObject *contiguous_strides(PyObject *sizes)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(sizes), step = 1;
    PyObject *strides = PyTuple_New(rank);
    for (Py_ssize_t dim = rank - 1; strides && dim >= 0; dim--) {
        PyObject *stride = PyLong_FromSsize_t(step);
        if (!stride) {
            Py_DECREF(strides);
            return NULL;
        }
        PyTuple_SET_ITEM(strides, dim, stride);
        Py_ssize_t size = item(sizes, dim);
        if (size > 1 && __builtin_mul_overflow(step, size, &step))
            step = PY_SSIZE_T_MAX; /* larger than any memory: the allocation fails */
    }
    return strides;
}

/* count_elements for tuples that may hold symbolic integers, using Python's operators. */

PyObject *count_symbolic(PyObject *sizes)
{
    PyObject *count = PyLong_FromLong(1);
    for (Py_ssize_t dim = 0; count && dim < PyTuple_GET_SIZE(sizes); dim++)
        Py_SETREF(count, PyNumber_Multiply(count, PyTuple_GET_ITEM(sizes, dim)));
    return count;
}

static int equals(PyObject *value, long number)
{
    PyObject *other = PyLong_FromLong(number);
    int same = other ? PyObject_RichCompareBool(value, other, Py_EQ) : -1;
    Py_XDECREF(other);
    return same;
}

int lies_row_major_symbolically(PyObject *sizes, PyObject *strides)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(sizes);
    PyObject *expected = PyLong_FromLong(1);
    int result = 1, empty = 0;
    for (Py_ssize_t dim = 0; !empty && dim < rank; dim++)
        empty = equals(PyTuple_GET_ITEM(sizes, dim), 0);
    for (Py_ssize_t dim = rank - 1; !empty && expected && result > 0 && dim >= 0; dim--) {
        PyObject *size = PyTuple_GET_ITEM(sizes, dim);
        int single = equals(size, 1);
        result = single ? single : PyObject_RichCompareBool(PyTuple_GET_ITEM(strides, dim), expected, Py_EQ);
        if (result > 0)
            Py_SETREF(expected, PyNumber_Multiply(expected, size));
    }
    int failed = !expected || empty < 0;
    Py_XDECREF(expected);
    return failed ? -1 : empty ? 1 : result;
}

char *impl_data(TensorImpl *impl)
{
    StorageImpl *storage = (StorageImpl *)impl->storage;
    char *data = storage_data(storage);
    if (data && storage->device != configuration.cpu) {
        PyErr_Format(PyExc_TypeError, "native code cannot read the memory of device %S", storage->device);
        return NULL;
    }
    int itemsize = data ? itemsize_of(impl->dtype) : -1;
    return itemsize < 0 ? NULL : data + impl->storage_offset * itemsize;
}

int sizes_match(PyObject *found, PyObject *wanted)
{
    if (found == wanted)
        return 1;
    Py_ssize_t count = PyTuple_GET_SIZE(wanted);
    if (PyTuple_GET_SIZE(found) != count)
        return 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GET_ITEM(found, i), *other = PyTuple_GET_ITEM(wanted, i);
        if (one == other || other == Py_None)
            continue;
        int same = PyObject_RichCompareBool(one, other, Py_EQ);
        if (same <= 0)
            return same;
    }
    return 1;
}
