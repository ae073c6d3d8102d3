/* TensorBase: the part of the Tensor handle that C code reads. Python derives Tensor from it. */
#include "tensor_impl.h"

#include <stddef.h>
#include <structmember.h>

static int base_traverse(TensorBase *self, visitproc visit, void *arg)
{
    Py_VISIT(self->impl);
    Py_VISIT(self->dict);
    return 0;
}

static int base_clear(TensorBase *self)
{
    Py_CLEAR(self->dict);
    return 0;
}

static void base_dealloc(TensorBase *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weak_references)
        PyObject_ClearWeakRefs((PyObject *)self);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->impl);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *get_impl(TensorBase *self, void *Py_UNUSED(closure))
{
    if (!self->impl) {
        PyErr_SetString(PyExc_AttributeError, "this Tensor was never given memory: make tensors with Tensor(...) or torch.empty");
        return NULL;
    }
    return Py_NewRef((PyObject *)self->impl);
}

static int set_impl(TensorBase *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value || !Py_IS_TYPE(value, &TensorImpl_Type)) {
        PyErr_SetString(PyExc_TypeError, "Tensor._impl must be a TensorImpl");
        return -1;
    }
    Py_XSETREF(self->impl, (TensorImpl *)Py_NewRef(value));
    return 0;
}

static PyGetSetDef getset[] = {
    {"_impl", (getter)get_impl, (setter)set_impl, "The TensorImpl.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject TensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.TensorBase",
    .tp_basicsize = sizeof(TensorBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The handle of a TensorImpl, with attributes of its own.",
    .tp_dealloc = (destructor)base_dealloc,
    .tp_traverse = (traverseproc)base_traverse,
    .tp_clear = (inquiry)base_clear,
    .tp_hash = (hashfunc)_Py_HashPointer, /* by identity, though == compares elements */
    .tp_getset = getset,
    .tp_dictoffset = offsetof(TensorBase, dict),
    .tp_weaklistoffset = offsetof(TensorBase, weak_references),
};

PyObject *tensor_wrap(TensorImpl *impl)
{
    PyTypeObject *type = (PyTypeObject *)configuration.tensor_type;
    if (!type) {
        PyErr_SetString(PyExc_RuntimeError, "rushlight.core is not imported");
        return NULL;
    }
    TensorBase *made = (TensorBase *)type->tp_alloc(type, 0);
    if (made)
        made->impl = (TensorImpl *)Py_NewRef((PyObject *)impl);
    return (PyObject *)made;
}

PyObject *tensor_wrap_new(TensorImpl *impl)
{
    PyObject *made = impl ? tensor_wrap(impl) : NULL;
    Py_XDECREF((PyObject *)impl);
    return made;
}
