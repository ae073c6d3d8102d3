/* StorageImpl: the memory behind tensors. It owns its allocator block until `buffer` is read; from then on a Block owns the
   memory, and arrays over the memory keep the Block alive. */
#include "tensor_impl.h"

#include <stddef.h>
#include <structmember.h>

#include "allocator.h"

static void storage_dealloc(StorageImpl *self)
{
    if (self->weak_references)
        PyObject_ClearWeakRefs((PyObject *)self);
    if (self->capacity)
        allocator_free(self->data, self->capacity);
    Py_XDECREF(self->buffer);
    Py_XDECREF(self->device);
    Py_TYPE(self)->tp_free(self);
}

StorageImpl *storage_allocate(Py_ssize_t nbytes)
{
    StorageImpl *self = PyObject_New(StorageImpl, &StorageImpl_Type);
    if (!self)
        return NULL;
    self->capacity = 0;
    self->data = NULL;
    self->buffer = self->weak_references = NULL;
    self->nbytes = nbytes;
    self->read_only = self->generation = 0;
    self->device = Py_XNewRef(configuration.cpu);
    size_t capacity;
    self->data = allocator_allocate((size_t)nbytes, &capacity);
    if (!self->data) {
        Py_DECREF(self);
        PyErr_Format(out_of_memory_error(),
                     "allocate: cannot allocate %zd bytes; free tensors that are no longer needed, or use smaller ones",
                     nbytes);
        return NULL;
    }
    self->capacity = capacity;
    return self;
}

/* Subclasses define __init__ with arguments of their own, so __new__ ignores all arguments. */
static PyObject *storage_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    StorageImpl *self = (StorageImpl *)type->tp_alloc(type, 0);
    if (self)
        self->device = Py_NewRef(configuration.cpu ? configuration.cpu : Py_None);
    return (PyObject *)self;
}

static int set_buffer(StorageImpl *self, PyObject *value, void *closure);

static int storage_init(StorageImpl *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"buffer", "nbytes", "where", "data_ptr", NULL};
    PyObject *buffer, *device, *data_ptr = Py_None;
    Py_ssize_t nbytes;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OnO|O:StorageImpl", names, &buffer, &nbytes, &device, &data_ptr))
        return -1;
    void *data = data_ptr == Py_None ? NULL : PyLong_AsVoidPtr(data_ptr);
    if (!data && PyErr_Occurred())
        return -1;
    if (nbytes < 0) {
        PyErr_Format(PyExc_ValueError, "StorageImpl: expected a number of bytes >= 0, got %zd", nbytes);
        return -1;
    }
    set_buffer(self, buffer, NULL);
    self->data = data;
    self->nbytes = nbytes;
    Py_XSETREF(self->device, Py_NewRef(device));
    return 0;
}

/* Return the address of memory on another device, which its owner tells. */
static void *device_data(StorageImpl *storage)
{
    PyObject *address = PyObject_GetAttrString(storage->buffer, "data_ptr");
    if (address)
        storage->data = PyLong_AsVoidPtr(address);
    Py_XDECREF(address);
    return storage->data;
}

/* Return the address of a buffer's memory. The storage holds the buffer, so the memory stays in place after the view is
   released. */
static void *borrowed_data(StorageImpl *storage)
{
    Py_buffer view;
    storage->read_only = 0;
    if (storage->device != configuration.cpu)
        return device_data(storage);
    if (PyObject_GetBuffer(storage->buffer, &view, PyBUF_WRITABLE) < 0) {
        PyErr_Clear();
        storage->read_only = 1;
        if (PyObject_GetBuffer(storage->buffer, &view, PyBUF_SIMPLE) < 0)
            return NULL;
    }
    storage->data = view.buf;
    PyBuffer_Release(&view);
    return storage->data;
}

void *storage_data(StorageImpl *storage)
{
    return storage->data || !storage->buffer ? storage->data : borrowed_data(storage);
}

