/* AttributeChecks: guards that dict entries have not changed, for native code that reads module attributes ahead of time.

   An entry is compared by identity; numbers and strings may also be equal and of the same type. */
#include "module.h"

#include "guards.h"

typedef struct {
    PyObject *dict, *key, *value;
} Entry;

typedef struct {
    PyObject_VAR_HEAD
    Entry entries[];
} AttributeChecks;

static int checks_clear(AttributeChecks *self)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_CLEAR(self->entries[i].dict);
        Py_CLEAR(self->entries[i].key);
        Py_CLEAR(self->entries[i].value);
    }
    return 0;
}

static int checks_traverse(AttributeChecks *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_VISIT(self->entries[i].dict);
        Py_VISIT(self->entries[i].key);
        Py_VISIT(self->entries[i].value);
    }
    return 0;
}

static void checks_dealloc(AttributeChecks *self)
{
    PyObject_GC_UnTrack(self);
    checks_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *checks_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *rows;
    if (!PyArg_ParseTuple(args, "O!:AttributeChecks", &PyList_Type, &rows))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(rows);
    AttributeChecks *self = (AttributeChecks *)type->tp_alloc(type, count);
    if (!self)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *dict, *key, *value;
        PyObject *row = i < PyList_GET_SIZE(rows) ? PyList_GET_ITEM(rows, i) : NULL;
        if (!row || !PyTuple_Check(row) || !PyArg_ParseTuple(row, "O!UO:AttributeChecks", &PyDict_Type, &dict, &key, &value)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "AttributeChecks: expected tuples of a dict, a name and a value");
            Py_DECREF(self);
            return NULL;
        }
        self->entries[i] = (Entry){Py_NewRef(dict), Py_NewRef(key), Py_NewRef(value)};
    }
    return (PyObject *)self;
}

/* Return whether every entry is unchanged. */
static PyObject *checks_hold(AttributeChecks *self, PyObject *Py_UNUSED(ignored))
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        const Entry *entry = &self->entries[i];
        PyObject *found = PyDict_GetItemWithError(entry->dict, entry->key);
        if (found == entry->value)
            continue;
        if (!found)
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
        Py_INCREF(found);
        int same = is_plain(entry->value) ? same_value(found, entry->value) : 0;
        Py_DECREF(found);
        if (same < 0)
            return NULL;
        if (!same)
            return Py_NewRef(Py_False);
    }
    return Py_NewRef(Py_True);
}

static PyMethodDef methods[] = {
    {"hold", (PyCFunction)checks_hold, METH_NOARGS, "Whether every entry is what it was."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject AttributeChecks_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.AttributeChecks",
    .tp_doc = "AttributeChecks([(dict, name, value), ...]): whether entries of dicts stay what they were.",
    .tp_basicsize = sizeof(AttributeChecks),
    .tp_itemsize = sizeof(Entry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = checks_new,
    .tp_dealloc = (destructor)checks_dealloc,
    .tp_traverse = (traverseproc)checks_traverse,
    .tp_clear = (inquiry)checks_clear,
    .tp_methods = methods,
};
