/* OperatorBase and PacketBase: how a call of an operator finds its kernel. See rushlight.ops.dispatcher and packet.

   A call's arguments determine a key set, and the key set a chain of kernels, which is called. Python fills the tables; this
   file looks them up. */
#include "gpu_thread.h"
#include "tensor_impl.h"

#include <stddef.h>
#include <structmember.h>

enum { CACHED_CHAINS = 4 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *chains; /* owned dict: key set -> callable */
    /* The chains used last, as owned references: a cache over `chains`. */
    unsigned long cached_keys[CACHED_CHAINS];
    PyObject *cached[CACHED_CHAINS];
    int next_cached;
    char takes_lists;   /* some argument is a list of tensors */
    char names_device;  /* some argument is a device, which takes_part_in_dispatch where no tensor does */
    Py_ssize_t device_position; /* its position in the schema */
    /* The device argument of the last call that named one, owned, and its backend; valid while no driver is chosen anew. */
    PyObject *last_device;
    unsigned long last_backend;
    uint64_t last_generation;
} OperatorBase;

/* Whether a value that is not a tensor takes part in dispatch by its type, as a traced proxy does. */
static int takes_part_in_dispatch(PyObject *value)
{
    static PyObject *name = NULL;
    if (value == Py_None || PyLong_Check(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value))
        return 0;
    if (!name && !(name = PyUnicode_InternFromString("__torch_function__"))) {
        PyErr_Clear();
        return 0;
    }
    return !PyType_Check(value) && _PyType_Lookup(Py_TYPE(value), name) != NULL;
}

static unsigned long keys_in_sequence(PyObject *sequence, int *asks)
{
    unsigned long keys = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(sequence, i);
        const TensorImpl *impl = impl_of(item);
        keys |= impl ? impl->key_set : 0;
        *asks |= !impl && takes_part_in_dispatch(item);
    }
    return keys;
}

/* Return the union of the arguments' key sets. Set `asks` if the type of a non-tensor argument takes part in dispatch. */
static unsigned long keys_of(const OperatorBase *self, PyObject *const *arguments, Py_ssize_t count, int *asks)
{
    unsigned long keys = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const TensorImpl *impl = impl_of(arguments[i]);
        if (impl)
            keys |= impl->key_set;
        else if (!PyList_Check(arguments[i]) && !PyTuple_Check(arguments[i]))
            *asks |= takes_part_in_dispatch(arguments[i]);
        else if (self->takes_lists)
            keys |= keys_in_sequence(arguments[i], asks);
    }
    return keys;
}

/* Return the device among the keyword arguments, borrowed: None if there is none, NULL if it may be positional. */
static PyObject *device_argument(const OperatorBase *op, PyObject *const *arguments, Py_ssize_t positional, PyObject *names)
{
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "device") == 0)
            return arguments[positional + i];
    return positional <= op->device_position ? Py_None : NULL;
}

/* Call a method of `self` that takes a call's arguments as a tuple and a dict. */
static PyObject *call_with_packed(PyObject *self, const char *method, PyObject *const *arguments, Py_ssize_t positional,
                                  PyObject *names)
{
    PyObject *tuple = PyTuple_New(positional), *keywords = PyDict_New(), *result = NULL;
    for (Py_ssize_t i = 0; tuple && i < positional; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(arguments[i]));
    int failed = !tuple || !keywords;
    for (Py_ssize_t i = 0; !failed && names && i < PyTuple_GET_SIZE(names); i++)
        failed = PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), arguments[positional + i]) < 0;
    if (!failed)
        result = PyObject_CallMethod(self, method, "OO", tuple, keywords);
    Py_XDECREF(tuple);
    Py_XDECREF(keywords);
    return result;
}

/* Keep the backend of a device for the next calls. Devices and strings do not change. */
static void keep_device(OperatorBase *op, PyObject *device, unsigned long backend)
{
    op->last_backend = backend;
    op->last_generation = gpu_plan_generation;
    Py_XSETREF(op->last_device, Py_NewRef(device));
}

/* Add the backend key of the device argument, or of the default device if no argument is a tensor. Return -1 with an exception
   set. */
static int add_factory_backend(PyObject *self, PyObject *const *arguments, Py_ssize_t positional, PyObject *names,
                               unsigned long *keys)
{
    OperatorBase *op = (OperatorBase *)self;
    PyObject *device = op->names_device ? device_argument(op, arguments, positional, names) : Py_None;
    if (device == Py_None || device == configuration.cpu) {
        *keys |= *keys & BACKEND_BITS ? 0 : CPU_BIT;
        return 0;
    }
    if (device && device == op->last_device && op->last_generation == gpu_plan_generation) {
        *keys |= op->last_backend;
        return 0;
    }
    PyObject *bits = call_with_packed(self, "_factory_keys", arguments, positional, names);
    if (!bits)
        return -1;
    unsigned long backend = PyLong_AsUnsignedLong(bits);
    Py_DECREF(bits);
    if (PyErr_Occurred())
        return -1;
    *keys |= backend;
    if (backend & CUDA_BIT && device)
        keep_device(op, device, backend);
    return 0;
}

