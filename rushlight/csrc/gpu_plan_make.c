/* LaunchPlan: its description in Python, which is checked and read here. See rushlight.inductor.triton.planning. */
#include "gpu_plan.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { MOST_ARGUMENTS = 512, MOST_NULLS = 8 }; /* 4096 bytes of arguments, the limit of all drivers */

static void *zeros(Py_ssize_t count, size_t size) { return PyMem_Calloc((size_t)count + 1, size); }

static int malformed(const char *what, PyObject *object)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "LaunchPlan: expected %s, got %R", what, object);
    return -1;
}

/* Read a tuple of numbers of bytes. */
static int read_sizes(PyObject *tuple, Py_ssize_t **sizes, Py_ssize_t *count)
{
    *count = PyTuple_GET_SIZE(tuple);
    if (!(*sizes = zeros(*count, sizeof **sizes)))
        return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < *count; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        (*sizes)[i] = PyLong_Check(item) ? PyLong_AsSsize_t(item) : -1;
        if ((*sizes)[i] < 0)
            return malformed("a number of bytes >= 0", item);
    }
    return 0;
}

static int read_slot(PyObject *object, Py_ssize_t least, Py_ssize_t most, Py_ssize_t *slot)
{
    *slot = PyLong_Check(object) ? PyLong_AsSsize_t(object) : least - 1;
    return *slot >= least && *slot < most ? 0 : malformed("the number of a slot", object);
}

/* Read a pair of a slot, or -1, and an offset or number. */
static int read_value(const LaunchPlan *self, PyObject *pair, PlannedValue *value)
{
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyLong_Check(PyTuple_GET_ITEM(pair, 1)) ||
        read_slot(PyTuple_GET_ITEM(pair, 0), -1, self->input_count + self->memory_count, &value->slot) < 0)
        return malformed("a pair of a slot and a number", pair);
    value->offset = (int64_t)PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(pair, 1));
    return value->offset == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Make room for more values. */
static int reserve_values(LaunchPlan *self, Py_ssize_t more)
{
    PlannedValue *grown = PyMem_Realloc(self->values, (size_t)(self->value_count + more + 1) * sizeof *grown);
    if (!grown)
        return PyErr_NoMemory(), -1;
    self->values = grown;
    return 0;
}

static int add_values(LaunchPlan *self, PlannedStep *step, PyObject *pairs)
{
    if (!PyTuple_Check(pairs) || PyTuple_GET_SIZE(pairs) > MOST_ARGUMENTS)
        return malformed("a tuple of at most 512 values", pairs);
    step->first = self->value_count;
    step->count = PyTuple_GET_SIZE(pairs);
    if (reserve_values(self, step->count) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < step->count; i++, self->value_count++)
        if (read_value(self, PyTuple_GET_ITEM(pairs, i), &self->values[self->value_count]) < 0)
            return -1;
    return 0;
}

/* Add null pointers, which the driver reads behind a step's arguments. */
static int add_nulls(LaunchPlan *self, unsigned count)
{
    if (reserve_values(self, count) < 0)
        return -1;
    for (unsigned i = 0; i < count; i++)
        self->values[self->value_count++] = (PlannedValue){.slot = -1, .offset = 0};
    return 0;
}

/* Read the attribute `native` of a kernel: the driver's entry, the function, threads, bytes of shared memory, and how many null
   pointers follow the arguments. A kernel without it is launched by its method. */
static int read_native(LaunchPlan *self, PlannedStep *step)
{
    unsigned long long entry, function;
    unsigned nulls = 0;
    PyObject *native = PyObject_GetAttrString(step->kernel, "native");
    if (!native) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    int failed = !PyTuple_Check(native) || !PyArg_ParseTuple(native, "KKIII", &entry, &function, &step->threads, &step->shared, &nulls);
    failed = failed || nulls > MOST_NULLS;
    if (failed)
        malformed("a kernel whose `native` is 5 numbers", step->kernel);
    else if (!(failed = add_nulls(self, nulls) < 0)) {
        step->entry = (LaunchEntry)(uintptr_t)entry;
        step->function = (void *)(uintptr_t)function;
    }
    Py_DECREF(native);
    return failed ? -1 : 0;
}

