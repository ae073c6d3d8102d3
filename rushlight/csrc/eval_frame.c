/* The frame hook (PEP 523): while a callback is set in a thread, each Python function that the thread calls goes through here.

   Per code object, its extra slot keeps what the hook knows of it: whether it is left alone, and the guarded codes that may run
   in its place. A call looks for the first entry whose guards hold; where there is none the callback is asked for a new one.

   References: an entry owns its guard, code and function; the slot owns the list of entries and the state dict. */
#include "frame_internals.h"

#include "module.h"
#include "thread_state.h"

enum CodeState { ASK, LEAVE, LEAVE_RECURSIVELY, RUN_DIRECTLY };

typedef struct {
    int state;
    PyObject *entries;     /* list of CacheEntry, the latest first */
    PyObject *frame_state; /* dict of the callback's, or NULL */
} CodeSlot;

static Py_ssize_t slot_index = -1;
static PyTypeObject *frame_view_type, *cache_entry_type, *tail_call_type;

/* NULL: no hook. Py_False: only look up what is cached. Otherwise the callback. */
static _Thread_local PyObject *thread_callback;
static int active_threads;
/* The code of the function that a tail call is about to call. */
static _Thread_local PyObject *expected_code;

static void slot_free(void *pointer)
{
    CodeSlot *slot = pointer;
    Py_XDECREF(slot->entries);
    Py_XDECREF(slot->frame_state);
    PyMem_Free(slot);
}

static CodeSlot *slot_of(PyCodeObject *code)
{
    void *found = NULL;
    return get_code_slot(code, slot_index, &found) < 0 ? NULL : found;
}

static CodeSlot *slot_make(PyCodeObject *code)
{
    CodeSlot *slot = slot_of(code);
    if (slot || PyErr_Occurred())
        return slot;
    slot = PyMem_Calloc(1, sizeof *slot);
    if (!slot)
        return (CodeSlot *)PyErr_NoMemory();
    slot->entries = PyList_New(0);
    if (!slot->entries || set_code_slot(code, slot_index, slot) < 0) {
        slot_free(slot);
        return NULL;
    }
    return slot;
}

/* Cache entries */

typedef struct {
    PyObject_HEAD
    PyObject *check_fn;
    PyObject *code;
    PyObject *function; /* of `code`, with the globals that the callback gave */
    PyObject *data;     /* the callback's result, for inspection */
    PyObject *owner;    /* the callback that made it; it serves this one only */
} CacheEntry;

static int entry_traverse(CacheEntry *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->check_fn);
    Py_VISIT(self->code);
    Py_VISIT(self->function);
    Py_VISIT(self->data);
    Py_VISIT(self->owner);
    return 0;
}

static int entry_clear(CacheEntry *self)
{
    Py_CLEAR(self->check_fn);
    Py_CLEAR(self->code);
    Py_CLEAR(self->function);
    Py_CLEAR(self->data);
    Py_CLEAR(self->owner);
    return 0;
}

static void entry_dealloc(CacheEntry *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *entry_check_fn(CacheEntry *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->check_fn); }
static PyObject *entry_code(CacheEntry *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->code); }
static PyObject *entry_data(CacheEntry *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->data); }
static PyObject *entry_owner(CacheEntry *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->owner); }

