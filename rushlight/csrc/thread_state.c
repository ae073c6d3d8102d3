/* ThreadState: the type of rushlight.core.thread_state.state. This single object gives each thread its own record. */
#include "thread_state.h"

#include "dispatch_keys.h"

_Thread_local ThreadRecord *current_thread_record;

static const char *const CAPSULE_NAME = "rushlight.thread_record";

/* Free a thread's record. The thread's dict owns it, so it ends with the thread. */
static void free_record(PyObject *capsule)
{
    ThreadRecord *record = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    if (current_thread_record == record)
        current_thread_record = NULL;
    Py_CLEAR(record->modes);
    Py_CLEAR(record->saved_tensor_hooks);
    PyMem_Free(record);
}

ThreadRecord *make_thread_record(void)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    ThreadRecord *record = PyMem_Calloc(1, sizeof *record);
    PyObject *capsule = record ? PyCapsule_New(record, CAPSULE_NAME, free_record) : NULL;
    if (!capsule) {
        PyMem_Free(record);
        PyErr_NoMemory();
        return NULL;
    }
    record->include = ADINPLACE_OR_VIEW_BIT;
    record->grad_enabled = 1;
    record->modes = PyList_New(0);
    record->saved_tensor_hooks = PyTuple_New(0);
    if (!dict || !record->modes || !record->saved_tensor_hooks || PyDict_SetItemString(dict, CAPSULE_NAME, capsule) < 0) {
        Py_DECREF(capsule);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return NULL;
    }
    Py_DECREF(capsule);
    return current_thread_record = record;
}

static int read_mask(PyObject *value, unsigned long *mask)
{
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "the state of a thread cannot be deleted");
        return -1;
    }
    unsigned long read = PyLong_AsUnsignedLong(value);
    if (read == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    *mask = read;
    return 0;
}

static PyObject *get_include(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? PyLong_FromUnsignedLong(record->include) : NULL;
}

static int set_include(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? read_mask(value, &record->include) : -1;
}

static PyObject *get_exclude(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? PyLong_FromUnsignedLong(record->exclude) : NULL;
}

static int set_exclude(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? read_mask(value, &record->exclude) : -1;
}

static int read_flag(PyObject *value, int *flag)
{
    if (!value) {
        PyErr_SetString(PyExc_AttributeError, "the state of a thread cannot be deleted");
        return -1;
    }
    int truth = PyObject_IsTrue(value);
    if (truth >= 0)
        *flag = truth;
    return truth < 0 ? -1 : 0;
}

static PyObject *get_grad_enabled(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? PyBool_FromLong(record->grad_enabled) : NULL;
}

static int set_grad_enabled(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? read_flag(value, &record->grad_enabled) : -1;
}

static PyObject *get_inference(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? PyBool_FromLong(record->inference) : NULL;
}

static int set_inference(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? read_flag(value, &record->inference) : -1;
}

static PyObject *get_makes_elsewhere(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? PyBool_FromLong(record->makes_elsewhere) : NULL;
}

static int set_makes_elsewhere(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? read_flag(value, &record->makes_elsewhere) : -1;
}

static PyObject *get_asks_function_modes(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? PyBool_FromLong(record->asks_function_modes) : NULL;
}

static int set_asks_function_modes(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? read_flag(value, &record->asks_function_modes) : -1;
}

static PyObject *get_modes(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? Py_NewRef(record->modes) : NULL;
}

static int set_modes(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    if (!record)
        return -1;
    if (!value || !PyList_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "modes must be a list");
        return -1;
    }
    Py_SETREF(record->modes, Py_NewRef(value));
    return 0;
}

static PyObject *get_hooks(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    return record ? Py_NewRef(record->saved_tensor_hooks) : NULL;
}

static int set_hooks(PyObject *Py_UNUSED(self), PyObject *value, void *Py_UNUSED(closure))
{
    ThreadRecord *record = thread_record();
    if (!record)
        return -1;
    if (!value || !PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "saved_tensor_hooks must be a tuple");
        return -1;
    }
    Py_SETREF(record->saved_tensor_hooks, Py_NewRef(value));
    return 0;
}

static PyGetSetDef getset[] = {
    {"include", get_include, set_include, "Mask of the keys that every dispatch of this thread adds.", NULL},
    {"exclude", get_exclude, set_exclude, "Mask of the keys that every dispatch of this thread hides.", NULL},
    {"grad_enabled", get_grad_enabled, set_grad_enabled, "Whether autograd records.", NULL},
    {"inference", get_inference, set_inference, "Whether inference mode is active.", NULL},
    {"makes_elsewhere", get_makes_elsewhere, set_makes_elsewhere, "Whether the default device is not the CPU.", NULL},
    {"asks_function_modes", get_asks_function_modes, set_asks_function_modes,
     "Whether calls of public functions go to a function mode first.", NULL},
    {"modes", get_modes, set_modes, "The stack of dispatch modes, innermost last.", NULL},
    {"saved_tensor_hooks", get_hooks, set_hooks, "The stack of hooks on saved tensors, innermost last.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* The type has no C fields of its own, so that Python can combine it with threading.local. */
PyTypeObject ThreadState_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ThreadState",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "A view of the state of the thread that looks: dispatch keys, grad mode, inference mode, modes.",
    .tp_getset = getset,
};