static void forget_cached(OperatorBase *self)
{
    for (int i = 0; i < CACHED_CHAINS; i++)
        Py_CLEAR(self->cached[i]);
}

/* Return a new reference to the chain of a key set; NULL with an exception set if there is none. */
static PyObject *chain_of(OperatorBase *self, unsigned long keys)
{
    for (int i = 0; i < CACHED_CHAINS; i++)
        if (self->cached[i] && self->cached_keys[i] == keys)
            return Py_NewRef(self->cached[i]);
    PyObject *mask = PyLong_FromUnsignedLong(keys);
    PyObject *chains = Py_XNewRef(self->chains);
    PyObject *chain = mask && chains ? Py_XNewRef(PyDict_GetItemWithError(chains, mask)) : NULL;
    if (mask && !chain && !PyErr_Occurred())
        chain = PyObject_CallMethod((PyObject *)self, "resolve", "O", mask);
    else if (chain && chains == self->chains) { /* `chains` was not replaced meanwhile; replacing it clears this cache entry */
        int place = self->next_cached;
        self->next_cached = (place + 1) % CACHED_CHAINS;
        self->cached_keys[place] = keys;
        Py_XSETREF(self->cached[place], Py_NewRef(chain));
    }
    Py_XDECREF(chains);
    Py_XDECREF(mask);
    return chain;
}

static PyObject *operator_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Py_ssize_t positional = PyVectorcall_NARGS(flags), named = names ? PyTuple_GET_SIZE(names) : 0;
    OperatorBase *op = (OperatorBase *)self;
    const ThreadRecord *record = thread_record();
    if (!record)
        return NULL;
    int asks = 0;
    unsigned long keys = keys_of(op, arguments, positional + named, &asks);
    if (asks)
        return call_with_packed(self, "_ask_types", arguments, positional, names);
    if ((!(keys & BACKEND_BITS) || (named && op->names_device)) &&
        add_factory_backend(self, arguments, positional, names, &keys) < 0)
        return NULL;
    PyObject *chain = chain_of(op, (keys | record->include) & ~record->exclude);
    if (!chain)
        return NULL;
    PyObject *result = PyObject_Vectorcall(chain, arguments, flags, names);
    Py_DECREF(chain);
    return result;
}

static int operator_traverse(OperatorBase *self, visitproc visit, void *arg)
{
    Py_VISIT(self->chains);
    for (int i = 0; i < CACHED_CHAINS; i++)
        Py_VISIT(self->cached[i]);
    return 0;
}

static int operator_clear(OperatorBase *self)
{
    Py_CLEAR(self->chains);
    Py_CLEAR(self->last_device);
    forget_cached(self);
    return 0;
}

static void operator_dealloc(OperatorBase *self)
{
    PyObject_GC_UnTrack(self);
    operator_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *operator_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    OperatorBase *self = (OperatorBase *)type->tp_alloc(type, 0);
    if (self)
        self->vectorcall = operator_call;
    return (PyObject *)self;
}

static PyObject *get_chains(OperatorBase *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->chains ? self->chains : Py_None);
}

static int set_chains(OperatorBase *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value || !PyDict_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "_chains must be a dict");
        return -1;
    }
    Py_XSETREF(self->chains, Py_NewRef(value));
    forget_cached(self);
    return 0;
}

static PyGetSetDef operator_getset[] = {
    {"_chains", (getter)get_chains, (setter)set_chains, "The callable of each key set that was resolved.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef operator_members[] = {
    {"_takes_lists", T_BOOL, offsetof(OperatorBase, takes_lists), 0, "Whether some argument is a list of tensors."},
    {"_names_device", T_BOOL, offsetof(OperatorBase, names_device), 0, "Whether some argument is a device."},
    {"_device_position", T_PYSSIZET, offsetof(OperatorBase, device_position), 0, "The position of that argument."},
    {NULL, 0, 0, 0, NULL},
};

/* Before Python 3.12 a class does not inherit the vectorcall flag, though it inherits the slot. */
static PyObject *inherit_vectorcall(PyTypeObject *type, PyObject *Py_UNUSED(ignored))
{
    if (type->tp_call == PyVectorcall_Call && type->tp_vectorcall_offset > 0) {
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(type);
    }
    Py_RETURN_NONE;
}

static PyMethodDef class_methods[] = {
    {"__init_subclass__", (PyCFunction)inherit_vectorcall, METH_NOARGS | METH_CLASS, "Calls of the subclass take the short way."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject OperatorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.OperatorBase",
    .tp_basicsize = sizeof(OperatorBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A callable that chooses among `_chains` by the key sets of its arguments and the state of the thread.",
    .tp_new = operator_new,
    .tp_dealloc = (destructor)operator_dealloc,
    .tp_traverse = (traverseproc)operator_traverse,
    .tp_clear = (inquiry)operator_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(OperatorBase, vectorcall),
    .tp_getset = operator_getset,
    .tp_members = operator_members,
    .tp_methods = class_methods,
};

/* PacketBase: caches the overload that positional arguments of given types resolved to. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *resolved; /* owned dict: what types_of_call returns -> overload */
} PacketBase;

/* Call the Python method that chooses the overload from all arguments. */
static PyObject *resolve_and_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    PyObject *method = PyObject_GetAttrString(self, "_call_resolving");
    PyObject *result = method ? PyObject_Vectorcall(method, arguments, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names) : NULL;
    Py_XDECREF(method);
    return result;
}

/* Return the key for a list or tuple argument: a tuple of its elements' single type. NULL, without an exception, if they have
   several types. */
static PyObject *types_of_elements(PyObject *sequence)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    PyObject **items = PySequence_Fast_ITEMS(sequence);
    for (Py_ssize_t i = 1; i < count; i++)
        if (Py_TYPE(items[i]) != Py_TYPE(items[0]))
            return NULL;
    return count ? PyTuple_Pack(1, (PyObject *)Py_TYPE(items[0])) : PyTuple_New(0);
}

