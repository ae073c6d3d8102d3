/* Declarations that the files of the frame hook share: a code object's slot, cache entries, frame views, tail calls. */
#ifndef RUSHLIGHT_FRAME_HOOK_H
#define RUSHLIGHT_FRAME_HOOK_H

#include "frame_internals.h"
#include "module.h"

/* The hook's action when a code object is called. ASK: look up entries, then ask the callback. LEAVE: run it as it is.
   LEAVE_RECURSIVELY: also run its callees without the hook. RUN_DIRECTLY: it already replaces another frame. */
enum CodeState { ASK, LEAVE, LEAVE_RECURSIVELY, RUN_DIRECTLY };

typedef struct {
    int state;
    PyObject *entries;     /* list of CacheEntry, the latest first */
    PyObject *frame_state; /* the callback's dict, or NULL */
} CodeSlot;

/* Return the slot of a code object; NULL if it has none. */
CodeSlot *slot_of(PyCodeObject *code);
/* Return the slot of a code object, creating it if necessary; NULL with an exception set. */
CodeSlot *slot_make(PyCodeObject *code);

/* One replacement for a function's code. Owns all of its fields. */
typedef struct {
    PyObject_HEAD
    PyObject *check_fn;
    PyObject *code;
    PyObject *function; /* `code` with the globals that the callback gave; NULL to leave the frame alone */
    PyObject *data;     /* the callback's result, for inspection */
    PyObject *owner;    /* the callback that made this entry; only that one may use it */
    PyObject *list;     /* the slot's list while the entry is in it */
    int is_alike;       /* `code` has the signature of the function's own code */
} CacheEntry;

/* Make an entry from a callback's result for a code and a view of its call. Py_False gives one that leaves the frame alone.
   A new reference. */
CacheEntry *entry_new(PyObject *guarded, PyCodeObject *original, PyObject *view, PyObject *owner);
/* Insert an entry at the front of a slot's list; -1 with an exception set. */
int entry_insert(CodeSlot *slot, CacheEntry *entry);
void entries_clear(CodeSlot *slot);

/* The callback's view of a call that has not begun. A new reference. */
PyObject *frame_view_new(InterpreterFrame *frame, PyCodeObject *code);

/* Run tail calls until one returns an ordinary result. Steal the reference. */
PyObject *follow_tail_calls(PyObject *result);
/* The code of the function that a tail call of this thread is about to call. */
extern _Thread_local PyObject *expected_code;

/* The number of parameters of a code object, `*args` and `**kwargs` included. */
static inline int parameter_count(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

/* The hook itself. */
PyObject *frame_hook(PyThreadState *thread, InterpreterFrame *frame, int throwing);

/* The thread's callback, borrowed. NULL: none. Py_False: look up cached entries only. */
PyObject *current_callback(void);
/* Prepare a thread's first region: 0, or -1 with an exception set. */
int region_prepare(void);
/* Set the thread's callback (NULL: none) and returns the previous one for `leave_region`. */
PyObject *enter_region(PyObject *callback);
/* Restore the previous callback. Steal the reference, keeps the current exception. */
void leave_region(PyObject *before);
/* Hide the callback for a moment, until `show_callback`: the hook stays installed and does nothing. */
PyObject *hide_callback(void);
void show_callback(PyObject *callback);

#endif