PyObject *storage_buffer(StorageImpl *self)
{
    if (self->capacity) {
        PyObject *block = block_make(self->data, self->capacity, self->nbytes);
        if (!block)
            return NULL;
        self->buffer = block;
        self->capacity = 0;
    }
    return Py_NewRef(self->buffer ? self->buffer : Py_None);
}

static PyObject *get_buffer(StorageImpl *self, void *Py_UNUSED(closure)) { return storage_buffer(self); }

/* Replace the memory. Arrays over the old memory keep it alive. */
static int set_buffer(StorageImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "StorageImpl.buffer cannot be deleted");
        return -1;
    }
    if (self->capacity)
        allocator_free(self->data, self->capacity);
    self->capacity = 0;
    self->data = NULL;
    self->generation++;
    self->read_only = 1; /* until storage_data has checked the buffer */
    Py_XSETREF(self->buffer, value == Py_None ? NULL : Py_NewRef(value));
    return 0;
}

static int set_nbytes(StorageImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_ssize_t nbytes = value ? PyLong_AsSsize_t(value) : -1;
    if (nbytes < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "StorageImpl.nbytes must be a number of bytes >= 0");
        return -1;
    }
    self->nbytes = nbytes;
    return 0;
}

static PyObject *get_nbytes(StorageImpl *self, void *Py_UNUSED(closure)) { return PyLong_FromSsize_t(self->nbytes); }

static PyObject *get_data_ptr(StorageImpl *self, void *Py_UNUSED(closure))
{
    void *data = storage_data(self);
    return !data && PyErr_Occurred() ? NULL : PyLong_FromVoidPtr(data);
}

static PyGetSetDef getset[] = {
    {"buffer", (getter)get_buffer, (setter)set_buffer,
     "A writable object with the buffer protocol, or None where there is no data; on a GPU, an object with `data_ptr`.", NULL},
    {"data_ptr", (getter)get_data_ptr, NULL, "The address of the first byte; 0 when there is no data.", NULL},
    {"nbytes", (getter)get_nbytes, (setter)set_nbytes, "The size in bytes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"device", T_OBJECT_EX, offsetof(StorageImpl, device), READONLY, "Where the bytes lie."},
    {"generation", T_INT, offsetof(StorageImpl, generation), 0,
     "How often the memory was replaced, or written to where not all version counters saw it."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *storage_bytes(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_CallOneArg(configuration.storage_bytes, self);
}

static PyMethodDef methods[] = {
    {"bytes", storage_bytes, METH_NOARGS, "bytes()\n\nThe storage as a uint8 array that shares its memory."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject StorageImpl_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.StorageImpl",
    .tp_basicsize = sizeof(StorageImpl),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "StorageImpl(buffer, nbytes, where, data_ptr=None)\n--\n\n"
              "The memory behind tensors. `buffer` is a writable object with the buffer protocol, or None where there is no data.",
    .tp_new = storage_new,
    .tp_init = (initproc)storage_init,
    .tp_dealloc = (destructor)storage_dealloc,
    .tp_getset = getset,
    .tp_members = members,
    .tp_methods = methods,
    .tp_weaklistoffset = offsetof(StorageImpl, weak_references),
};

static PyObject *allocate_storage(PyObject *Py_UNUSED(module), PyObject *size)
{
    Py_ssize_t nbytes = PyLong_AsSsize_t(size);
    if (nbytes == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return NULL;
        return PyErr_Format(out_of_memory_error(), "allocate: cannot allocate %S bytes", size);
    }
    if (nbytes < 0)
        return PyErr_Format(PyExc_ValueError, "allocate: expected a number of bytes >= 0, got %zd", nbytes);
    return (PyObject *)storage_allocate(nbytes);
}

PyMethodDef storage_methods[] = {
    {"allocate_storage", allocate_storage, METH_O,
     "allocate_storage(nbytes: int, /) -> StorageImpl\n\nUninitialised CPU memory from the caching allocator.\n"
     "ValueError for a negative size, MemoryError when the system refuses."},
    {NULL, NULL, 0, NULL},
};
