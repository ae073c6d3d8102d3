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

/* Whether the caller's `references` references to a tensor are the only ones to it and its data, and it is a plain tensor of
   this library without history. */
static int is_plain_and_unshared(PyObject *tensor, Py_ssize_t references)
{
    const TensorImpl *impl = (PyObject *)Py_TYPE(tensor) == configuration.tensor_type ? impl_of(tensor) : NULL;
    return impl && Py_REFCNT(tensor) == references && Py_REFCNT((PyObject *)impl) == 1 &&
           !(impl->array && Py_REFCNT(impl->array) != 1) && !is_set(impl->autograd) && !impl->inference && !impl->fake &&
           impl->key_set == CPU_KEYS && Py_IS_TYPE(impl->storage, &StorageImpl_Type);
}

/* Whether a tensor is the only user of its storage. Of a view that includes its base, which then only the view references. */
static int is_only_user_of_storage(const TensorImpl *impl)
{
    const ViewMeta *view = view_of(impl);
    if (!view)
        return Py_REFCNT(impl->storage) == 1;
    return Py_REFCNT((PyObject *)view) == 1 && is_plain_and_unshared(view->base, 1) && !is_set(impl_of(view->base)->view) &&
           impl_of(view->base)->storage == impl->storage && Py_REFCNT(impl->storage) == 2;
}

/* Whether `tensor` owns fresh memory that nothing else references, laid out like `like`. The caller holds `references`
   references to it. */
static int is_uniquely_owned(PyObject *tensor, const TensorImpl *like, Py_ssize_t references)
{
    if (!is_plain_and_unshared(tensor, references))
        return 0;
    TensorImpl *impl = impl_of(tensor);
    if (!is_only_user_of_storage(impl) || impl->dtype != like->dtype)
        return 0;
    const StorageImpl *storage = (StorageImpl *)impl->storage;
    int owns = storage->capacity || (storage->buffer && block_is(storage->buffer));
    int itemsize = itemsize_of(impl->dtype);
    Py_ssize_t numel = impl_numel(impl);
    if (itemsize < 0 || numel < 0) {
        PyErr_Clear();
        return 0;
    }
    /* An expanded gradient has several elements at one address, and cannot be added to; a part would keep the whole alive. */
    if (numel * itemsize > storage->nbytes || (view_of(impl) && numel * itemsize < storage->nbytes))
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
    PyObject *grad = PyList_GET_ITEM(grads, 0);
    Py_CLEAR(impl_of(grad)->view); /* its base ends with it */
    Py_XSETREF(meta->grad, Py_NewRef(grad));
    return 1;
}

static PyObject *take_gradient(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *node, *grads;
    if (!PyArg_ParseTuple(arguments, "O!O!:take_gradient", &AccumulateNode_Type, &node, &PyList_Type, &grads))
        return NULL;
    return PyBool_FromLong(accumulate_by_taking((AccumulateNode *)node, grads));
}

PyMethodDef accumulate_methods[] = {
    {"accumulator_of", find_accumulator, METH_O,
     "accumulator_of(leaf, /) -> AccumulateGrad\n\nThe node that adds to the `.grad` of a leaf: one at a time per leaf, alive as\n"
     "long as a graph holds it. TypeError for anything but a tensor with autograd data."},
    {"take_gradient", take_gradient, METH_VARARGS,
     "take_gradient(node, grads, /) -> bool\n\nMake the gradient in the list `grads` the `.grad` of a leaf, if the leaf has none\n"
     "and only the list references the gradient. Otherwise return False without effect."},
    {NULL, NULL, 0, NULL},
};
