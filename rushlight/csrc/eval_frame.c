/* The frame hook (PEP 523): while a callback is set in a thread, each Python function that the thread calls goes through here.

   Each code object's extra slot holds the hook's state: whether to leave it alone, and the guarded codes that may run in its
   place. A call looks for the first entry whose guards hold; if there is none, it asks the callback for a new one. */
#include "dispatch_keys.h"
#include "frame_hook.h"

#include "guards.h"
#include "stack_depth.h"
#include "thread_state.h"

/* Running */

enum { FEW = 16 };

/* The values that guards and replacing code take: the frame's parameters, the function's globals and its cells. Borrowed.
   They go into `few` if they fit, else into memory that the caller frees. NULL with an exception set. */
static PyObject **frame_values(InterpreterFrame *frame, int count, PyObject **few)
{
    PyFunctionObject *called = frame_function(frame);
    PyObject **values = count > FEW ? PyMem_Malloc((size_t)(count + 2) * sizeof *values) : few;
    if (!values)
        return (PyObject **)PyErr_NoMemory();
    for (int i = 0; i < count; i++)
        values[i] = frame->localsplus[i];
    values[count] = called->func_globals;
    values[count + 1] = called->func_closure ? called->func_closure : Py_None;
    return values;
}

/* The positional arguments of a call, rebuilt from the parameters' values. */
static PyObject *positional_arguments(PyCodeObject *code, PyObject *const *values)
{
    int count = code->co_argcount, has_more = !!(code->co_flags & CO_VARARGS);
    PyObject *more = has_more ? values[count + code->co_kwonlyargcount] : NULL;
    PyObject *all = PyTuple_New(count + (has_more ? PyTuple_GET_SIZE(more) : 0));
    for (int i = 0; all && i < count; i++)
        PyTuple_SET_ITEM(all, i, Py_NewRef(values[i]));
    for (Py_ssize_t i = 0; all && has_more && i < PyTuple_GET_SIZE(more); i++)
        PyTuple_SET_ITEM(all, count + i, Py_NewRef(PyTuple_GET_ITEM(more, i)));
    return all;
}

/* The keyword arguments of the call, rebuilt likewise. */
static PyObject *named_arguments(PyCodeObject *code, PyObject *const *values)
{
    PyObject *all = code->co_flags & CO_VARKEYWORDS ? PyDict_Copy(values[parameter_count(code) - 1]) : PyDict_New();
    for (int i = code->co_argcount; all && i < code->co_argcount + code->co_kwonlyargcount; i++)
        if (PyDict_SetItem(all, PyTuple_GET_ITEM(code->co_localsplusnames, i), values[i]) < 0)
            Py_CLEAR(all);
    return all;
}

/* Call code with the signature of the called function, giving it that function's cells. */
static PyObject *call_alike(CacheEntry *entry, PyCodeObject *code, PyObject *const *values, PyObject *closure)
{
    PyObject *args = positional_arguments(code, values), *names = args ? named_arguments(code, values) : NULL;
    PyObject *function = names ? PyFunction_New(entry->code, PyFunction_GET_GLOBALS(entry->function)) : NULL;
    PyObject *result = NULL;
    if (function && (closure == Py_None || PyFunction_SetClosure(function, closure) == 0))
        result = PyObject_Call(function, args, names);
    Py_XDECREF(function);
    Py_XDECREF(names);
    Py_XDECREF(args);
    return result;
}

/* Run an entry instead of the frame. If this frame was requested by a tail call, and requests another one, return that
   to the loop that follows tail calls. */
static PyObject *run_entry(PyThreadState *thread, InterpreterFrame *frame, PyCodeObject *code, CacheEntry *entry, int is_followed)
{
    int count = parameter_count(code);
    PyObject *few[FEW + 2], **values = frame_values(frame, count, few);
    PyObject *result = !values           ? NULL
                       : entry->is_alike ? call_alike(entry, code, values, values[count + 1])
                                         : PyObject_Vectorcall(entry->function, values, (size_t)count + 2, NULL);
    if (values != few)
        PyMem_Free(values);
    if (!is_followed)
        result = follow_tail_calls(result);
    frame_discard(thread, frame);
    return result;
}

/* Whether an entry's guard holds: 1, 0, or -1 with an exception set that does not derive from Exception. */
static int guard_holds(PyObject *check_fn, PyObject *const *values, Py_ssize_t count)
{
    if (Py_IS_TYPE(check_fn, &GuardTree_Type))
        return guard_tree_holds(check_fn, values, count);
    PyObject *answer = PyObject_Vectorcall(check_fn, values, (size_t)count, NULL);
    int holds = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (holds < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        holds = 0;
    }
    return holds;
}

/* The first of the callback's entries whose guard holds, as a new reference; NULL if there is none, or with an error set. */
static CacheEntry *find_entry(CodeSlot *slot, PyObject *const *values, Py_ssize_t count, PyObject *callback)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slot->entries); i++) {
        CacheEntry *entry = (CacheEntry *)PyList_GET_ITEM(slot->entries, i);
        if (entry->owner != callback && callback != Py_False)
            continue;
        Py_INCREF(entry);
        int holds = entry->function ? guard_holds(entry->check_fn, values, count) : 1;
        if (holds > 0)
            return entry;
        Py_DECREF(entry);
        if (holds < 0)
            return NULL;
    }
    return NULL;
}

