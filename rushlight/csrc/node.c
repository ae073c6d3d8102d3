/* NodeBase, OperatorNode and SavedTensorBase: the fields of rushlight.autograd's nodes. */
#include "record.h"

#include <stddef.h>
#include <structmember.h>

int node_initialise(NodeBase *node)
{
    static Py_ssize_t made; /* guarded by the interpreter lock */
    static PyObject *nothing;
    if (!nothing && !(nothing = PyTuple_New(0)))
        return -1;
    node->next_functions = Py_NewRef(nothing);
    node->sequence_nr = PyLong_FromSsize_t(made++);
    node->output_info = PyList_New(0);
    node->hooks = Py_NewRef(Py_None);
    return node->sequence_nr && node->output_info ? 0 : -1;
}

static PyObject *node_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    NodeBase *self = (NodeBase *)type->tp_alloc(type, 0);
    if (self && node_initialise(self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* Does nothing: subclasses define __init__ with arguments of their own. */
static int node_init(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords)) { return 0; }

static int node_traverse(NodeBase *self, visitproc visit, void *arg)
{
    Py_VISIT(self->next_functions);
    Py_VISIT(self->output_info);
    Py_VISIT(self->hooks);
    return 0;
}

static int node_clear(NodeBase *self)
{
    Py_CLEAR(self->next_functions);
    Py_CLEAR(self->output_info);
    Py_CLEAR(self->hooks);
    Py_CLEAR(self->sequence_nr);
    return 0;
}

static void node_dealloc(NodeBase *self)
{
    PyObject_GC_UnTrack(self);
    node_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef node_members[] = {
    {"next_functions", T_OBJECT_EX, offsetof(NodeBase, next_functions), 0, "Per input, the edge its gradient takes."},
    {"sequence_nr", T_OBJECT_EX, offsetof(NodeBase, sequence_nr), 0, "Counts nodes as they are made."},
    {"output_info", T_OBJECT_EX, offsetof(NodeBase, output_info), 0, "Per output: sizes, dtype and device."},
    {"hooks", T_OBJECT, offsetof(NodeBase, hooks), 0, "The NodeHooks, or None."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject NodeBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.NodeBase",
    .tp_basicsize = sizeof(NodeBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The fields that all nodes of the tape have.",
    .tp_new = node_new,
    .tp_init = node_init,
    .tp_dealloc = (destructor)node_dealloc,
    .tp_traverse = (traverseproc)node_traverse,
    .tp_clear = (inquiry)node_clear,
    .tp_members = node_members,
};

/* OperatorNode */

static int operator_traverse(OperatorNode *self, visitproc visit, void *arg)
{
    Py_VISIT(self->recipe);
    Py_VISIT(self->saved);
    return node_traverse(&self->base, visit, arg);
}

static int operator_clear(OperatorNode *self)
{
    Py_CLEAR(self->recipe);
    Py_CLEAR(self->plan);
    Py_CLEAR(self->saved);
    Py_CLEAR(self->needs);
    Py_CLEAR(self->wanted);
    return node_clear(&self->base);
}

static void operator_dealloc(OperatorNode *self)
{
    PyObject_GC_UnTrack(self);
    operator_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef operator_members[] = {
    {"recipe", T_OBJECT, offsetof(OperatorNode, recipe), 0, "The Recipe."},
    {"saved", T_OBJECT, offsetof(OperatorNode, saved), 0, "What is kept, by name; None once freed."},
    {"needs", T_OBJECT, offsetof(OperatorNode, needs), 0, "Per formula and input: whether its gradient goes anywhere."},
    {"_wanted", T_OBJECT, offsetof(OperatorNode, wanted), 0, "Per formula: whether any of its gradients goes anywhere."},
    {NULL, 0, 0, 0, NULL},
};

static int set_plan(OperatorNode *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value || !is_plan(value)) {
        PyErr_SetString(PyExc_TypeError, "plan must be a plan, as Recipe makes it");
        return -1;
    }
    Py_XSETREF(self->plan, Py_NewRef(value));
    return 0;
}

static PyObject *get_plan(OperatorNode *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->plan ? self->plan : Py_None); }

static PyGetSetDef operator_getset[] = {
    {"plan", (getter)get_plan, (setter)set_plan, "The Recipe's plan.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef operator_methods[] = {
    {"apply", operator_node_apply, METH_O, "apply(grads, /)\n\nGradients of the inputs, one per edge."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject OperatorNode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.OperatorNode",
    .tp_basicsize = sizeof(OperatorNode),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The fields of the node of an operator.",
    .tp_base = &NodeBase_Type,
    .tp_dealloc = (destructor)operator_dealloc,
    .tp_traverse = (traverseproc)operator_traverse,
    .tp_clear = (inquiry)operator_clear,
    .tp_members = operator_members,
    .tp_getset = operator_getset,
    .tp_methods = operator_methods,
};

/* SavedTensorBase */

static int saved_traverse(SavedTensorBase *self, visitproc visit, void *arg)
{
    Py_VISIT(self->tensor);
    Py_VISIT(self->unpack_hook);
    Py_VISIT(self->edge);
    return 0;
}

static int saved_clear(SavedTensorBase *self)
{
    Py_CLEAR(self->tensor);
    Py_CLEAR(self->unpack_hook);
    Py_CLEAR(self->edge);
    return 0;
}

static void saved_dealloc(SavedTensorBase *self)
{
    PyObject_GC_UnTrack(self);
    saved_clear(self);
    Py_XDECREF(self->output_nr);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef saved_members[] = {
    {"tensor", T_OBJECT, offsetof(SavedTensorBase, tensor), 0, "The tensor."},
    {"version", T_PYSSIZET, offsetof(SavedTensorBase, version), 0, "Its version when it was saved."},
    {"output_nr", T_OBJECT, offsetof(SavedTensorBase, output_nr), 0, "Which output of the saving node it is, or None."},
    {"unpack_hook", T_OBJECT, offsetof(SavedTensorBase, unpack_hook), 0, "What makes the tensor again, or None."},
    {"edge", T_OBJECT, offsetof(SavedTensorBase, edge), 0, "With a hook: where the tensor's gradient flows."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject SavedTensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.SavedTensorBase",
    .tp_basicsize = sizeof(SavedTensorBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The fields of a tensor that a node keeps.",
    .tp_new = PyType_GenericNew,
    .tp_dealloc = (destructor)saved_dealloc,
    .tp_traverse = (traverseproc)saved_traverse,
    .tp_clear = (inquiry)saved_clear,
    .tp_members = saved_members,
};
