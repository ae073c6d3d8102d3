/* ElementwiseKernel: the CPU kernel of an elementwise operator. Its purpose is a short path for small tensors.

   Contiguous tensors of one shape and dtype, slices of their rows, and numbers go directly to a native kernel. All other calls
   go to the general kernel in Python. The result is a new tensor, or the first argument if the kernel is in place. */
#include "tensor_impl.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "kernels/kernels.h"

static const RushlightKernels *kernels; /* NULL: every call goes to Python */
/* Maps this header's operator numbers to those of rushlight._kernels, which may have been compiled with another header. */
static int codes[RL_POINTWISE_COUNT];

enum {
    MIN_WORK_WITHOUT_GIL = 1 << 15, /* the GIL is released from this many elements on */
    MAX_REPETITIONS = 64        /* calls with more go to the general kernel, which loops over them natively */
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *general;   /* owned: the kernel for all other arguments */
    int code;            /* RlPointwise, an index of `codes` */
    int inputs, parameters;
    unsigned dtypes;     /* mask of the DtypeCodes that the native kernel computes */
    char gives_bool, in_place, selects; /* selects: the first input is bool */
} ElementwiseKernel;

typedef union {
    float single;
    double wide;
    int32_t integer;
    int64_t long_integer;
} Number;

/* The operands of a call in the form that the native kernel takes. */
typedef struct {
    const void *pointers[RL_MAX_INPUTS];
    Number numbers[RL_MAX_INPUTS];
    unsigned scalars;  /* bit i: operand i is a single element */
    unsigned repeated; /* bit i: operand i has `period` elements, which repeat along the leading dimensions of the result */
    /* Not 0: operand i consists of runs of `run` elements; this is the distance between their starts. */
    Py_ssize_t run_distance[RL_MAX_INPUTS];
    Py_ssize_t run;                   /* 0 if all operands are contiguous */
    double parameters[RL_MAX_PARAMETERS];
    TensorImpl *shape; /* borrowed: an operand with the result's sizes */
    DtypeCode dtype;
    Py_ssize_t count, period;
} Operands;

static int read_number(PyObject *value, DtypeCode dtype, Number *number)
{
    if (dtype == FLOAT32 || dtype == FLOAT64) {
        int overflow = 0;
        double read = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value)
                      : PyLong_CheckExact(value) ? (double)PyLong_AsLongLongAndOverflow(value, &overflow) : -1;
        if (overflow)
            return 0;
        if (dtype == FLOAT32)
            number->single = (float)read;
        else
            number->wide = read;
        return PyFloat_CheckExact(value) || PyLong_CheckExact(value);
    }
    int overflow;
    long long read = PyLong_CheckExact(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : 0;
    if (!PyLong_CheckExact(value) || overflow || (dtype == INT32 && read != (int32_t)read))
        return 0;
    if (dtype == INT32)
        number->integer = (int32_t)read;
    else
        number->long_integer = read;
    return dtype == INT32 || dtype == INT64;
}

static int same_sizes(const TensorImpl *a, const TensorImpl *b)
{
    if (a->sizes == b->sizes)
        return 1;
    int equal = PyObject_RichCompareBool(a->sizes, b->sizes, Py_EQ);
    if (equal < 0)
        PyErr_Clear();
    return equal > 0;
}

