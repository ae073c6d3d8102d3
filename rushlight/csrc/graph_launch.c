/* Calling a compiled graph in one step: inputs checked, outputs and arena taken from the allocator, the entry run, results
   wrapped. Whatever is not as it was compiled for is left to the general way, a Python callable. */
#include <stddef.h>
#include <string.h>

#include "allocator.h"
#include "frame_hook.h"
#include "prepared_constants.h"
#include "tensor_impl.h"

typedef int (*Entry)(void **);

/* What a tensor must be like. `reach` is the number of bytes from its first element to the end of its last. */
typedef struct {
    PyObject *sizes, *strides, *dtype;
    Py_ssize_t reach;
    int itemsize;
} Expected;

enum OutputKind { MADE, INPUT, CONSTANT };

/* A result: a view of memory made for it, an input as it is, or an object that is the same at every call. */
typedef struct {
    enum OutputKind kind;
    Py_ssize_t number; /* of the memory or the input */
    Py_ssize_t offset, numel;
    PyObject *sizes, *strides, *dtype, *object;
} Output;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Entry entry;
    Py_ssize_t input_count, made_count, output_count, arena_bytes, pointer_count;
    Expected *inputs;
    Py_ssize_t *made_bytes;
    Output *outputs;
    PyObject *general, *reference;
    Prepared *prepared; /* NULL until the first call has packed the constants */
    int is_long;        /* whether it runs for so long that other threads should have the interpreter meanwhile */
    int is_diverted;    /* whether every call goes the general way */
} GraphLaunch;

/* One call */

enum { ON_STACK = 64 };

typedef struct {
    void **pointers;
    PyObject **held; /* storages: of the inputs, then of what is made; owned */
    Py_ssize_t held_count;
    void *arena;
    size_t arena_capacity;
    void *few_pointers[ON_STACK];
    PyObject *few_held[ON_STACK];
} Call;

