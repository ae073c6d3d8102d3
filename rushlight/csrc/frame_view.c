/* The callback's view of a call that has not begun: code, arguments, globals and closure. */
#include "frame_hook.h"

typedef struct {
    PyObject_HEAD
    PyObject *code, *locals, *function;
} FrameView;

static int view_traverse(FrameView *self, visitproc visit, void *arg)
{
    Py_VISIT(self->code);
    Py_VISIT(self->locals);
    Py_VISIT(self->function);
    return 0;
}

static int view_clear(FrameView *self)
{
    Py_CLEAR(self->code);
    Py_CLEAR(self->locals);
    Py_CLEAR(self->function);
    return 0;
}

static void view_dealloc(FrameView *self)
{
    PyObject_GC_UnTrack(self);
    view_clear(self);
    PyObject_GC_Del(self);
}

static PyObject *view_code(FrameView *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->code); }
static PyObject *view_locals(FrameView *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->locals); }
static PyObject *view_function(FrameView *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->function); }

static PyObject *view_globals(FrameView *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((PyFunctionObject *)self->function)->func_globals);
}

static PyObject *view_builtins(FrameView *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((PyFunctionObject *)self->function)->func_builtins);
}

static PyObject *view_closure(FrameView *self, void *Py_UNUSED(closure))
{
    PyObject *cells = ((PyFunctionObject *)self->function)->func_closure;
    return cells ? Py_NewRef(cells) : PyTuple_New(0);
}

static PyGetSetDef view_attributes[] = {
    {"f_code", (getter)view_code, NULL, "The code object that is about to run.", NULL},
    {"f_locals", (getter)view_locals, NULL, "The arguments by name, as a dict of its own.", NULL},
    {"f_globals", (getter)view_globals, NULL, "The globals.", NULL},
    {"f_builtins", (getter)view_builtins, NULL, "The builtins.", NULL},
    {"f_func", (getter)view_function, NULL, "The function that was called.", NULL},
    {"closure", (getter)view_closure, NULL, "The cells of the free variables, in the order of co_freevars.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject FrameView_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.Frame",
    .tp_doc = "A function call that has not begun.",
    .tp_basicsize = sizeof(FrameView),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)view_dealloc,
    .tp_traverse = (traverseproc)view_traverse,
    .tp_clear = (inquiry)view_clear,
    .tp_getset = view_attributes,
};

static PyObject *locals_of(InterpreterFrame *frame, PyCodeObject *code)
{
    PyObject *locals = PyDict_New();
    int count = parameter_count(code);
    for (int i = 0; locals && i < count; i++) {
        PyObject *value = frame->localsplus[i];
        if (value && PyDict_SetItem(locals, PyTuple_GET_ITEM(code->co_localsplusnames, i), value) < 0)
            Py_CLEAR(locals);
    }
    return locals;
}

PyObject *frame_view_new(InterpreterFrame *frame, PyCodeObject *code)
{
    PyObject *locals = locals_of(frame, code);
    FrameView *view = locals ? PyObject_GC_New(FrameView, &FrameView_Type) : NULL;
    if (!view) {
        Py_XDECREF(locals);
        return NULL;
    }
    view->code = Py_NewRef((PyObject *)code);
    view->locals = locals;
    view->function = Py_NewRef((PyObject *)frame_function(frame));
    PyObject_GC_Track(view);
    return (PyObject *)view;
}