/* Whether a tensor has only one distinct element: one element, or an expansion of one. */
static int is_single(TensorImpl *impl)
{
    if (impl_numel(impl) == 1)
        return 1;
    for (Py_ssize_t dim = 0; dim < PyTuple_GET_SIZE(impl->strides); dim++) {
        PyObject *stride = PyTuple_GET_ITEM(impl->strides, dim);
        if (!PyLong_CheckExact(stride) || PyLong_AsSsize_t(stride) != 0) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* Whether a single element of this shape broadcasts to exactly the sizes of `shape`. */
static int broadcasts_to(TensorImpl *impl, const TensorImpl *shape)
{
    return same_sizes(impl, shape) ||
           (impl_numel(impl) == 1 && PyTuple_GET_SIZE(impl->sizes) <= PyTuple_GET_SIZE(shape->sizes));
}

static int is_better_shape(TensorImpl *impl, TensorImpl *present)
{
    if (!is_single(present))
        return 0;
    return !is_single(impl) || (impl_numel(impl) == 1 && impl_numel(present) == 1 &&
                                PyTuple_GET_SIZE(impl->sizes) > PyTuple_GET_SIZE(present->sizes));
}

/* Find the dtype and the operand with the result's shape: the first one of more than one element, or else the first of the
   highest rank. */
static int choose_shape(const ElementwiseKernel *kernel, PyObject *const *arguments, Operands *operands)
{
    operands->shape = NULL;
    for (int i = 0; i < kernel->inputs; i++) {
        TensorImpl *impl = impl_of(arguments[i]);
        if (impl && (!operands->shape || is_better_shape(impl, operands->shape)))
            operands->shape = impl;
        if (impl && !(kernel->selects && i == 0))
            operands->dtype = dtype_code(impl->dtype);
    }
    return operands->shape && operands->dtype < OTHER_DTYPE && kernel->dtypes >> operands->dtype & 1;
}

/* Whether a row-major operand is repeated along the result's leading dimensions, as a bias is. */
static int is_repeated(TensorImpl *impl, TensorImpl *shape)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(impl->sizes), extra = PyTuple_GET_SIZE(shape->sizes) - rank;
    if (rank == 0 || extra <= 0 || impl_numel(impl) == 0 || impl_is_contiguous(impl) != 2 ||
        impl_numel(shape) / impl_numel(impl) > MAX_REPETITIONS)
        return 0;
    for (Py_ssize_t dim = 0; dim < rank; dim++) {
        PyObject *have = PyTuple_GET_ITEM(impl->sizes, dim), *want = PyTuple_GET_ITEM(shape->sizes, dim + extra);
        if (have != want && PyObject_RichCompareBool(have, want, Py_EQ) != 1) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* Whether an operand consists of contiguous runs at equal distances, in the order of its dimensions, as x[:, :5] does. The
   result is then row-major too. */
static int find_runs(TensorImpl *impl, int index, Operands *operands)
{
    Py_ssize_t length = 1, run_distance = 0, reach = 0;
    for (Py_ssize_t dim = PyTuple_GET_SIZE(impl->sizes) - 1; dim >= 0; dim--) {
        Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(impl->sizes, dim));
        Py_ssize_t stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(impl->strides, dim));
        if (PyErr_Occurred())
            PyErr_Clear();
        if (size <= 1 || stride <= 0)
            return 0;
        if (!run_distance && stride == length)
            length *= size;
        else if (!run_distance && stride > length)
            run_distance = stride, reach = stride * size;
        else if (run_distance && stride == reach)
            reach *= size;
        else
            return 0;
    }
    if (!run_distance || length == 1 || (operands->run && operands->run != length) ||
        impl_numel(impl) / length > MAX_REPETITIONS)
        return 0;
    operands->run = length;
    operands->run_distance[index] = run_distance;
    return 1;
}

static int read_operand(const ElementwiseKernel *kernel, PyObject *argument, int index, Operands *operands)
{
    TensorImpl *impl = impl_of(argument);
    DtypeCode dtype = kernel->selects && index == 0 ? BOOL : operands->dtype;
    if (!impl) {
        operands->pointers[index] = &operands->numbers[index];
        operands->scalars |= 1U << index;
        return dtype != BOOL && read_number(argument, dtype, &operands->numbers[index]);
    }
    if (dtype_code(impl->dtype) != dtype || impl->fake || impl->device != operands->shape->device)
        return 0;
    if (!(operands->pointers[index] = impl_data(impl))) {
        PyErr_Clear();
        return 0;
    }
    if (impl != operands->shape && is_single(impl)) {
        operands->scalars |= 1U << index;
        return broadcasts_to(impl, operands->shape);
    }
    if (same_sizes(impl, operands->shape))
        return impl_is_contiguous(impl) == 2 || find_runs(impl, index, operands);
    if (!is_repeated(impl, operands->shape) || (operands->repeated && operands->period != impl_numel(impl)))
        return 0;
    operands->repeated |= 1U << index;
    operands->period = impl_numel(impl);
    return 1;
}

static int read_operands(const ElementwiseKernel *kernel, PyObject *const *arguments, Py_ssize_t count, Operands *operands)
{
    operands->scalars = operands->repeated = 0;
    operands->run = 0;
    memset(operands->run_distance, 0, sizeof operands->run_distance);
    operands->dtype = OTHER_DTYPE;
    if (count != kernel->inputs + kernel->parameters || !choose_shape(kernel, arguments, operands))
        return 0;
    for (int i = 0; i < kernel->inputs; i++)
        if (!read_operand(kernel, arguments[i], i, operands))
            return 0;
    if (operands->run && (operands->repeated || kernel->in_place))
        return 0;
    for (Py_ssize_t i = kernel->inputs; i < count; i++) {
        Number number;
        if (!read_number(arguments[i], FLOAT64, &number))
            return 0;
        operands->parameters[i - kernel->inputs] = number.wide;
    }
    operands->count = impl_numel(operands->shape);
    return 1;
}

/* Whether some input shares memory with the output without being at the same elements. */
static int overlaps(const ElementwiseKernel *kernel, const Operands *operands, const char *out, Py_ssize_t nbytes)
{
    for (int i = 0; i < kernel->inputs; i++) {
        const char *input = operands->pointers[i];
        Py_ssize_t extent = operands->scalars >> i & 1 ? 1 : nbytes;
        int whole = input == out && !((operands->scalars | operands->repeated) >> i & 1);
        if (!whole && input < out + nbytes && out < input + extent)
            return 1;
    }
    return 0;
}

/* Call the native kernel once, or once for each repetition or run. */
static int run_pieces(const ElementwiseKernel *kernel, const Operands *operands, char *out)
{
    Py_ssize_t piece = operands->repeated ? operands->period : operands->run ? operands->run : operands->count, done = 0;
    Py_ssize_t itemsize = configuration.itemsizes[operands->dtype];
    const void *pointers[RL_MAX_INPUTS];
    do {
        for (int i = 0; i < kernel->inputs; i++) {
            int moves = !((operands->scalars | operands->repeated) >> i & 1);
            Py_ssize_t size = kernel->selects && i == 0 ? 1 : itemsize;
            Py_ssize_t at = operands->run_distance[i] ? done / piece * operands->run_distance[i] : done;
            pointers[i] = (const char *)operands->pointers[i] + (moves ? at * size : 0);
        }
        if (!kernels->pointwise(codes[kernel->code], operands->dtype, pointers, operands->scalars,
                                out + done * (kernel->gives_bool ? 1 : itemsize), piece, operands->parameters))
            return 0;
        done += piece;
    } while (done < operands->count);
    return 1;
}

static int run(const ElementwiseKernel *kernel, const Operands *operands, void *out)
{
    if (codes[kernel->code] < 0)
        return 0;
    PyThreadState *thread = operands->count >= MIN_WORK_WITHOUT_GIL ? PyEval_SaveThread() : NULL;
    int done = run_pieces(kernel, operands, out);
    if (thread)
        PyEval_RestoreThread(thread);
    return done;
}

static PyObject *write_in_place(const ElementwiseKernel *kernel, PyObject *self, const Operands *operands)
{
    TensorImpl *impl = impl_of(self);
    StorageImpl *storage = impl ? (StorageImpl *)impl->storage : NULL;
    if (!impl || impl != operands->shape || kernel->gives_bool || storage->read_only)
        return NULL;
    char *out = impl_data(impl);
    Py_ssize_t nbytes = operands->count * configuration.itemsizes[operands->dtype];
    if (overlaps(kernel, operands, out, nbytes) || !run(kernel, operands, out))
        return NULL;
    return Py_NewRef(self);
}

/* Return the result, or NULL without an exception if the native kernel does not support these operands. */
static PyObject *write_new(const ElementwiseKernel *kernel, const Operands *operands)
{
    DtypeCode dtype = kernel->gives_bool ? BOOL : operands->dtype;
    PyObject *sizes = operands->shape->sizes, *strides = contiguous_strides(sizes);
    TensorImpl *made = strides ? impl_empty(sizes, strides, configuration.dtypes[dtype], operands->count) : NULL;
    Py_XDECREF(strides);
    if (made && !run(kernel, operands, ((StorageImpl *)made->storage)->data))
        Py_CLEAR(made);
    return tensor_wrap_new(made);
}

static PyObject *kernel_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    const ElementwiseKernel *kernel = (ElementwiseKernel *)self;
    Operands operands;
    if (kernels && !(names && PyTuple_GET_SIZE(names)) &&
        read_operands(kernel, arguments, PyVectorcall_NARGS(flags), &operands)) {
        PyObject *result = kernel->in_place ? write_in_place(kernel, arguments[0], &operands) : write_new(kernel, &operands);
        if (result || PyErr_Occurred())
            return result;
    }
    return PyObject_Vectorcall(kernel->general, arguments, flags, names);
}

