/* Regions: a callback of the frame hook for part of a thread's execution, and functions whose calls begin a region. */
#include "frame_hook.h"

/* A thread's callback. NULL: no hook. Py_False: look up cached entries only. */
typedef struct {
    PyObject *callback;
} Region;

static const char *const CAPSULE_NAME = "rushlight.region";

static _Thread_local Region *region; /* owned by the thread's dict */
static int active_threads;

PyObject *current_callback(void) { return region ? region->callback : NULL; }

/* Install the frame hook if any thread has a region; else remove it. */
static void update_hook(void)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), active_threads ? frame_hook : _PyEval_EvalFrameDefault);
}

/* Free a thread's region when the thread ends or does not survive a fork; it no longer needs the hook. */
static void free_region(PyObject *capsule)
{
    Region *ended = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    if (region == ended)
        region = NULL;
    if (ended->callback) {
        active_threads--;
        update_hook();
        Py_DECREF(ended->callback);
    }
    PyMem_Free(ended);
}

static Region *make_region(void)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    Region *made = PyMem_Calloc(1, sizeof *made);
    PyObject *capsule = made ? PyCapsule_New(made, CAPSULE_NAME, free_region) : NULL;
    if (!capsule)
        PyMem_Free(made);
    int failed = !capsule || !dict || PyDict_SetItemString(dict, CAPSULE_NAME, capsule) < 0;
    Py_XDECREF(capsule);
    if (!failed)
        return region = made;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return NULL;
}

int region_prepare(void) { return region || make_region() ? 0 : -1; }

PyObject *enter_region(PyObject *callback)
{
    PyObject *before = region->callback;
    region->callback = Py_XNewRef(callback);
    if (!callback != !before) {
        active_threads += callback ? 1 : -1;
        update_hook();
    }
    return before;
}

void leave_region(PyObject *before)
{
    PyObject *callback = region->callback;
    region->callback = before;
    if (!callback != !before) {
        active_threads += before ? 1 : -1;
        update_hook();
    }
    if (callback) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_DECREF(callback);
        PyErr_Restore(type, value, traceback);
    }
}

PyObject *hide_callback(void)
{
    PyObject *callback = region ? region->callback : NULL;
    if (region)
        region->callback = NULL;
    return callback;
}

void show_callback(PyObject *callback)
{
    if (region)
        region->callback = callback;
}

static PyObject *call_in_region(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyTuple_Check(args[2]) || !PyDict_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "call_in_region expects (callback, function, args: tuple, kwargs: dict)");
    if (region_prepare() < 0)
        return NULL;
    PyObject *before = enter_region(args[0] == Py_None ? NULL : args[0]);
    PyObject *result = PyObject_Call(args[1], args[2], PyDict_GET_SIZE(args[3]) ? args[3] : NULL);
    leave_region(before);
    return result;
}

/* The vectorcall of functions that begin a region. Such a function is written in Python, as a closure over `callback` and
   `followed`. This does the same as its body, without a frame; the interpreter runs the body itself where it calls the function
   directly (3.11). */
static PyObject *region_call(PyObject *function, PyObject *const *args, size_t flags, PyObject *names)
{
    PyObject *cells = PyFunction_GET_CLOSURE(function);
    PyObject *callback = PyCell_GET(PyTuple_GET_ITEM(cells, 0)), *followed = PyCell_GET(PyTuple_GET_ITEM(cells, 1));
    if (!callback || !followed || region_prepare() < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_NameError, "a compiled function was taken apart");
    Py_INCREF(followed);
    PyObject *before = enter_region(callback == Py_None ? NULL : callback);
    PyObject *result = PyObject_Vectorcall(followed, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    leave_region(before);
    Py_DECREF(followed);
    return result;
}

static PyObject *begin_region(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyObject *cells = PyFunction_Check(function) ? PyFunction_GET_CLOSURE(function) : NULL;
    if (!cells || PyTuple_GET_SIZE(cells) != 2) {
        PyErr_SetString(PyExc_TypeError, "begin_region expects a function that closes over `callback` and `followed`");
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030C0000
    PyFunction_SetVectorcall((PyFunctionObject *)function, region_call);
#else
    ((PyFunctionObject *)function)->vectorcall = region_call;
#endif
    return Py_NewRef(function);
}

static PyObject *set_eval_frame(PyObject *Py_UNUSED(module), PyObject *callback)
{
    if (callback != Py_None && callback != Py_False && !PyCallable_Check(callback)) {
        PyErr_Format(PyExc_TypeError, "set_eval_frame expects a callable, None or False, got %.100s", Py_TYPE(callback)->tp_name);
        return NULL;
    }
    if (region_prepare() < 0)
        return NULL;
    PyObject *before = enter_region(callback == Py_None ? NULL : callback);
    return before ? before : Py_NewRef(Py_None);
}

static PyObject *in_region(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(arguments))
{
    return PyBool_FromLong(current_callback() != NULL);
}

PyMethodDef region_methods[] = {
    {"set_eval_frame", set_eval_frame, METH_O,
     "set_eval_frame(callback, /)\n\nHave calls of Python functions in this thread go through `callback(frame, cache_entry,\n"
     "frame_state)`, which returns None (the function runs as it is), False (so it does from now on, without\n"
     "asking this callback) or an object with `code`, `globals` (None for the called function's) and `check_fn`. A function of\n"
     "that code and those globals runs\n"
     "in the place of the called one, now and whenever `check_fn` is true and the callback is the same. `check_fn` takes the\n"
     "called function's parameters by position (`*args` and `**kwargs` as a tuple and a dict), then its globals and its closure\n"
     "(None where it has none). `code` takes the same, or what the called function's own code takes. `frame` has f_code, f_locals, f_globals, f_builtins, f_func and closure; `cache_entry` is the latest\n"
     "entry of the code or None, its `next` the one before; `frame_state` is a dict that belongs to the code.\n"
     "None sets no callback; False runs what is cached, whoever made it, and asks nobody. Under a dispatch mode\n"
     "all runs as it is.\n"
     "Returns the callback that was set before. Generators, coroutines, module and class bodies are left alone."},
    {"call_in_region", (PyCFunction)(void (*)(void))call_in_region, METH_FASTCALL,
     "call_in_region(callback, function, args, kwargs, /)\n\n`function(*args, **kwargs)` while `callback` is set, None for none."},
    {"begin_region", begin_region, METH_O,
     "begin_region(function, /) -> function\n\nLet calls of a function that closes over `callback` and `followed` be calls of\n"
     "`followed` while `callback` is set, without running the function's own body, which says the same."},
    {"in_region", in_region, METH_NOARGS,
     "in_region() -> bool\n\nWhether a callback is set in this thread: what runs was called by a compiled function."},
    {NULL, NULL, 0, NULL},
};