static PyGetSetDef entry_attributes[] = {
    {"check_fn", (getter)entry_check_fn, NULL, "Called with the frame's parameters, globals and closure; true where the code may run.", NULL},
    {"code", (getter)entry_code, NULL, "The code that runs in the place of the function's own.", NULL},
    {"guarded_code", (getter)entry_data, NULL, "What the callback returned.", NULL},
    {"owner", (getter)entry_owner, NULL, "The callback.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot entry_slots[] = {
    {Py_tp_doc, "One way to run a function: a guard and a code object."},
    {Py_tp_traverse, entry_traverse},
    {Py_tp_clear, entry_clear},
    {Py_tp_dealloc, entry_dealloc},
    {Py_tp_getset, entry_attributes},
    {0, NULL},
};

static PyType_Spec entry_spec = {
    .name = "rushlight._C.CacheEntry",
    .basicsize = sizeof(CacheEntry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = entry_slots,
};

static PyObject *take_attribute(PyObject *object, const char *name)
{
    return PyObject_GetAttrString(object, name);
}

/* An entry that has its owner never asked about the code again. */
static PyObject *entry_leaving_alone(PyObject *owner)
{
    CacheEntry *entry = PyObject_GC_New(CacheEntry, cache_entry_type);
    if (!entry)
        return NULL;
    entry->function = NULL;
    entry->check_fn = Py_NewRef(Py_None);
    entry->code = Py_NewRef(Py_None);
    entry->data = Py_NewRef(Py_False);
    entry->owner = Py_NewRef(owner);
    PyObject_GC_Track(entry);
    return (PyObject *)entry;
}

static PyObject *entry_new(PyObject *guarded, PyObject *owner)
{
    CacheEntry *entry = PyObject_GC_New(CacheEntry, cache_entry_type);
    if (!entry)
        return NULL;
    entry->function = NULL;
    entry->data = Py_NewRef(guarded);
    entry->owner = Py_NewRef(owner);
    entry->check_fn = take_attribute(guarded, "check_fn");
    entry->code = entry->check_fn ? take_attribute(guarded, "code") : NULL;
    PyObject *globals = entry->code ? take_attribute(guarded, "globals") : NULL;
    PyObject_GC_Track(entry);
    if (globals && PyCode_Check(entry->code) && PyCallable_Check(entry->check_fn) && PyDict_Check(globals))
        entry->function = PyFunction_New(entry->code, globals);
    else if (globals)
        PyErr_SetString(PyExc_TypeError, "the frame callback must return None, False or an object with `code`, a code object, `globals`, "
                                         "a dict, and `check_fn`, a callable");
    Py_XDECREF(globals);
    if (!entry->function)
        Py_CLEAR(entry);
    return (PyObject *)entry;
}

/* What the callback sees of a frame */

typedef struct {
    PyObject_HEAD
    PyObject *code, *locals, *function;
} FrameView;

static int view_traverse(FrameView *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
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
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    view_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
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

static PyType_Slot view_slots[] = {
    {Py_tp_doc, "A function call that has not begun."},
    {Py_tp_traverse, view_traverse},
    {Py_tp_clear, view_clear},
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_getset, view_attributes},
    {0, NULL},
};

static PyType_Spec view_spec = {
    .name = "rushlight._C.Frame",
    .basicsize = sizeof(FrameView),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = view_slots,
};

static int parameter_count(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

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

static PyObject *view_new(InterpreterFrame *frame, PyCodeObject *code, PyObject *locals)
{
    FrameView *view = PyObject_GC_New(FrameView, frame_view_type);
    if (!view)
        return NULL;
    view->code = Py_NewRef((PyObject *)code);
    view->locals = Py_NewRef(locals);
    view->function = Py_NewRef((PyObject *)frame_function(frame));
    PyObject_GC_Track(view);
    return (PyObject *)view;
}

/* Running */

static PyObject *frame_hook(PyThreadState *thread, InterpreterFrame *frame, int throwing);

static void set_thread_callback(PyThreadState *thread, PyObject *callback)
{
    PyObject *before = thread_callback;
    thread_callback = Py_XNewRef(callback);
    active_threads += (callback != NULL) - (before != NULL);
    _PyInterpreterState_SetEvalFrameFunc(thread->interp, active_threads ? frame_hook : _PyEval_EvalFrameDefault);
    Py_XDECREF(before);
}

/* Tail calls: code in a frame's place may end by asking for another call. The calls of a loop whose every turn leaves the graph
   would otherwise nest. */

typedef struct {
    PyObject_HEAD
    PyObject *function, *arguments;
} TailCall;

static int tail_traverse(TailCall *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
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
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    tail_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyType_Slot tail_slots[] = {
    {Py_tp_doc, "What code in a frame's place returns to have a function called after it has ended."},
    {Py_tp_traverse, tail_traverse},
    {Py_tp_clear, tail_clear},
    {Py_tp_dealloc, tail_dealloc},
    {0, NULL},
};

static PyType_Spec tail_spec = {
    .name = "rushlight._C.TailCall",
    .basicsize = sizeof(TailCall),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = tail_slots,
};

static PyObject *tail_call(PyObject *Py_UNUSED(module), PyObject *args)
{
    if (PyTuple_GET_SIZE(args) < 1 || !PyFunction_Check(PyTuple_GET_ITEM(args, 0))) {
        PyErr_SetString(PyExc_TypeError, "tail_call expects a Python function and its arguments");
        return NULL;
    }
    TailCall *call = PyObject_GC_New(TailCall, tail_call_type);
    if (!call)
        return NULL;
    call->function = Py_NewRef(PyTuple_GET_ITEM(args, 0));
    call->arguments = PyTuple_GetSlice(args, 1, PY_SSIZE_T_MAX);
    PyObject_GC_Track(call);
    if (!call->arguments)
        Py_CLEAR(call);
    return (PyObject *)call;
}

/* Call what a tail call asks for until something else is returned. Steals the reference. */
static PyObject *follow(PyObject *result)
{
    while (result && Py_IS_TYPE(result, tail_call_type)) {
        TailCall *call = (TailCall *)result;
        expected_code = PyFunction_GET_CODE(call->function);
        PyObject *next = PyObject_Call(call->function, call->arguments, NULL);
        expected_code = NULL;
        Py_DECREF(result);
        result = next;
    }
    return result;
}

enum { FEW = 16 };

/* Run an entry's code or guard on the frame's parameters, the function's globals and its cells. */
static PyObject *call_with_frame(PyObject *callable, InterpreterFrame *frame, PyCodeObject *code)
{
    PyFunctionObject *called = frame_function(frame);
    int count = parameter_count(code);
    PyObject *few[FEW + 2], **values = few;
    if (count > FEW && !(values = PyMem_Malloc((size_t)(count + 2) * sizeof *values)))
        return PyErr_NoMemory();
    for (int i = 0; i < count; i++)
        values[i] = frame->localsplus[i];
    values[count] = called->func_globals;
    values[count + 1] = called->func_closure ? called->func_closure : Py_None;
    PyObject *result = PyObject_Vectorcall(callable, values, (size_t)count + 2, NULL);
    if (values != few)
        PyMem_Free(values);
    return result;
}

/* Run an entry and give up the frame. Asked for by a tail call, another tail call goes back to whoever follows it. */
static PyObject *run_entry(PyThreadState *thread, InterpreterFrame *frame, PyCodeObject *code, CacheEntry *entry, int is_followed)
{
    PyObject *result = call_with_frame(entry->function, frame, code);
    if (!is_followed)
        result = follow(result);
    frame_discard(thread, frame);
    return result;
}

/* The first entry of the callback whose guard holds, as a new reference; NULL where there is none, or with an error set. */
static CacheEntry *find_entry(CodeSlot *slot, InterpreterFrame *frame, PyCodeObject *code, PyObject *callback)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slot->entries); i++) {
        CacheEntry *entry = (CacheEntry *)PyList_GET_ITEM(slot->entries, i);
        if (entry->owner != callback && callback != Py_False)
            continue;
        Py_INCREF(entry);
        if (!entry->function)
            return entry;
        PyObject *answer = call_with_frame(entry->check_fn, frame, code);
        int holds = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        if (holds > 0)
            return entry;
        Py_DECREF(entry);
        /* A guard that raises does not hold: the way to what it tests is gone. */
        if (holds < 0 && !PyErr_ExceptionMatches(PyExc_Exception))
            return NULL;
        if (holds < 0)
            PyErr_Clear();
    }
    return NULL;
}

/* Ask the callback; a new entry, NULL for none, or NULL with an error set. The hook is off meanwhile. */
static CacheEntry *ask(PyThreadState *thread, InterpreterFrame *frame, PyCodeObject *code, CodeSlot *slot, PyObject *callback)
{
    PyObject *locals = locals_of(frame, code), *view = locals ? view_new(frame, code, locals) : NULL;
    PyObject *answer = NULL, *entry = NULL;
    Py_XDECREF(locals);
    if (!slot->frame_state)
        slot->frame_state = PyDict_New();
    if (view && slot->frame_state) {
        PyObject *entries = PyList_GetSlice(slot->entries, 0, PY_SSIZE_T_MAX);
        if (entries)
            answer = PyObject_CallFunctionObjArgs(callback, view, entries, slot->frame_state, NULL);
        Py_XDECREF(entries);
    }
    Py_XDECREF(view);
    if (answer && Py_IS_TYPE(answer, cache_entry_type)) { /* another thread made it meanwhile */
        entry = Py_NewRef(answer);
    } else if (answer == Py_False) {
        entry = entry_leaving_alone(callback);
        if (entry && PyList_Insert(slot->entries, 0, entry) < 0)
            Py_CLEAR(entry);
    } else if (answer && answer != Py_None) {
        entry = entry_new(answer, callback);
        CodeSlot *own = entry ? slot_make((PyCodeObject *)((CacheEntry *)entry)->code) : NULL;
        if (own)
            own->state = RUN_DIRECTLY;
        if (entry && (!own || PyList_Insert(slot->entries, 0, entry) < 0))
            Py_CLEAR(entry);
    }
    Py_XDECREF(answer);
    (void)thread;
    return (CacheEntry *)entry;
}

static PyObject *run_without_hook(PyThreadState *thread, InterpreterFrame *frame)
{
    PyObject *callback = Py_NewRef(thread_callback);
    set_thread_callback(thread, NULL);
    PyObject *result = frame_default(thread, frame, 0);
    set_thread_callback(thread, callback);
    Py_DECREF(callback);
    return result;
}

/* A frame's end where the hook itself failed: it never runs. */
static PyObject *fail(PyThreadState *thread, InterpreterFrame *frame)
{
    frame_discard(thread, frame);
    return NULL;
}

static PyObject *frame_hook(PyThreadState *thread, InterpreterFrame *frame, int throwing)
{
    PyObject *callback = thread_callback, *followed = expected_code;
    expected_code = NULL;
    if (!callback || throwing || !frame_is_fresh(frame))
        return frame_default(thread, frame, throwing);
    /* Under a dispatch mode the program is part of another capture, or somebody watches its operators. */
    if (current_thread_record && modes_active(current_thread_record))
        return frame_default(thread, frame, throwing);
    PyCodeObject *code = frame_code(frame);
    /* Module and class bodies have locals of their own; generators and coroutines are made here and run elsewhere. */
    if ((code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) || !(code->co_flags & CO_NEWLOCALS) ||
        !(code->co_flags & CO_OPTIMIZED))
        return frame_default(thread, frame, throwing);
    CodeSlot *slot = slot_of(code);
    if (slot && (slot->state == LEAVE || slot->state == RUN_DIRECTLY))
        return frame_default(thread, frame, throwing);
    if (slot && slot->state == LEAVE_RECURSIVELY)
        return run_without_hook(thread, frame);
    if (!slot && callback == Py_False)
        return frame_default(thread, frame, throwing);
    if (!slot && !(slot = slot_make(code)))
        return fail(thread, frame);
    /* Guards and the callback are Python code, which must not be captured itself. */
    Py_INCREF(callback);
    set_thread_callback(thread, NULL);
    CacheEntry *entry = find_entry(slot, frame, code, callback);
    if (!entry && !PyErr_Occurred() && callback != Py_False)
        entry = ask(thread, frame, code, slot, callback);
    set_thread_callback(thread, callback);
    Py_DECREF(callback);
    if (entry && !entry->function) {
        Py_DECREF(entry);
        return frame_default(thread, frame, throwing);
    }
    if (entry) {
        PyObject *result = run_entry(thread, frame, code, entry, followed == (PyObject *)code);
        Py_DECREF(entry);
        return result;
    }
    if (PyErr_Occurred())
        return fail(thread, frame);
    slot = slot_of(code);
    if (slot && slot->state == LEAVE_RECURSIVELY)
        return run_without_hook(thread, frame);
    return frame_default(thread, frame, throwing);
}

/* The module's functions */

static PyObject *set_eval_frame(PyObject *Py_UNUSED(module), PyObject *callback)
{
    if (callback != Py_None && callback != Py_False && !PyCallable_Check(callback)) {
        PyErr_Format(PyExc_TypeError, "set_eval_frame expects a callable, None or False, got %.100s", Py_TYPE(callback)->tp_name);
        return NULL;
    }
    PyObject *before = thread_callback ? Py_NewRef(thread_callback) : Py_NewRef(Py_None);
    set_thread_callback(PyThreadState_Get(), callback == Py_None ? NULL : callback);
    return before;
}

static CodeSlot *slot_argument(PyObject *code, const char *name)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "%s expects a code object, got %.100s", name, Py_TYPE(code)->tp_name);
        return NULL;
    }
    return slot_make((PyCodeObject *)code);
}

