/* BinaryMethod: the type of `Tensor.__add__` and the other binary methods. If the other operand is a tensor or a Python
   number it calls the operator; otherwise it calls a Python function, which knows about NumPy. */
#include "tensor_impl.h"

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *op, *otherwise; /* owned */
    PyObject *name;
} BinaryMethod;

/* Whether the operator may be called directly: subclasses may override it. */
static int is_plain_tensor(PyObject *object) { return (PyObject *)Py_TYPE(object) == configuration.tensor_type; }

static PyObject *method_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    BinaryMethod *method = (BinaryMethod *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (names && PyTuple_GET_SIZE(names))
        return PyErr_Format(PyExc_TypeError, "%U() takes no keyword arguments", method->name);
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "%U() takes 2 arguments, got %zd", method->name, count);
    PyObject *other = arguments[1];
    int is_operand = is_plain_tensor(other) || PyFloat_CheckExact(other) || PyLong_CheckExact(other) || PyBool_Check(other);
    const ThreadRecord *record = thread_record();
    if (!record)
        return NULL;
    int asks = record->asks_function_modes || !is_operand || !is_plain_tensor(arguments[0]);
    PyObject *target = asks ? method->otherwise : method->op;
    if (!target) /* a cycle through this method is being collected */
        return PyErr_Format(PyExc_RuntimeError, "%U() is gone", method->name);
    return PyObject_Vectorcall(target, arguments, flags, NULL);
}

static PyObject *method_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static int method_traverse(BinaryMethod *self, visitproc visit, void *arg)
{
    Py_VISIT(self->op);
    Py_VISIT(self->otherwise);
    return 0;
}

static int method_clear(BinaryMethod *self)
{
    Py_CLEAR(self->op);
    Py_CLEAR(self->otherwise);
    return 0;
}

static void method_dealloc(BinaryMethod *self)
{
    PyObject_GC_UnTrack(self);
    method_clear(self);
    Py_XDECREF(self->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *method_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"name", "op", "otherwise", NULL};
    PyObject *name, *op, *otherwise;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "UOO:BinaryMethod", names, &name, &op, &otherwise))
        return NULL;
    BinaryMethod *self = (BinaryMethod *)type->tp_alloc(type, 0);
    if (self) {
        self->vectorcall = method_call;
        self->name = Py_NewRef(name);
        self->op = Py_NewRef(op);
        self->otherwise = Py_NewRef(otherwise);
    }
    return (PyObject *)self;
}

/* Pickled and copied by name. */
static PyObject *method_reduce(BinaryMethod *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *getter = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    return getter ? Py_BuildValue("O(OO)", getter, configuration.tensor_type, self->name) : NULL;
}

static PyMethodDef methods[] = {
    {"__reduce__", (PyCFunction)method_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nHow copies are made: by name."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__name__", T_OBJECT_EX, offsetof(BinaryMethod, name), READONLY, NULL},
    {"__qualname__", T_OBJECT_EX, offsetof(BinaryMethod, name), READONLY, NULL},
    {"op", T_OBJECT_EX, offsetof(BinaryMethod, op), READONLY, "The operator that is called."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject BinaryMethod_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.BinaryMethod",
    .tp_basicsize = sizeof(BinaryMethod),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "BinaryMethod(name, op, otherwise)\n--\n\n"
              "A method of two operands: `op` where the other one is a tensor or a Python number, else `otherwise`.",
    .tp_new = method_new,
    .tp_dealloc = (destructor)method_dealloc,
    .tp_traverse = (traverseproc)method_traverse,
    .tp_clear = (inquiry)method_clear,
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = method_get,
    .tp_vectorcall_offset = offsetof(BinaryMethod, vectorcall),
    .tp_members = members,
    .tp_methods = methods,
};