/* Read a launch, (kernel, grid, values, constants), or a copy, (None, None, values, None). */
static int read_step(LaunchPlan *self, PyObject *row, PlannedStep *step)
{
    PyObject *kernel, *grid, *values, *constants;
    if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "OOOO", &kernel, &grid, &values, &constants))
        return malformed("a step of 4 parts", row);
    if (add_values(self, step, values) < 0)
        return -1;
    if (kernel == Py_None)
        return step->count == 3 ? 0 : malformed("a copy's target, source and bytes", values);
    step->kernel = Py_NewRef(kernel);
    step->constants = Py_NewRef(constants);
    if (!PyTuple_Check(grid) || !PyArg_ParseTuple(grid, "III", &step->grid[0], &step->grid[1], &step->grid[2]))
        return malformed("a grid of 3 numbers", grid);
    return read_native(self, step);
}

/* Read a result: ("memory", slot, sizes, strides, offset, dtype), ("input", slot), ("view", slot, sizes, strides, offset) or
   ("object", value). */
static int read_output(LaunchPlan *self, PyObject *row, PlannedOutput *output)
{
    Py_ssize_t count = PyTuple_Check(row) ? PyTuple_GET_SIZE(row) : 0, slots = self->input_count + self->memory_count;
    PyObject *kind = count ? PyTuple_GET_ITEM(row, 0) : Py_None;
    if (!PyUnicode_Check(kind) || count < 2)
        return malformed("a result", row);
    PyObject *first = PyTuple_GET_ITEM(row, 1);
    if (PyUnicode_CompareWithASCIIString(kind, "object") == 0) {
        output->kind = OUTPUT_OBJECT;
        output->object = Py_NewRef(first);
        return 0;
    }
    if (PyUnicode_CompareWithASCIIString(kind, "input") == 0) {
        output->kind = OUTPUT_INPUT;
        return read_slot(first, 0, self->input_count, &output->slot);
    }
    int is_memory = PyUnicode_CompareWithASCIIString(kind, "memory") == 0;
    if (count != (is_memory ? 6 : 5) || (!is_memory && PyUnicode_CompareWithASCIIString(kind, "view")))
        return malformed("a result", row);
    PyObject *sizes = PyTuple_GET_ITEM(row, 2), *strides = PyTuple_GET_ITEM(row, 3), *offset = PyTuple_GET_ITEM(row, 4);
    output->kind = is_memory ? OUTPUT_MEMORY : OUTPUT_VIEW;
    if (read_slot(first, is_memory ? self->input_count : 0, is_memory ? slots : self->input_count, &output->slot) < 0)
        return -1;
    if (!PyTuple_Check(sizes) || !PyTuple_Check(strides) || PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides) ||
        !PyLong_Check(offset))
        return malformed("sizes, strides and an offset", row);
    output->offset = PyLong_AsSsize_t(offset);
    output->sizes = Py_NewRef(sizes);
    output->strides = Py_NewRef(strides);
    output->object = is_memory ? Py_NewRef(PyTuple_GET_ITEM(row, 5)) : NULL;
    return output->offset == -1 && PyErr_Occurred() ? -1 : 0;
}

static int read_steps(LaunchPlan *self, PyObject *rows)
{
    if (!(self->steps = zeros(PyTuple_GET_SIZE(rows), sizeof *self->steps)))
        return PyErr_NoMemory(), -1;
    for (; self->step_count < PyTuple_GET_SIZE(rows); self->step_count++)
        if (read_step(self, PyTuple_GET_ITEM(rows, self->step_count), &self->steps[self->step_count]) < 0) {
            self->step_count++; /* so that what was read of it is released */
            return -1;
        }
    return 0;
}

static int read_outputs(LaunchPlan *self, PyObject *rows)
{
    if (!(self->outputs = zeros(PyTuple_GET_SIZE(rows), sizeof *self->outputs)))
        return PyErr_NoMemory(), -1;
    for (; self->output_count < PyTuple_GET_SIZE(rows); self->output_count++)
        if (read_output(self, PyTuple_GET_ITEM(rows, self->output_count), &self->outputs[self->output_count]) < 0) {
            self->output_count++;
            return -1;
        }
    return 0;
}

static PyObject *plan_call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *names)
{
    LaunchPlan *self = (LaunchPlan *)object;
    if (PyVectorcall_NARGS(flags) != self->input_count || (names && PyTuple_GET_SIZE(names)))
        return PyErr_Format(PyExc_TypeError, "a launch plan takes %zd tensors", self->input_count);
    return plan_run(self, arguments);
}

