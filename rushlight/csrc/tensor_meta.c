/* The parts of a TensorImpl besides its memory: version counter, autograd data, view data. */
#include "tensor_impl.h"

#include <stddef.h>
#include <structmember.h>

/* VersionCounter */

static PyObject *version_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"value", NULL};
    Py_ssize_t value = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|n:VersionCounter", names, &value))
        return NULL;
    VersionCounter *self = (VersionCounter *)type->tp_alloc(type, 0);
    if (self)
        self->value = value;
    return (PyObject *)self;
}

static PyMemberDef version_members[] = {
    {"value", T_PYSSIZET, offsetof(VersionCounter, value), 0, "The number of writes."},
    {"separate", T_BOOL, offsetof(VersionCounter, separate), 0,
     "Whether another counter counts writes to the same memory, too, so that the storage's generation counts those of both."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject VersionCounter_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.VersionCounter",
    .tp_basicsize = sizeof(VersionCounter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "VersionCounter(value=0)\n--\n\n"
              "Counts in-place writes; a base and its views share one, so that autograd notices writes through any alias.",
    .tp_new = version_new,
    .tp_members = version_members,
};

/* AutogradMeta */

static int meta_traverse(AutogradMeta *self, visitproc visit, void *arg)
{
    Py_VISIT(self->grad);
    Py_VISIT(self->grad_fn);
    Py_VISIT(self->accumulator);
    Py_VISIT(self->hooks);
    Py_VISIT(self->post_accumulate_hooks);
    return 0;
}

static int meta_clear(AutogradMeta *self)
{
    Py_CLEAR(self->grad);
    Py_CLEAR(self->grad_fn);
    Py_CLEAR(self->accumulator);
    Py_CLEAR(self->hooks);
    Py_CLEAR(self->post_accumulate_hooks);
    return 0;
}

static void meta_dealloc(AutogradMeta *self)
{
    PyObject_GC_UnTrack(self);
    meta_clear(self);
    PyObject_GC_Del(self);
}

AutogradMeta *autograd_make(void)
{
    AutogradMeta *self = PyObject_GC_New(AutogradMeta, &AutogradMeta_Type);
    if (!self)
        return NULL;
    self->grad = self->grad_fn = self->accumulator = self->hooks = self->post_accumulate_hooks = NULL;
    self->output_nr = 0;
    self->requires_grad = self->retains_grad = 0;
    PyObject_GC_Track(self);
    return self;
}

static PyObject *meta_new(PyTypeObject *Py_UNUSED(type), PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"requires_grad", "grad_fn", "output_nr", NULL};
    int flag = 0;
    PyObject *grad_fn = Py_None;
    Py_ssize_t output_nr = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|pOn:AutogradMeta", names, &flag, &grad_fn, &output_nr))
        return NULL;
    AutogradMeta *self = autograd_make();
    if (!self)
        return NULL;
    self->requires_grad = (char)flag;
    self->grad_fn = Py_NewRef(grad_fn);
    self->output_nr = output_nr;
    return (PyObject *)self;
}

static PyMemberDef meta_members[] = {
    {"requires_grad", T_BOOL, offsetof(AutogradMeta, requires_grad), 0, "Whether a leaf asks for its gradient."},
    {"grad", T_OBJECT, offsetof(AutogradMeta, grad), 0, "The gradient accumulated so far, or None."},
    {"grad_fn", T_OBJECT, offsetof(AutogradMeta, grad_fn), 0, "The node that made the tensor, or None."},
    {"output_nr", T_PYSSIZET, offsetof(AutogradMeta, output_nr), 0, "Which output of grad_fn the tensor is."},
    {"accumulator", T_OBJECT, offsetof(AutogradMeta, accumulator), 0, "A weak reference to the leaf's node, or None."},
    {"hooks", T_OBJECT, offsetof(AutogradMeta, hooks), 0, "A leaf's gradient hooks by id, or None."},
    {"post_accumulate_hooks", T_OBJECT, offsetof(AutogradMeta, post_accumulate_hooks), 0,
     "Hooks after accumulation by id, or None."},
    {"retains_grad", T_BOOL, offsetof(AutogradMeta, retains_grad), 0, "Whether a non-leaf keeps its gradient."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject AutogradMeta_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.AutogradMeta",
    .tp_basicsize = sizeof(AutogradMeta),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "AutogradMeta(requires_grad=False, grad_fn=None, output_nr=0)\n--\n\n"
              "What autograd knows of a tensor: its gradient, the node that made it, which output of the node it is, and hooks.",
    .tp_new = meta_new,
    .tp_dealloc = (destructor)meta_dealloc,
    .tp_traverse = (traverseproc)meta_traverse,
    .tp_clear = (inquiry)meta_clear,
    .tp_members = meta_members,
};

/* ViewMeta */

static int view_traverse(ViewMeta *self, visitproc visit, void *arg)
{
    Py_VISIT(self->base);
    return 0;
}

static int view_clear(ViewMeta *self)
{
    Py_CLEAR(self->base);
    Py_CLEAR(self->origin);
    return 0;
}

static void view_dealloc(ViewMeta *self)
{
    PyObject_GC_UnTrack(self);
    view_clear(self);
    PyObject_GC_Del(self);
}

ViewMeta *view_make(PyObject *base, Py_ssize_t version, PyObject *origin)
{
    ViewMeta *self = PyObject_GC_New(ViewMeta, &ViewMeta_Type);
    if (!self)
        return NULL;
    self->base = Py_NewRef(base);
    self->origin = Py_NewRef(origin);
    self->version = version;
    PyObject_GC_Track(self);
    return self;
}

static PyObject *view_new(PyTypeObject *Py_UNUSED(type), PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"base", "version", "origin", NULL};
    PyObject *base, *origin = NULL;
    Py_ssize_t version;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "On|U:ViewMeta", names, &base, &version, &origin))
        return NULL;
    if (!impl_of(base))
        return PyErr_Format(PyExc_TypeError, "ViewMeta: base must be a Tensor, got %.200s", Py_TYPE(base)->tp_name);
    PyObject *text = origin ? Py_NewRef(origin) : PyUnicode_FromString("");
    ViewMeta *made = text ? view_make(base, version, text) : NULL;
    Py_XDECREF(text);
    return (PyObject *)made;
}

static PyMemberDef view_members[] = {
    {"base", T_OBJECT_EX, offsetof(ViewMeta, base), READONLY, "The tensor that it is a view of."},
    {"version", T_PYSSIZET, offsetof(ViewMeta, version), 0, "The version at which the view's grad_fn was made."},
    {"origin", T_OBJECT_EX, offsetof(ViewMeta, origin), 0, "Why the view must not be written to, or \"\"."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ViewMeta_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ViewMeta",
    .tp_basicsize = sizeof(ViewMeta),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "ViewMeta(base, version, origin='')\n--\n\n"
              "How a tensor came to be a view: the tensor it is a view of, and the version at which its grad_fn was made.\n\n"
              "`origin` says why the view must not be written to while autograd records; \"\" where it may.",
    .tp_new = view_new,
    .tp_dealloc = (destructor)view_dealloc,
    .tp_traverse = (traverseproc)view_traverse,
    .tp_clear = (inquiry)view_clear,
    .tp_members = view_members,
};