/* There is no tp_clear, because a kernel always needs its callable; OperatorBase breaks reference cycles. */
static int kernel_traverse(ElementwiseKernel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->general);
    return 0;
}

static void kernel_dealloc(ElementwiseKernel *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->general);
    Py_TYPE(self)->tp_free(self);
}

static const unsigned FLOATS = 1U << FLOAT32 | 1U << FLOAT64;
static const unsigned NUMBERS = 1U << FLOAT32 | 1U << FLOAT64 | 1U << INT32 | 1U << INT64;

/* The meaning of the classes in kernels.h. */
static const struct {
    const char *name;
    unsigned dtypes;
    char gives_bool, selects;
} classes[] = {
    {"FLOAT32", 1U << FLOAT32, 0, 0},
    {"FLOATING", FLOATS, 0, 0},
    {"NUMBER", NUMBERS, 0, 0},
    {"INTEGER", 1U << INT32 | 1U << INT64 | 1U << BOOL, 0, 0},
    {"COMPARISON", NUMBERS, 1, 0},
    {"PREDICATE", FLOATS, 1, 0},
    {"LOGICAL", 1U << BOOL, 1, 0},
    {"SELECT", NUMBERS, 0, 1},
};

static const struct {
    const char *name;
    int inputs;
    const char *class;
} operators[] = {
#define RL_ROW(name, inputs, class) {#name, inputs, #class},
    RL_POINTWISE(RL_ROW)
#undef RL_ROW
};

