/* PreparedConstants: see the header. */
#include "prepared_constants.h"

#include "tensor_impl.h"

static void prepared_dealloc(Prepared *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->tensors);
    Py_XDECREF(self->storages);
    Py_XDECREF(self->keep);
    PyMem_Free(self->versions);
    PyMem_Free(self->generations);
    PyMem_Free(self->pointers);
    PyObject_GC_Del(self);
}

static int prepared_traverse(Prepared *self, visitproc visit, void *arg)
{
    Py_VISIT(self->tensors);
    Py_VISIT(self->storages);
    Py_VISIT(self->keep);
    return 0;
}

PyTypeObject PreparedConstants_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.PreparedConstants",
    .tp_doc = "Constants of a compiled graph at one time: their memory and packed forms.",
    .tp_basicsize = sizeof(Prepared),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)prepared_dealloc,
    .tp_traverse = (traverseproc)prepared_traverse,
};

int prepared_is_current(const Prepared *prepared)
{
    for (Py_ssize_t i = 0; i < prepared->count; i++) {
        const TensorImpl *impl = impl_of(PyTuple_GET_ITEM(prepared->tensors, i));
        if (!impl || impl->storage != PyTuple_GET_ITEM(prepared->storages, i) || version_value(impl) != prepared->versions[i] ||
            ((StorageImpl *)impl->storage)->generation != prepared->generations[i])
            return 0;
    }
    return 1;
}

/* Read pointers, versions and generations; return -1 with an exception set. */
static int prepared_fill(Prepared *self, PyObject *state, PyObject *pointers)
{
    for (Py_ssize_t i = 0; i < self->count; i++) {
        PyObject *storage;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(state, i), "nO!i", &self->versions[i], &StorageImpl_Type, &storage,
                              &self->generations[i]))
            return -1;
        PyTuple_SET_ITEM(self->storages, i, Py_NewRef(storage));
        if (!impl_of(PyTuple_GET_ITEM(self->tensors, i))) {
            PyErr_SetString(PyExc_TypeError, "use_constants: expected tensors");
            return -1;
        }
    }
    for (Py_ssize_t i = 0; i < self->pointer_count; i++) {
        self->pointers[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(pointers, i));
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

Prepared *prepared_make(PyObject *tensors, PyObject *state, PyObject *pointers, PyObject *keep)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tensors);
    PyObject *storages = PyTuple_New(count);
    Prepared *made = storages ? PyObject_GC_New(Prepared, &PreparedConstants_Type) : NULL;
    if (!made) {
        Py_XDECREF(storages);
        return NULL;
    }
    made->count = count;
    made->pointer_count = PyTuple_GET_SIZE(pointers);
    made->tensors = Py_NewRef(tensors);
    made->storages = storages;
    made->keep = Py_NewRef(keep);
    made->versions = PyMem_Calloc((size_t)count + 1, sizeof *made->versions);
    made->generations = PyMem_Calloc((size_t)count + 1, sizeof *made->generations);
    made->pointers = PyMem_Calloc((size_t)made->pointer_count + 1, sizeof *made->pointers);
    PyObject_GC_Track(made);
    if (!made->versions || !made->generations || !made->pointers)
        PyErr_NoMemory();
    else if (prepared_fill(made, state, pointers) == 0)
        return made;
    Py_DECREF(made);
    return NULL;
}
