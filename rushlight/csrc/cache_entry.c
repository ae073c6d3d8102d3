/* The frame hook's data about a code object: cache entries, each with a guard and a code object that may run in its place. */
#include "frame_hook.h"

static Py_ssize_t slot_index = -1;

static void slot_free(void *pointer)
{
    CodeSlot *slot = pointer;
    if (!slot) /* CPython also frees slots that another extension filled */
        return;
    Py_XDECREF(slot->entries);
    Py_XDECREF(slot->frame_state);
    PyMem_Free(slot);
}

int slots_initialize(void)
{
    if (slot_index < 0)
        slot_index = request_code_slot_with(slot_free);
    if (slot_index >= 0)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "no extra slot of code objects is free");
    return -1;
}

CodeSlot *slot_of(PyCodeObject *code)
{
    void *found = NULL;
    return get_code_slot(code, slot_index, &found) < 0 ? NULL : found;
}

CodeSlot *slot_make(PyCodeObject *code)
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

/* Entries */

static int entry_traverse(CacheEntry *self, visitproc visit, void *arg)
{
    Py_VISIT(self->check_fn);
    Py_VISIT(self->code);
    Py_VISIT(self->function);
    Py_VISIT(self->data);
    Py_VISIT(self->owner);
    Py_VISIT(self->list);
    return 0;
}

static int entry_clear(CacheEntry *self)
{
    Py_CLEAR(self->check_fn);
    Py_CLEAR(self->code);
    Py_CLEAR(self->function);
    Py_CLEAR(self->data);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->list);
    return 0;
}

static void entry_dealloc(CacheEntry *self)
{
    PyObject_GC_UnTrack(self);
    entry_clear(self);
    PyObject_GC_Del(self);
}

static PyObject *field_or_none(PyObject *field) { return Py_NewRef(field ? field : Py_None); }
static PyObject *entry_check_fn(CacheEntry *self, void *Py_UNUSED(closure)) { return field_or_none(self->check_fn); }
static PyObject *entry_code(CacheEntry *self, void *Py_UNUSED(closure)) { return field_or_none(self->code); }
static PyObject *entry_data(CacheEntry *self, void *Py_UNUSED(closure)) { return field_or_none(self->data); }
static PyObject *entry_owner(CacheEntry *self, void *Py_UNUSED(closure)) { return field_or_none(self->owner); }

static PyObject *entry_next(CacheEntry *self, void *Py_UNUSED(closure))
{
    for (Py_ssize_t i = 0; self->list && i + 1 < PyList_GET_SIZE(self->list); i++)
        if (PyList_GET_ITEM(self->list, i) == (PyObject *)self)
            return Py_NewRef(PyList_GET_ITEM(self->list, i + 1));
    Py_RETURN_NONE;
}

static PyGetSetDef entry_attributes[] = {
    {"check_fn", (getter)entry_check_fn, NULL, "Called with the frame's parameters, globals and closure; true where the code may run.", NULL},
    {"code", (getter)entry_code, NULL, "The code that runs in the place of the function's own.", NULL},
    {"guarded_code", (getter)entry_data, NULL, "What the callback returned.", NULL},
    {"owner", (getter)entry_owner, NULL, "The callback.", NULL},
    {"next", (getter)entry_next, NULL, "The entry that was made before this one and is tried after it, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject CacheEntry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.CacheEntry",
    .tp_doc = "One way to run a function: a guard and a code object.",
    .tp_basicsize = sizeof(CacheEntry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_getset = entry_attributes,
};

/* Whether `code` can be called like `original`. Otherwise it must take all parameters by position, and two more. */
static int is_alike(PyCodeObject *code, PyCodeObject *original)
{
    enum { KINDS = CO_VARARGS | CO_VARKEYWORDS };
    return code->co_argcount == original->co_argcount && code->co_kwonlyargcount == original->co_kwonlyargcount &&
           (code->co_flags & KINDS) == (original->co_flags & KINDS) && code->co_nfreevars == original->co_nfreevars;
}

/* Whether `code` takes the values of frame_values(): the parameters of `original`, its globals and its cells. */
static int can_take_values(PyCodeObject *code, PyCodeObject *original)
{
    return code->co_argcount == parameter_count(original) + 2 && !code->co_kwonlyargcount && !code->co_nfreevars &&
           !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS));
}

