/* Binding of Python arguments that match a scripted function's declaration exactly: they need no conversion, only copies of
   lists and dicts.

   A form describes the expected value: a class, whose exact instances match (Tensor also accepts subclasses); ("list", form),
   ("dict", form, form) or ("optional", form). rushlight/jit/runtime/type_checks.py derives forms from types, and converts all
   other values. */
#include "machine.h"

#include "configuration.h"
#include "tensor_impl.h"

static PyObject *bind_exactly(PyObject *form, PyObject *value);

/* Whether a value is an instance of exactly this class (or of a subclass, for Tensor). */
static int fits_class(PyObject *form, PyObject *value)
{
    return (PyObject *)Py_TYPE(value) == form || (form == configuration.tensor_type && is_tensor(value));
}

/* Insert a key and a value, or copies of them, into a dict. Return 1; 0 if one does not match its form; -1 with an exception
   set. */
static int add_key_and_value(PyObject *made, PyObject *form, PyObject *key, PyObject *value)
{
    PyObject *own_key = bind_exactly(PyTuple_GET_ITEM(form, 1), key);
    PyObject *own_value = own_key ? bind_exactly(PyTuple_GET_ITEM(form, 2), value) : NULL;
    int status = own_value ? (PyDict_SetItem(made, own_key, own_value) < 0 ? -1 : 1) : 0;
    Py_XDECREF(own_key);
    Py_XDECREF(own_value);
    return status;
}

static PyObject *copy_dict(PyObject *form, PyObject *dict)
{
    PyObject *made = PyDict_New(), *key, *value;
    Py_ssize_t place = 0;
    while (made && PyDict_Next(dict, &place, &key, &value)) {
        Py_INCREF(key); /* a garbage collection inside may run code that changes the dict */
        Py_INCREF(value);
        if (add_key_and_value(made, form, key, value) <= 0)
            Py_CLEAR(made);
        Py_DECREF(key);
        Py_DECREF(value);
    }
    return made;
}

static PyObject *copy_list(PyObject *form, PyObject *list)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    PyObject *made = PyList_New(count), *item_form = PyTuple_GET_ITEM(form, 1);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *given = i < PyList_GET_SIZE(list) ? Py_NewRef(PyList_GET_ITEM(list, i)) : NULL;
        PyObject *item = given ? bind_exactly(item_form, given) : NULL;
        Py_XDECREF(given);
        if (item)
            PyList_SET_ITEM(made, i, item);
        else
            Py_CLEAR(made);
    }
    return made;
}

/* Whether a form is a tuple of `count` items that begins with `kind`. */
static int is_form_of(PyObject *form, const char *kind, Py_ssize_t count)
{
    return PyTuple_GET_SIZE(form) == count && PyUnicode_Check(PyTuple_GET_ITEM(form, 0)) &&
           PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(form, 0), kind) == 0;
}

/* Return the value for scripted code, a new reference; NULL if it does not match the form, perhaps with an exception set. */
static PyObject *bind_exactly(PyObject *form, PyObject *value)
{
    if (PyType_Check(form))
        return fits_class(form, value) ? Py_NewRef(value) : NULL;
    if (!PyTuple_Check(form))
        return NULL;
    if (PyList_CheckExact(value) && is_form_of(form, "list", 2))
        return copy_list(form, value);
    if (PyDict_CheckExact(value) && is_form_of(form, "dict", 3))
        return copy_dict(form, value);
    if (is_form_of(form, "optional", 2))
        return value == Py_None ? Py_NewRef(value) : bind_exactly(PyTuple_GET_ITEM(form, 1), value);
    return NULL;
}

PyObject *machine_bind_exactly(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyTuple_Check(arguments[0]) || !PyTuple_Check(arguments[1]))
        return PyErr_Format(PyExc_TypeError, "machine_bind_exactly() takes a tuple of forms and a tuple of values");
    PyObject *forms = arguments[0], *values = arguments[1];
    Py_ssize_t length = PyTuple_GET_SIZE(forms);
    if (PyTuple_GET_SIZE(values) != length)
        Py_RETURN_NONE;
    PyObject *bound = PyList_New(length);
    for (Py_ssize_t i = 0; bound && i < length; i++) {
        PyObject *value = bind_exactly(PyTuple_GET_ITEM(forms, i), PyTuple_GET_ITEM(values, i));
        if (value)
            PyList_SET_ITEM(bound, i, value);
        else
            Py_CLEAR(bound);
    }
    return bound || PyErr_Occurred() ? bound : Py_NewRef(Py_None);
}
