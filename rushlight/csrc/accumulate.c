/* AccumulateNode: the leaf of the tape. This file creates such nodes, and lets `.grad` take over a gradient that nothing else
   references. */
#include "accumulate.h"

#include <stddef.h>
#include <structmember.h>

static int accumulate_traverse(AccumulateNode *self, visitproc visit, void *arg)
{
    Py_VISIT(self->variable);
    return NodeBase_Type.tp_traverse((PyObject *)self, visit, arg);
}

static int accumulate_clear(AccumulateNode *self)
{
    Py_CLEAR(self->variable);
    return NodeBase_Type.tp_clear((PyObject *)self);
}

static void accumulate_dealloc(AccumulateNode *self)
{
    PyObject_GC_UnTrack(self);
    accumulate_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef members[] = {
    {"variable", T_OBJECT, offsetof(AccumulateNode, variable), 0, "The leaf."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject AccumulateNode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.AccumulateNode",
    .tp_basicsize = sizeof(AccumulateNode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The fields of the node of a leaf.",
    .tp_base = &NodeBase_Type,
    .tp_dealloc = (destructor)accumulate_dealloc,
    .tp_traverse = (traverseproc)accumulate_traverse,
    .tp_clear = (inquiry)accumulate_clear,
    .tp_members = members,
};

PyObject *dereference(PyObject *reference)
{
    PyObject *found = NULL;
#if PY_VERSION_HEX >= 0x030d0000
    if (PyWeakref_GetRef(reference, &found) < 0)
        PyErr_Clear();
#else
    found = PyWeakref_GetObject(reference);
    found = found == Py_None ? NULL : Py_XNewRef(found);
#endif
    return found;
}

static int fill_node(AccumulateNode *node, PyObject *tensor, const TensorImpl *impl)
{
    if (node_initialise(&node->base) < 0)
        return -1;
    PyObject *first = PyFloat_FromDouble(Py_HUGE_VAL);
    PyObject *info = first ? PyTuple_Pack(3, impl->sizes, impl->dtype, impl->device) : NULL;
    int failed = !info || PyList_Append(node->base.output_info, info) < 0;
    Py_XDECREF(info);
    if (first)
        Py_SETREF(node->base.sequence_nr, first);
    node->variable = Py_NewRef(tensor);
    return failed ? -1 : 0;
}

/* Return the accumulator of a leaf. No Python code runs between reading `meta->accumulator` and setting it, so two threads get
   the same node. */
PyObject *accumulator_of(PyObject *tensor, AutogradMeta *meta)
{
    TensorImpl *impl = impl_of(tensor);
    PyTypeObject *type = (PyTypeObject *)configuration.accumulate_type;
    if (!impl || !type)
        return PyErr_Format(PyExc_TypeError, "accumulator_of: expected a Tensor, got %.200s", Py_TYPE(tensor)->tp_name);
    AccumulateNode *node = (AccumulateNode *)type->tp_alloc(type, 0);
    PyObject *reference = node && fill_node(node, tensor, impl) == 0 ? PyWeakref_NewRef((PyObject *)node, NULL) : NULL;
    if (!reference) {
        Py_XDECREF((PyObject *)node);
        return NULL;
    }
    PyObject *present = meta->accumulator && PyWeakref_Check(meta->accumulator) ? dereference(meta->accumulator) : NULL;
    if (present) {
        Py_DECREF(reference);
        Py_DECREF((PyObject *)node);
        return present;
    }
    Py_XSETREF(meta->accumulator, reference);
    return (PyObject *)node;
}

static PyObject *find_accumulator(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    TensorImpl *impl = impl_of(tensor);
    if (!impl || !autograd_of(impl))
        return PyErr_Format(PyExc_TypeError, "accumulator_of: expected a leaf that requires grad, got %R", Py_TYPE(tensor));
    return accumulator_of(tensor, autograd_of(impl));
}

/* Whether `tensor` owns fresh memory that nothing else references, laid out like `like`. The caller holds `references`
   references to it. */
static int is_uniquely_owned(PyObject *tensor, const TensorImpl *like, Py_ssize_t references)
{
    TensorImpl *impl = (PyObject *)Py_TYPE(tensor) == configuration.tensor_type ? impl_of(tensor) : NULL;
    if (!impl || Py_REFCNT(tensor) != references || Py_REFCNT((PyObject *)impl) != 1 || Py_REFCNT(impl->storage) != 1)
        return 0;
    if (impl->array && Py_REFCNT(impl->array) != 1)
        return 0;
    if (is_set(impl->autograd) || is_set(impl->view) || impl->inference || impl->fake || impl->key_set != CPU_KEYS ||
        !Py_IS_TYPE(impl->storage, &StorageImpl_Type) || impl->dtype != like->dtype)
        return 0;
    const StorageImpl *storage = (StorageImpl *)impl->storage;
    int owns = storage->capacity || (storage->buffer && block_is(storage->buffer));
    /* An expanded gradient has several elements at one address, and cannot be added to. */
    int itemsize = itemsize_of(impl->dtype);
    Py_ssize_t numel = impl_numel(impl);
    if (itemsize < 0 || numel < 0) {
        PyErr_Clear();
        return 0;
    }
    if (numel * itemsize > storage->nbytes)
        return 0;
    return owns && PyObject_RichCompareBool(impl->sizes, like->sizes, Py_EQ) == 1 &&
           PyObject_RichCompareBool(impl->strides, like->strides, Py_EQ) == 1;
}

int accumulate_by_taking(AccumulateNode *node, PyObject *grads)
{
    TensorImpl *impl = node->variable ? impl_of(node->variable) : NULL;
    AutogradMeta *meta = impl ? autograd_of(impl) : NULL;
    const ThreadRecord *record = thread_record();
    if (!meta || is_set(meta->grad) || is_set(meta->post_accumulate_hooks) || record->grad_enabled || modes_active(record) ||
        PyList_GET_SIZE(grads) != 1 || !is_uniquely_owned(PyList_GET_ITEM(grads, 0), impl, 1))
        return 0;
    Py_XSETREF(meta->grad, Py_NewRef(PyList_GET_ITEM(grads, 0)));
    return 1;
}

PyMethodDef accumulate_methods[] = {
    {"accumulator_of", find_accumulator, METH_O,
     "accumulator_of(leaf, /) -> AccumulateGrad\n\nThe node that adds to the `.grad` of a leaf: one at a time per leaf, alive as\n"
     "long as a graph holds it. TypeError for anything but a tensor with autograd data."},
    {NULL, NULL, 0, NULL},
};