static PyObject *skip_code(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code;
    int recursively = 0;
    if (!PyArg_ParseTuple(args, "O|p", &code, &recursively))
        return NULL;
    CodeSlot *slot = slot_argument(code, "skip_code");
    if (!slot)
        return NULL;
    slot->state = recursively ? LEAVE_RECURSIVELY : LEAVE;
    Py_RETURN_NONE;
}

static PyObject *reset_code(PyObject *Py_UNUSED(module), PyObject *code)
{
    CodeSlot *slot = slot_argument(code, "reset_code");
    if (!slot)
        return NULL;
    PyObject *entries = PyList_New(0);
    if (!entries)
        return NULL;
    if (slot->state != RUN_DIRECTLY)
        slot->state = ASK;
    Py_SETREF(slot->entries, entries);
    Py_CLEAR(slot->frame_state);
    Py_RETURN_NONE;
}

static PyObject *cache_entries(PyObject *Py_UNUSED(module), PyObject *code)
{
    CodeSlot *slot = slot_argument(code, "cache_entries");
    return slot ? PyList_GetSlice(slot->entries, 0, PY_SSIZE_T_MAX) : NULL;
}

static PyObject *remove_entry(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *entry;
    if (!PyArg_ParseTuple(args, "OO", &code, &entry))
        return NULL;
    CodeSlot *slot = slot_argument(code, "remove_entry");
    if (!slot)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slot->entries); i++)
        if (PyList_GET_ITEM(slot->entries, i) == entry)
            return PySequence_DelItem(slot->entries, i) < 0 ? NULL : Py_NewRef(Py_True);
    Py_RETURN_FALSE;
}

