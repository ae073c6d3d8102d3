/* Optimizer steps over lists of parameters in one call of a native kernel. See rushlight.optim.

   A row describes one parameter: (parameter, gradient, state tensors or None..., step). The step is a tensor that counts them,
   float32 and 0-dim, or a number. */
#include "tensor_impl.h"

#include "kernels/kernels.h"

const RushlightKernels *native_kernels(void);

/* The memory of a tensor that a step may use as it lies: contiguous, of the parameter's dtype and size. */
static void *memory_of(PyObject *tensor, DtypeCode dtype, Py_ssize_t count, int written)
{
    TensorImpl *impl = impl_of(tensor);
    if (!impl || impl->fake || dtype_code(impl->dtype) != dtype || !impl_is_contiguous(impl) || impl_numel(impl) != count)
        return NULL;
    void *data = impl_data(impl);
    if (!data)
        PyErr_Clear();
    return data && written && ((StorageImpl *)impl->storage)->read_only ? NULL : data;
}

static void count_write(PyObject *tensor) { ((VersionCounter *)impl_of(tensor)->version)->value++; }

/* The count of steps in a 0-dim float32 tensor, or NULL where the row has a number or something else. */
static float *step_count(PyObject *row, Py_ssize_t states)
{
    return memory_of(PyTuple_GET_ITEM(row, states + 2), FLOAT32, 1, 1);
}

/* 0 where the general way has to be taken. */
static int read_step(PyObject *row, Py_ssize_t states, double *step)
{
    const float *count = step_count(row, states);
    PyObject *number = PyTuple_GET_ITEM(row, states + 2);
    *step = count ? *count + 1.0 : PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : 0;
    return count || PyFloat_CheckExact(number);
}

static int read_row(PyObject *row, Py_ssize_t states, DtypeCode dtype, RlParameter *parameter)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != states + 3)
        return 0;
    TensorImpl *impl = impl_of(PyTuple_GET_ITEM(row, 0));
    if (!impl || impl->inference)
        return 0;
    Py_ssize_t count = impl_numel(impl);
    void *state[3] = {NULL, NULL, NULL};
    *parameter = (RlParameter){.count = count};
    parameter->parameter = memory_of(PyTuple_GET_ITEM(row, 0), dtype, count, 1);
    parameter->gradient = memory_of(PyTuple_GET_ITEM(row, 1), dtype, count, 0);
    for (Py_ssize_t i = 0; i < states; i++) {
        PyObject *tensor = PyTuple_GET_ITEM(row, 2 + i);
        if (tensor != Py_None && !(state[i] = memory_of(tensor, dtype, count, 1)))
            return 0;
    }
    parameter->momentum = parameter->exp_avg = state[0];
    parameter->exp_avg_sq = state[1];
    parameter->max_exp_avg_sq = state[2];
    return parameter->parameter && parameter->gradient && read_step(row, states, &parameter->step);
}

static void count_writes(PyObject *rows, Py_ssize_t states)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++) {
        PyObject *row = PyTuple_GET_ITEM(rows, i);
        count_write(PyTuple_GET_ITEM(row, 0));
        for (Py_ssize_t k = 0; k < states; k++)
            if (PyTuple_GET_ITEM(row, 2 + k) != Py_None)
                count_write(PyTuple_GET_ITEM(row, 2 + k));
        float *count = step_count(row, states);
        if (count) {
            *count += 1;
            count_write(PyTuple_GET_ITEM(row, states + 2));
        }
    }
}

typedef int (*Step)(const void *options, int dtype, const RlParameter *parameters, int64_t count);

static int adam_step(const void *options, int dtype, const RlParameter *parameters, int64_t count)
{
    return native_kernels()->adam(options, dtype, parameters, count);
}

static int sgd_step(const void *options, int dtype, const RlParameter *parameters, int64_t count)
{
    return native_kernels()->sgd(options, dtype, parameters, count);
}

/* Runs a step over `rows`, all of the dtype of the first parameter. True when it was done, else nothing was. */
static PyObject *run_step(PyObject *list, Py_ssize_t states, Step step, const void *options)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    if (!count)
        Py_RETURN_TRUE;
    if (!native_kernels() || modes_active(thread_record()))
        Py_RETURN_FALSE;
    PyObject *rows = PyList_AsTuple(list); /* nobody changes a tuple while other threads run */
    if (!rows)
        return NULL;
    PyObject *first = PyTuple_GET_ITEM(rows, 0);
    TensorImpl *impl = PyTuple_Check(first) && PyTuple_GET_SIZE(first) ? impl_of(PyTuple_GET_ITEM(first, 0)) : NULL;
    DtypeCode dtype = impl ? dtype_code(impl->dtype) : OTHER_DTYPE;
    RlParameter *parameters = PyMem_New(RlParameter, (size_t)count);
    if (!parameters) {
        Py_DECREF(rows);
        return PyErr_NoMemory();
    }
    int done = dtype == FLOAT32 || dtype == FLOAT64;
    for (Py_ssize_t i = 0; done && i < count; i++)
        done = read_row(PyTuple_GET_ITEM(rows, i), states, dtype, &parameters[i]);
    if (done) {
        Py_BEGIN_ALLOW_THREADS
        done = step(options, dtype, parameters, count);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(parameters);
    if (done)
        count_writes(rows, states);
    Py_DECREF(rows);
    return PyBool_FromLong(done);
}

static PyObject *adam(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *rows;
    RlAdam options;
    if (!PyArg_ParseTuple(arguments, "O!dddddppp:adam_step", &PyList_Type, &rows, &options.lr, &options.beta1, &options.beta2,
                          &options.eps, &options.weight_decay, &options.decoupled_weight_decay, &options.amsgrad,
                          &options.maximize))
        return NULL;
    return run_step(rows, 3, adam_step, &options);
}

static PyObject *sgd(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *rows;
    RlSgd options;
    if (!PyArg_ParseTuple(arguments, "O!ddddpp:sgd_step", &PyList_Type, &rows, &options.lr, &options.momentum,
                          &options.dampening, &options.weight_decay, &options.nesterov, &options.maximize))
        return NULL;
    return run_step(rows, 1, sgd_step, &options);
}

PyMethodDef optimizer_methods[] = {
    {"adam_step", adam, METH_VARARGS,
     "adam_step(rows, lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, amsgrad, maximize, /) -> bool\n\n"
     "One step of Adam over rows (parameter, gradient, exp_avg, exp_avg_sq, max_exp_avg_sq | None, step), which are also\n"
     "counted. False, and nothing done, where the native kernel does not take them: all must be contiguous, of one size and\n"
     "float32 or float64, and no dispatch mode active."},
    {"sgd_step", sgd, METH_VARARGS,
     "sgd_step(rows, lr, momentum, dampening, weight_decay, nesterov, maximize, /) -> bool\n\n"
     "One step of SGD over rows (parameter, gradient, momentum | None, step: 1.0 where the momentum has no value yet). False,\n"
     "and nothing done, as for adam_step."},
    {NULL, NULL, 0, NULL},
};