/* Read the addresses of functions of the driver: its attribute `entries`, (of copies, of cuStreamIsCapturing); or None. */
static int read_entries(LaunchPlan *self)
{
    PyObject *entries = PyObject_GetAttrString(self->driver, "entries");
    if (!entries) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    unsigned long long copy, is_capturing;
    int failed = !PyTuple_Check(entries) || !PyArg_ParseTuple(entries, "KK", &copy, &is_capturing);
    if (failed)
        malformed("a driver whose `entries` are 2 numbers", self->driver);
    else {
        self->copy = (CopyEntry)(uintptr_t)copy;
        self->is_capturing = (CaptureEntry)(uintptr_t)is_capturing;
    }
    Py_DECREF(entries);
    return failed ? -1 : 0;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"device", "place", "driver", "heap", "index", "failing", "reason", "reaches", "memory", "steps",
                            "outputs", NULL};
    PyObject *device, *place, *driver, *heap, *failing, *reason, *reaches, *memory, *steps, *outputs;
    int index;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOO!iO!OO!O!O!O!:LaunchPlan", names, &device, &place, &driver,
                                     &DeviceHeap_Type, &heap, &index, &PyDict_Type, &failing, &reason, &PyTuple_Type, &reaches,
                                     &PyTuple_Type, &memory, &PyTuple_Type, &steps, &PyTuple_Type, &outputs))
        return NULL;
    if (index < 0 || index >= MOST_GPUS)
        return PyErr_Format(PyExc_ValueError, "LaunchPlan: expected the number of a GPU, got %d", index);
    LaunchPlan *self = (LaunchPlan *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = plan_call;
    self->generation = gpu_plan_generation;
    self->index = index;
    self->owner = (uintptr_t)driver;
    self->device = Py_NewRef(device);
    self->place = Py_NewRef(place);
    self->driver = Py_NewRef(driver);
    self->heap = (DeviceHeap *)Py_NewRef(heap);
    self->failing = Py_NewRef(failing);
    self->reason = reason == Py_None ? NULL : Py_NewRef(reason);
    self->parts = PyTuple_Pack(4, reaches, memory, steps, outputs);
    if (!self->parts || read_sizes(reaches, &self->reaches, &self->input_count) < 0 || read_sizes(memory, &self->memory, &self->memory_count) < 0 ||
        read_entries(self) < 0 || read_steps(self, steps) < 0 || read_outputs(self, outputs) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int plan_traverse(LaunchPlan *self, visitproc visit, void *arg)
{
    Py_VISIT(self->device);
    Py_VISIT(self->driver);
    Py_VISIT(self->heap);
    Py_VISIT(self->failing);
    for (Py_ssize_t i = 0; i < self->step_count; i++)
        Py_VISIT(self->steps[i].kernel);
    return 0;
}

static void plan_dealloc(LaunchPlan *self)
{
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; i < self->step_count; i++) {
        Py_XDECREF(self->steps[i].kernel);
        Py_XDECREF(self->steps[i].constants);
    }
    for (Py_ssize_t i = 0; i < self->output_count; i++) {
        Py_XDECREF(self->outputs[i].sizes);
        Py_XDECREF(self->outputs[i].strides);
        Py_XDECREF(self->outputs[i].object);
    }
    PyMem_Free(self->steps);
    PyMem_Free(self->outputs);
    PyMem_Free(self->values);
    PyMem_Free(self->reaches);
    PyMem_Free(self->memory);
    Py_XDECREF(self->device);
    Py_XDECREF(self->place);
    Py_XDECREF(self->driver);
    Py_XDECREF((PyObject *)self->heap);
    Py_XDECREF(self->failing);
    Py_XDECREF(self->reason);
    Py_XDECREF(self->parts);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef plan_members[] = {
    {"parts", T_OBJECT_EX, offsetof(LaunchPlan, parts), READONLY, "The tuples `reaches`, `memory`, `steps` and `outputs`."},
    {"index", T_INT, offsetof(LaunchPlan, index), READONLY, "The number of the device."},
    {"reason", T_OBJECT, offsetof(LaunchPlan, reason), READONLY, "Why a kernel may fail; None if none may."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject LaunchPlan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.LaunchPlan",
    .tp_basicsize = sizeof(LaunchPlan),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "LaunchPlan(device, place, driver, heap, index, failing, reason, reaches, memory, steps, outputs)\n--\n\n"
              "What a program of GPU kernels does for inputs of known sizes, strides, dtypes and alignment. Calling it with tensors of\n"
              "this kind returns a tuple. `reaches` are the bytes that each input needs from its first element on, `memory` the bytes\n"
              "to allocate. A step is (kernel, grid, values, constants), or for a copy (None, None, values, None); a value is a pair\n"
              "of a slot and an offset, or of -1 and a number. `reason` is put into the dict `failing` at each call.",
    .tp_new = plan_new,
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_traverse = (traverseproc)plan_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(LaunchPlan, vectorcall),
    .tp_members = plan_members,
};