/* find_entry for a frame. Guards may run Python code, which must not be captured, so the callback is hidden meanwhile. */
static CacheEntry *cached_entry(CodeSlot *slot, InterpreterFrame *frame, PyCodeObject *code, PyObject *callback)
{
    if (!PyList_GET_SIZE(slot->entries))
        return NULL;
    int count = parameter_count(code);
    PyObject *few[FEW + 2], **values = frame_values(frame, count, few);
    if (!values)
        return NULL;
    PyObject *hidden = hide_callback();
    CacheEntry *entry = find_entry(slot, values, count + 2, callback);
    show_callback(hidden);
    if (values != few)
        PyMem_Free(values);
    return entry;
}

/* Ask the callback for an entry. NULL if it declines, or with an error set. The hook is off meanwhile. */
static CacheEntry *ask(InterpreterFrame *frame, PyCodeObject *code, CodeSlot *slot, PyObject *callback)
{
    PyObject *view = frame_view_new(frame, code), *answer = NULL;
    CacheEntry *entry = NULL;
    if (!slot->frame_state)
        slot->frame_state = PyDict_New();
    if (view && slot->frame_state) {
        PyObject *latest = PyList_GET_SIZE(slot->entries) ? PyList_GET_ITEM(slot->entries, 0) : Py_None;
        Py_INCREF(latest);
        answer = PyObject_CallFunctionObjArgs(callback, view, latest, slot->frame_state, NULL);
        Py_DECREF(latest);
    }
    if (answer && Py_IS_TYPE(answer, &CacheEntry_Type)) { /* another thread made it meanwhile */
        entry = (CacheEntry *)Py_NewRef(answer);
    } else if (answer && answer != Py_None) {
        entry = entry_new(answer, code, view, callback);
        if (entry && entry_insert(slot, entry) < 0)
            Py_CLEAR(entry);
    }
    Py_XDECREF(view);
    Py_XDECREF(answer);
    return entry;
}

static PyObject *run_without_hook(PyThreadState *thread, InterpreterFrame *frame)
{
    PyObject *callback = enter_region(NULL);
    PyObject *result = frame_default(thread, frame, 0);
    leave_region(callback);
    return result;
}

/* End a frame, without running it, after the hook itself failed. */
static PyObject *fail(PyThreadState *thread, InterpreterFrame *frame)
{
    frame_discard(thread, frame);
    return NULL;
}

static PyObject *end_of_stack(PyThreadState *thread, InterpreterFrame *frame)
{
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the thread's stack is used up");
    return fail(thread, frame);
}

/* False for module and class bodies, which have their own locals, and for generators and coroutines, whose frames are
   created here but run elsewhere. */
static int is_plain_function(PyCodeObject *code)
{
    return !(code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) && code->co_flags & CO_NEWLOCALS &&
           code->co_flags & CO_OPTIMIZED;
}

/* Run a frame through the callback. */
static PyObject *run_hooked(PyThreadState *thread, InterpreterFrame *frame, PyCodeObject *code, CodeSlot *slot,
                            PyObject *callback, int is_followed)
{
    Py_INCREF(callback);
    CacheEntry *entry = cached_entry(slot, frame, code, callback);
    if (!entry && !PyErr_Occurred() && callback != Py_False) {
        PyObject *before = enter_region(NULL);
        entry = ask(frame, code, slot, callback);
        leave_region(before);
    }
    Py_DECREF(callback);
    if (entry && entry->function) {
        PyObject *result = run_entry(thread, frame, code, entry, is_followed);
        Py_DECREF(entry);
        return result;
    }
    int left_alone = entry != NULL;
    Py_XDECREF(entry);
    if (!left_alone && PyErr_Occurred())
        return fail(thread, frame);
    slot = slot_of(code);
    if (!left_alone && slot && slot->state == LEAVE_RECURSIVELY)
        return run_without_hook(thread, frame);
    return frame_default(thread, frame, 0);
}

/* Whether the thread's state (modes, tangents, default device) rules out capture; see frame_hook. */
static int runs_uncaptured(const ThreadRecord *record)
{
    return modes_active(record) || record->makes_elsewhere || record->asks_function_modes || record->include & DUAL_BIT;
}

PyObject *frame_hook(PyThreadState *thread, InterpreterFrame *frame, int throwing)
{
    PyObject *callback = current_callback(), *followed = expected_code;
    expected_code = NULL;
    enum StackDepth depth = stack_depth();
    if (throwing || !frame_is_fresh(frame))
        return frame_default(thread, frame, throwing);
    if (depth == STACK_ENDS)
        return end_of_stack(thread, frame);
    /* The hook stands aside in four cases. Under a dispatch mode the program is part of another capture, or somebody watches
       its operators; a function mode watches its calls. Forward-mode tangents travel from operator to operator. Under a
       default device other than the CPU, which no capture assumes, the program makes tensors without data. */
    if (!callback || (current_thread_record && runs_uncaptured(current_thread_record)))
        return frame_default(thread, frame, 0);
    PyCodeObject *code = frame_code(frame);
    if (!is_plain_function(code))
        return frame_default(thread, frame, 0);
    CodeSlot *slot = slot_of(code);
    if (slot && (slot->state == LEAVE || slot->state == RUN_DIRECTLY))
        return frame_default(thread, frame, 0);
    /* A deep recursion runs without the hook: then Python-to-Python calls use no more of the C stack. */
    if ((slot && slot->state == LEAVE_RECURSIVELY) || depth == STACK_IS_LOW)
        return run_without_hook(thread, frame);
    if (!slot && callback == Py_False)
        return frame_default(thread, frame, 0);
    if (!slot && !(slot = slot_make(code)))
        return fail(thread, frame);
    return run_hooked(thread, frame, code, slot, callback, followed == (PyObject *)code);
}
