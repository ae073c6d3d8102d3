/* The state of each thread that uses GPUs. See rushlight.cuda.runtime. */
#include "gpu_thread.h"

#include <string.h>

_Thread_local GpuThread gpu_thread;
uint64_t gpu_plan_generation = 1, gpu_choice_generation = 1;

/* Read the number of a device; -1 with an exception set. */
static int read_device(PyObject *object)
{
    long index = PyLong_AsLong(object);
    if (index >= 0 && index < MOST_GPUS)
        return (int)index;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "expected the number of a GPU from 0 to %d, got %ld", MOST_GPUS - 1, index);
    return -1;
}

static int read_number(PyObject *object, uint64_t *number)
{
    *number = PyLong_AsUnsignedLongLong(object);
    return *number == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

static int check_count(Py_ssize_t count, Py_ssize_t expected)
{
    if (count == expected)
        return 0;
    PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", expected, count);
    return -1;
}

static PyObject *current_gpu(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(gpu_thread.device);
}

static PyObject *choose_gpu(PyObject *Py_UNUSED(module), PyObject *index)
{
    int device = read_device(index);
    if (device < 0)
        return NULL;
    gpu_thread.device = device;
    Py_RETURN_NONE;
}

static PyObject *gpu_stream(PyObject *Py_UNUSED(module), PyObject *index)
{
    int device = read_device(index);
    return device < 0 ? NULL : PyLong_FromUnsignedLongLong(gpu_thread.streams[device]);
}

static PyObject *choose_gpu_stream(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    uint64_t stream;
    int device = check_count(count, 2) < 0 ? -1 : read_device(arguments[0]);
    if (device < 0 || read_number(arguments[1], &stream) < 0)
        return NULL;
    gpu_thread.streams[device] = stream;
    Py_RETURN_NONE;
}

static PyObject *leave_gpus(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    memset(&gpu_thread, 0, sizeof gpu_thread);
    Py_RETURN_NONE;
}

static PyObject *is_gpu_in_use(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    uint64_t owner;
    int device = check_count(count, 2) < 0 || read_number(arguments[0], &owner) < 0 ? -1 : read_device(arguments[1]);
    return device < 0 ? NULL : PyBool_FromLong(gpu_thread.owner == owner && gpu_thread.in_use == device);
}

static PyObject *gpu_in_use(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(gpu_thread.in_use);
}

static PyObject *note_gpu_in_use(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    uint64_t owner;
    int device = check_count(count, 2) < 0 || read_number(arguments[0], &owner) < 0 ? -1 : read_device(arguments[1]);
    if (device < 0)
        return NULL;
    gpu_thread.owner = (uintptr_t)owner;
    gpu_thread.in_use = device;
    Py_RETURN_NONE;
}

static PyObject *forget_plans(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    gpu_plan_generation++;
    gpu_choice_generation++;
    Py_RETURN_NONE;
}

static PyObject *choose_plans_anew(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    gpu_choice_generation++;
    Py_RETURN_NONE;
}

PyMethodDef gpu_thread_methods[] = {
    {"current_gpu", current_gpu, METH_NOARGS, "current_gpu() -> int\n\nThe number of the thread's device."},
    {"choose_gpu", choose_gpu, METH_O, "choose_gpu(index: int, /) -> None\n\nMake a device the thread's; ValueError outside 0 to 127."},
    {"gpu_stream", gpu_stream, METH_O, "gpu_stream(index: int, /) -> int\n\nThe thread's stream on a device; 0: the default one."},
    {"choose_gpu_stream", (PyCFunction)(void (*)(void))choose_gpu_stream, METH_FASTCALL,
     "choose_gpu_stream(index: int, stream: int, /) -> None\n\nMake a stream the thread's on its device."},
    {"leave_gpus", leave_gpus, METH_NOARGS, "leave_gpus() -> None\n\nForget the thread's device and streams."},
    {"is_gpu_in_use", (PyCFunction)(void (*)(void))is_gpu_in_use, METH_FASTCALL,
     "is_gpu_in_use(owner: int, index: int, /) -> bool\n\nWhether a driver, told by a number, has this device's context for the\n"
     "thread."},
    {"gpu_in_use", gpu_in_use, METH_NOARGS, "gpu_in_use() -> int\n\nThe device of the last `note_gpu_in_use`."},
    {"note_gpu_in_use", (PyCFunction)(void (*)(void))note_gpu_in_use, METH_FASTCALL,
     "note_gpu_in_use(owner: int, index: int, /) -> None\n\nNote that a driver has a device's context for the thread now."},
    {"choose_plans_anew", choose_plans_anew, METH_NOARGS,
     "choose_plans_anew() -> None\n\nLet all calls forget which launch plans they run by: a setting of the process has changed."},
    {"forget_plans", forget_plans, METH_NOARGS, "forget_plans() -> None\n\nMake all launch plans invalid."},
    {NULL, NULL, 0, NULL},
};
