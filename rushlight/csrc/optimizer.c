/* Optimizer steps over lists of parameters in one call of a native kernel. See rushlight.optim.

   A row describes one parameter: (parameter, gradient, state tensors or None..., scalars...). Scalars are zero-dimensional
   float32 tensors, which the step updates, or numbers. The first scalar is the number of steps so far. */
#include "tensor_impl.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

const RushlightKernels *native_kernels(void);

/* An optimizer and its argument counts. `whole`: its parameters must be row-major, and states may have other sizes. */
typedef struct {
    const char *name;
    Py_ssize_t states, scalars, options;
    int whole;
} Kind;

#define SPANS 0
#define MATRICES 1
#define KIND(name, options, states, scalars, class) {#name, states, scalars, sizeof(options) / sizeof(double), class},
static const Kind kinds[RL_OPTIMIZER_COUNT] = {RL_OPTIMIZERS(KIND)};
#undef KIND

enum { MAX_OPTIONS = 8, MAX_DENSE_DIMENSIONS = 8 };

/* Whether the elements fill a span of memory without gaps, in any order of dimensions. */
static int is_dense(TensorImpl *impl)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(impl->sizes), filled = 1;
    unsigned seen = 0;
    if (impl_is_contiguous(impl))
        return 1;
    for (Py_ssize_t turn = 0; rank <= MAX_DENSE_DIMENSIONS && turn < rank; turn++)
        for (Py_ssize_t i = 0; i < rank; i++) {
            Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(impl->sizes, i));
            if (seen & 1u << i || (size != 1 && PyLong_AsSsize_t(PyTuple_GET_ITEM(impl->strides, i)) != filled))
                continue;
            seen |= 1u << i;
            filled *= size;
        }
    return seen == (1u << rank) - 1 && filled == impl_numel(impl);
}

/* Whether two dense tensors store their elements in the same order. */
static int have_same_order(TensorImpl *one, TensorImpl *other)
{
    if (impl_is_contiguous(one) && impl_is_contiguous(other))
        return 1;
    return sizes_match(one->sizes, other->sizes) == 1 && sizes_match(one->strides, other->strides) == 1;
}

/* Return the memory of a tensor that is not fake and has this dtype and number of elements; NULL otherwise. */
static void *memory_of(TensorImpl *impl, DtypeCode dtype, Py_ssize_t count, int written)
{
    if (dtype_code(impl->dtype) != dtype || impl_numel(impl) != count)
        return NULL;
    void *data = impl_data(impl);
    if (!data)
        PyErr_Clear();
    return data && written && ((StorageImpl *)impl->storage)->read_only ? NULL : data;
}

/* Return the impl of the tensor at an index of a row, borrowed; NULL if there is no tensor. */
static TensorImpl *tensor_at(PyObject *row, Py_ssize_t index) { return impl_of(PyTuple_GET_ITEM(row, index)); }

/* Whether a step may write to a tensor. Python handles inference tensors, and may refuse them. */
static int is_writable(const TensorImpl *impl) { return impl && !impl->fake && !impl->inference; }

/* Return the memory of a scalar that is a tensor; NULL otherwise. */
static float *scalar_memory(PyObject *row, Py_ssize_t index)
{
    TensorImpl *impl = tensor_at(row, index);
    return is_writable(impl) && impl_is_contiguous(impl) ? memory_of(impl, FLOAT32, 1, 1) : NULL;
}

static int read_scalars(PyObject *row, const Kind *kind, RlParameter *parameter)
{
    for (Py_ssize_t i = 0; i < kind->scalars; i++) {
        const float *memory = scalar_memory(row, 2 + kind->states + i);
        PyObject *number = PyTuple_GET_ITEM(row, 2 + kind->states + i);
        if (!memory && !PyFloat_CheckExact(number))
            return 0;
        parameter->scalars[i] = memory ? *memory : PyFloat_AS_DOUBLE(number);
    }
    return 1;
}

static Py_ssize_t size_at(TensorImpl *impl, Py_ssize_t from_end)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(impl->sizes);
    return rank < 2 ? 0 : PyLong_AsSsize_t(PyTuple_GET_ITEM(impl->sizes, rank - from_end));
}

/* Return the number of elements of a matrix's state: that of the parameter, or its number of rows or columns. -1: the state
   must be None. */
