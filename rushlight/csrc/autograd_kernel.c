/* The kernels at the keys Autograd and ADInplaceOrView; `lower` is the chain of kernels below them. See
   rushlight.autograd.variable.

   AutogradKernel: calls `lower` if no argument requires grad, and records the call otherwise. ViewOrWriteKernel: marks the
   result as a view, or counts a write to the first argument. */
#include "record.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *lower; /* owned: the chain below */
    PyObject *slow;  /* owned: the Python fallback, called like the operator when `plan` cannot record the node */
    PyObject *plan; /* owned: see record.h; NULL if all recording is done in Python */
} AutogradKernel;

static int any_requires_grad(PyObject *const *values, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        const TensorImpl *impl = impl_of(values[i]);
        if (impl ? (impl->autograd || impl->view) && requires_grad(impl)
                 : (PyTuple_Check(values[i]) || PyList_Check(values[i])) &&
                       any_requires_grad(PySequence_Fast_ITEMS(values[i]), PySequence_Fast_GET_SIZE(values[i])))
            return 1;
    }
    return 0;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    AutogradKernel *kernel = (AutogradKernel *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0);
    const ThreadRecord *record = thread_record();
    if (!record)
        return NULL;
    if (!record->grad_enabled || !any_requires_grad(arguments, count))
        return PyObject_Vectorcall(kernel->lower, arguments, flags, names);
    if (kernel->plan) {
        PyObject *result = record_call(kernel->plan, kernel->lower, arguments, flags, names);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    return PyObject_Vectorcall(kernel->slow, arguments, flags, names);
}

/* There is no tp_clear, because a kernel always needs its callables; OperatorBase breaks reference cycles. */
static int kernel_traverse(AutogradKernel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->lower);
    Py_VISIT(self->slow);
    return 0;
}

static void kernel_dealloc(AutogradKernel *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->lower);
    Py_XDECREF(self->slow);
    Py_XDECREF(self->plan);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"lower", "slow", "plan", NULL};
    PyObject *lower, *slow, *plan = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|O:AutogradKernel", names, &lower, &slow, &plan))
        return NULL;
    if (plan != Py_None && !is_plan(plan))
        return PyErr_Format(PyExc_TypeError, "AutogradKernel: malformed plan %R", plan);
    AutogradKernel *self = (AutogradKernel *)type->tp_alloc(type, 0);
    if (self) {
        self->vectorcall = kernel_call;
        self->lower = Py_NewRef(lower);
        self->slow = Py_NewRef(slow);
        self->plan = plan == Py_None ? NULL : Py_NewRef(plan);
    }
    return (PyObject *)self;
}

static PyMemberDef kernel_members[] = {
    {"lower", T_OBJECT_EX, offsetof(AutogradKernel, lower), READONLY, "The chain of kernels below."},
    {"slow", T_OBJECT_EX, offsetof(AutogradKernel, slow), READONLY, "What records a node in Python."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject AutogradKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.AutogradKernel",
    .tp_basicsize = sizeof(AutogradKernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "AutogradKernel(lower, slow, plan=None)\n--\n\n"
              "Calls `lower` where nothing has to be recorded; otherwise records by `plan`, or calls `slow`.",
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(AutogradKernel, vectorcall),
    .tp_members = kernel_members,
};

/* ViewOrWriteKernel */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *lower;
    PyObject *inference_view, *no_grad_view, *plain_view; /* values of ViewMeta.origin */
} ViewOrWriteKernel;

/* Return the origin of a new view (see ViewMeta), borrowed. */
static PyObject *view_origin(const ViewOrWriteKernel *kernel, const ThreadRecord *record, const ViewMeta *source)
{
    if (record->inference)
        return kernel->inference_view;
    if (!record->grad_enabled)
        return kernel->no_grad_view;
    return source && source->origin ? source->origin : kernel->plain_view;
}

/* Make the result a view of `self`, for autograd. */
static int mark_as_view(const ViewOrWriteKernel *kernel, PyObject *self, PyObject *result)
{
    TensorImpl *impl = impl_of(self), *made = impl_of(result);
    const ThreadRecord *record = thread_record();
    if (!impl || !made || made == impl || impl->inference)
        return 0;
    ViewMeta *source = view_of(impl);
    ViewMeta *view = view_make(source ? source->base : self, version_value(made), view_origin(kernel, record, source));
    if (!view)
        return -1;
    Py_XSETREF(made->view, (PyObject *)view);
    return 0;
}

static PyObject *view_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    ViewOrWriteKernel *kernel = (ViewOrWriteKernel *)self;
    PyObject *result = PyObject_Vectorcall(kernel->lower, arguments, flags, names);
    if (result && PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0) > 0 &&
        mark_as_view(kernel, arguments[0], result) < 0)
        Py_CLEAR(result);
    return result;
}

/* Count a write to a tensor; return -1 with an exception set if the write is not allowed. */
static int count_write_to(PyObject *self)
{
    TensorImpl *impl = impl_of(self);
    if (!impl)
        return 0;
    if (impl->inference && !thread_record()->inference) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get "
                        "a normal tensor before doing inplace update.");
        return -1;
    }
    count_write(impl);
    return 0;
}

static PyObject *write_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    ViewOrWriteKernel *kernel = (ViewOrWriteKernel *)self;
    PyObject *result = PyObject_Vectorcall(kernel->lower, arguments, flags, names);
    if (result && PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0) > 0 && count_write_to(arguments[0]) < 0)
        Py_CLEAR(result);
    return result;
}

static int noting_traverse(ViewOrWriteKernel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->lower);
    return 0;
}

static void noting_dealloc(ViewOrWriteKernel *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->lower);
    Py_XDECREF(self->inference_view);
    Py_XDECREF(self->no_grad_view);
    Py_XDECREF(self->plain_view);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *noting_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"lower", "writes", "no_grad_view", "inference_view", NULL};
    PyObject *lower, *no_grad_view, *inference_view;
    int writes;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OpUU:ViewOrWriteKernel", names, &lower, &writes, &no_grad_view,
                                     &inference_view))
        return NULL;
    ViewOrWriteKernel *self = (ViewOrWriteKernel *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = writes ? write_call : view_call;
    self->lower = Py_NewRef(lower);
    self->no_grad_view = Py_NewRef(no_grad_view);
    self->inference_view = Py_NewRef(inference_view);
    self->plain_view = PyUnicode_FromString("");
    if (!self->plain_view)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyTypeObject ViewOrWriteKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ViewOrWriteKernel",
    .tp_basicsize = sizeof(ViewOrWriteKernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "ViewOrWriteKernel(lower, writes, no_grad_view, inference_view)\n--\n\n"
              "Calls `lower`, then makes its result a view of the first argument, or counts a write to that (`writes`).",
    .tp_new = noting_new,
    .tp_dealloc = (destructor)noting_dealloc,
    .tp_traverse = (traverseproc)noting_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ViewOrWriteKernel, vectorcall),
};