/* The globals for a callback's code: those it gave, or those of the called function if it gave None. A new reference. */
static PyObject *globals_of(PyObject *guarded, PyObject *view)
{
    PyObject *globals = PyObject_GetAttrString(guarded, "globals");
    if (globals != Py_None)
        return globals;
    Py_DECREF(globals);
    return PyObject_GetAttrString(view, "f_globals");
}

/* Fill an entry from a callback's result; -1 with an exception set. */
static int entry_fill(CacheEntry *entry, PyObject *guarded, PyCodeObject *original, PyObject *view)
{
    entry->check_fn = PyObject_GetAttrString(guarded, "check_fn");
    entry->code = entry->check_fn ? PyObject_GetAttrString(guarded, "code") : NULL;
    PyObject *globals = entry->code ? globals_of(guarded, view) : NULL;
    if (globals && PyCode_Check(entry->code) && PyCallable_Check(entry->check_fn) && PyDict_Check(globals))
        entry->function = PyFunction_New(entry->code, globals);
    else if (globals)
        PyErr_SetString(PyExc_TypeError, "the frame callback must return None, False or an object with `code`, a code object, "
                                         "`globals`, a dict or None, and `check_fn`, a callable");
    Py_XDECREF(globals);
    if (entry->function) {
        PyCodeObject *code = (PyCodeObject *)entry->code;
        entry->is_alike = is_alike(code, original);
        if (!entry->is_alike && !can_take_values(code, original)) {
            PyErr_Format(PyExc_TypeError, "the code for %U must take its parameters, or all of them by position with the globals "
                         "and the closure behind", original->co_qualname);
            return -1;
        }
    }
    CodeSlot *own = entry->function ? slot_make((PyCodeObject *)entry->code) : NULL;
    if (own)
        own->state = RUN_DIRECTLY;
    return own ? 0 : -1;
}

CacheEntry *entry_new(PyObject *guarded, PyCodeObject *original, PyObject *view, PyObject *owner)
{
    CacheEntry *entry = PyObject_GC_New(CacheEntry, &CacheEntry_Type);
    if (!entry)
        return NULL;
    entry->check_fn = entry->code = entry->function = entry->list = NULL;
    entry->is_alike = 0;
    entry->data = Py_NewRef(guarded);
    entry->owner = Py_NewRef(owner);
    PyObject_GC_Track(entry);
    if (guarded != Py_False && entry_fill(entry, guarded, original, view) < 0)
        Py_CLEAR(entry);
    return entry;
}

int entry_insert(CodeSlot *slot, CacheEntry *entry)
{
    if (PyList_Insert(slot->entries, 0, (PyObject *)entry) < 0)
        return -1;
    Py_XSETREF(entry->list, Py_NewRef(slot->entries));
    return 0;
}

static void forget_list(PyObject *entry) { Py_CLEAR(((CacheEntry *)entry)->list); }

void entries_clear(CodeSlot *slot)
{
    PyObject *entries = slot->entries, *none = PyList_New(0);
    if (!none)
        return;
    slot->entries = none;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); i++)
        forget_list(PyList_GET_ITEM(entries, i));
    Py_DECREF(entries);
    Py_CLEAR(slot->frame_state);
}

/* The module's functions */

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
    if (slot->state != RUN_DIRECTLY)
        slot->state = ASK;
    entries_clear(slot);
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
    if (!PyArg_ParseTuple(args, "OO!", &code, &CacheEntry_Type, &entry))
        return NULL;
    CodeSlot *slot = slot_argument(code, "remove_entry");
    if (!slot)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slot->entries); i++)
        if (PyList_GET_ITEM(slot->entries, i) == entry) {
            forget_list(entry);
            return PySequence_DelItem(slot->entries, i) < 0 ? NULL : Py_NewRef(Py_True);
        }
    Py_RETURN_FALSE;
}

PyMethodDef cache_entry_methods[] = {
    {"skip_code", skip_code, METH_VARARGS,
     "skip_code(code, recursively=False, /)\n\nNever ask the callback about this code again; with `recursively`, nor about\n"
     "what it calls."},
    {"reset_code", reset_code, METH_O, "reset_code(code, /)\n\nForget everything that the hook knows of a code object."},
    {"cache_entries", cache_entries, METH_O, "cache_entries(code, /) -> list[CacheEntry]\n\nThe latest first."},
    {"remove_entry", remove_entry, METH_VARARGS,
     "remove_entry(code, entry, /) -> bool\n\nForget one entry; whether it was there."},
    {NULL, NULL, 0, NULL},
};
