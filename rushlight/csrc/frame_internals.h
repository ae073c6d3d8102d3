/* The only file that reads CPython's frames: the differences between 3.11, 3.12 and 3.13 are settled here. */
#ifndef RUSHLIGHT_FRAME_INTERNALS_H
#define RUSHLIGHT_FRAME_INTERNALS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

typedef struct _PyInterpreterFrame InterpreterFrame;

static inline PyCodeObject *frame_code(InterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}

static inline PyFunctionObject *frame_function(InterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    return (PyFunctionObject *)frame->f_funcobj;
#else
    return frame->f_func;
#endif
}

/* Whether no instruction of the frame has run: false for resumed generators. */
static inline int frame_is_fresh(InterpreterFrame *frame)
{
    PyCodeObject *code = frame_code(frame);
#if PY_VERSION_HEX >= 0x030D0000
    return frame->instr_ptr == _PyCode_CODE(code);
#else
    return frame->prev_instr == _PyCode_CODE(code) - 1;
#endif
}

/* 3.12 limits the depth of calls in C far below that of calls in Python. The hook turns each Python call into one in C, so
   it checks the stack itself. */
static inline PyObject *frame_default(PyThreadState *thread, InterpreterFrame *frame, int throwing)
{
#if PY_VERSION_HEX >= 0x030C0000
    thread->c_recursion_remaining++;
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, throwing);
    thread->c_recursion_remaining--;
    return result;
#else
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
#endif
}

/* Discard a fresh frame that will not run. Since 3.12 the evaluator of a frame also clears it: throwing an exception into
   the frame makes the interpreter do so without debuggers noticing. Before 3.12 the caller clears it. Keeps the current
   exception, if any. */
static inline void frame_discard(PyThreadState *thread, InterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *pending = PyErr_GetRaisedException();
    PyErr_SetNone(PyExc_RuntimeError);
    PyThreadState_EnterTracing(thread);
    PyObject *nothing = _PyEval_EvalFrameDefault(thread, frame, 1);
    PyThreadState_LeaveTracing(thread);
    Py_XDECREF(nothing);
    PyErr_Clear();
    if (pending)
        PyErr_SetRaisedException(pending);
#else
    (void)thread;
    (void)frame;
#endif
}

static inline Py_ssize_t request_code_slot_with(freefunc release)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Eval_RequestCodeExtraIndex(release);
#else
    return _PyEval_RequestCodeExtraIndex(release);
#endif
}

static inline int get_code_slot(PyCodeObject *code, Py_ssize_t slot, void **value)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Code_GetExtra((PyObject *)code, slot, value);
#else
    return _PyCode_GetExtra((PyObject *)code, slot, value);
#endif
}

static inline int set_code_slot(PyCodeObject *code, Py_ssize_t slot, void *value)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Code_SetExtra((PyObject *)code, slot, value);
#else
    return _PyCode_SetExtra((PyObject *)code, slot, value);
#endif
}

#endif