static int call_reserve(Call *call, Py_ssize_t pointers, Py_ssize_t held)
{
    call->held_count = 0;
    call->arena = NULL;
    call->pointers = pointers > ON_STACK ? PyMem_New(void *, pointers) : call->few_pointers;
    call->held = held > ON_STACK ? PyMem_New(PyObject *, held) : call->few_held;
    if (call->pointers && call->held)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static void call_release(Call *call)
{
    if (call->arena)
        allocator_free(call->arena, call->arena_capacity);
    for (Py_ssize_t i = 0; i < call->held_count; i++)
        Py_DECREF(call->held[i]);
    if (call->pointers != call->few_pointers)
        PyMem_Free(call->pointers);
    if (call->held != call->few_held)
        PyMem_Free(call->held);
}

/* Whether the inputs are as compiled for; their addresses. -1 with an exception set. */
static int take_inputs(const GraphLaunch *self, Call *call, PyObject *const *args)
{
    for (Py_ssize_t i = 0; i < self->input_count; i++) {
        TensorImpl *impl = impl_of(args[i]);
        const Expected *expected = &self->inputs[i];
        if (!impl || impl->fake || impl->key_set & SPECIAL_BITS || impl->dtype != expected->dtype || !Py_IS_TYPE(impl->storage, &StorageImpl_Type))
            return 0;
        const StorageImpl *storage = (StorageImpl *)impl->storage;
        if (storage->device != configuration.cpu || impl->storage_offset < 0 ||
            impl->storage_offset * expected->itemsize > storage->nbytes - expected->reach)
            return 0;
        int same = sizes_match(impl->sizes, expected->sizes);
        if (same > 0)
            same = sizes_match(impl->strides, expected->strides);
        if (same <= 0)
            return same;
        call->pointers[i] = impl_data(impl);
        if (!call->pointers[i])
            return PyErr_Occurred() ? -1 : 0;
        call->held[call->held_count++] = Py_NewRef(impl->storage);
    }
    return 1;
}

/* The memory for results and in between, behind the constants' addresses. -1 with an exception set. */
static int take_memory(const GraphLaunch *self, Call *call, void **pointers)
{
    for (Py_ssize_t i = 0; i < self->made_count; i++) {
        StorageImpl *storage = storage_allocate(self->made_bytes[i]);
        if (!storage)
            return -1;
        call->held[call->held_count++] = (PyObject *)storage;
        *pointers++ = storage->data;
    }
    *pointers = NULL;
    if (!self->arena_bytes)
        return 0;
    call->arena = allocator_allocate((size_t)self->arena_bytes, &call->arena_capacity);
    *pointers = call->arena;
    if (call->arena)
        return 0;
    PyErr_Format(PyExc_MemoryError, "a compiled graph cannot allocate the %zd bytes that it works in", self->arena_bytes);
    return -1;
}

static PyObject *output_of(const GraphLaunch *self, const Output *output, const Call *call, PyObject *const *args)
{
    if (output->kind == INPUT)
        return Py_NewRef(args[output->number]);
    if (output->kind == CONSTANT)
        return Py_NewRef(output->object);
    PyObject *storage = call->held[self->input_count + output->number];
    TensorImpl *impl = impl_over(storage, output->sizes, output->strides, output->offset, output->dtype);
    if (impl)
        impl->numel = output->numel;
    return tensor_wrap_new(impl);
}

static PyObject *results_of(const GraphLaunch *self, const Call *call, PyObject *const *args)
{
    PyObject *results = PyTuple_New(self->output_count);
    for (Py_ssize_t i = 0; results && i < self->output_count; i++) {
        PyObject *result = output_of(self, &self->outputs[i], call, args);
        if (!result)
            Py_CLEAR(results);
        else
            PyTuple_SET_ITEM(results, i, result);
    }
    return results;
}

static int run_entry(const GraphLaunch *self, void **pointers)
{
    int status;
    if (!self->is_long)
        return self->entry(pointers);
    Py_BEGIN_ALLOW_THREADS
    status = self->entry(pointers);
    Py_END_ALLOW_THREADS
    return status;
}

/* The results; NULL without an exception where another way is to be gone: the reference where `failed` says so. */
static PyObject *run(const GraphLaunch *self, const Prepared *prepared, PyObject *const *args, int *failed)
{
    Py_ssize_t constants = prepared ? prepared->pointer_count : 0;
    Call call;
    PyObject *results = NULL;
    if (call_reserve(&call, self->input_count + constants + self->made_count + 1, self->input_count + self->made_count) == 0 &&
        take_inputs(self, &call, args) > 0) {
        if (constants)
            memcpy(call.pointers + self->input_count, prepared->pointers, (size_t)constants * sizeof(void *));
        if (take_memory(self, &call, call.pointers + self->input_count + constants) == 0) {
            *failed = run_entry(self, call.pointers);
            results = *failed ? NULL : results_of(self, &call, args);
        }
    }
    call_release(&call);
    return results;
}

/* What is no part of the user's program: the frame hook is off meanwhile. */
static PyObject *call_python(PyObject *function, PyObject *const *args, size_t flags, PyObject *names)
{
    PyObject *callback = current_callback();
    PyObject *before = callback ? enter_region(NULL) : NULL;
    Py_INCREF(function);
    PyObject *results = PyObject_Vectorcall(function, args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    Py_DECREF(function);
    if (callback)
        leave_region(before);
    return results;
}

static PyObject *launch_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    GraphLaunch *self = (GraphLaunch *)object;
    Prepared *prepared = (Prepared *)Py_XNewRef((PyObject *)self->prepared);
    PyObject *results = NULL;
    int failed = 0;
    if (PyVectorcall_NARGS(flags) == self->input_count && (!names || !PyTuple_GET_SIZE(names)) && !self->is_diverted &&
        (prepared ? prepared_is_current(prepared) : !self->pointer_count))
        results = run(self, prepared, args, &failed);
    Py_XDECREF((PyObject *)prepared);
    if (results || PyErr_Occurred())
        return results;
    return call_python(failed ? self->reference : self->general, args, flags, names);
}

/* Making one */

static int set_input(Expected *input, PyObject *description)
{
    PyObject *sizes, *strides, *dtype;
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "O!O!On", &PyTuple_Type, &sizes, &PyTuple_Type, &strides,
                                                         &dtype, &input->reach)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "an input is (sizes, strides, dtype, reach)");
        return -1;
    }
    input->itemsize = itemsize_of(dtype);
    if (input->itemsize < 0 || input->reach < 0 || PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "an input has as many strides as sizes and reaches over >= 0 bytes, got %R", description);
        return -1;
    }
    input->sizes = Py_NewRef(sizes);
    input->strides = Py_NewRef(strides);
    input->dtype = Py_NewRef(dtype);
    return 0;
}

static int set_input_output(const GraphLaunch *self, Output *output, PyObject *description)
{
    output->kind = INPUT;
    output->number = PyLong_AsSsize_t(description);
    if (output->number >= 0 && output->number < self->input_count)
        return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "a result is an input that there is not");
    return -1;
}