static int find_operator(const char *name, ElementwiseKernel *kernel)
{
    for (int code = 0; code < RL_POINTWISE_COUNT; code++)
        for (size_t i = 0; strcmp(operators[code].name, name) == 0 && i < sizeof classes / sizeof *classes; i++)
            if (strcmp(operators[code].class, classes[i].name) == 0) {
                kernel->code = code;
                kernel->inputs = operators[code].inputs;
                kernel->dtypes = classes[i].dtypes;
                kernel->gives_bool = classes[i].gives_bool;
                kernel->selects = classes[i].selects;
                return 1;
            }
    PyErr_Format(PyExc_ValueError, "ElementwiseKernel: there is no native kernel %s", name);
    return 0;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"name", "general", "in_place", "parameters", NULL};
    const char *name;
    PyObject *general;
    int in_place = 0, parameters = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO|pi:ElementwiseKernel", names, &name, &general, &in_place,
                                     &parameters))
        return NULL;
    if (parameters < 0 || parameters > RL_MAX_PARAMETERS)
        return PyErr_Format(PyExc_ValueError, "ElementwiseKernel: expected 0 to %d parameters", RL_MAX_PARAMETERS);
    ElementwiseKernel *self = (ElementwiseKernel *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = kernel_call;
    self->general = Py_NewRef(general);
    self->in_place = (char)in_place;
    self->parameters = parameters;
    if (!find_operator(name, self))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyMemberDef members[] = {
    {"general", T_OBJECT_EX, offsetof(ElementwiseKernel, general), READONLY, "The kernel for all other arguments."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ElementwiseKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ElementwiseKernel",
    .tp_basicsize = sizeof(ElementwiseKernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "ElementwiseKernel(name, general, in_place=False, parameters=0)\n--\n\n"
              "Runs the native kernel `name` on contiguous operands of one shape and dtype, and calls `general` on others.\n"
              "The last `parameters` arguments are numbers that shape the operation.",
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ElementwiseKernel, vectorcall),
    .tp_members = members,
};

static int read_codes(PyObject *numbers)
{
    for (int code = 0; code < RL_POINTWISE_COUNT; code++) {
        PyObject *number = PyDict_GetItemString(numbers, operators[code].name); /* borrowed */
        codes[code] = number ? (int)PyLong_AsLong(number) : -1;
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *use_kernels(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *capsule, *numbers;
    if (!PyArg_ParseTuple(arguments, "OO!:use_kernels", &capsule, &PyDict_Type, &numbers))
        return NULL;
    const RushlightKernels *table = PyCapsule_GetPointer(capsule, RUSHLIGHT_KERNELS_CAPSULE);
    if (!table || read_codes(numbers) < 0)
        return NULL;
    if (table->version != RUSHLIGHT_KERNELS_VERSION)
        return PyErr_Format(PyExc_ImportError, "rushlight._kernels has version %u, expected %d: build both modules anew",
                            table->version, RUSHLIGHT_KERNELS_VERSION);
    kernels = table;
    Py_RETURN_NONE;
}

const RushlightKernels *native_kernels(void) { return kernels; }

int native_unary(int code, DtypeCode dtype, void *values, Py_ssize_t count)
{
    const void *inputs[RL_MAX_INPUTS] = {values};
    return kernels && codes[code] >= 0 && kernels->pointwise(codes[code], dtype, inputs, 0, values, count, NULL);
}

PyMethodDef elementwise_methods[] = {
    {"use_kernels", use_kernels, METH_VARARGS,
     "use_kernels(table, codes, /) -> None\n\nTake the native kernels of rushlight._kernels, under its numbers, from now on.\n"
     "ImportError where that was built for another version of this module."},
    {NULL, NULL, 0, NULL},
};