static Py_ssize_t matrix_state_count(const RlParameter *parameter, Py_ssize_t index)
{
    if (!parameter->columns || !parameter->rows)
        return index ? -1 : parameter->count;
    return index == 0 ? -1 : parameter->count / (index == 1 ? parameter->columns : parameter->rows);
}

static int read_states(PyObject *row, const Kind *kind, DtypeCode dtype, RlParameter *parameter)
{
    TensorImpl *own = tensor_at(row, 0);
    for (Py_ssize_t i = 0; i < kind->states; i++) {
        int none = PyTuple_GET_ITEM(row, 2 + i) == Py_None;
        Py_ssize_t count = kind->whole ? matrix_state_count(parameter, i) : parameter->count;
        if (none && (count < 0 || !kind->whole))
            continue;
        TensorImpl *impl = tensor_at(row, 2 + i);
        int fits = is_writable(impl) && (kind->whole ? impl_is_contiguous(impl) : have_same_order(own, impl));
        if (!fits || !(parameter->states[i] = memory_of(impl, dtype, count, 1)))
            return 0;
    }
    return 1;
}

/* Read a row. Return 0 to leave it to Python. */
static int read_row(PyObject *row, const Kind *kind, RlParameter *parameter)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 2 + kind->states + kind->scalars)
        return 0;
    TensorImpl *own = tensor_at(row, 0), *gradient = tensor_at(row, 1);
    if (!is_writable(own) || !gradient || gradient->fake)
        return 0;
    DtypeCode dtype = dtype_code(own->dtype);
    if ((dtype != FLOAT32 && dtype != FLOAT64) || !(kind->whole ? impl_is_contiguous(own) : is_dense(own)))
        return 0;
    Py_ssize_t count = impl_numel(own);
    *parameter = (RlParameter){.dtype = (int)dtype, .count = count, .rows = size_at(own, 2), .columns = size_at(own, 1)};
    parameter->parameter = memory_of(own, dtype, count, 1);
    parameter->gradient = have_same_order(own, gradient) ? memory_of(gradient, dtype, count, 0) : NULL;
    return parameter->parameter && parameter->gradient && read_states(row, kind, dtype, parameter) &&
           read_scalars(row, kind, parameter);
}

/* ---- memory shared between parameters ---- */

typedef struct {
    const char *first, *end;
    int written;
} Range;

static int by_address(const void *one, const void *other)
{
    const char *a = ((const Range *)one)->first, *b = ((const Range *)other)->first;
    return (a > b) - (a < b);
}

static int ranges_meet(Range *ranges, size_t count)
{
    const char *reached = NULL, *written = NULL; /* the largest end of all ranges so far, and of the written ones */
    qsort(ranges, count, sizeof *ranges, by_address);
    for (size_t i = 0; i < count; i++) {
        const Range *range = &ranges[i];
        if (range->first < written || (range->written && range->first < reached))
            return 1;
        reached = range->end > reached ? range->end : reached;
        written = range->written && range->end > written ? range->end : written;
    }
    return 0;
}

/* Whether a row writes memory that another row uses, so that their order matters; -1 with an exception set. */
static int rows_share_memory(const RlParameter *parameters, size_t count)
{
    if (count < 2)
        return 0;
    Range *ranges = PyMem_New(Range, 2 * count);
    if (!ranges) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = (size_t)parameters[i].count * (parameters[i].dtype == RL_FLOAT64 ? 8 : 4);
        const char *own = parameters[i].parameter, *gradient = parameters[i].gradient;
        ranges[2 * i] = (Range){own, own + bytes, 1};
        ranges[2 * i + 1] = (Range){gradient, gradient + bytes, 0};
    }
    int meet = ranges_meet(ranges, 2 * count);
    PyMem_Free(ranges);
    return meet;
}

/* ---- the call ---- */

/* Store the numbers that the step changed, and count the writes. */
static void finish_row(PyObject *row, const Kind *kind, const RlParameter *parameter)
{
    count_write(tensor_at(row, 0));
    for (Py_ssize_t i = 0; i < kind->states; i++)
        if (parameter->states[i])
            count_write(tensor_at(row, 2 + i));
    for (Py_ssize_t i = 0; i < kind->scalars; i++) {
        float *memory = scalar_memory(row, 2 + kind->states + i);
        if (memory) {
            *memory = (float)parameter->scalars[i];
            count_write(tensor_at(row, 2 + kind->states + i));
        }
    }
}