/* Return the key into `_resolved`. NULL, without an exception, if argument types are not enough to choose an overload. */
static PyObject *types_of(PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *types = PyTuple_New(count);
    for (Py_ssize_t i = 0; types && i < count; i++) {
        PyObject *value = arguments[i];
        PyObject *type = PyTuple_Check(value) || PyList_Check(value) ? types_of_elements(value)
                                                                     : Py_NewRef((PyObject *)Py_TYPE(value));
        if (!type) {
            Py_DECREF(types);
            return NULL;
        }
        PyTuple_SET_ITEM(types, i, type);
    }
    return types;
}

static PyObject *argument_types(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    if (!PyTuple_Check(arguments))
        return PyErr_Format(PyExc_TypeError, "argument_types: expected a tuple, got %.200s", Py_TYPE(arguments)->tp_name);
    PyObject *types = types_of(PySequence_Fast_ITEMS(arguments), PyTuple_GET_SIZE(arguments));
    return types || PyErr_Occurred() ? types : Py_NewRef(Py_None);
}

PyMethodDef dispatch_methods[] = {
    {"argument_types", argument_types, METH_O,
     "argument_types(arguments: tuple, /) -> tuple | None\n\nThe types of arguments, with lists and tuples as (type of all elements,);\n"
     "None where one of these has elements of several types."},
    {NULL, NULL, 0, NULL},
};

/* Return the key for a call: the types of its arguments, or with keyword arguments the types of the others, their names and
   their types. */
static PyObject *types_of_call(PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *types = types_of(arguments, count);
    if (!types || !names || !PyTuple_GET_SIZE(names))
        return types;
    PyObject *named = types_of(arguments + count, PyTuple_GET_SIZE(names));
    PyObject *key = named ? PyTuple_Pack(3, types, names, named) : NULL;
    Py_DECREF(types);
    Py_XDECREF(named);
    return key;
}

static PyObject *packet_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    PyObject *resolved = ((PacketBase *)self)->resolved;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    const ThreadRecord *record = thread_record();
    if (!record)
        return NULL;
    if (!resolved || record->asks_function_modes)
        return resolve_and_call(self, arguments, flags, names);
    PyObject *types = types_of_call(arguments, count, names);
    if (!types)
        return PyErr_Occurred() ? NULL : resolve_and_call(self, arguments, flags, names);
    PyObject *op = Py_XNewRef(PyDict_GetItemWithError(resolved, types));
    Py_DECREF(types);
    if (!op)
        return PyErr_Occurred() ? NULL : resolve_and_call(self, arguments, flags, names);
    PyObject *result = PyObject_Vectorcall(op, arguments, flags, names);
    Py_DECREF(op);
    return result;
}

static int packet_traverse(PacketBase *self, visitproc visit, void *arg)
{
    Py_VISIT(self->resolved);
    return 0;
}

static int packet_clear(PacketBase *self)
{
    Py_CLEAR(self->resolved);
    return 0;
}

static void packet_dealloc(PacketBase *self)
{
    PyObject_GC_UnTrack(self);
    packet_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *packet_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    PacketBase *self = (PacketBase *)type->tp_alloc(type, 0);
    if (self)
        self->vectorcall = packet_call;
    return (PyObject *)self;
}

static PyObject *get_resolved(PacketBase *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->resolved ? self->resolved : Py_None);
}

static int set_resolved(PacketBase *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value || !PyDict_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "_resolved must be a dict");
        return -1;
    }
    Py_XSETREF(self->resolved, Py_NewRef(value));
    return 0;
}

static PyGetSetDef packet_getset[] = {
    {"_resolved", (getter)get_resolved, (setter)set_resolved, "The overload for each tuple of argument types met so far.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject PacketBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.PacketBase",
    .tp_basicsize = sizeof(PacketBase),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "A callable that chooses among overloads: by `_resolved`, or else by `_call_resolving(*args, **kwargs)`.",
    .tp_new = packet_new,
    .tp_dealloc = (destructor)packet_dealloc,
    .tp_traverse = (traverseproc)packet_traverse,
    .tp_clear = (inquiry)packet_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(PacketBase, vectorcall),
    .tp_getset = packet_getset,
    .tp_methods = class_methods,
};
