/* Call a compiled graph, given the address of its entry and the addresses of its buffers; return its status. */
#include "module.h"

enum { POINTERS_ON_STACK = 256 };

typedef int (*Entry)(void **);

/* Accept only exact ints: anything else could run Python code while we walk the sequence. Return -1 on an exception. */
static int read_address(const char *what, Py_ssize_t position, PyObject *object, void **address)
{
    if (!PyLong_Check(object)) {
        if (position < 0)
            PyErr_Format(PyExc_TypeError, "launch: %s must be an int, got %.200s", what, Py_TYPE(object)->tp_name);
        else
            PyErr_Format(PyExc_TypeError, "launch: %s[%zd] must be an int, got %.200s", what, position,
                         Py_TYPE(object)->tp_name);
        return -1;
    }
    *address = PyLong_AsVoidPtr(object);
    if (*address || !PyErr_Occurred())
        return 0;
    PyErr_Format(PyExc_ValueError, "launch: %s holds %S, which is no address", what, object);
    return -1;
}

static int read_pointers(PyObject *sequence, Py_ssize_t count, void **pointers)
{
    PyObject **items = PySequence_Fast_ITEMS(sequence);
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_address("pointers", i, items[i], &pointers[i]) < 0)
            return -1;
    return 0;
}

static PyObject *call_entry(Entry entry, PyObject *sequence)
{
    void *on_stack[POINTERS_ON_STACK], **pointers = on_stack;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    PyObject *result = NULL;
    if (count > POINTERS_ON_STACK && !(pointers = PyMem_New(void *, count)))
        return PyErr_NoMemory();
    if (read_pointers(sequence, count, pointers) == 0) {
        int status;
        Py_BEGIN_ALLOW_THREADS
        status = entry(pointers);
        Py_END_ALLOW_THREADS
        result = PyLong_FromLong(status);
    }
    if (pointers != on_stack)
        PyMem_Free(pointers);
    return result;
}

static PyObject *launch(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    void *address;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "launch: expected 2 arguments (address, pointers), got %zd", count);
    if (read_address("address", -1, arguments[0], &address) < 0)
        return NULL;
    if (!address)
        return PyErr_Format(PyExc_ValueError, "launch: address must be that of a function, got 0");
    PyObject *sequence = PySequence_Fast(arguments[1], "launch: pointers must be a sequence of ints");
    if (!sequence)
        return NULL;
    PyObject *result = call_entry((Entry)address, sequence);
    Py_DECREF(sequence);
    return result;
}

PyMethodDef launch_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL,
     "launch(address: int, pointers: Sequence[int], /) -> int\n\nCall the C function `int f(void **pointers)` at the\n"
     "address without holding the interpreter lock; returns its status. The caller keeps the memory alive.\n"
     "TypeError for anything but ints, ValueError for address 0 and for ints that are no addresses."},
    {NULL, NULL, 0, NULL},
};