static int append_position(PyObject *list, Py_ssize_t position)
{
    PyObject *number = PyLong_FromSsize_t(position);
    int failed = !number || PyList_Append(list, number) < 0;
    Py_XDECREF(number);
    return failed ? -1 : 0;
}

/* Run a step over the rows that native code supports; append the positions of the others to `left`. Return -1 with an exception
   set. */
static int run_rows(int code, const double *options, PyObject *rows, RlParameter *parameters, PyObject **taken, PyObject *left)
{
    Py_ssize_t count = 0, total = PyTuple_GET_SIZE(rows);
    int ready = native_kernels() && !modes_active(thread_record());
    for (Py_ssize_t i = 0; i < total; i++) {
        PyObject *row = PyTuple_GET_ITEM(rows, i);
        if (ready && read_row(row, &kinds[code], &parameters[count]))
            taken[count++] = row;
        else if (append_position(left, i) < 0)
            return -1;
    }
    int meet = rows_share_memory(parameters, (size_t)count), done = !meet;
    if (meet < 0)
        return -1;
    if (done && count) {
        Py_BEGIN_ALLOW_THREADS
        done = native_kernels()->optimizer(code, options, parameters, count);
        Py_END_ALLOW_THREADS
    }
    if (!done) {
        if (PyList_SetSlice(left, 0, PyList_GET_SIZE(left), NULL) < 0)
            return -1;
        for (Py_ssize_t i = 0; i < total; i++)
            if (append_position(left, i) < 0)
                return -1;
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        finish_row(taken[i], &kinds[code], &parameters[i]);
    return 0;
}

static PyObject *run_step(int code, const double *options, PyObject *list)
{
    PyObject *rows = PyList_AsTuple(list); /* a tuple, so that no other thread can change it */
    PyObject *left = rows ? PyList_New(0) : NULL;
    size_t room = rows ? (size_t)PyTuple_GET_SIZE(rows) + 1 : 1;
    RlParameter *parameters = PyMem_New(RlParameter, room);
    PyObject **taken = PyMem_New(PyObject *, room);
    if (left && (!parameters || !taken))
        PyErr_NoMemory();
    if (left && (!parameters || !taken || run_rows(code, options, rows, parameters, taken, left) < 0))
        Py_CLEAR(left);
    PyMem_Free(parameters);
    PyMem_Free(taken);
    Py_XDECREF(rows);
    return left;
}

static int kind_code(const char *name)
{
    for (int code = 0; code < RL_OPTIMIZER_COUNT; code++)
        if (!strcmp(kinds[code].name, name))
            return code;
    PyErr_Format(PyExc_ValueError, "optimizer_step: there is no native optimizer of the name '%s'", name);
    return -1;
}

static PyObject *optimizer_step(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *name;
    PyObject *rows, *given;
    double options[MAX_OPTIONS];
    if (!PyArg_ParseTuple(arguments, "sO!O!:optimizer_step", &name, &PyList_Type, &rows, &PyTuple_Type, &given))
        return NULL;
    int code = kind_code(name);
    if (code < 0)
        return NULL;
    if (PyTuple_GET_SIZE(given) != kinds[code].options)
        return PyErr_Format(PyExc_TypeError, "optimizer_step: '%s' has %zd options, but %zd were given", name,
                            kinds[code].options, PyTuple_GET_SIZE(given));
    for (Py_ssize_t i = 0; i < kinds[code].options; i++) {
        options[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(given, i));
        if (options[i] == -1 && PyErr_Occurred())
            return NULL;
    }
    return run_step(code, options, rows);
}

PyMethodDef optimizer_methods[] = {
    {"optimizer_step", optimizer_step, METH_VARARGS,
     "optimizer_step(name: str, rows: list, options: tuple, /) -> list[int]\n\n"
     "One step of an optimizer over rows (parameter, gradient, states or None..., scalars...), the scalars (the first one is the\n"
     "number of steps so far) being numbers or float32 tensors, which are moved on. What states, scalars and options are is said\n"
     "in kernels.h. Returns the positions of rows that were not taken, with which nothing was done: all of a row must be dense,\n"
     "laid out alike, of float32 or float64; of all rows none is taken under a dispatch mode, and where memory is shared."},
    {NULL, NULL, 0, NULL},
};