/* Whether a view lies within its memory. */
static int view_fits(const GraphLaunch *self, const Output *output, PyObject *sizes, PyObject *strides, PyObject *dtype)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(sizes), last = output->offset, itemsize = itemsize_of(dtype);
    if (output->number < 0 || output->number >= self->made_count || rank != PyTuple_GET_SIZE(strides) || last < 0 || itemsize < 0)
        return 0;
    for (Py_ssize_t dim = 0; dim < rank; dim++) {
        Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, dim)), step = PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, dim));
        if (PyErr_Occurred() || size < 0 || step < 0)
            return 0;
        if (size == 0)
            return 1;
        if (__builtin_mul_overflow(size - 1, step, &step) || __builtin_add_overflow(last, step, &last))
            return 0;
    }
    return last < PY_SSIZE_T_MAX / 64 && (last + 1) * itemsize <= self->made_bytes[output->number];
}

static int set_output(const GraphLaunch *self, Output *output, PyObject *description)
{
    PyObject *sizes, *strides, *dtype;
    if (PyLong_Check(description))
        return set_input_output(self, output, description);
    if (PyTuple_Check(description) && PyTuple_GET_SIZE(description) == 1) {
        output->kind = CONSTANT;
        output->object = Py_NewRef(PyTuple_GET_ITEM(description, 0));
        return 0;
    }
    if (!PyTuple_Check(description) || !PyArg_ParseTuple(description, "nO!O!nO", &output->number, &PyTuple_Type, &sizes,
                                                         &PyTuple_Type, &strides, &output->offset, &dtype)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a result is an input's position, (object,) or (memory, sizes, strides, offset, dtype)");
        return -1;
    }
    if (!view_fits(self, output, sizes, strides, dtype)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "a result lies in memory that there is not: %R", description);
        return -1;
    }
    output->kind = MADE;
    output->numel = count_elements(sizes);
    output->sizes = Py_NewRef(sizes);
    output->strides = Py_NewRef(strides);
    output->dtype = Py_NewRef(dtype);
    return 0;
}

static int set_made(GraphLaunch *self, Py_ssize_t index, PyObject *nbytes)
{
    self->made_bytes[index] = PyLong_Check(nbytes) ? PyLong_AsSsize_t(nbytes) : -1;
    if (self->made_bytes[index] >= 0)
        return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "results take a number of bytes");
    return -1;
}

static int set_all(GraphLaunch *self, PyObject *inputs, PyObject *made, PyObject *outputs)
{
    self->inputs = PyMem_Calloc((size_t)PyTuple_GET_SIZE(inputs) + 1, sizeof *self->inputs);
    self->made_bytes = PyMem_Calloc((size_t)PyTuple_GET_SIZE(made) + 1, sizeof *self->made_bytes);
    self->outputs = PyMem_Calloc((size_t)PyTuple_GET_SIZE(outputs) + 1, sizeof *self->outputs);
    if (!self->inputs || !self->made_bytes || !self->outputs) {
        PyErr_NoMemory();
        return -1;
    }
    for (; self->input_count < PyTuple_GET_SIZE(inputs); self->input_count++)
        if (set_input(&self->inputs[self->input_count], PyTuple_GET_ITEM(inputs, self->input_count)) < 0)
            return -1;
    for (; self->made_count < PyTuple_GET_SIZE(made); self->made_count++)
        if (set_made(self, self->made_count, PyTuple_GET_ITEM(made, self->made_count)) < 0)
            return -1;
    for (; self->output_count < PyTuple_GET_SIZE(outputs); self->output_count++)
        if (set_output(self, &self->outputs[self->output_count], PyTuple_GET_ITEM(outputs, self->output_count)) < 0)
            return -1;
    return 0;
}

