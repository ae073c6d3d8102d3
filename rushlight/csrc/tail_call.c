/* Tail calls: the code that replaces a frame may end by requesting another call. Without tail calls, a loop with a graph break
   in every iteration would nest its calls. */
#include "frame_hook.h"

_Thread_local PyObject *expected_code;

typedef struct {
    PyObject_HEAD
    PyObject *function, *arguments;
} TailCall;

static int tail_traverse(TailCall *self, visitproc visit, void *arg)
{
    Py_VISIT(self->function);
    Py_VISIT(self->arguments);
    return 0;
}

static int tail_clear(TailCall *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->arguments);
    return 0;
}

static void tail_dealloc(TailCall *self)
{
    PyObject_GC_UnTrack(self);
    tail_clear(self);
    PyObject_GC_Del(self);
}

PyTypeObject TailCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.TailCall",
    .tp_doc = "What code in a frame's place returns to have a function called after it has ended.",
    .tp_basicsize = sizeof(TailCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)tail_dealloc,
    .tp_traverse = (traverseproc)tail_traverse,
    .tp_clear = (inquiry)tail_clear,
};

static PyObject *tail_call(PyObject *Py_UNUSED(module), PyObject *args)
{
    if (PyTuple_GET_SIZE(args) < 1 || !PyFunction_Check(PyTuple_GET_ITEM(args, 0))) {
        PyErr_SetString(PyExc_TypeError, "tail_call expects a Python function and its arguments");
        return NULL;
    }
    TailCall *call = PyObject_GC_New(TailCall, &TailCall_Type);
    if (!call)
        return NULL;
    call->function = Py_NewRef(PyTuple_GET_ITEM(args, 0));
    call->arguments = PyTuple_GetSlice(args, 1, PY_SSIZE_T_MAX);
    PyObject_GC_Track(call);
    if (!call->arguments)
        Py_CLEAR(call);
    return (PyObject *)call;
}

PyObject *follow_tail_calls(PyObject *result)
{
    while (result && Py_IS_TYPE(result, &TailCall_Type)) {
        TailCall *call = (TailCall *)result;
        expected_code = PyFunction_GET_CODE(call->function);
        PyObject *next = PyObject_Call(call->function, call->arguments, NULL);
        expected_code = NULL;
        Py_DECREF(result);
        result = next;
    }
    return result;
}

PyMethodDef tail_call_methods[] = {
    {"tail_call", tail_call, METH_VARARGS,
     "tail_call(function, *args)\n\nReturned by code that runs in a frame's place: have `function(*args)` called after it has\n"
     "ended, and its result take the place of this one."},
    {NULL, NULL, 0, NULL},
};
