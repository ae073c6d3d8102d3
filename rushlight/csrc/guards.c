/* Guards on what modules hold: many small checks of instance attributes in one call.

   In: a list of (owner, group, name, kind, expected). `owner` is an object with a __dict__, `group` None or the name of a dict in
   it. Out: a callable without arguments that tells whether all checks hold. Everything is owned. */
#include "tensor_impl.h"

#include <stddef.h>
#include <string.h>

enum Kind { SAME, EQUAL, EMPTY, MISSING, TENSOR, KINDS };

typedef struct {
    PyObject *owner, *group, *name, *expected; /* group: NULL for the instance's own dict */
    PyObject *sizes, *strides, *dtype;         /* of a tensor */
    int kind, requires_grad;
} Check;

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc call;
    Check checks[];
} AttributeChecks;

static int same_value(PyObject *found, PyObject *expected)
{
    if (found == expected)
        return 1;
    if (!Py_IS_TYPE(found, Py_TYPE(expected)))
        return 0;
    if (!PyFloat_CheckExact(expected))
        return PyObject_RichCompareBool(found, expected, Py_EQ);
    double one = PyFloat_AS_DOUBLE(found), other = PyFloat_AS_DOUBLE(expected);
    return memcmp(&one, &other, sizeof one) == 0; /* tells -0.0 from 0.0, and a NaN is equal to itself */
}

static int same_tensor(PyObject *found, const Check *check)
{
    TensorImpl *impl = found == check->expected ? impl_of(found) : NULL;
    if (!impl || impl->dtype != check->dtype || requires_grad(impl) != check->requires_grad)
        return 0;
    int same = impl->sizes == check->sizes ? 1 : PyObject_RichCompareBool(impl->sizes, check->sizes, Py_EQ);
    if (same <= 0 || impl->strides == check->strides)
        return same;
    return PyObject_RichCompareBool(impl->strides, check->strides, Py_EQ);
}

static int holds(const Check *check, PyObject *dict)
{
    PyObject *found = PyDict_GetItemWithError(dict, check->name);
    if (!found)
        return PyErr_Occurred() ? -1 : check->kind == MISSING;
    int answer = 0;
    Py_INCREF(found);
    if (check->kind == SAME)
        answer = found == check->expected;
    else if (check->kind == EQUAL)
        answer = same_value(found, check->expected);
    else if (check->kind == EMPTY)
        answer = PyObject_Not(found);
    else if (check->kind == TENSOR)
        answer = same_tensor(found, check);
    Py_DECREF(found);
    return answer;
}

/* The dict that a check looks into, as a new reference; NULL where it is gone, with or without an exception set. */
static PyObject *dict_of(const Check *check)
{
    PyObject *dict = PyObject_GenericGetDict(check->owner, NULL);
    if (!dict || !check->group)
        return dict;
    PyObject *group = PyDict_GetItemWithError(dict, check->group);
    group = group && PyDict_Check(group) ? Py_NewRef(group) : NULL;
    Py_DECREF(dict);
    return group;
}

static PyObject *checks_call(PyObject *object, PyObject *const *Py_UNUSED(args), size_t count, PyObject *names)
{
    AttributeChecks *self = (AttributeChecks *)object;
    if (PyVectorcall_NARGS(count) || (names && PyTuple_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "attribute checks take no arguments");
        return NULL;
    }
    PyObject *dict = NULL;
    int answer = 1;
    for (Py_ssize_t i = 0; i < Py_SIZE(self) && answer > 0; i++) {
        const Check *check = &self->checks[i];
        if (!i || check->owner != check[-1].owner || check->group != check[-1].group) {
            Py_XDECREF(dict);
            dict = dict_of(check);
        }
        answer = dict ? holds(check, dict) : PyErr_Occurred() ? -1 : 0;
    }
    Py_XDECREF(dict);
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}

static int checks_traverse(AttributeChecks *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Py_VISIT(self->checks[i].owner);
        Py_VISIT(self->checks[i].expected);
    }
    return 0;
}

static int checks_clear(AttributeChecks *self)
{
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) {
        Check *check = &self->checks[i];
        Py_CLEAR(check->owner);
        Py_CLEAR(check->group);
        Py_CLEAR(check->name);
        Py_CLEAR(check->expected);
        Py_CLEAR(check->sizes);
        Py_CLEAR(check->strides);
        Py_CLEAR(check->dtype);
    }
    Py_SET_SIZE(self, 0);
    return 0;
}

static void checks_dealloc(AttributeChecks *self)
{
    PyObject_GC_UnTrack(self);
    checks_clear(self);
    PyObject_GC_Del(self);
}

static int check_set(Check *check, PyObject *item)
{
    PyObject *owner, *group, *name, *expected;
    int kind;
    if (!PyArg_ParseTuple(item, "OOUiO", &owner, &group, &name, &kind, &expected))
        return -1;
    if (kind < 0 || kind >= KINDS || (group != Py_None && !PyUnicode_Check(group))) {
        PyErr_SetString(PyExc_ValueError, "a check is (owner, group or None, name, kind, expected)");
        return -1;
    }
    TensorImpl *impl = kind == TENSOR ? impl_of(expected) : NULL;
    if (kind == TENSOR && !impl) {
        PyErr_Format(PyExc_TypeError, "expected a tensor, got %.100s", Py_TYPE(expected)->tp_name);
        return -1;
    }
    PyObject *interned = Py_NewRef(name), *interned_group = group == Py_None ? NULL : Py_NewRef(group);
    PyUnicode_InternInPlace(&interned);
    if (interned_group)
        PyUnicode_InternInPlace(&interned_group);
    *check = (Check){.owner = Py_NewRef(owner), .group = interned_group, .name = interned, .expected = Py_NewRef(expected),
                     .kind = kind};
    if (impl) {
        check->sizes = Py_NewRef(impl->sizes);
        check->strides = Py_NewRef(impl->strides);
        check->dtype = Py_NewRef(impl->dtype);
        check->requires_grad = requires_grad(impl);
    }
    return 0;
}

static PyObject *checks_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    PyObject *list;
    if (!PyArg_ParseTuple(args, "O!:AttributeChecks", &PyList_Type, &list))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(list);
    AttributeChecks *self = PyObject_GC_NewVar(AttributeChecks, type, count);
    if (!self)
        return NULL;
    memset(self->checks, 0, (size_t)count * sizeof(Check));
    self->call = checks_call;
    int failed = 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++)
        failed = i >= PyList_GET_SIZE(list) || check_set(&self->checks[i], PyList_GET_ITEM(list, i)) < 0;
    PyObject_GC_Track(self);
    if (failed)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyTypeObject AttributeChecks_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.AttributeChecks",
    .tp_doc = "AttributeChecks(checks, /)\n\nOf tuples (owner, group, name, kind, expected); called, it tells whether all hold.\n"
              "Kinds: 0 the same object, 1 an equal one of the same type, 2 an empty one, 3 none of that name, 4 the same tensor with\n"
              "the sizes, strides, dtype and requires_grad that it has now.",
    .tp_basicsize = sizeof(AttributeChecks),
    .tp_itemsize = sizeof(Check),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(AttributeChecks, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = checks_new,
    .tp_dealloc = (destructor)checks_dealloc,
    .tp_traverse = (traverseproc)checks_traverse,
    .tp_clear = (inquiry)checks_clear,
};
