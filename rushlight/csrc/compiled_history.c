/* The autograd side of a compiled program's node: edges to its inputs, history for its outputs, and values saved for its
   backward. rushlight.aot.training calls this file's functions once for each run. */
#include "record.h"

/* Return values[positions[index]] for a tuple or list `values`; NULL with an exception set. */
static PyObject *value_at(PyObject *values, PyObject *positions, Py_ssize_t index)
{
    PyObject *item = PyTuple_GET_ITEM(positions, index);
    Py_ssize_t position = PyLong_Check(item) ? PyLong_AsSsize_t(item) : -1;
    if (position >= 0 && position < PySequence_Fast_GET_SIZE(values))
        return PySequence_Fast_GET_ITEM(values, position);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_IndexError, "there is no value %R among %zd", item, PySequence_Fast_GET_SIZE(values));
    return NULL;
}

static int is_sequence(PyObject *object) { return PyTuple_Check(object) || PyList_Check(object); }

static PyObject *gradient_edges(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !is_sequence(args[0]) || !PyTuple_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "gradient_edges: expected values and a tuple of positions");
    PyObject *edges = PyTuple_New(PyTuple_GET_SIZE(args[1]));
    for (Py_ssize_t i = 0; edges && i < PyTuple_GET_SIZE(args[1]); i++) {
        PyObject *value = value_at(args[0], args[1], i), *edge = value ? edge_of(value) : NULL;
        if (!edge)
            Py_CLEAR(edges);
        else
            PyTuple_SET_ITEM(edges, i, edge);
    }
    return edges;
}

static PyObject *tensor_versions(PyObject *Py_UNUSED(module), PyObject *values)
{
    if (!is_sequence(values))
        return PyErr_Format(PyExc_TypeError, "tensor_versions: expected a tuple or list, got %R", values);
    PyObject *versions = PyList_New(0);
    for (Py_ssize_t i = 0; versions && i < PySequence_Fast_GET_SIZE(values); i++) {
        const TensorImpl *impl = impl_of(PySequence_Fast_GET_ITEM(values, i));
        PyObject *version = impl ? PyLong_FromSsize_t(version_value(impl)) : NULL;
        if (impl && (!version || PyList_Append(versions, version) < 0))
            Py_CLEAR(versions);
        Py_XDECREF(version);
    }
    return versions;
}

/* Make a tensor output number `number` of the node. */
static int set_output_history(NodeBase *node, PyObject *value, Py_ssize_t number)
{
    TensorImpl *impl = impl_of(value);
    if (!impl) {
        PyErr_Format(PyExc_TypeError, "give_histories: expected a tensor, got %R", value);
        return -1;
    }
    PyObject *info = PyTuple_Pack(3, impl->sizes, impl->dtype, impl->device);
    int failed = !info || PyList_Append(node->output_info, info) < 0;
    Py_XDECREF(info);
    return failed ? -1 : set_history(impl, node, number);
}

static PyObject *give_histories(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyObject_TypeCheck(args[0], &NodeBase_Type) || !is_sequence(args[1]) || !PyTuple_Check(args[2]) ||
        !PyList_Check(((NodeBase *)args[0])->output_info))
        return PyErr_Format(PyExc_TypeError, "give_histories: expected a node, values and a tuple of positions");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[2]); i++) {
        PyObject *value = value_at(args[1], args[2], i);
        if (!value || set_output_history((NodeBase *)args[0], value, i) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* Return what a node saves for a value: an int itself, or a tensor with its version. Outputs are saved without their history,
   because they reference the node. */
static PyObject *save_value(PyObject *value, int is_output)
{
    TensorImpl *impl = impl_of(value);
    const ThreadRecord *record = impl ? thread_record() : NULL;
    if (!record)
        return impl ? NULL : Py_NewRef(value);
    PyObject *tensor = is_output ? tensor_wrap_new(impl_alias(impl, impl->sizes, impl->strides, impl->storage_offset))
                                 : Py_NewRef(value);
    if (!tensor)
        return NULL;
    int is_plain = !impl->inference && !PyTuple_GET_SIZE(record->saved_tensor_hooks);
    PyObject *kept = is_plain ? saved_tensor(tensor, impl, Py_None) : PyObject_CallOneArg(configuration.saved_type, tensor);
    Py_DECREF(tensor);
    return kept;
}

/* Save the value at a place (kind, position). The kinds are primals, additional results of the forward, and outputs. */
static PyObject *save_place(PyObject *place, PyObject *const *kinds)
{
    if (!PyTuple_Check(place) || PyTuple_GET_SIZE(place) != 2 || !PyLong_Check(PyTuple_GET_ITEM(place, 0)))
        return PyErr_Format(PyExc_TypeError, "keep_values: a place is (kind, position), got %R", place);
    long kind = PyLong_AsLong(PyTuple_GET_ITEM(place, 0));
    if (kind < 0 || kind > 2)
        return PyErr_Format(PyExc_ValueError, "keep_values: there is no kind %ld", kind);
    PyObject *value = value_at(kinds[kind], place, 1);
    return value ? save_value(value, kind == 2) : NULL;
}

static PyObject *keep_values(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyTuple_Check(args[0]) || !is_sequence(args[1]) || !is_sequence(args[2]) || !is_sequence(args[3]) ||
        !configuration.saved_type)
        return PyErr_Format(PyExc_TypeError, "keep_values: expected a tuple of places, primals, further results and outputs");
    PyObject *kept = PyList_New(PyTuple_GET_SIZE(args[0]));
    for (Py_ssize_t i = 0; kept && i < PyTuple_GET_SIZE(args[0]); i++) {
        PyObject *value = save_place(PyTuple_GET_ITEM(args[0], i), args + 1);
        if (!value)
            Py_CLEAR(kept);
        else
            PyList_SET_ITEM(kept, i, value);
    }
    return kept;
}

PyMethodDef compiled_history_methods[] = {
    {"gradient_edges", (PyCFunction)(void (*)(void))gradient_edges, METH_FASTCALL,
     "gradient_edges(values, positions, /) -> tuple\n\nWhere the gradients of the values at these positions flow."},
    {"tensor_versions", tensor_versions, METH_O,
     "tensor_versions(values, /) -> list[int]\n\nThe versions of the tensors among the values."},
    {"give_histories", (PyCFunction)(void (*)(void))give_histories, METH_FASTCALL,
     "give_histories(node, values, positions, /) -> None\n\nMake the tensors at these positions the node's outputs, in order."},
    {"keep_values", (PyCFunction)(void (*)(void))keep_values, METH_FASTCALL,
     "keep_values(places, primals, further, outputs, /) -> list\n\nWhat a node keeps of the values at (kind, position), the kinds\n"
     "0, 1 and 2 being the lists in this order: ints, and SavedTensors, of outputs without their history."},
    {NULL, NULL, 0, NULL},
};
