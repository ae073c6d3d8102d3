/* Fast paths of queries on a tensor: its sizes, and the number in a single-element tensor. They apply to plain CPU tensors
   outside of traces, dispatch modes, autocast and vmap; otherwise the operator's Python function is called. */
#include "machine_values.h"

#include "tensor_impl.h"

#define OPERATOR(name) static FastStatus name(PyObject **arguments, Py_ssize_t Py_UNUSED(count), PyObject **result)

/* Return the impl of a plain tensor, borrowed; NULL for other values. Set no exception. */
static TensorImpl *plain_impl(PyObject *value)
{
    const ThreadRecord *record = current_thread_record;
    if ((PyObject *)Py_TYPE(value) != configuration.tensor_type || !record || modes_active(record) || record->include & ~AUTOGRAD_BITS)
        return NULL;
    TensorImpl *impl = ((TensorBase *)value)->impl;
    return impl && impl->key_set == CPU_KEYS && !impl->fake ? impl : NULL;
}

OPERATOR(dim)
{
    const TensorImpl *impl = plain_impl(arguments[0]);
    return impl ? give_int(result, PyTuple_GET_SIZE(impl->sizes)) : FAST_UNUSUAL;
}

OPERATOR(numel)
{
    TensorImpl *impl = plain_impl(arguments[0]);
    return impl ? give_int(result, impl_numel(impl)) : FAST_UNUSUAL;
}

OPERATOR(sizes)
{
    const TensorImpl *impl = plain_impl(arguments[0]);
    return impl ? give(result, PySequence_List(impl->sizes)) : FAST_UNUSUAL;
}

static FastStatus give_size(const TensorImpl *impl, int64_t dim, PyObject **result)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(impl->sizes);
    dim += dim < 0 ? rank : 0;
    return dim >= 0 && dim < rank ? give(result, Py_NewRef(PyTuple_GET_ITEM(impl->sizes, dim))) : FAST_UNUSUAL;
}

OPERATOR(size)
{
    const TensorImpl *impl = plain_impl(arguments[0]);
    int64_t dim;
    return impl && as_int(arguments[1], &dim) ? give_size(impl, dim, result) : FAST_UNUSUAL;
}

OPERATOR(length)
{
    const TensorImpl *impl = plain_impl(arguments[0]);
    return impl ? give_size(impl, 0, result) : FAST_UNUSUAL;
}

/* Return the only element of a tensor as a Python number; NULL if the fast path does not apply, perhaps with an exception set. */
static PyObject *only_element(PyObject *value)
{
    TensorImpl *impl = plain_impl(value);
    const char *data = impl && impl_numel(impl) == 1 ? impl_data(impl) : NULL;
    if (!data)
        return NULL;
    switch (dtype_code(impl->dtype)) {
    case FLOAT32: return PyFloat_FromDouble(*(const float *)data);
    case FLOAT64: return PyFloat_FromDouble(*(const double *)data);
    case INT64: return PyLong_FromLongLong(*(const int64_t *)data);
    case INT32: return PyLong_FromLong(*(const int32_t *)data);
    case BOOL: return PyBool_FromLong(*data);
    default: return NULL;
    }
}

static FastStatus give_element(PyObject *tensor, PyObject **result, PyObject *(*convert)(PyObject *))
{
    PyObject *element = only_element(tensor);
    if (!element)
        return PyErr_Occurred() ? FAST_FAILED : FAST_UNUSUAL;
    PyObject *made = convert ? convert(element) : Py_NewRef(element);
    Py_DECREF(element);
    return give(result, made);
}

static PyObject *as_bool(PyObject *number)
{
    int truth = PyObject_IsTrue(number);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

/* Return int(number); a bool becomes an int too. */
static PyObject *as_whole(PyObject *number)
{
    return PyObject_CallOneArg((PyObject *)&PyLong_Type, number);
}

OPERATOR(item) { return give_element(arguments[0], result, NULL); }

OPERATOR(to_float) { return give_element(arguments[0], result, PyNumber_Float); }

OPERATOR(to_int) { return give_element(arguments[0], result, as_whole); }

OPERATOR(to_bool) { return give_element(arguments[0], result, as_bool); }

const FastOperator machine_tensor_operators[] = {
    {"aten::dim", 1, 1, dim},
    {"aten::numel", 1, 1, numel},
    {"aten::size", 1, 1, sizes},
    {"prim::shape", 1, 1, sizes},
    {"aten::size.int", 2, 1, size},
    {"aten::len.Tensor", 1, 1, length},
    {"aten::item", 1, 1, item},
    {"aten::Float.Tensor", 1, 1, to_float},
    {"aten::Int.Tensor", 1, 1, to_int},
    {"aten::Bool.Tensor", 1, 1, to_bool},
    {NULL, 0, 0, NULL},
};
