/* GraphLaunch: a compiled graph as a callable that maps tensors to tensors in one step of C. If anything differs from the
   assumptions of compilation, it calls a Python fallback. */
#include "graph_call.h"
#include "prepared_constants.h"
#include "tensor_impl.h"

#include <stddef.h>
#include <string.h>

typedef int (*Entry)(void **);

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    Entry entry;
    GraphDescription graph;
    GraphPlan *plan; /* the plan of the last call, or the only one if sizes are static; NULL before */
    Py_ssize_t pointer_count, written_count;
    Py_ssize_t *written; /* positions of the inputs that the graph writes to */
    PyObject *general, *reference;
    PyObject *last;     /* makes the last input, which callers do not pass; or NULL */
    Prepared *prepared; /* NULL until a call has prepared the constants */
    int is_diverted;    /* whether every call takes the fallback */
} GraphLaunch;

/* Whether the graph may write to the inputs that it mutates, as far as C code can tell. */
static int may_write(const GraphLaunch *self, PyObject *const *args)
{
    const ThreadRecord *record = self->written_count ? thread_record() : NULL;
    for (Py_ssize_t i = 0; i < self->written_count; i++) {
        const TensorImpl *impl = impl_of(args[self->written[i]]);
        const StorageImpl *storage = (StorageImpl *)impl->storage;
        if (!record || (impl->inference && !record->inference) || (storage->buffer && storage->read_only))
            return 0;
    }
    return 1;
}

static void count_writes(const GraphLaunch *self, PyObject *const *args)
{
    for (Py_ssize_t i = 0; i < self->written_count; i++)
        count_write(impl_of(args[self->written[i]]));
}

static int run_entry(Entry entry, const GraphCall *call)
{
    int status;
    if (!entry || !call->plan->is_long)
        return entry ? entry(call->pointers) : 0;
    Py_BEGIN_ALLOW_THREADS
    status = entry(call->pointers);
    Py_END_ALLOW_THREADS
    return status;
}

/* Run the graph and return its results. Return NULL without an exception to use the fallback, or the reference implementation
   if *failed is set. */
static PyObject *run(GraphLaunch *self, const Prepared *prepared, PyObject *const *args, int *failed)
{
    const GraphDescription *graph = &self->graph;
    Py_ssize_t constants = prepared ? prepared->pointer_count : 0;
    GraphCall call;
    PyObject *results = NULL;
    if (graph_call_reserve(&call, graph, constants) == 0 && graph_call_plan(&call, graph, &self->plan, args) &&
        graph_call_inputs(&call, graph, args) > 0 && may_write(self, args) &&
        graph_call_memory(&call, graph, prepared ? prepared->pointers : NULL, constants) == 0) {
        *failed = run_entry(self->entry, &call);
        if (!*failed) {
            count_writes(self, args);
            results = graph_call_results(&call, graph, args);
        }
    }
    graph_call_release(&call);
    return results;
}

static PyObject *launch_graph(GraphLaunch *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Prepared *prepared = (Prepared *)Py_XNewRef((PyObject *)self->prepared);
    PyObject *results = NULL;
    int failed = 0;
    if (count == self->graph.input_count && (!names || !PyTuple_GET_SIZE(names)) && !self->is_diverted &&
        (prepared ? prepared_is_current(prepared) : !self->pointer_count))
        results = run(self, prepared, args, &failed);
    Py_XDECREF((PyObject *)prepared);
    if (results || PyErr_Occurred())
        return results;
    return call_unhooked(failed ? self->reference : self->general, args, count, names);
}

static PyObject *launch_with_last(GraphLaunch *self, PyObject *const *args, Py_ssize_t count)
{
    PyObject *few[ON_STACK], **all = count < ON_STACK ? few : PyMem_New(PyObject *, count + 1), *results = NULL;
    if (!all)
        return PyErr_NoMemory();
    PyObject *last = call_unhooked(self->last, NULL, 0, NULL);
    if (last) {
        if (count)
            memcpy(all, args, (size_t)count * sizeof *all);
        all[count] = last;
        results = launch_graph(self, all, count + 1, NULL);
        Py_DECREF(last);
    }
    if (all != few)
        PyMem_Free(all);
    return results;
}

static PyObject *launch_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    GraphLaunch *self = (GraphLaunch *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    return self->last && !names ? launch_with_last(self, args, count) : launch_graph(self, args, count, names);
}

/* Construction */

static int set_written(GraphLaunch *self, PyObject *positions)
{
    self->written = PyMem_Calloc((size_t)PyTuple_GET_SIZE(positions) + 1, sizeof *self->written);
    if (!self->written) {
        PyErr_NoMemory();
        return -1;
    }
    for (; self->written_count < PyTuple_GET_SIZE(positions); self->written_count++) {
        PyObject *item = PyTuple_GET_ITEM(positions, self->written_count);
        Py_ssize_t position = PyLong_Check(item) ? PyLong_AsSsize_t(item) : -1;
        if (position < 0 || position >= self->graph.input_count || !self->graph.inputs[position].dtype) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "GraphLaunch: expected positions of tensors that the graph writes to, got %R", item);
            return -1;
        }
        self->written[self->written_count] = position;
    }
    return 0;
}

