/* configure(): rushlight.core passes Python objects to C code here. */
#include "configuration.h"

#include <stddef.h>
#include <string.h>

#include "accumulate.h"

Configuration configuration;

static const struct {
    const char *name;
    size_t offset;
} entries[] = {
    {"tensor_type", offsetof(Configuration, tensor_type)},
    {"cpu", offsetof(Configuration, cpu)},
    {"storage_bytes", offsetof(Configuration, storage_bytes)},
    {"ndarray", offsetof(Configuration, ndarray)},
    {"numpy_name", offsetof(Configuration, numpy_name)},
    {"make_array", offsetof(Configuration, make_array)},
    {"gradient_edge", offsetof(Configuration, gradient_edge)},
    {"node_type", offsetof(Configuration, node_type)},
    {"accumulate_type", offsetof(Configuration, accumulate_type)},
    {"save", offsetof(Configuration, save)},
    {"save_output", offsetof(Configuration, save_output)},
    {"saved_type", offsetof(Configuration, saved_type)},
    {"unpack", offsetof(Configuration, unpack)},
    {"set_history", offsetof(Configuration, set_history)},
    {"no_edge", offsetof(Configuration, no_edge)},
    {"symbolic_type", offsetof(Configuration, symbolic_type)},
    {"narrow_dtypes", offsetof(Configuration, narrow_dtypes)},
    {"fills_new", offsetof(Configuration, fills_new)},
    {"out_of_memory", offsetof(Configuration, out_of_memory)},
};

static const char *const dtype_names[DTYPE_COUNT] = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
};
static const int itemsizes[DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

static PyObject **place_of(const char *name)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(entries[i].name, name) == 0)
            return (PyObject **)((char *)&configuration + entries[i].offset);
    for (int code = 0; code < DTYPE_COUNT; code++)
        if (strcmp(dtype_names[code], name) == 0)
            return &configuration.dtypes[code];
    return NULL;
}

/* Check that a type has the layout that C code relies on. */
static int is_acceptable(const char *name, PyObject *value)
{
    PyTypeObject *base = strcmp(name, "tensor_type") == 0 ? &TensorBase_Type
                         : strcmp(name, "node_type") == 0 ? &OperatorNode_Type
                         : strcmp(name, "saved_type") == 0 ? &SavedTensorBase_Type
                         : strcmp(name, "narrow_dtypes") == 0 ? &PyFrozenSet_Type
                         : strcmp(name, "accumulate_type") == 0 ? &AccumulateNode_Type
                                                          : NULL;
    if (!base)
        return 1;
    if (base == &PyFrozenSet_Type)
        return PyFrozenSet_CheckExact(value);
    return PyType_Check(value) && PyType_IsSubtype((PyTypeObject *)value, base);
}

static PyObject *configure(PyObject *Py_UNUSED(module), PyObject *arguments, PyObject *keywords)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    if (!PyArg_ParseTuple(arguments, ":configure"))
        return NULL;
    while (keywords && PyDict_Next(keywords, &position, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        PyObject **place = name ? place_of(name) : NULL;
        if (!place || !is_acceptable(name, value))
            return PyErr_Format(PyExc_TypeError, "configure: unexpected %S=%R", key, value);
        Py_XSETREF(*place, Py_NewRef(value));
    }
    memcpy(configuration.itemsizes, itemsizes, sizeof itemsizes);
    Py_RETURN_NONE;
}

PyMethodDef configuration_methods[] = {
    {"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS,
     "configure(**objects) -> None\n\nHand over types, dtypes by name, and functions that C code calls. Internal.\n"
     "TypeError for a name that C code does not know."},
    {NULL, NULL, 0, NULL},
};
