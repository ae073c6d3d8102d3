/* What the files of the frame hook share: what a code object's slot keeps, cache entries, views of frames, tail calls. */
#ifndef RUSHLIGHT_FRAME_HOOK_H
#define RUSHLIGHT_FRAME_HOOK_H

#include "frame_internals.h"
#include "module.h"

/* What the hook does at a call of a code object: ask, run it as it is, also without asking about what it calls, or run it as
   it is because it stands in another frame's place. */
enum CodeState { ASK, LEAVE, LEAVE_RECURSIVELY, RUN_DIRECTLY };

typedef struct {
    int state;
    PyObject *entries;     /* list of CacheEntry, the latest first */
    PyObject *frame_state; /* dict of the callback's, or NULL */
} CodeSlot;

/* The slot of a code object; NULL where it has none. */
CodeSlot *slot_of(PyCodeObject *code);
/* The same, made where there is none; NULL with an exception set. */
CodeSlot *slot_make(PyCodeObject *code);

/* One way to run a function. Owns all of its fields. */
typedef struct {
    PyObject_HEAD
    PyObject *check_fn;
    PyObject *code;
    PyObject *function; /* of `code`, with the globals that the callback gave; NULL where the frame is to be left alone */
    PyObject *data;     /* the callback's result, for inspection */
    PyObject *owner;    /* the callback that made it; it serves this one only */
    PyObject *list;     /* the slot's list, while it is in there */
    int is_alike;       /* `code` takes what the function's own code takes, and is called like it */
} CacheEntry;

/* From what a callback returned for a code and a view of its call. An entry that leaves the frame alone for Py_False. A new
 * reference. */
CacheEntry *entry_new(PyObject *guarded, PyCodeObject *original, PyObject *view, PyObject *owner);
/* Puts an entry before the others of a slot, or takes it out; -1 with an exception set. */
int entry_insert(CodeSlot *slot, CacheEntry *entry);
void entries_clear(CodeSlot *slot);

/* What a callback sees of a call that has not begun. A new reference. */
PyObject *frame_view_new(InterpreterFrame *frame, PyCodeObject *code);

/* Calls what a tail call asks for until something else is returned. Steals the reference. */
PyObject *follow_tail_calls(PyObject *result);
/* The code of the function that a tail call of this thread is about to call. */
extern _Thread_local PyObject *expected_code;

/* How many parameters a function of this code has, `*args` and `**kwargs` included. */
static inline int parameter_count(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) + !!(code->co_flags & CO_VARKEYWORDS);
}

/* The hook itself. */
PyObject *frame_hook(PyThreadState *thread, InterpreterFrame *frame, int throwing);

/* The thread's callback, borrowed: NULL for none, Py_False to look up only. */
PyObject *current_callback(void);
/* Before a thread's first region: 0, or -1 with an exception set. */
int region_prepare(void);
/* Sets the thread's callback (NULL: none) and returns the one before, for `leave_region`. */
PyObject *enter_region(PyObject *callback);
/* Sets it back. Steals the reference, keeps the current exception. */
void leave_region(PyObject *before);
/* The same for a moment: the hook stays in place, and does nothing. */
PyObject *hide_callback(void);
void show_callback(PyObject *callback);

#endif