/* Make the only plan of a graph with static sizes. */
static int set_plan(GraphLaunch *self)
{
    if (self->graph.number_count)
        return 0;
    self->plan = graph_plan_make(&self->graph, NULL, NULL);
    if (self->plan)
        return 0;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "GraphLaunch: expected sizes >= 0, and results that lie within their memory");
    return -1;
}

static PyObject *launch_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"address", "inputs", "made", "outputs", "general", "reference", "pointer_count", "arena_bytes",
                            "arena_bytes_for", "work", "symbols", "written", NULL};
    PyObject *address, *inputs, *made, *outputs, *general, *reference, *arena_bytes, *arena_bytes_for, *work, *symbols, *written;
    Py_ssize_t pointer_count;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!O!OOnOOOOO!:GraphLaunch", names, &PyLong_Type, &address, &PyTuple_Type,
                                     &inputs, &PyTuple_Type, &made, &PyTuple_Type, &outputs, &general, &reference, &pointer_count,
                                     &arena_bytes, &arena_bytes_for, &work, &symbols, &PyTuple_Type, &written))
        return NULL;
    void *entry = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    if (pointer_count < 0 || !PyCallable_Check(general) || !PyCallable_Check(reference) ||
        (symbols != Py_None && !PyTuple_Check(symbols)))
        return PyErr_Format(PyExc_ValueError, "GraphLaunch: expected an address, a number >= 0, callables, and a tuple or None");
    GraphLaunch *self = (GraphLaunch *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->call = launch_call;
    self->entry = (Entry)entry;
    self->pointer_count = pointer_count;
    self->general = Py_NewRef(general);
    self->reference = Py_NewRef(reference);
    if (graph_description_set(&self->graph, inputs, made, outputs, symbols) < 0 || set_written(self, written) < 0 ||
        graph_description_set_work(&self->graph, arena_bytes, arena_bytes_for, work) < 0 || set_plan(self) < 0)
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
    Py_VISIT(self->last);
    Py_VISIT(self->prepared);
    return graph_description_traverse(&self->graph, visit, arg);
}

/* After garbage collection the fallback is gone: a call then raises an error instead of crashing. */
static int launch_clear(GraphLaunch *self)
{
    Py_XSETREF(self->general, Py_NewRef(Py_None));
    Py_XSETREF(self->reference, Py_NewRef(Py_None));
    Py_CLEAR(self->last);
    Py_CLEAR(self->prepared);
    return 0;
}

static void launch_dealloc(GraphLaunch *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->general);
    Py_XDECREF(self->reference);
    Py_XDECREF(self->last);
    Py_XDECREF((PyObject *)self->prepared);
    graph_plan_release(self->plan);
    graph_description_clear(&self->graph);
    PyMem_Free(self->written);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *get_general(GraphLaunch *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->general); }

static int set_general(GraphLaunch *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (!value || !PyCallable_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "GraphLaunch.general is a callable");
        return -1;
    }
    Py_XSETREF(self->general, Py_NewRef(value));
    return 0;
}

static PyGetSetDef launch_attributes[] = {
    {"general", (getter)get_general, (setter)set_general, "The callable for whatever is not as compiled for.", NULL},
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

static PyObject *supply_last(GraphLaunch *self, PyObject *function)
{
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "supply_last: expected a callable, got %R", function);
    Py_XSETREF(self->last, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyMethodDef launch_method_table[] = {
    {"divert", (PyCFunction)divert, METH_O, "divert(flag, /)\n\nWhether every call goes to `general`."},
    {"supply_last", (PyCFunction)supply_last, METH_O,
     "supply_last(function, /)\n\nFrom now on `function()` makes the last input of each call, which callers leave out."},
    {"use_constants", (PyCFunction)use_constants, METH_VARARGS,
     "use_constants(tensors, state, pointers, keep, /)\n\nThe addresses that stand between those of inputs and results, for as long\n"
     "as each tensor has its version, storage and generation of `state`; until then, and afterwards, the general way is gone.\n"
     "`keep` holds the memory."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject GraphLaunch_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.GraphLaunch",
    .tp_doc = "GraphLaunch(address, inputs, made, outputs, general, reference, pointer_count, arena_bytes, arena_bytes_for, work,\n"
              "            symbols, written)\n\n"
              "A compiled graph as a callable over CPU tensors and ints. The function `int f(void **)` at `address` takes the addresses\n"
              "of inputs, `pointer_count` constants, results and arena, and the values of symbols. Numbers below are ints, or postfix\n"
              "code (`rushlight.core.algebra.postfix`) over the numbers and symbols of `symbols`, in this order.\n\n"
              "`inputs`: (dtype, sizes, strides), (dtype, rank) where sizes are open, or None for an int. `made`: the bytes of each\n"
              "result's memory. `outputs`: (0, memory, sizes, strides, offset, dtype), (1, input), (2, object), (3, number), or a view\n"
              "(4, operator, input or tensor, sizes, strides, offset). `symbols`: None, or the numbers that are read off inputs as\n"
              "(kind, input, dim), the code of each symbol, and the conditions as (kind, code). `arena_bytes_for`: None, or the address\n"
              "of an `int64_t f(const int64_t *)` of the symbols. The interpreter lock is released where `work` > 0. `written`: the\n"
              "inputs that the function writes to. Nothing is called at address 0.\n\n"
              "Calls with other arguments, and those before `use_constants`, where there are constants, go to `general`; those for\n"
              "which the function returns anything but 0 go to `reference`.",
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