PyMethodDef eval_frame_methods[] = {
    {"set_eval_frame", set_eval_frame, METH_O,
     "set_eval_frame(callback, /)\n\nHave calls of Python functions in this thread go through `callback(frame, cache_entries,\n"
     "frame_state)`, which returns None (the function runs as it is), False (so it does from now on, without\n"
     "asking this callback) or an object with `code`, `globals` and `check_fn`. A function of that code and those globals runs in the place of the called one, now and\n"
     "whenever `check_fn` is true and the callback is the same. Both take the called function's parameters by position (`*args` and\n"
     "`**kwargs` as a tuple and a dict), then its globals and its closure (None where it has none).\n"
     "None sets no callback; False runs what is cached, whoever made it, and asks nobody. Under a dispatch mode\n"
     "all runs as it is.\n"
     "Returns the callback that was set before. Generators, coroutines, module and class bodies are left alone."},
    {"skip_code", skip_code, METH_VARARGS,
     "skip_code(code, recursively=False, /)\n\nNever ask the callback about this code again; with `recursively`, nor about\n"
     "what it calls."},
    {"reset_code", reset_code, METH_O, "reset_code(code, /)\n\nForget everything that the hook knows of a code object."},
    {"cache_entries", cache_entries, METH_O, "cache_entries(code, /) -> list[CacheEntry]\n\nThe latest first."},
    {"remove_entry", remove_entry, METH_VARARGS,
     "remove_entry(code, entry, /) -> bool\n\nForget one entry; whether it was there."},
    {"tail_call", tail_call, METH_VARARGS,
     "tail_call(function, *args)\n\nReturned by code that runs in a frame's place: have `function(*args)` called after it has\n"
     "ended, and its result take the place of this one."},
    {NULL, NULL, 0, NULL},
};

int eval_frame_initialize(PyObject *module)
{
    if (slot_index < 0)
        slot_index = request_code_slot_with(slot_free);
    if (slot_index < 0) {
        PyErr_SetString(PyExc_RuntimeError, "no extra slot of code objects is free");
        return -1;
    }
    cache_entry_type = (PyTypeObject *)PyType_FromSpec(&entry_spec);
    frame_view_type = (PyTypeObject *)PyType_FromSpec(&view_spec);
    tail_call_type = (PyTypeObject *)PyType_FromSpec(&tail_spec);
    if (!cache_entry_type || !frame_view_type || !tail_call_type)
        return -1;
    return PyModule_AddType(module, cache_entry_type) < 0 || PyModule_AddType(module, frame_view_type) < 0 ? -1 : 0;
}