static PyObject *launch_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(names))
{
    PyObject *address, *inputs, *made, *outputs, *general, *reference;
    Py_ssize_t arena_bytes, pointer_count;
    int is_long;
    if (!PyArg_ParseTuple(args, "O!O!O!O!nnpOO:GraphLaunch", &PyLong_Type, &address, &PyTuple_Type, &inputs, &PyTuple_Type, &made,
                          &PyTuple_Type, &outputs, &arena_bytes, &pointer_count, &is_long, &general, &reference))
        return NULL;
    void *entry = PyLong_AsVoidPtr(address);
    if (!entry || arena_bytes < 0 || pointer_count < 0 || !PyCallable_Check(general) || !PyCallable_Check(reference)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "GraphLaunch: expected the address of a function, numbers >= 0 and callables");
        return NULL;
    }
    GraphLaunch *self = (GraphLaunch *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = launch_call;
    self->entry = (Entry)entry;
    self->arena_bytes = arena_bytes;
    self->pointer_count = pointer_count;
    self->is_long = is_long;
    self->general = Py_NewRef(general);
    self->reference = Py_NewRef(reference);
    if (set_all(self, inputs, made, outputs) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *use_constants(GraphLaunch *self, PyObject *args)
{
    PyObject *tensors, *state, *pointers, *keep;
    if (!PyArg_ParseTuple(args, "O!O!O!O:use_constants", &PyTuple_Type, &tensors, &PyTuple_Type, &state, &PyTuple_Type, &pointers,
                          &keep))
        return NULL;
    int fits = PyTuple_GET_SIZE(pointers) == self->pointer_count && PyTuple_GET_SIZE(state) == PyTuple_GET_SIZE(tensors);
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(state); i++)
        fits = PyTuple_Check(PyTuple_GET_ITEM(state, i));
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "use_constants: expected %zd pointers, and for each tensor a tuple", self->pointer_count);
    Prepared *made = prepared_make(tensors, state, pointers, keep);
    if (!made)
        return NULL;
    PyObject *before = (PyObject *)self->prepared;
    self->prepared = made;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static int launch_traverse(GraphLaunch *self, visitproc visit, void *arg)
{
    Py_VISIT(self->general);
    Py_VISIT(self->reference);
    Py_VISIT(self->prepared);
    for (Py_ssize_t i = 0; i < self->output_count; i++)
        Py_VISIT(self->outputs[i].object);
    return 0;
}

/* A call after the collector was here has no general way: an error, not a crash. */
static int launch_clear(GraphLaunch *self)
{
    Py_XSETREF(self->general, Py_NewRef(Py_None));
    Py_XSETREF(self->reference, Py_NewRef(Py_None));
    Py_CLEAR(self->prepared);
    return 0;
}

static void launch_dealloc(GraphLaunch *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->general);
    Py_XDECREF(self->reference);
    Py_XDECREF((PyObject *)self->prepared);
    for (Py_ssize_t i = 0; i < self->input_count; i++) {
        Py_DECREF(self->inputs[i].sizes);
        Py_DECREF(self->inputs[i].strides);
        Py_DECREF(self->inputs[i].dtype);
    }
    for (Py_ssize_t i = 0; i < self->output_count; i++) {
        Py_XDECREF(self->outputs[i].sizes);
        Py_XDECREF(self->outputs[i].strides);
        Py_XDECREF(self->outputs[i].dtype);
        Py_XDECREF(self->outputs[i].object);
    }
    PyMem_Free(self->inputs);
    PyMem_Free(self->made_bytes);
    PyMem_Free(self->outputs);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *get_general(GraphLaunch *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->general); }

static PyGetSetDef launch_attributes[] = {
    {"general", (getter)get_general, NULL, "The callable for whatever is not as compiled for.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *divert(GraphLaunch *self, PyObject *flag)
{
    int is_diverted = PyObject_IsTrue(flag);
    if (is_diverted < 0)
        return NULL;
    self->is_diverted = is_diverted;
    Py_RETURN_NONE;
}

static PyMethodDef launch_method_table[] = {
    {"divert", (PyCFunction)divert, METH_O, "divert(flag, /)\n\nWhether every call goes to `general`."},
    {"use_constants", (PyCFunction)use_constants, METH_VARARGS,
     "use_constants(tensors, state, pointers, keep, /)\n\nThe addresses that stand between those of inputs and results, for as long\n"
     "as each tensor has its version, storage and generation of `state`; until then, and afterwards, the general way is gone.\n"
     "`keep` holds the memory."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject GraphLaunch_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.GraphLaunch",
    .tp_doc = "GraphLaunch(address, inputs, made, outputs, arena_bytes, pointer_count, is_long, general, reference, /)\n\n"
              "A compiled graph as a callable over CPU tensors. The function `int f(void **)` at `address` takes the addresses of\n"
              "inputs, `pointer_count` constants, results and arena. `inputs` are tuples (sizes, strides, dtype, reach), the last the\n"
              "bytes from the first element to the end, `made` the bytes of each result's memory, `outputs` tuples (memory, sizes,\n"
              "strides, offset, dtype), positions of inputs, or tuples of one object. The interpreter lock is released only for what\n"
              "`is_long`. Calls with other tensors, and those before `use_constants`, where there are constants, go to `general`;\n"
              "those for which the function returns anything but 0 go to `reference`.",
    .tp_basicsize = sizeof(GraphLaunch),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(GraphLaunch, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = launch_new,
    .tp_dealloc = (destructor)launch_dealloc,
    .tp_traverse = (traverseproc)launch_traverse,
    .tp_clear = (inquiry)launch_clear,
    .tp_getset = launch_attributes,
    .tp_methods = launch_method_table,
};
